"""A cache of fixed size: the first entries and the newest; what lies between is evicted."""

from __future__ import annotations

import numpy as np

from .cache import KVCache, check_kept, check_rows
from .config import Config, is_whole, one_line


class WindowKVCache(KVCache):
    """Keep the first ``sinks`` entries and the newest ones, ``window`` in all (after Xiao et al. 2024).

    Every row reads what a row of its own would find: inside a pass of several rows, too, older keys than the
    window's are masked. Keys keep the positions that they have in the text.

    Parameters
    ----------
    config : Config
    window : int
        Keys that a row reads at most, sinks and its own included; more than the sinks.
    dtype : numpy dtype
    sinks : int
        First entries that are never evicted.

    Raises
    ------
    ValueError
        If window and sinks are no whole numbers, or the window is not larger than its sinks.

    Notes
    -----
    A pass that is interrupted before its last layer has stored leaves the cache as it was. Later it is committed: what
    it evicted cannot come back.
    """

    evicts = True

    def __init__(self, config: Config, window: int, dtype: type = np.float32, *, sinks: int = 4) -> None:
        if not (is_whole(window) and is_whole(sinks)) or not 0 <= sinks < window:
            told = f"a window of {one_line(window)} keys with {one_line(sinks)} sinks"
            raise ValueError(f"{told}: it must be larger than its sinks, both whole numbers of at least 0")
        self.window, self.sinks = window, sinks
        super().__init__(config, window, dtype)
        self._seen = 0  # positions that went through
        self._rows: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    @property
    def next_position(self) -> int:
        """Position of the next token in the text."""
        return self._seen

    def check_room(self, n_rows: int) -> None:
        """Do nothing: there is always room, for what is evicted."""

    def mask(self, n_queries: int) -> np.ndarray:
        """Return which kept and new keys each new row reads: its window and the sinks, [L, S]."""
        query = self._seen + np.arange(n_queries)[:, None]  # [L, 1]
        key = np.concatenate([self._positions(), query[:, 0]])  # [S]
        recent = key > query - (self.window - self.sinks)
        return (key <= query) & (recent | (key < self.sinks))

    def extend(self, layer: int, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the kept and the new keys and values, [h_kv, len + L, d] each; evict when the last layer has read.

        Otherwise as in ``KVCache``; there is always room.
        """
        check_rows(self.config, self.dtype, layer, k, v)
        held = self.entries(layer)
        self._rows[layer] = tuple(np.concatenate(pair, axis=1) for pair in zip(held, (k, v), strict=True))
        rows = self._rows[layer]
        if layer == self.config.n_layers - 1:
            self._commit(k.shape[1])
        return rows

    def _positions(self) -> np.ndarray:
        """Return the text positions of the entries held: the sinks, then the newest."""
        recent = np.arange(self._seen - (self._length - min(self._length, self.sinks)), self._seen)
        return np.concatenate([np.arange(min(self._length, self.sinks)), recent])

    def truncate(self, n: int) -> None:
        """Keep the first ``n`` entries: any number before the first eviction, later all or none.

        Raises
        ------
        ValueError
            If there are not so many, or entries were evicted that a shorter text would read. Nothing has changed then.
        """
        check_kept(n, self._length)
        evicted = self._seen - self._length
        if evicted and 0 < n < self._length:
            raise ValueError(
                f"cannot keep {n} of {self._length} entries: {evicted} older ones were evicted and do not come back; "
                f"give {self._length} (all) or 0 (start again)"
            )
        seen = self._seen if n == self._length else n
        self._rows, self._seen, self._length = {}, seen, n

    def _commit(self, n_rows: int) -> None:
        total = self._length + n_rows
        sinks = min(self.sinks, total)
        kept = np.r_[:sinks, max(sinks, total - (self.window - sinks)) : total]
        kv = self._kv.copy()  # an interrupt on the way leaves the entries held as they are
        for layer, rows in self._rows.items():
            for kind in (0, 1):
                kv[layer, kind, :, : len(kept)] = rows[kind][:, kept]
        self._kv, self._rows, self._seen, self._length = kv, {}, self._seen + n_rows, len(kept)
