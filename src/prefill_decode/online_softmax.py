"""Softmax in pieces: what a row knows after some of its keys, and how two such pieces become one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Partial:
    """Attention over some of the keys: enough to go on, or to be merged with the rest.

    Attributes
    ----------
    maximum : ndarray, [..., b]
        Largest score of each row so far, m on the page; ``-inf`` if the row has read nothing.
    total : ndarray, [..., b]
        Sum of exp(score - maximum), ℓ on the page.
    output : ndarray, [..., b, d]
        Weighted values, as if there were no other keys; 0 if the row has read nothing.
    """

    maximum: np.ndarray
    total: np.ndarray
    output: np.ndarray

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: np.dtype) -> Partial:
        """Return the partial of rows [..., b, d] that have read nothing."""
        return cls(np.full(shape[:-1], -np.inf, dtype), np.zeros(shape[:-1], dtype), np.zeros(shape, dtype))


def partial_softmax(scores: np.ndarray, v: np.ndarray) -> Partial:
    """Attend to some keys: scores [..., b, s] (``-inf`` where masked) and their values [..., s, d]."""
    maximum = scores.max(axis=-1, initial=-np.inf)  # [..., b]
    powers = np.exp(scores - _finite(maximum)[..., None])  # [..., b, s]
    total = powers.sum(axis=-1)
    output = powers @ v / _positive(total)[..., None]  # [..., b, s] @ [..., s, d] -> [..., b, d]
    return Partial(maximum, total, output)


def merge(a: Partial, b: Partial) -> Partial:
    """Join two partials over different keys of the same rows: exact up to rounding, in any order and grouping.

    Both are brought to the larger maximum; each output counts with its share of the new total (Milakov and
    Gimelshein 2018; Dao et al. 2022, algorithm 1, lines 11 and 12).
    """
    maximum = np.maximum(a.maximum, b.maximum)
    share_a = a.total * np.exp(a.maximum - _finite(maximum))  # [..., b]
    share_b = b.total * np.exp(b.maximum - _finite(maximum))
    total = share_a + share_b
    both = share_a[..., None] * a.output + share_b[..., None] * b.output  # [..., b, d]
    return Partial(maximum, total, both / _positive(total)[..., None])


def _finite(maximum: np.ndarray) -> np.ndarray:
    """Replace -inf, which only a row without keys has: exp(-inf - 0) is 0, exp(-inf - -inf) is NaN."""
    return np.where(np.isneginf(maximum), 0, maximum)


def _positive(total: np.ndarray) -> np.ndarray:
    """Replace 0, which only a row without keys has: its output stays 0."""
    return np.where(total > 0, total, 1)
