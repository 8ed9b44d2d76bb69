"""Exact attention by another plan: tiles of keys and queries, and never an n × n array.

What crosses the edge between a large slow memory (an accelerator's HBM) and a small fast one is counted, in numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .attention import AttentionTrace, causal_mask, check_heads
from .config import is_whole
from .online_softmax import Partial, merge, partial_softmax
from .rounding import exact


@dataclass
class SlowMemory:
    """Count what crosses the edge between slow and fast memory, in numbers (not bytes).

    Attributes
    ----------
    reads, writes : int
    """

    reads: int = 0
    writes: int = 0

    @property
    def accesses(self) -> int:
        """Reads and writes together."""
        return self.reads + self.writes

    def read(self, *arrays: np.ndarray) -> None:
        """Note that arrays came into fast memory."""
        self.reads += sum(array.size for array in arrays)

    def write(self, *arrays: np.ndarray) -> None:
        """Note that arrays went back."""
        self.writes += sum(array.size for array in arrays)


@dataclass(frozen=True)
class Tiles:
    """How many query rows and keys are in fast memory at a time.

    Attributes
    ----------
    queries, keys : int
    """

    queries: int
    keys: int

    @classmethod
    def for_memory(cls, fast: int, d: int, n: int) -> Tiles:
        """Return the tiles of FlashAttention's algorithm 1: ⌈M / 4d⌉ keys, as many query rows but at most d.

        A tile of keys, one of values, one of queries and one of outputs then fill M numbers, up to the rounding. A tile
        of scores, at most d times M / 4d numbers, comes on top: the paper counts M up to a constant factor.

        Parameters
        ----------
        fast : int
            M, numbers that fast memory holds; at least 4 d.
        d : int
            Width of a head.
        n : int
            Positions; no tile is larger.

        Raises
        ------
        ValueError
            If a size is no positive whole number, or not one row of each array fits.
        """
        if not all(map(is_whole, (fast, d, n))) or min(d, n) < 1 or fast < 4 * d:
            raise ValueError(f"M = {fast} numbers hold no tile of {n} positions of width {d}: give at least 4 d")
        keys = -(-fast // (4 * d))
        return cls(min(keys, d, n), min(keys, n))


@dataclass(frozen=True)
class Visit:
    """One meeting of a tile of queries with a tile of keys.

    Attributes
    ----------
    rows, keys : slice
        Of the queries and of the keys.
    partial : Partial or None
        What the rows know afterwards, [h_kv, g, b, ...]; None if causality allows no pair and the tile is skipped.
    reads, writes : int
        Slow-memory accesses so far.
    """

    rows: slice
    keys: slice
    partial: Partial | None
    reads: int
    writes: int


def tiled_attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    tiles: Tiles,
    *,
    slow: SlowMemory | None = None,
    outer: str = "keys",
    skip: bool = True,
) -> np.ndarray:
    """Compute causal attention tile by tile; the queries are the last L of S positions.

    Parameters
    ----------
    q : ndarray, [h, L, d]
    k, v : ndarray, [h_kv, S, d]
    tiles : Tiles
        Any sizes from 1 to L and S; they need not divide them.
    slow : SlowMemory, optional
        Counts, over all heads.
    outer : {"keys", "queries"}
        "keys": a tile of keys stays in fast memory while all query tiles pass by, and what these know is read and
        written each time (FlashAttention, algorithm 1). "queries": a tile of queries stays, keys pass by, and each
        output is written once (FlashAttention 2).
    skip : bool
        Leave out pairs of tiles that causality masks whole. False visits them, as a kernel without a mask does.

    Returns
    -------
    ndarray, [h, L, d]

    Raises
    ------
    ValueError
        If shapes do not fit together, there are more queries than keys, or a tile is empty or too large.
    """
    check_heads(q, k, v)
    out = np.empty_like(q)
    grouped = out.reshape(len(k), len(q) // len(k), *q.shape[1:])  # [h_kv, g, L, d], a view
    for visit in sweep(q, k, v, tiles, slow=slow, outer=outer, skip=skip):
        if visit.partial is not None:
            grouped[:, :, visit.rows] = visit.partial.output
    return out


def tiled_kernel(tiles: Tiles, outer: str = "keys") -> Callable[..., np.ndarray]:
    """Return ``tiled_attention`` in the shape of ``attention.attention``, to run a model with: ``Model.attend``.

    Tiles larger than a pass are cut to it. The kernel knows causal masks only, keeps no trace and emulates no dtype;
    it raises ValueError for what it cannot do.
    """

    def attend(
        q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray, trace: AttentionTrace | None, rounded: object
    ) -> np.ndarray:
        if not np.array_equal(mask, causal_mask(*mask.shape)):
            raise ValueError("the tiled kernel computes causal attention only: run this mask with attention.attention")
        if trace is not None or rounded is not exact:
            raise ValueError("the tiled kernel keeps no scores and rounds nothing: run this with attention.attention")
        return tiled_attention(q, k, v, Tiles(min(tiles.queries, q.shape[1]), min(tiles.keys, k.shape[1])), outer=outer)

    return attend


def sweep(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    tiles: Tiles,
    *,
    slow: SlowMemory | None = None,
    outer: str = "keys",
    skip: bool = True,
) -> Iterator[Visit]:
    """Yield one visit after the other of ``tiled_attention``, skipped ones included, to look at.

    The last visit of a row knows its output.
    """
    check_heads(q, k, v)
    (h, n_queries, d), (h_kv, n_keys, _) = q.shape, k.shape
    _check_tiles(tiles, n_queries, n_keys, outer)
    rows = (q * q.dtype.type(d**-0.5)).reshape(h_kv, h // h_kv, n_queries, d)  # [h_kv, g, L, d]
    run = _keys_outer if outer == "keys" else _queries_outer
    yield from run(rows, k[:, None], v[:, None], tiles, SlowMemory() if slow is None else slow, skip)


def _keys_outer(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, tiles: Tiles, slow: SlowMemory, skip: bool
) -> Iterator[Visit]:
    known = Partial.empty(q.shape, q.dtype)  # lies in slow memory
    for keys in _cut(k.shape[2], tiles.keys):
        slow.read(k[:, :, keys], v[:, :, keys])
        for rows in _cut(q.shape[2], tiles.queries):
            after = None
            if not (skip and _is_masked(rows, keys, q, k)):
                before = Partial(*(part[:, :, rows] for part in vars(known).values()))
                slow.read(q[:, :, rows], *vars(before).values())
                after = merge(before, _attend(q, k, v, rows, keys))
                for name, part in vars(after).items():
                    vars(known)[name][:, :, rows] = part
                slow.write(*vars(after).values())
            yield Visit(rows, keys, after, slow.reads, slow.writes)


def _queries_outer(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, tiles: Tiles, slow: SlowMemory, skip: bool
) -> Iterator[Visit]:
    for rows in _cut(q.shape[2], tiles.queries):
        slow.read(q[:, :, rows])
        known = Partial.empty(q[:, :, rows].shape, q.dtype)  # stays in fast memory
        for keys in _cut(k.shape[2], tiles.keys):
            masked = skip and _is_masked(rows, keys, q, k)
            if not masked:
                slow.read(k[:, :, keys], v[:, :, keys])
                known = merge(known, _attend(q, k, v, rows, keys))
            if keys.stop == k.shape[2]:
                slow.write(known.output)
            yield Visit(rows, keys, None if masked else known, slow.reads, slow.writes)


def _attend(q: np.ndarray, k: np.ndarray, v: np.ndarray, rows: slice, keys: slice) -> Partial:
    """Attend with one tile of queries to one tile of keys."""
    scores = q[:, :, rows] @ k[:, :, keys].swapaxes(-1, -2)  # [b, d] @ [d, s] -> [b, s]
    position = np.arange(rows.start, rows.stop)[:, None] + k.shape[2] - q.shape[2]  # of each query, [b, 1]
    return partial_softmax(np.where(np.arange(keys.start, keys.stop) <= position, scores, -np.inf), v[:, :, keys])


def _cut(n: int, tile: int) -> Iterator[slice]:
    """Yield the tiles of n positions; the last one may be smaller."""
    return (slice(start, min(start + tile, n)) for start in range(0, n, tile))


def _is_masked(rows: slice, keys: slice, q: np.ndarray, k: np.ndarray) -> bool:
    """Say whether no query of a tile may read any key of another."""
    return keys.start > rows.stop - 1 + k.shape[2] - q.shape[2]


def tiled_accesses(n: int, d: int, tiles: Tiles, *, outer: str = "keys", skip: bool = True) -> int:
    """Return the slow-memory accesses of ``tiled_attention`` for n queries and n keys of one head, by formula.

    Keys outer: 2 n d for all keys and values, and 3 d + 4 numbers for each row of each visit (query, output, maximum
    and total come; output, maximum and total go). Queries outer: 2 n d for all queries and outputs, and 2 d numbers
    for each key of each visit.
    """
    _check_tiles(tiles, n, n, outer)
    if outer == "keys":
        starts = np.arange(0, n, tiles.keys)
        first = starts // tiles.queries * tiles.queries if skip else 0 * starts  # rows before are skipped
        return int(2 * n * d + (n - first).sum() * (3 * d + 4))
    stops = np.minimum(np.arange(0, n, tiles.queries) + tiles.queries, n)
    seen = np.minimum(-(-stops // tiles.keys) * tiles.keys, n) if skip else 0 * stops + n
    return int(2 * n * d + seen.sum() * 2 * d)


def standard_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, slow: SlowMemory | None = None) -> np.ndarray:
    """Compute causal attention with scores and weights written out whole (Dao et al. 2022, algorithm 0).

    Parameters
    ----------
    q : ndarray, [h, L, d]
    k, v : ndarray, [h_kv, S, d]
    slow : SlowMemory, optional
        Three steps, each reading its inputs and writing its result: 4 n² + 4 n d accesses a head of n rows.

    Returns
    -------
    ndarray, [h, L, d]
    """
    check_heads(q, k, v)
    (h, n_queries, d), (h_kv, n_keys, _) = q.shape, k.shape
    slow = SlowMemory() if slow is None else slow
    rows = (q * q.dtype.type(d**-0.5)).reshape(h_kv, h // h_kv, n_queries, d)  # [h_kv, g, L, d]
    slow.read(q, k)
    scores = rows @ k[:, None].swapaxes(-1, -2)  # [L, d] @ [d, S] -> [L, S]
    slow.write(scores)
    slow.read(scores)
    scores = np.where(causal_mask(n_queries, n_keys), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    slow.write(weights)
    slow.read(weights, v)
    out = weights @ v[:, None]  # [L, S] @ [S, d] -> [L, d]
    slow.write(out)
    return out.reshape(h, n_queries, d)


def standard_accesses(n: int, d: int) -> int:
    """Return the slow-memory accesses of ``standard_attention`` for n rows of one head, by formula."""
    return 4 * n * n + 4 * n * d


def _check_tiles(tiles: Tiles, n_queries: int, n_keys: int, outer: str) -> None:
    if n_queries > n_keys:
        raise ValueError(f"{n_queries} queries for {n_keys} keys: every query needs at least its own key")
    for what, tile, n in (("query rows", tiles.queries, n_queries), ("keys", tiles.keys, n_keys)):
        if not is_whole(tile) or not 1 <= tile <= n:
            raise ValueError(f"a tile of {tile} {what} of {n}: give 1 to {n}")
    if outer not in ("keys", "queries"):
        raise ValueError(f'outer = {outer!r}: expected "keys" or "queries"')
