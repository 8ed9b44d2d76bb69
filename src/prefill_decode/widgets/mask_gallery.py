"""`MaskGallery`: who may read whom when prompts, pads, chunks or pages share an array, and how many pairs that is."""

from collections.abc import Sequence
from pathlib import Path

import anywidget
import traitlets

from prefill_decode.widgets.mask_gallery_cases import MaskCase
from prefill_decode.widgets.mask_gallery_data import Question, check_cases, gallery_data
from prefill_decode.widgets.mask_gallery_html import picture
from prefill_decode.widgets.modules import module

HERE = Path(__file__).parent


class MaskGallery(anywidget.AnyWidget):
    """Choose a mask, run its rows one by one, and count the pairs; a cell says why its row may read its key.

    ``mask_gallery_examples.gallery()`` makes the seven cases of the book.

    Parameters
    ----------
    cases : sequence of MaskCase
        At least one, each with a name of its own.
    questions : sequence of Question
        What the buttons ask.
    case : str, optional
        Shown at first, all rows run; the first one without it.

    Raises
    ------
    ValueError
        If there are no cases, a name stands twice or is unknown, or a question points at nothing.
    """

    _esm = module("mask_gallery")
    _css = (HERE / "theme.css").read_text("utf-8") + (HERE / "mask_gallery.css").read_text("utf-8")

    data = traitlets.Dict().tag(sync=True)
    markup = traitlets.Unicode().tag(sync=True)
    case = traitlets.Unicode().tag(sync=True)
    step = traitlets.Int().tag(sync=True)

    def __init__(
        self, cases: Sequence[MaskCase], questions: Sequence[Question] = (), *, case: str | None = None
    ) -> None:
        check_cases(cases, questions)
        self._cases = {each.name: each for each in cases}
        case = cases[0].name if case is None else case
        if case not in self._cases:
            raise ValueError(self._unknown(case))
        data = gallery_data(cases, questions)
        super().__init__(data=data, case=case, step=data["cases"][case]["steps"])
        self.markup = picture(self._cases, data, case, with_data=False)

    @traitlets.validate("case")
    def _check_case(self, proposal: dict) -> str:
        if proposal["value"] not in self._cases:
            raise traitlets.TraitError(self._unknown(proposal["value"]))
        return proposal["value"]

    @traitlets.validate("step")
    def _check_step(self, proposal: dict) -> int:
        steps = self.data["cases"][self.case]["steps"]
        if not 0 <= proposal["value"] <= steps:
            raise traitlets.TraitError(f"step = {proposal['value']}: expected 0 to {steps}, the rows of {self.case!r}")
        return proposal["value"]

    @traitlets.observe("case")
    def _keep_step(self, change: dict) -> None:
        """Follow a mask that has run by one that has run; any other step stays, if there is such a row."""
        if not change["old"]:
            return
        before, steps = (self.data["cases"][change[name]]["steps"] for name in ("old", "new"))
        self.step = steps if self.step == before else min(self.step, steps)

    def _unknown(self, case: str) -> str:
        return f"case = {case!r}: expected one of {', '.join(self._cases)}"

    def __repr__(self) -> str:
        return f"MaskGallery({len(self._cases)} masks, shows {self.case})"

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict, dict]:
        formats, metadata = super()._repr_mimebundle_(**kwargs)
        shown = picture(self._cases, self.data, self.case, with_data=True)
        return {**formats, "text/plain": repr(self), "text/html": shown}, metadata
