"""The decoder: RMSNorm, rotary positions, grouped-query attention, SwiGLU, tied head (the Llama family)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from .attention import AttentionTrace, attention, causal_mask
from .cache import Cache
from .config import Config
from .rounding import exact

ROW_BLOCK = 64  # rows at a time where a row is wide: what is computed element by element stays in the CPU's cache


@dataclass(frozen=True)
class Layer:
    """Weights of one layer; every matrix maps columns to rows, ``y = W x``.

    Matrices that read the same input are one matrix: one product instead of two or three.
    """

    attention_norm: np.ndarray  # [D]
    qkv: np.ndarray  # [(h + 2 h_kv) d, D]: queries, then keys, then values
    output: np.ndarray  # [D, h d]
    ffn_norm: np.ndarray  # [D]
    gate_up: np.ndarray  # [2 F, D]
    down: np.ndarray  # [D, F]


@dataclass(frozen=True)
class Model:
    """Hold the fixed weights of a decoder.

    Attributes
    ----------
    config : Config
    embedding : ndarray, [V, D]
        Row t is the vector of token t. The head uses the same matrix ("tied").
    layers : tuple of Layer
    norm : ndarray, [D]
    dtype : numpy dtype
        Of every computed number. Weights may be stored narrower; they are then cast one matrix at a time.
    rounded : callable
        Applied to every matrix and to the result of every operation; ``rounding.bfloat16`` emulates an engine that
        computes in bfloat16. RMSNorm and softmax keep ``dtype`` inside.
    attend : callable
        The attention kernel, with the parameters of ``attention.attention``.
    """

    config: Config
    embedding: np.ndarray
    layers: tuple[Layer, ...]
    norm: np.ndarray
    dtype: np.dtype
    rounded: Callable[[np.ndarray], np.ndarray] = exact
    attend: Callable[..., np.ndarray] = attention

    def arrays(self) -> list[np.ndarray]:
        """Return every parameter array, embedding first, layer after layer."""
        return [self.embedding, *(a for layer in self.layers for a in vars(layer).values()), self.norm]

    @property
    def n_params(self) -> int:
        """Number of parameters; the tied matrix counts once."""
        return sum(a.size for a in self.arrays())

    def fingerprint(self) -> str:
        """Return the SHA-256 over all parameters: it changes if a single bit does."""
        digest = hashlib.sha256()
        for array in self.arrays():
            digest.update(np.ascontiguousarray(array))
        return digest.hexdigest()


@dataclass
class Trace(AttentionTrace):
    """Keep what a pass computes on its way, one array a layer.

    Attributes
    ----------
    scores, weights : list of ndarray, [h, L, S]
    hidden : list of ndarray, [L, D]
        States after each layer.
    """

    hidden: list[np.ndarray] = field(default_factory=list)


def forward(
    model: Model,
    ids: Sequence[int],
    cache: Cache | None = None,
    *,
    positions: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    logits: str = "all",
    trace: Trace | None = None,
) -> np.ndarray:
    """Run tokens through all layers: one pass, the same code for prefill and for decode.

    Parameters
    ----------
    model : Model
    ids : sequence of int, n of them
        Only the new tokens; what came before is in the cache.
    cache : Cache, optional
        Read and extended. None: the pass sees ``ids`` alone and keeps nothing.
    positions : ndarray of int, [n], optional
        Default: they continue the cache's.
    mask : ndarray of bool, [n, n_keys], optional
        True = allowed. Default: causal.
    logits : {"all", "last"}
        Run the head on every row, or on the last one only.
    trace : Trace, optional
        Receives hidden states, scores and weights.

    Returns
    -------
    ndarray, [n, V] for "all", [V] for "last"

    Raises
    ------
    ValueError
        If ids, positions, mask or cache do not fit the model. The cache keeps what it held.

    Notes
    -----
    Whatever ends a pass early, Ctrl-C too, the cache then has the entries that it had before, and may go on. Only one
    that ``evicts`` has those of the whole pass, if its last layer was extended already.
    """
    ids = check_ids(model.config, ids)
    if logits not in ("all", "last"):
        raise ValueError(f'logits = {logits!r}: expected "all" (every row) or "last" (one row)')
    _check_cache(model, cache)
    first = 0 if cache is None else cache.next_position
    positions = _check_positions(first + np.arange(len(ids)) if positions is None else positions, len(ids))
    if mask is None:
        mask = causal_mask(len(ids), len(ids)) if cache is None else cache.mask(len(ids))  # [n, S]
    held = 0 if cache is None else len(cache)
    try:
        x = model.rounded(model.embedding[ids].astype(model.dtype))  # [n, D]
        x = _layers(model, x, rotary_angles(model, positions), cache, mask, trace)
        if logits == "last":
            x = x[-1:]  # [1, D]: only this row chooses the next token
        out = project(model, model.embedding, normed(model, model.norm, x))  # [n, D] @ [D, V] -> [n, V]
    except BaseException:
        if cache is not None:  # rows go back, committed or not; where entries were evicted for them, only the latter
            cache.truncate(len(cache) if cache.evicts else held)
        raise
    return out if logits == "all" else out[0]


def prefill(model: Model, ids: Sequence[int], cache: Cache) -> np.ndarray:
    """Run the whole prompt in one pass: fill the cache, return the last position's logits [V]."""
    return forward(model, ids, cache, logits="last")


def decode_step(model: Model, token: int, cache: Cache) -> np.ndarray:
    """Run one new token against the cache: one query row. Return its logits [V]."""
    return forward(model, [token], cache, logits="last")


def _layers(
    model: Model, x: np.ndarray, rotation: np.ndarray, cache: Cache | None, mask: np.ndarray, trace: Trace | None
) -> np.ndarray:
    for index, layer in enumerate(model.layers):
        x = model.rounded(x + _attention_block(model, layer, index, x, rotation, cache, mask, trace))
        x = model.rounded(x + feed_forward(model, layer, x))
        if trace is not None:
            trace.hidden.append(x)
    return x


def _attention_block(
    model: Model,
    layer: Layer,
    index: int,
    x: np.ndarray,
    rotation: np.ndarray,
    cache: Cache | None,
    mask: np.ndarray,
    trace: Trace | None,
) -> np.ndarray:
    c, n = model.config, len(x)
    heads = project(model, layer.qkv, normed(model, layer.attention_norm, x))  # [n, D] @ [D, (h + 2 h_kv) d]
    heads = heads.reshape(n, -1, c.d_head).transpose(1, 0, 2)  # -> [h + 2 h_kv, n, d]
    turned = model.rounded(rotate(heads[: c.n_heads + c.n_kv_heads], rotation))  # queries and keys know their position
    q, k, v = turned[: c.n_heads], turned[c.n_heads :], heads[c.n_heads + c.n_kv_heads :]
    if cache is not None:
        k, v = cache.extend(index, k, v)  # [h_kv, n, d] -> [h_kv, S, d]
    mixed = model.attend(q, k, v, mask, trace, model.rounded)  # [h, n, d]
    return project(model, layer.output, mixed.transpose(1, 0, 2).reshape(n, -1))  # [n, h d] @ [h d, D] -> [n, D]


def feed_forward(model: Model, layer: Layer, x: np.ndarray) -> np.ndarray:
    """Return what the feed-forward part of a layer adds to every row: [n, D] -> [n, D]."""
    both = project(model, layer.gate_up, normed(model, layer.ffn_norm, x))  # [n, D] @ [D, 2F] -> [n, 2F]
    gate, up = both[:, : model.config.d_ff], both[:, model.config.d_ff :]  # [n, F] each
    for start in range(0, len(x), ROW_BLOCK):
        rows = slice(start, start + ROW_BLOCK)
        gate[rows] = model.rounded(model.rounded(silu(gate[rows])) * up[rows])
    return project(model, layer.down, gate)  # [n, F] @ [F, D] -> [n, D]


def project(model: Model, w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return W x for every row, in the model's arithmetic: [n, in] -> [n, out]."""
    return model.rounded(linear(model.rounded(w), x))


def normed(model: Model, weight: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return RMSNorm of every row, in the model's arithmetic: [n, D] -> [n, D]."""
    return model.rounded(rms_norm(x, model.rounded(weight), model.config.norm_eps))


def linear(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return W x for every row x: [n, in] -> [n, out], in the dtype of ``x``."""
    w = w.astype(x.dtype, copy=False)
    if len(x) == 1:  # matrix · vector reads W once, in order; x @ W.T for one row is slower
        return (w @ x[0])[None]  # [out, in] @ [in] -> [1, out]
    return x @ w.T  # [n, in] @ [in, out] -> [n, out]


def rms_norm(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    """Scale each row to root mean square 1, then by ``weight`` (Zhang and Sennrich 2019): [n, D] -> [n, D]."""
    mean_square = np.vecdot(x, x)[:, None] / x.shape[-1]  # [n, D] · [n, D] -> [n, 1]
    return x / np.sqrt(mean_square + x.dtype.type(eps)) * weight.astype(x.dtype, copy=False)


def silu(x: np.ndarray) -> np.ndarray:
    """Return x · sigmoid(x), written with tanh so that no input overflows."""
    half = x * x.dtype.type(0.5)
    return np.tanh(half) * half + half


def rotary_angles(model: Model, positions: np.ndarray) -> np.ndarray:
    """Return cos and sin of position · theta^(-2i/d), computed in float64: [2, n, d/2] (Su et al. 2021)."""
    d = model.config.d_head
    frequency = model.config.rope_theta ** (-np.arange(0, d, 2) / d)  # [d/2]
    angle = positions[:, None] * frequency  # [n, d/2]
    return np.stack([np.cos(angle), np.sin(angle)]).astype(model.dtype)


def rotate(x: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """Turn each pair (x_i, x_{i + d/2}) of every row by its position's angle i: [heads, n, d] -> the same."""
    cos, sin = rotation  # [n, d/2] each
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]  # [heads, n, d/2] each
    out = x * np.tile(cos, 2)  # [heads, n, d] * [n, d]: wide rows, half the time of working on halves
    out[..., :half] -= b * sin
    out[..., half:] += a * sin
    return out


def check_ids(config: Config, ids: Sequence[int]) -> np.ndarray:
    """Return the ids as an array [n]; raise ValueError if there is none or one is no token."""
    ids = np.asarray(ids)
    if ids.ndim != 1 or ids.size == 0:
        raise ValueError("there is no token to run: give at least one id in a flat sequence")
    if not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"token ids are {ids.dtype}: expected integers")
    outside = ids[(ids < 0) | (ids >= config.vocab_size)]
    if outside.size:
        raise ValueError(f"token id {outside[0]} is outside the vocabulary: expected 0 to {config.vocab_size - 1}")
    return ids


def _check_positions(positions: np.ndarray, n: int) -> np.ndarray:
    positions = np.asarray(positions)
    if positions.shape != (n,):
        raise ValueError(f"positions are {positions.shape} for {n} tokens: expected one a token, shape ({n},)")
    return positions


def _check_cache(model: Model, cache: Cache | None) -> None:
    config = getattr(cache, "config", model.config)
    if config != model.config:
        raise ValueError(f"the cache was made for {config}, the model is {model.config}: make one from model.config")
