"""`AttentionGrid`: prefill and decode as one triangle, drawn row by row. Arrays in, a picture out."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import anywidget
import numpy as np
import traitlets

from prefill_decode.widgets.attention_grid_data import phrase_data
from prefill_decode.widgets.attention_grid_html import opening, picture
from prefill_decode.widgets.attention_grid_questions import GridQuestion
from prefill_decode.widgets.modules import module

HERE = Path(__file__).parent


class AttentionGrid(anywidget.AnyWidget):
    """Show the attention weights of one head at a time, row after row, with what each pass costs.

    Parameters
    ----------
    tokens : sequence of str, length P + m
        Prompt tokens and chosen tokens, raw as the tokenizer shows them; the last one has no row.
    weights : array [layers, heads, T, T]
        Softmax rows of queries over keys, T = P + m - 1. At most 64 rows are drawn.
    scores : array [layers, heads, T, T], optional
        The scaled dot products before the softmax; NaN where unknown.
    prompt_len : int
        P, the number of prompt tokens.
    layers, heads : sequences, optional
        Labels of the axes 0 and 1; counted from 0 without them.
    next_tokens : sequence of length T, optional
        For each row up to five pairs (token, probability), the likeliest first.
    kv_bytes_per_token : int, optional
        Bytes of the keys and values of one position in all layers.
    names : mapping, optional
        `{(layer label, head label): text}`. The first one is shown at first; scores travel for these heads only.
    label : str, optional
        What the select "Phrase" calls this phrase.
    dtype_name : str, optional
        The element type behind `kv_bytes_per_token`, such as "float32".
    questions : sequence of GridQuestion, optional
        Buttons below the triangle; each shows what it asks about, and says the answer.

    Raises
    ------
    ValueError
        For shapes, labels, values or questions that do not fit together.

    Notes
    -----
    The weights travel as bytes (steps of 1/255): about 180 bytes a head for 16 rows, 2.8 kB for 64.
    Four measures of every head travel the same way, a byte each (`prefill_decode.observe.head_measures`).
    """

    _esm = module("attention_grid")
    _css = (HERE / "theme.css").read_text("utf-8") + (HERE / "attention_grid.css").read_text("utf-8")

    data = traitlets.Dict().tag(sync=True)
    phrase = traitlets.Int(0).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    layer = traitlets.Unicode().tag(sync=True)
    head = traitlets.Unicode().tag(sync=True)
    without_cache = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self,
        tokens: Sequence[str],
        weights: np.ndarray,
        scores: np.ndarray | None = None,
        *,
        prompt_len: int,
        layers: Sequence | None = None,
        heads: Sequence | None = None,
        next_tokens: Sequence | None = None,
        kv_bytes_per_token: int | None = None,
        names: Mapping | None = None,
        label: str | None = None,
        dtype_name: str | None = None,
        questions: Sequence[GridQuestion] = (),
    ) -> None:
        phrase = phrase_data(
            tokens,
            weights,
            scores,
            prompt_len=prompt_len,
            layers=layers,
            heads=heads,
            next_tokens=next_tokens,
            kv_bytes_per_token=kv_bytes_per_token,
            names=names,
            label=label,
            dtype_name=dtype_name,
            questions=questions,
        )
        super().__init__(data={"phrases": [phrase]}, **opening(phrase))

    @classmethod
    def of_phrases(cls, grids: Sequence["AttentionGrid"]) -> "AttentionGrid":
        """Join grids into one whose select "Phrase" chooses between them by their `label`.

        Raises
        ------
        ValueError
            Without grids, or if two labels are equal or one is missing.
        """
        phrases = [phrase for grid in grids for phrase in grid.data["phrases"]]
        labels = {phrase["label"] for phrase in phrases}
        if not phrases or None in labels or len(labels) < len(phrases):
            raise ValueError(
                f"got {len(phrases)} phrases, expected one or more with different labels: give each label="
            )
        joined = cls.__new__(cls)
        anywidget.AnyWidget.__init__(joined, data={"phrases": phrases}, **opening(phrases[0]))
        return joined

    def __repr__(self) -> str:
        first = self.data["phrases"][0]
        new = first["positions"] - first["promptLen"] + 1
        count = len(self.data["phrases"])
        what = f"{count} phrases" if count > 1 else f"{first['promptLen']} prompt + {new} new tokens"
        return f"AttentionGrid({what}, {len(first['layers'])} x {len(first['heads'])} heads)"

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict, dict]:
        formats, metadata = super()._repr_mimebundle_(**kwargs)
        return {**formats, "text/plain": repr(self), "text/html": picture(self.data)}, metadata
