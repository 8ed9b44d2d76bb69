"""A toy set of fixed weights: small enough to print, same decoder as the real one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .config import Config
from .model import Layer, Model

CONFIG = Config(
    n_layers=2,
    d_model=8,
    n_heads=4,
    n_kv_heads=2,
    d_head=4,
    d_ff=12,
    vocab_size=16,
    n_ctx=32,
    rope_theta=100.0,
    norm_eps=1e-5,
)
WORDS = tuple("<stop> the a cat dog bird sees hears and old small house in sleeps sings .".split())
STOP_IDS = (0,)
SEED = 2345  # chosen among 3,000, so that the toy says something like a sentence; it was never trained


class WordTokenizer:
    """Know a fixed list of words, separated by spaces; the words of ``WORDS`` and nothing else."""

    def encode(self, text: str) -> list[int]:
        """Return one id a word. Raise ValueError for a word it does not know."""
        words = text.split()
        unknown = next((w for w in words if w not in WORDS), None)
        if unknown is not None:
            raise ValueError(f"the toy does not know {unknown!r}: its words are {' '.join(WORDS)}")
        return [WORDS.index(w) for w in words]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the words, joined by spaces."""
        return " ".join(WORDS[i] for i in ids)

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return one word an id."""
        return [WORDS[i] for i in ids]

    def chat(self, text: str) -> list[int]:
        """Refuse: the toy was never taught to take turns."""
        raise ValueError("the toy has no chat template: leave chat out, or use the real model")


def load() -> tuple[Model, WordTokenizer]:
    """Return the toy model (float64) and its tokenizer.

    The weights are whole numbers of sixty-fourths from a seeded generator: the same bits on every machine.
    The toy was never trained; what it says means nothing, what it computes is checked.
    """
    c, rng = CONFIG, np.random.default_rng(SEED)

    def draw(*shape: int) -> np.ndarray:
        return rng.integers(-64, 65, shape) / 64.0

    def gain() -> np.ndarray:
        return rng.integers(48, 81, c.d_model) / 64.0

    layers = tuple(
        Layer(
            attention_norm=gain(),
            qkv=draw((c.n_heads + 2 * c.n_kv_heads) * c.d_head, c.d_model),
            output=draw(c.d_model, c.n_heads * c.d_head),
            ffn_norm=gain(),
            gate_up=draw(2 * c.d_ff, c.d_model),
            down=draw(c.d_model, c.d_ff),
        )
        for _ in range(c.n_layers)
    )
    embedding = draw(c.vocab_size, c.d_model)
    return Model(c, embedding, layers, gain(), np.dtype(np.float64)), WordTokenizer()
