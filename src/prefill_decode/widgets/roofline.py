"""`Roofline`: prefill and decode as two points under the roof of a device. Shapes in, a picture out."""

from collections.abc import Mapping
from pathlib import Path

import anywidget
import traitlets

from prefill_decode.cost import DTYPES, Constants, Machine, Shape
from prefill_decode.widgets.modules import module
from prefill_decode.widgets.page_only import for_page
from prefill_decode.widgets.roofline_data import (
    DTYPE_LABELS,
    LARGEST_BATCH,
    LONGEST_PROMPT,
    Devices,
    Told,
    roofline_data,
)
from prefill_decode.widgets.roofline_html import picture
from prefill_decode.widgets.roofline_numbers import Choice, Reading, read
from prefill_decode.widgets.roofline_texts import attributes, places, texts

HERE = Path(__file__).parent
CHOICES = ("model", "device", "dtype", "prompt_len", "batch")


class Roofline(anywidget.AnyWidget):
    """Show what binds a prompt's prefill and its decode on a device, what they take, and whether it fits.

    Parameters
    ----------
    shapes : mapping of str to Shape
        Models by the name that the select shows.
    devices : mapping of str to mapping
        Each with "peak" (FLOP/s in 16 bits, dense), "bandwidth" (bytes a second), "memory" (bytes) and, where its
        rate is known, "float32_peak"; other keys are ignored.
    constants : Constants or mapping of str to Constants
        What an engine reaches, for all devices or for each.
    model, device : str, optional
        Shown at first; the first of each without them.
    dtype : {"float16", "int8", "int4", "float32"}
    prompt_len, batch : int
        1 to 131,072 and 1 to 4,096.
    new_tokens : int
        Of each request, at least 2.
    judged : str or mapping of str to str, optional
        How far the expected times were off where they were measured, such as "median error 14 %, n = 41"; one text for
        all devices or one for each, None for a device where nothing like it was measured.
    classes : str or mapping of str to str, optional
        What the constants are those of, such as "compiled engine on GPU with HBM"; one text for all devices or one for
        each, None for a device whose constants are of no class.

    Raises
    ------
    ValueError
        For names that are not there, numbers out of range, or a device without the rate that the dtype needs.

    Notes
    -----
    FLOP per byte is `Ledger.intensity`: of weights and K/V read. Times also count K/V written, as `cost.work_of` does.
    """

    _esm = module("roofline")
    _css = (HERE / "theme.css").read_text("utf-8") + (HERE / "roofline.css").read_text("utf-8")

    data = traitlets.Dict().tag(sync=True)
    markup = traitlets.Unicode().tag(sync=True)
    model = traitlets.Unicode().tag(sync=True)
    device = traitlets.Unicode().tag(sync=True)
    dtype = traitlets.Unicode().tag(sync=True)
    prompt_len = traitlets.Int().tag(sync=True)
    batch = traitlets.Int().tag(sync=True)

    def __init__(
        self,
        shapes: Mapping[str, Shape],
        devices: Devices,
        constants: Constants | Mapping[str, Constants],
        *,
        model: str | None = None,
        device: str | None = None,
        dtype: str = "float16",
        prompt_len: int = 2048,
        batch: int = 1,
        new_tokens: int = 128,
        judged: Told = None,
        classes: Told = None,
    ) -> None:
        self._shapes, self._devices, self._constants = dict(shapes), dict(devices), constants
        data = roofline_data(shapes, devices, constants, new_tokens=new_tokens, judged=judged, classes=classes)
        choice = Choice(model or next(iter(shapes)), device or next(iter(devices)), dtype, prompt_len, batch)
        _check(choice, data)
        markup = for_page(self._picture(data, choice, with_data=False))
        super().__init__(data=data, markup=markup, **vars(choice))

    @traitlets.validate(*CHOICES)
    def _known(self, proposal: dict) -> object:
        chosen = {name: getattr(self, name) for name in CHOICES} | {proposal["trait"].name: proposal["value"]}
        try:
            _check(Choice(**chosen), self.data)
        except ValueError as error:
            raise traitlets.TraitError(str(error)) from None
        return proposal["value"]

    def __repr__(self) -> str:
        return (
            f"Roofline({len(self._shapes)} models, {len(self._devices)} devices, opens on {self.model}, {self.device})"
        )

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict, dict]:
        formats, metadata = super()._repr_mimebundle_(**kwargs)
        choice = Choice(*(getattr(self, name) for name in CHOICES))
        shown = self._picture(self.data, choice, with_data=True)
        return {**formats, "text/plain": repr(self), "text/html": shown}, metadata

    def _picture(self, data: dict, choice: Choice, *, with_data: bool) -> str:
        machine, reading = self._read(data, choice)
        put = places(data, choice, reading, peak=machine.peak, bandwidth=machine.bandwidth)
        traits = {"data": data, **vars(choice)}
        return picture(traits, attributes(choice, reading), texts(data, choice, reading), put, with_data=with_data)

    def _read(self, data: dict, choice: Choice) -> tuple[Machine, Reading]:
        device, constants = data["devices"][choice.device], self._constants
        machine = Machine(device["rates"][DTYPES[choice.dtype].arithmetic], device["bandwidth"])
        reached = constants if isinstance(constants, Constants) else constants[choice.device]
        shape = self._shapes[choice.model]
        return machine, read(shape, machine, reached, choice, memory=device["memory"], new=data["newTokens"])


def _check(choice: Choice, data: dict) -> None:
    for name, known in (("model", data["models"]), ("device", data["devices"]), ("dtype", DTYPE_LABELS)):
        if getattr(choice, name) not in known:
            raise ValueError(f"unknown {name} {getattr(choice, name)!r}: expected one of {', '.join(known)}")
    if DTYPES[choice.dtype].arithmetic not in data["devices"][choice.device]["rates"]:
        raise ValueError(
            f"device {choice.device!r} has no rate in {choice.dtype}: give its float32_peak, or use float16"
        )
    for name, largest in (("prompt_len", LONGEST_PROMPT), ("batch", LARGEST_BATCH)):
        value = getattr(choice, name)
        if value not in range(1, largest + 1):
            raise ValueError(f"{name} = {value!r}: expected a whole number from 1 to {largest:,}")
