"""Memory for keys and values in blocks of equal size, shared by any number of sequences."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..config import Config, is_whole


class BlockPool:
    """Hand blocks out one by one, and take them back.

    Parameters
    ----------
    config : Config
        Of the model that will fill it.
    block_size, n_blocks : int
        Positions in a block, and blocks; at least 1 each.
    dtype : numpy dtype, optional
        Of the keys and values; default: that of the first ones written.
    order : iterable of int, optional
        The order in which free blocks are handed out; default 0, 1, 2, ...

    Attributes
    ----------
    free : list of int
        Blocks that nobody uses, the next one first.
    users : list of int
        How many sequences read each block.
    blocks : ndarray, [block, layer, key or value, h_kv, block_size, d], or None
        The memory itself; None as long as its dtype is not known.

    Raises
    ------
    ValueError
        If a size is not at least 1, or the order does not name each block once.
    """

    def __init__(
        self,
        config: Config,
        block_size: int,
        n_blocks: int,
        dtype: type | None = None,
        order: Iterable[int] | None = None,
    ) -> None:
        if not (is_whole(block_size) and is_whole(n_blocks)) or min(block_size, n_blocks) < 1:
            raise ValueError(f"{n_blocks} blocks of {block_size} positions hold nothing: give at least 1 of at least 1")
        self.config = config
        self.block_size = block_size
        self.n_blocks = n_blocks
        self.free = [int(block) for block in (range(n_blocks) if order is None else order)]
        if sorted(self.free) != list(range(n_blocks)):
            raise ValueError(f"the order {self.free} does not name each of {n_blocks} blocks once")
        self.users = [0] * n_blocks
        self.blocks: np.ndarray | None = None
        if dtype is not None:
            self.allocate(dtype)

    def allocate(self, dtype: type) -> None:
        """Set the memory aside, all of it at once, if that has not been done."""
        if self.blocks is None:
            c = self.config
            shape = (self.n_blocks, c.n_layers, 2, c.n_kv_heads, self.block_size, c.d_head)
            self.blocks = np.zeros(shape, dtype)

    @property
    def dtype(self) -> np.dtype | None:
        """Dtype of the keys and values; None before the first are written."""
        return None if self.blocks is None else self.blocks.dtype

    def blocks_for(self, n: int) -> int:
        """Return how many blocks n positions fill, the last one perhaps not to its end."""
        return -(-n // self.block_size)

    def take(self, n: int) -> list[int]:
        """Hand out n blocks, or raise ValueError and hand out none."""
        self.check_room(n)
        taken, self.free = self.free[:n], self.free[n:]
        self.share(taken)
        return taken

    def check_room(self, n: int) -> None:
        """Raise ValueError if fewer than n blocks are free."""
        if n > len(self.free):
            least = self.n_blocks + n - len(self.free)
            raise ValueError(
                f"{n} more blocks of {self.block_size} positions are needed, {len(self.free)} of {self.n_blocks} are "
                f"free: truncate a sequence, let a prefix cache forget, or make a pool of {least} blocks"
            )

    def share(self, blocks: Iterable[int]) -> None:
        """Note one more user of each block."""
        for block in blocks:
            self.users[block] += 1

    def release(self, blocks: Iterable[int]) -> None:
        """Note one user less of each block; one without users is free again, the next to be handed out."""
        for block in blocks:
            self.users[block] -= 1
            if self.users[block] == 0:
                self.free.insert(0, block)

    @property
    def block_bytes(self) -> int:
        """Bytes of one block, all layers; 0 before the memory is set aside."""
        return 0 if self.blocks is None else self.blocks[0].nbytes
