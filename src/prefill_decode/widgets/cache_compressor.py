"""`CacheCompressor`: choose how the past is stored, and see bytes, logits, perplexity and the text that follows."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anywidget
import traitlets

from prefill_decode.storage import Stored
from prefill_decode.widgets.cache_compressor_data import compressor_data, opening
from prefill_decode.widgets.cache_compressor_html import picture
from prefill_decode.widgets.modules import module

HERE = Path(__file__).parent


class CacheCompressor(anywidget.AnyWidget):
    """Show each way of storing against exact storage, and from which token on its text is another one.

    Parameters
    ----------
    rows : sequence of Stored
        As `compare_storage` returns them: exact storage first, each with a name of its own.
    tokens : callable or mapping of str to sequence of str
        Makes the strings of a continuation from its ids, as ``tokenizer.tokens`` does; or has them by name.
    sizes : mapping of str to float, optional
        Bytes a token to show instead of a row's own, by name.
    storage : str, optional
        Shown at first; the first one with another text without it.

    Raises
    ------
    ValueError
        For rows, tokens, sizes or a name that do not fit together, or if the first row is not exact storage.
    """

    _esm = module("cache_compressor")
    _css = (HERE / "theme.css").read_text("utf-8") + (HERE / "cache_compressor.css").read_text("utf-8")

    data = traitlets.Dict().tag(sync=True)
    markup = traitlets.Unicode().tag(sync=True)
    storage = traitlets.Unicode().tag(sync=True)

    def __init__(
        self,
        rows: Sequence[Stored],
        tokens: Callable[[Sequence[int]], Sequence[str]] | Mapping[str, Sequence[str]],
        *,
        sizes: Mapping[str, float] | None = None,
        storage: str | None = None,
    ) -> None:
        data = compressor_data(rows, tokens, sizes or {})
        storage = opening(rows) if storage is None else storage
        _check(data, storage)
        super().__init__(data=data, markup=picture(data, storage, with_data=False), storage=storage)

    @traitlets.validate("storage")
    def _known(self, proposal: dict) -> str:
        try:
            _check(self.data, proposal["value"])
        except ValueError as error:
            raise traitlets.TraitError(str(error)) from None
        return proposal["value"]

    def __repr__(self) -> str:
        return f"CacheCompressor({len(self.data['ways'])} ways of storing, shows {self.storage})"

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict, dict]:
        formats, metadata = super()._repr_mimebundle_(**kwargs)
        shown = picture(self.data, self.storage, with_data=True)
        return {**formats, "text/plain": repr(self), "text/html": shown}, metadata


def _check(data: dict, storage: str) -> None:
    if storage not in data["ways"]:
        raise ValueError(f"storage = {storage!r}: expected one of {'; '.join(data['ways'])}")
