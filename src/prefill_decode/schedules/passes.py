"""How the rows of one triangle are spread over passes: the same logits by other routes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..attention import attention, causal_mask
from ..cache import Cache, KVCache
from ..config import is_whole
from ..model import Model, check_ids, feed_forward, forward, normed, project, rotary_angles, rotate


def prefill_then_decode(
    model: Model, ids: Sequence[int], split: int, mask: np.ndarray | None = None, cache: Cache | None = None
) -> np.ndarray:
    """Run ``split`` tokens as prefill and the rest one by one; return the logits of every position.

    Parameters
    ----------
    model : Model
    ids : sequence of int, n of them
    split : int
        From 1 to n.
    mask : ndarray of bool, [n, n], optional
        Row i is used by the pass that computes position i, cut to the keys that exist by then. Default: the cache's
        own, causal where it keeps all.
    cache : Cache, optional
        Empty, filled; default: one of its own.

    Returns
    -------
    ndarray, [n, V]

    Raises
    ------
    ValueError
        If the split is out of range, or a mask comes with a cache that evicts entries. Nothing has run then.
    """
    n = len(ids)
    if not is_whole(split) or not 1 <= split <= n:
        raise ValueError(f"split = {split} of {n} tokens: prefill needs at least one, give 1 to {n}")
    cache = KVCache(model.config, n, model.dtype) if cache is None else cache
    if mask is not None and cache.evicts:
        raise ValueError("the cache evicts entries, a mask over all positions does not fit it: leave one of them out")
    passes = [(0, split), *((i, i + 1) for i in range(split, n))]
    masks = [None if mask is None else mask[start:end, :end] for start, end in passes]
    run = zip(passes, masks, strict=True)
    return np.concatenate([forward(model, ids[start:end], cache, mask=own) for (start, end), own in run])


def chunked_prefill(model: Model, ids: Sequence[int], chunk: int, cache: Cache | None = None) -> np.ndarray:
    """Run a prompt in passes of at most ``chunk`` rows; each reads the keys of the ones before from the cache.

    Parameters
    ----------
    model : Model
    ids : sequence of int, n of them
    chunk : int
        From 1 (as decode does it) to n (plain prefill).
    cache : Cache, optional
        Filled; default: one of its own.

    Returns
    -------
    ndarray, [n, V]

    Raises
    ------
    ValueError
        If the chunk or an id is out of range, or the cache has no room for all of them. Nothing has run then.
    """
    ids = check_ids(model.config, ids)
    n = len(ids)
    if not is_whole(chunk) or not 1 <= chunk <= n:
        raise ValueError(f"a chunk of {chunk} rows for {n} tokens: give 1 to {n}")
    cache = KVCache(model.config, n, model.dtype) if cache is None else cache
    cache.check_room(n)
    return np.concatenate([forward(model, ids[start : start + chunk], cache) for start in range(0, n, chunk)])


def last_layer_for_one_row(model: Model, states: np.ndarray) -> np.ndarray:
    """Run the last layer and the head with one query, the last row's; keys and values are those of all rows.

    Parameters
    ----------
    model : Model
    states : ndarray, [n, D]
        What enters the last layer.

    Returns
    -------
    ndarray, [V]
        The last row's logits: all that prefill needs from this layer, besides its keys and values.
    """
    c, layer, n = model.config, model.layers[-1], len(states)
    x = normed(model, layer.attention_norm, states)  # [n, D]
    q_rows = c.n_heads * c.d_head
    q = project(model, layer.qkv[:q_rows], x[-1:]).reshape(c.n_heads, 1, c.d_head)  # [1, D] -> [h, 1, d]
    kv = project(model, layer.qkv[q_rows:], x).reshape(n, -1, c.d_head).transpose(1, 0, 2)  # [n, D] -> [2 h_kv, n, d]
    rotation = rotary_angles(model, np.arange(n))
    k, v = rotate(kv[: c.n_kv_heads], rotation), kv[c.n_kv_heads :]  # [h_kv, n, d] each
    mixed = attention(rotate(q, rotation[:, -1:]), k, v, causal_mask(1, n)).reshape(1, -1)  # [h, 1, d] -> [1, h d]
    row = states[-1:] + project(model, layer.output, mixed)  # [1, D]
    row = row + feed_forward(model, layer, row)
    return project(model, model.embedding, normed(model, model.norm, row))[0]
