"""A KV cache in blocks that need not lie side by side: a page table says where each position is (Kwon et al. 2023)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..attention import causal_mask
from ..cache import check_kept, check_rows
from ..config import Config, is_whole
from .pool import BlockPool


class PagedKVCache:
    """Keep the keys and values of one sequence in blocks of a pool; usable wherever ``KVCache`` is.

    Parameters
    ----------
    config : Config
    block_size, n_blocks : int
        Of a pool of its own; ``PagedKVCache.on`` takes one that others use too.
    dtype : numpy dtype, optional
        Default: that of the first keys written.

    Attributes
    ----------
    pool : BlockPool
    table : tuple of int
        Page table: position p is in block ``table[p // block_size]``, there at ``p % block_size``.

    Notes
    -----
    As in ``KVCache``, a pass counts when its last layer has been extended. ``extend`` gathers the blocks into
    one array, in the order of positions; a kernel for paged memory reads them where they lie.
    """

    evicts = False

    def __init__(self, config: Config, block_size: int, n_blocks: int, dtype: type | None = None) -> None:
        self._start(BlockPool(config, block_size, n_blocks, dtype), [], 0)

    @classmethod
    def on(cls, pool: BlockPool, table: Iterable[int] = (), length: int = 0) -> PagedKVCache:
        """Start a sequence on a pool; with a table, on the first ``length`` positions that its blocks hold.

        Raises
        ------
        ValueError
            If the table names a block twice, or one that holds nothing, or does not fit the length.
        """
        table = [int(block) for block in table]
        _check_table(pool, table, length)
        pool.share(table)
        cache = cls.__new__(cls)
        cache._start(pool, table, length)
        return cache

    def _start(self, pool: BlockPool, table: list[int], length: int) -> None:
        self.pool = pool
        self.config = pool.config
        self._table = table
        self._length = length

    def fork(self, n: int | None = None) -> PagedKVCache:
        """Return a second sequence that shares the first n positions (default: all): no key is copied.

        Whoever writes into a shared block first gets a copy of it (copy on write).
        """
        n = len(self) if n is None else n
        check_kept(n, self._length)
        return PagedKVCache.on(self.pool, self.table[: self.pool.blocks_for(n)], n)

    @property
    def table(self) -> tuple[int, ...]:
        """The page table, to look at."""
        return tuple(self._table)

    @property
    def dtype(self) -> np.dtype | None:
        """Dtype of the keys and values; None before the first are written."""
        return self.pool.dtype

    @property
    def next_position(self) -> int:
        """Position of the next token: entries are positions 0 .. len - 1."""
        return self._length

    def mask(self, n_queries: int) -> np.ndarray:
        """Return the causal mask of ``n_queries`` new rows over all keys, theirs included: [L, S]."""
        return causal_mask(n_queries, self._length + n_queries)

    def extend(self, layer: int, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Store the new rows of one layer and return all its keys and values, as ``KVCache.extend`` does.

        They are copies [h_kv, len + L, d], gathered from the blocks. ValueError, and nothing changed, if the rows do
        not fit or the pool has too few free blocks.
        """
        check_rows(self.config, self.dtype or k.dtype, layer, k, v)
        self.pool.allocate(k.dtype)
        end = self._length + k.shape[1]
        self._make_room(end)
        new = np.arange(self._length, end)
        blocks, places = np.asarray(self._table, int)[new // self.pool.block_size], new % self.pool.block_size
        self.pool.blocks[blocks, layer, 0, :, places] = k.transpose(1, 0, 2)  # [L, h_kv, d]
        self.pool.blocks[blocks, layer, 1, :, places] = v.transpose(1, 0, 2)
        if layer == self.config.n_layers - 1:
            self._length = end
        return self._gathered(layer, end)

    def entries(self, layer: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the keys and values that one layer holds, to look at: [h_kv, len, d] each."""
        return self._gathered(layer, self._length)

    def truncate(self, n: int) -> None:
        """Keep the first ``n`` entries; blocks that hold none of them go back to the pool, all of them with 0."""
        check_kept(n, self._length)
        kept = self.pool.blocks_for(n)
        self.pool.release(self._table[kept:])
        self._table = self._table[:kept]
        self._length = n

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes that the entries use."""
        return self._length * self.pool.block_bytes // self.pool.block_size

    @property
    def nbytes_allocated(self) -> int:
        """Bytes of the blocks in the table, shared ones included."""
        return len(self._table) * self.pool.block_bytes

    def check_room(self, n_rows: int) -> None:
        """Raise ValueError, naming the blocks needed, if the pool has too few for ``n_rows`` more entries."""
        self.pool.check_room(len(self._shared()) + self._missing(self._length + n_rows))

    def _shared(self) -> list[int]:
        """Return the entries of the table that new rows would be written into and that others read, too."""
        written = self._length // self.pool.block_size  # the first block that a new row goes to
        return [i for i in range(written, len(self._table)) if self.pool.users[self._table[i]] > 1]

    def _missing(self, end: int) -> int:
        return max(0, self.pool.blocks_for(end) - len(self._table))

    def _make_room(self, end: int) -> None:
        """Get blocks up to ``end``, and a block of one's own to write into; or raise and change nothing."""
        shared = self._shared()
        fresh = self.pool.take(len(shared) + self._missing(end))
        for i, block in zip(shared, fresh, strict=False):
            self.pool.blocks[block] = self.pool.blocks[self._table[i]]  # copy on write
            self.pool.release([self._table[i]])
            self._table[i] = block
        self._table += fresh[len(shared) :]

    def _gathered(self, layer: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        held = self.pool.blocks[self._table[: self.pool.blocks_for(end)], layer]  # [blocks, 2, h_kv, block_size, d]
        both = held.transpose(1, 2, 0, 3, 4)  # [2, h_kv, blocks, block_size, d]
        keys, values = both.reshape(*both.shape[:2], -1, self.config.d_head)[:, :, :end]  # [h_kv, S, d] each
        return keys, values


def _check_table(pool: BlockPool, table: list[int], length: int) -> None:
    twice = next((block for block in table if table.count(block) > 1), None)
    if twice is not None:
        raise ValueError(f"the page table {table} names block {twice} twice: two stretches of a text need two blocks")
    empty = next((b for b in table if not (0 <= b < pool.n_blocks and pool.users[b])), None)
    if empty is not None:
        raise ValueError(f"the page table {table} names block {empty}, which holds nothing: give blocks in use")
    if not is_whole(length) or length < 0:
        raise ValueError(f"a sequence of {length} positions: give 0 or more")
    if pool.blocks_for(length) != len(table):
        need = f"{length} positions in blocks of {pool.block_size} need {pool.blocks_for(length)}"
        raise ValueError(f"{need}, the page table names {len(table)} blocks: make them fit")
