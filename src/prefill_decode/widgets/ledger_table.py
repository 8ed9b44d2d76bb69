"""`LedgerTable`: pairs, FLOPs and bytes of prefill and of the decode pass after it, as n grows."""

from collections.abc import Sequence
from pathlib import Path

import anywidget
import traitlets

from prefill_decode.widgets.ledger_table_answers import TELLING
from prefill_decode.widgets.ledger_table_data import Models, ledger_data
from prefill_decode.widgets.ledger_table_html import picture
from prefill_decode.widgets.modules import module
from prefill_decode.widgets.page_only import for_page

HERE = Path(__file__).parent
LENGTHS = tuple(2**power for power in range(18))  # 1 to 131,072


class LedgerTable(anywidget.AnyWidget):
    """Show four ledgers side by side for prefill and decode, and where the cache outweighs the weights.

    Parameters
    ----------
    shapes : mapping of str to (Shape, str)
        Models and the dtype each is counted in, by the name that the select shows.
    lengths : sequence of int
        The places of the slider, rising.
    model : str, optional
        Shown at first; the first one without it.
    n : int, optional
        Shown at first, one of the lengths; the one nearest to 4,096 without it.

    Raises
    ------
    ValueError
        For names or lengths that are not there, or lengths that do not rise.
    """

    _esm = module("ledger_table")
    _css = (HERE / "theme.css").read_text("utf-8") + (HERE / "ledger_table.css").read_text("utf-8")

    data = traitlets.Dict().tag(sync=True)
    markup = traitlets.Unicode().tag(sync=True)
    model = traitlets.Unicode().tag(sync=True)
    n = traitlets.Int().tag(sync=True)

    def __init__(
        self, shapes: Models, lengths: Sequence[int] = LENGTHS, *, model: str | None = None, n: int | None = None
    ) -> None:
        data = ledger_data(shapes, lengths)
        model = model or next(iter(shapes))
        n = min(lengths, key=lambda length: abs(length - TELLING)) if n is None else n
        _check(data, model, n)
        super().__init__(data=data, markup=for_page(picture(data, model, n, with_data=False)), model=model, n=n)

    @traitlets.validate("model", "n")
    def _known(self, proposal: dict) -> object:
        chosen = {"model": self.model, "n": self.n} | {proposal["trait"].name: proposal["value"]}
        try:
            _check(self.data, **chosen)
        except ValueError as error:
            raise traitlets.TraitError(str(error)) from None
        return proposal["value"]

    def __repr__(self) -> str:
        models, lengths = len(self.data["models"]), len(self.data["lengths"])
        return f"LedgerTable({models} models, {lengths} lengths, opens on {self.model}, n = {self.n})"

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict, dict]:
        formats, metadata = super()._repr_mimebundle_(**kwargs)
        shown = picture(self.data, self.model, self.n, with_data=True)
        return {**formats, "text/plain": repr(self), "text/html": shown}, metadata


def _check(data: dict, model: str, n: int) -> None:
    if model not in data["models"]:
        raise ValueError(f"unknown model {model!r}: expected one of {', '.join(data['models'])}")
    if n not in data["lengths"]:
        raise ValueError(f"n = {n!r}: expected one of the lengths {', '.join(map(str, data['lengths']))}")
