"""Texts that begin alike share the blocks of their common beginning: it is computed once."""

from __future__ import annotations

from collections.abc import Sequence

from ..config import is_whole
from .paged import PagedKVCache
from .pool import BlockPool


class PrefixCache:
    """Find blocks by the text they were computed from.

    A block is known by *all* ids up to its end, not by its own alone: its keys and values depend on every earlier
    token and on the positions. So only a common beginning can be reused, in whole blocks.

    Parameters
    ----------
    pool : BlockPool
        Where the sequences keep their blocks.
    """

    def __init__(self, pool: BlockPool) -> None:
        self.pool = pool
        self._blocks: dict[tuple[int, ...], int] = {}  # text so far -> the block it ends in; least recently used first

    def __len__(self) -> int:
        """Blocks held."""
        return len(self._blocks)

    def start(self, ids: Sequence[int]) -> PagedKVCache:
        """Return a cache that already holds the longest known beginning of ``ids``.

        At least one token is left to run: logits come out of a pass, not out of a cache. ``len`` of the cache says
        how many positions were found; go on with ``ids[len(cache):]``.
        """
        found = []
        for end in range(self.pool.block_size, len(ids), self.pool.block_size):
            text = tuple(ids[:end])
            if text not in self._blocks:
                break
            found.append(text)
        for text in reversed(found):  # the longest first, so that it is forgotten before what it stands on
            self._blocks[text] = self._blocks.pop(text)
        return PagedKVCache.on(self.pool, [self._blocks[t] for t in found], len(found) * self.pool.block_size)

    def keep(self, ids: Sequence[int], cache: PagedKVCache) -> None:
        """Remember the full blocks of a cache that holds the first ``len(cache)`` of ``ids``.

        Raises
        ------
        ValueError
            If the cache is on another pool, holds more than ``ids``, or a block is known as another text's.
        """
        if cache.pool is not self.pool:
            raise ValueError("the cache keeps its blocks in another pool: start it with this prefix cache")
        if len(cache) > len(ids):
            raise ValueError(f"the cache holds {len(cache)} positions, the text has {len(ids)} ids: give them all")
        size = self.pool.block_size
        texts = {tuple(ids[: (i + 1) * size]): cache.table[i] for i in range(len(cache) // size)}
        known = {block: text for text, block in self._blocks.items()}
        for text, block in texts.items():
            if known.get(block, text) != text:
                raise ValueError(f"block {block} is known as the end of another text: these ids are not the cache's")
        for text, block in reversed(texts.items()):  # used now, too, and in the order of ``start``
            if text not in self._blocks:
                self.pool.share([block])
            self._blocks[text] = self._blocks.pop(text, block)  # the same text computed twice is kept once

    def forget(self, n_blocks: int | None = None) -> None:
        """Let go of the ``n_blocks`` least recently used blocks (default: all); sequences that read them keep them."""
        if n_blocks is not None and (not is_whole(n_blocks) or n_blocks < 0):
            raise ValueError(f"cannot forget {n_blocks} blocks: give 0 or more, or nothing for all of them")
        for text in list(self._blocks)[:n_blocks]:
            self.pool.release([self._blocks.pop(text)])
