"""What choosing does to logits [V], step by step: float64 in and out, ``-inf`` for a token that is removed.

Values have been checked; a step's distribution is the softmax of what it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .generate import greedy


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return the distribution of logits [V]: positive shares that add up to 1; ``-inf`` gets 0.

    Raises
    ------
    ValueError
        If logits are no numbers in a row, one is NaN or +inf, or all are ``-inf``: what ``greedy`` refuses.
    """
    largest = greedy(logits)
    logits = np.asarray(logits, np.float64)
    with np.errstate(over="ignore"):  # what lies further below than float64 reaches has no share
        powers = np.exp(logits - logits[largest])
    return powers / powers.sum()


def heated(logits: np.ndarray, value: float) -> np.ndarray:
    """Return logits divided by a temperature, the largest as 0; at 0 that one alone is left."""
    if value == 0:
        return _only(logits, [greedy(logits)])
    with np.errstate(over="ignore"):  # a tiny temperature leaves the likeliest ones alone
        return (logits - logits.max()) / value


def likeliest(logits: np.ndarray, k: int) -> np.ndarray:
    """Return the k largest logits; of equal ones those of the lower ids."""
    return _only(logits, _ranked(logits)[:k])


def nucleus(logits: np.ndarray, value: float) -> np.ndarray:
    """Return the fewest largest logits whose tokens have ``value`` together."""
    if value == 1:
        return logits  # a sum of roundings may reach 1 before the last token
    p, ranked = softmax(logits), _ranked(logits)
    before = np.cumsum(p[ranked]) - p[ranked]  # what likelier tokens have together
    return _only(logits, ranked[before < value])


def near_the_likeliest(logits: np.ndarray, value: float) -> np.ndarray:
    """Return the logits of tokens that have ``value`` times the likeliest one's probability."""
    p = softmax(logits)
    return _only(logits, p >= value * p.max())


def penalised(logits: np.ndarray, seen: Sequence[int], value: float) -> np.ndarray:
    """Return logits, those of tokens seen divided by ``value`` or, if negative, multiplied.

    Raises
    ------
    ValueError
        If a token seen has no logit, or one becomes infinite.
    """
    if (largest := max(seen, default=-1)) >= len(logits):
        raise ValueError(f"token {largest} was seen, the logits are those of {len(logits)} tokens: one does not fit")
    logits, ids = logits.copy(), np.unique(np.asarray(seen, int))
    positive = logits[ids] > 0
    try:
        with np.errstate(over="raise"):
            logits[ids[positive]] /= value
            logits[ids[~positive]] *= value
    except FloatingPointError:
        raise ValueError(f"repetition_penalty = {value} makes a logit infinite: give a value nearer to 1") from None
    return logits


CHANGES: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "temperature": heated,
    "top_k": likeliest,
    "top_p": nucleus,
    "min_p": near_the_likeliest,
}


def _ranked(logits: np.ndarray) -> np.ndarray:
    """Return ids, the likeliest first; of bitwise equal ones the lower id first."""
    return np.argsort(-logits, kind="stable")


def _only(logits: np.ndarray, kept: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the logits of the tokens kept, ids or a mask, and ``-inf`` for the others."""
    left = np.full_like(logits, -np.inf)
    left[kept] = logits[kept]
    return left
