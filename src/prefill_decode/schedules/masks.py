"""Which keys a row may read when rows of several prompts, pads or pages share one array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..attention import causal_mask
from ..config import is_whole

PAD = -1


@dataclass(frozen=True)
class Rows:
    """Rows of several prompts laid out in one array, for one pass.

    Attributes
    ----------
    prompt : ndarray of int, [n]
        Which prompt a row belongs to; ``PAD`` for none.
    positions : ndarray of int, [n]
        Counted from 0 in each prompt; 0 for pads.
    """

    prompt: np.ndarray
    positions: np.ndarray

    @property
    def mask(self) -> np.ndarray:
        """Causal within each prompt, nothing across, no pad read, no pad reading: bool [n, n]."""
        same = (self.prompt[:, None] == self.prompt) & (self.prompt != PAD)  # [n, n]
        return same & causal_mask(len(self.prompt), len(self.prompt))

    def of(self, prompt: int) -> np.ndarray:
        """Return the rows of one prompt, as indices."""
        return np.flatnonzero(self.prompt == prompt)


def packed_rows(lengths: Sequence[int]) -> Rows:
    """Lay prompts out end to end, without pads: n is the sum of the lengths."""
    return _end_to_end([_own(i, length) for i, length in enumerate(check_lengths(lengths))])


def padded_rows(lengths: Sequence[int], side: str) -> Rows:
    """Lay prompts out as equal lines, the longest without pads: n is prompts times the greatest length.

    Parameters
    ----------
    lengths : sequence of int
    side : {"left", "right"}
        Where the pads stand.
    """
    if side not in ("left", "right"):
        raise ValueError(f'side = {side!r}: expected "left" or "right", where the pads stand')
    longest = max(check_lengths(lengths))
    lines = []
    for i, length in enumerate(lengths):
        pads, own = np.array([[PAD], [0]]).repeat(longest - length, axis=1), _own(i, length)
        lines.append(np.hstack([pads, own] if side == "left" else [own, pads]))
    return _end_to_end(lines)


def window_mask(n_queries: int, n_keys: int, window: int) -> np.ndarray:
    """Let each query read its own key and the ``window - 1`` before it: bool [n_queries, n_keys]."""
    if not is_whole(window) or window < 1:
        raise ValueError(f"a window of {window} keys: every query needs its own, give at least 1")
    # what is further back than the window is a causal triangle of its own, moved down by the window
    return causal_mask(n_queries, n_keys) & ~np.tri(n_queries, n_keys, n_keys - n_queries - window, dtype=bool)


def paged_mask(n_queries: int, n_keys: int, table: Sequence[int], block_size: int, n_blocks: int) -> np.ndarray:
    """Show the causal mask in the order in which a paged cache holds its keys: bool [n_queries, n_blocks * block_size].

    Parameters
    ----------
    n_queries, n_keys : int
        The queries are the last of ``n_keys`` positions.
    table : sequence of int
        Page table: position p lies in slot ``table[p // block_size] * block_size + p % block_size``.
    block_size, n_blocks : int
        Of the memory that all sequences share; what the table does not name is never read.

    Raises
    ------
    ValueError
        If the table names a block twice, one that is not there, or too few.
    """
    if not is_whole(block_size) or block_size < 1:
        raise ValueError(f"blocks of {block_size} positions hold nothing: give at least 1")
    need, table = -(-n_keys // block_size), list(table)
    if len(table) < need or len(set(table)) < len(table) or not set(table) <= set(range(n_blocks)):
        raise ValueError(
            f"the page table {table} of {n_keys} positions: name {need} of blocks 0 to {n_blocks - 1}, each once"
        )
    position = np.arange(n_keys)
    slots = np.asarray(table)[position // block_size] * block_size + position % block_size
    mask = np.zeros((n_queries, n_blocks * block_size), bool)
    mask[:, slots] = causal_mask(n_queries, n_keys)
    return mask


def check_lengths(lengths: Sequence[int]) -> Sequence[int]:
    """Return the lengths of a batch; raise ValueError if there are none or one is 0."""
    if not len(lengths):
        raise ValueError("the batch is empty: give at least one prompt")
    if min(lengths) < 1:
        raise ValueError(f"prompt {list(lengths).index(min(lengths))} has no tokens: leave it out or give it one")
    return lengths


def _own(prompt: int, length: int) -> np.ndarray:
    """Return the prompt's number and its positions: [2, length]."""
    return np.stack([np.full(length, prompt), np.arange(length)])


def _end_to_end(lines: list[np.ndarray]) -> Rows:
    return Rows(*np.hstack(lines))
