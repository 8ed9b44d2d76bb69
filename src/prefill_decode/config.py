"""The numbers that fix a decoder's shapes."""

from __future__ import annotations

import numbers
from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    """Name the sizes of a decoder of the Llama family.

    Shape comments use these letters::

        n_layers    layers
        d_model  D  width of a hidden state
        n_heads  h  query heads
        n_kv_heads  h_kv  key/value heads; n_heads / n_kv_heads query heads share one
        d_head   d  width of one head; need not be d_model / n_heads
        d_ff     F  width of the feed-forward layer
        vocab_size  V  token ids are 0 .. V - 1
        n_ctx       positions the model was trained for

    Raises
    ------
    ValueError
        If the query heads cannot be shared out, or a head cannot be rotated in pairs.
    """

    n_layers: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    d_ff: int
    vocab_size: int
    n_ctx: int
    rope_theta: float
    norm_eps: float

    def __post_init__(self) -> None:
        if self.n_heads % self.n_kv_heads:
            raise ValueError(
                f"n_heads = {self.n_heads} is not a multiple of n_kv_heads = {self.n_kv_heads}: "
                "every KV head must serve the same number of query heads"
            )
        if self.d_head % 2:
            raise ValueError(f"d_head = {self.d_head} is odd: rotary positions turn pairs, give an even width")


def is_whole(value: object) -> bool:
    """Say whether a value counts something: an integer of Python's or NumPy's, neither a truth value nor a float."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Say whether a value measures something: a real number of Python's or NumPy's, neither text nor a truth value."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def one_line(value: object, most: int = 60) -> str:
    """Return any value as an error line shows it: text in quotes, arrays on one line, ``most`` characters."""
    text = " ".join((repr(value) if isinstance(value, str) else str(value)).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
