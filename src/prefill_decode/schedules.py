"""The same logits by other routes: how the rows of one triangle are spread over passes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .attention import attention, causal_mask
from .cache import KVCache
from .model import Model, feed_forward, forward, normed, project, rotary_angles, rotate


def prefill_then_decode(model: Model, ids: Sequence[int], split: int, mask: np.ndarray | None = None) -> np.ndarray:
    """Run ``split`` tokens as prefill and the rest one by one; return the logits of every position.

    Parameters
    ----------
    model : Model
    ids : sequence of int, n of them
    split : int
        From 1 to n.
    mask : ndarray of bool, [n, n], optional
        Row i is used by the pass that computes position i, cut to the keys that exist by then. Default: causal.

    Returns
    -------
    ndarray, [n, V]
    """
    n = len(ids)
    if not 1 <= split <= n:
        raise ValueError(f"split = {split} of {n} tokens: prefill needs at least one, give 1 to {n}")
    mask = np.tri(n, dtype=bool) if mask is None else mask
    cache = KVCache(model.config, n, model.dtype)
    rows = [forward(model, ids[:split], cache, mask=mask[:split, :split])]  # [split, V]
    for i in range(split, n):
        rows.append(forward(model, ids[i : i + 1], cache, mask=mask[i : i + 1, : i + 1]))  # [1, V]
    return np.concatenate(rows)


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
