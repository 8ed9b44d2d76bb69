"""What the tests of schedules draw from: two toys, prompts, and the one oracle."""

import dataclasses
import functools

import numpy as np
from hypothesis import strategies as st

from prefill_decode import toy
from prefill_decode.model import forward

TOY = toy.load()[0]
OTHER = dataclasses.replace(TOY, embedding=TOY.embedding[::-1].copy())  # same sizes, other weights
SAME = 1e-12  # toy logits are below 100
TEXT = "The two phases of a language model are called prefill and decode"  # 13 tokens of the real model
REAL_SAME = 1e-10  # real logits are below 100, 30 layers

tokens = st.integers(0, TOY.config.vocab_size - 1)


def prompts(max_size: int, min_size: int = 1) -> st.SearchStrategy[list[int]]:
    return st.lists(tokens, min_size=min_size, max_size=max_size)


def oracle(ids) -> np.ndarray:
    """Return the toy's logits of every position from one full pass: [n, V]."""
    return _oracle(tuple(int(token) for token in ids))


@functools.lru_cache(maxsize=4096)
def _oracle(ids):
    return forward(TOY, ids)


def apart(a, b) -> float:
    """Return the largest difference of two arrays of one shape; NaN if there is one anywhere."""
    assert np.shape(a) == np.shape(b)
    return float(np.abs(np.asarray(a) - np.asarray(b)).max())
