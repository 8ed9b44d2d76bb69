"""`TileSweep`: attention tile by tile, with a softmax that is corrected as it goes, and its slow-memory accesses."""

from collections.abc import Sequence
from pathlib import Path

import anywidget
import numpy as np
import traitlets

from prefill_decode.widgets.modules import module
from prefill_decode.widgets.page_only import for_page
from prefill_decode.widgets.tile_sweep_data import ORDERS, memory_of, sweep_data
from prefill_decode.widgets.tile_sweep_html import picture

HERE = Path(__file__).parent


class TileSweep(anywidget.AnyWidget):
    """Step through FlashAttention's tiles: scores come and go, rows are corrected, accesses add up.

    Parameters
    ----------
    q, k, v : ndarray, [1, n, d]
        One head of at most 16 positions and 4 numbers each; scores and values below 10 in size.
    memories : sequence of int
        Sizes M of fast memory to choose from, in numbers, rising; each at least 4 d.
    labels : sequence of str, optional
        The token of each position, raw.
    memory : int, optional
        Size that it opens with; the one in the middle without it.
    order : {"keys", "queries"}
        Loop order that it opens with: which tile stays in fast memory while the others pass.

    Raises
    ------
    ValueError
        For arrays of other shapes or sizes, and memories that hold no tile.
    """

    _esm = module("tile_sweep")
    _css = (HERE / "theme.css").read_text("utf-8") + (HERE / "tile_sweep.css").read_text("utf-8")

    data = traitlets.Dict().tag(sync=True)
    markup = traitlets.Unicode().tag(sync=True)
    memory = traitlets.Int().tag(sync=True)
    order = traitlets.Unicode().tag(sync=True)
    step = traitlets.Int().tag(sync=True)

    def __init__(
        self,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        *,
        memories: Sequence[int],
        labels: Sequence[str] | None = None,
        memory: int | None = None,
        order: str = "keys",
    ) -> None:
        data = sweep_data(q, k, v, memories, labels, memory)
        if order not in ORDERS:
            raise ValueError(f'order = {order!r}: expected "keys" or "queries"')
        opened = data["opened"]
        steps = memory_of(data, opened)["orders"][order]["steps"]
        markup = for_page(picture(data, opened, order, with_data=False))
        super().__init__(data=data, markup=markup, memory=opened, order=order, step=steps)

    @property
    def steps(self) -> int:
        """Visits of this choice."""
        return memory_of(self.data, self.memory)["orders"][self.order]["steps"]

    @traitlets.validate("memory")
    def _check_memory(self, proposal: dict) -> int:
        sizes = [each["m"] for each in self.data["memories"]]
        if proposal["value"] not in sizes:
            expected = ", ".join(map(str, sizes))
            raise traitlets.TraitError(f"memory = {proposal['value']}: expected one of {expected}")
        return proposal["value"]

    @traitlets.validate("order")
    def _check_order(self, proposal: dict) -> str:
        if proposal["value"] not in ORDERS:
            raise traitlets.TraitError(f'order = {proposal["value"]!r}: expected "keys" or "queries"')
        return proposal["value"]

    @traitlets.validate("step")
    def _check_step(self, proposal: dict) -> int:
        if not 0 <= proposal["value"] <= self.steps:
            raise traitlets.TraitError(f"step = {proposal['value']}: expected 0 to {self.steps}")
        return proposal["value"]

    @traitlets.observe("memory", "order")
    def _stay_within(self, _: object) -> None:
        """Larger tiles make fewer steps."""
        self.step = min(self.step, self.steps)

    def __repr__(self) -> str:
        n, d, sizes = self.data["n"], self.data["d"], [each["m"] for each in self.data["memories"]]
        return f"TileSweep({n} positions × {d} numbers; M = {', '.join(map(str, sizes))})"

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict, dict]:
        formats, metadata = super()._repr_mimebundle_(**kwargs)
        markup = picture(self.data, self.memory, self.order, with_data=True)
        return {**formats, "text/plain": repr(self), "text/html": markup}, metadata
