"""Causal attention: who may look at whom, and the weighted sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .rounding import exact

QUERY_BLOCK = 64  # rows of queries at a time: the scores of one block stay in the CPU's cache


def causal_mask(n_queries: int, n_keys: int) -> np.ndarray:
    """Say which keys each query may read: its own and the earlier ones.

    Parameters
    ----------
    n_queries, n_keys : int
        The queries are the *last* ``n_queries`` of ``n_keys`` positions.

    Returns
    -------
    ndarray of bool, [n_queries, n_keys]
        True = allowed. The diagonal starts at ``n_keys - n_queries`` (lower right), so one decode
        row reads every key.

    Raises
    ------
    ValueError
        If there are more queries than keys.
    """
    if not 0 <= n_queries <= n_keys:
        raise ValueError(f"{n_queries} queries for {n_keys} keys: every query needs at least its own key")
    return np.tri(n_queries, n_keys, n_keys - n_queries, dtype=bool)  # [L, S]


def causal_pairs(n_queries: int, n_keys: int) -> int:
    """Count the query-key pairs that ``causal_mask`` allows: per query head, per layer, per sequence.

    The rows read ``n_keys - n_queries + 1, ..., n_keys`` keys; the sum is n(n + 1)/2 for a prefill of n
    and n + 1 for one decode row after n cached positions.
    """
    return n_queries * (n_keys - n_queries) + n_queries * (n_queries + 1) // 2


@dataclass
class AttentionTrace:
    """Keep what attention throws away: one array a layer, in order.

    Attributes
    ----------
    scores, weights : list of ndarray, [n_heads, n_queries, n_keys]
        Before and after softmax. A masked score is ``-inf``, its weight 0.
    """

    scores: list[np.ndarray] = field(default_factory=list)
    weights: list[np.ndarray] = field(default_factory=list)


def attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    mask: np.ndarray,
    trace: AttentionTrace | None = None,
    rounded: Callable[[np.ndarray], np.ndarray] = exact,
) -> np.ndarray:
    """Average the values, weighted by softmax(q · k / √d) over the allowed keys.

    Works on blocks of query rows, so that the scores of all heads never exist at once.

    Parameters
    ----------
    q : ndarray, [h, L, d]
        Queries; ``h`` is a multiple of ``h_kv``, query head i uses KV head ``i // (h / h_kv)``.
    k, v : ndarray, [h_kv, S, d]
        Keys and values.
    mask : ndarray of bool, [L, S]
        True = allowed. A row without any allowed key gives 0, not NaN.
    trace : AttentionTrace, optional
        Receives the scores and weights of this call.
    rounded : callable
        Applied to scores, weights and results: emulates a narrower dtype. Softmax itself stays as it is.

    Returns
    -------
    ndarray, [h, L, d]

    Raises
    ------
    ValueError
        If shapes or dtypes do not fit together.
    """
    check_heads(q, k, v)
    (h, n_queries, d), (h_kv, n_keys, _) = q.shape, k.shape
    _check_mask(mask, n_queries, n_keys)
    q = (q * q.dtype.type(d**-0.5)).reshape(h_kv, h // h_kv, n_queries, d)  # [h_kv, g, L, d], g heads share a KV head
    out = np.empty_like(q)
    if trace is not None:
        trace.scores.append(np.full((h, n_queries, n_keys), -np.inf, q.dtype))
        trace.weights.append(np.zeros((h, n_queries, n_keys), q.dtype))
    for start in range(0, n_queries, QUERY_BLOCK):
        rows = slice(start, start + QUERY_BLOCK)
        n_open, n_read = _columns(mask[rows])
        scores = rounded(_scores(q[:, :, rows], k[:, :n_read]))  # [h_kv, g, b, S]
        np.copyto(scores[..., n_open:], -np.inf, where=~mask[rows, n_open:n_read])
        if trace is not None:
            trace.scores[-1][:, rows, :n_read] = scores.reshape(h, -1, n_read)
        powers, total = _softmax_parts(scores)  # weights = powers / total
        if trace is not None:
            trace.weights[-1][:, rows, :n_read] = (powers / total).reshape(h, -1, n_read)
        if rounded is exact:  # divide what comes out: d numbers a row instead of S
            out[:, :, rows] = _mix(powers, v[:, :n_read]) / total
        else:
            out[:, :, rows] = rounded(_mix(rounded(powers / total), v[:, :n_read]))
    return out.reshape(h, n_queries, d)


def _columns(mask: np.ndarray) -> tuple[int, int]:
    """Return where the keys that every row of a block reads end, and where those that any row reads end.

    Only the columns between need the mask; for causal rows they are as few as the rows.
    """
    if len(mask) == 1:  # a decode row: looking would cost more than it saves
        return 0, mask.shape[1]
    n_open = int(np.append(mask.all(axis=0), False).argmin())
    return n_open, 1 + int(np.flatnonzero(mask.any(axis=0)).max(initial=0))  # at least one: no array is empty


def _scores(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Return q · k of one block of rows: [h_kv, g, b, S]."""
    h_kv, g, b, d = q.shape
    scores = q.reshape(h_kv, g * b, d) @ k.transpose(0, 2, 1)  # [g*b, d] @ [d, S] -> [g*b, S]
    return scores.reshape(h_kv, g, b, -1)


def _softmax_parts(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return softmax along the last axis as powers and their total: [.., S] and [.., 1].

    The powers overwrite the scores, since a block of scores is the largest array here.
    """
    # softmax does not change when all scores shift; the finite start keeps a fully masked row from -inf - -inf
    scores -= scores.max(axis=-1, keepdims=True, initial=np.finfo(scores.dtype).min)
    np.exp(scores, out=scores)
    total = np.vecdot(scores, np.ones(scores.shape[-1], scores.dtype))[..., None]  # faster than a sum
    # the largest power is exp(0) = 1, so only a row that reads nothing is below 1, and its powers stay 0
    return scores, np.maximum(total, 1)


def _mix(weights: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the weighted values of one block of rows: [h_kv, g, b, S], [h_kv, S, d] -> [h_kv, g, b, d]."""
    h_kv, g, b, n_keys = weights.shape
    mixed = weights.reshape(h_kv, g * b, n_keys) @ v  # [g*b, S] @ [S, d] -> [g*b, d]
    return mixed.reshape(h_kv, g, b, -1)


def check_heads(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> None:
    """Raise ValueError if queries, keys and values do not fit together in shape, heads or dtype."""
    if not (q.ndim == k.ndim == v.ndim == 3 and k.shape == v.shape and q.shape[2] == k.shape[2]):
        raise ValueError(
            f"q {q.shape}, k {k.shape}, v {v.shape} do not fit: expected [h, L, d], [h_kv, S, d] and [h_kv, S, d]"
        )
    if not k.shape[0] or q.shape[0] % k.shape[0]:
        raise ValueError(f"{q.shape[0]} query heads cannot share {k.shape[0]} KV heads: give a multiple")
    if not q.dtype == k.dtype == v.dtype:
        raise ValueError(f"q is {q.dtype}, k {k.dtype}, v {v.dtype}: expected one dtype, convert two of them")


def _check_mask(mask: np.ndarray, n_queries: int, n_keys: int) -> None:
    if mask.shape != (n_queries, n_keys):
        raise ValueError(f"the mask is {mask.shape}, expected [L, S] = {(n_queries, n_keys)}")
    if mask.dtype != bool:
        raise ValueError(f"the mask is {mask.dtype}, expected bool with True = allowed")
