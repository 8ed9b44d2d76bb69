"""Caches that store less than every key and value exactly; each is usable wherever ``KVCache`` is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .attention import causal_mask
from .cache import KVCache, check_kept, check_rows
from .config import Config, is_whole
from .quantised import BITS, Codes
from .rounding import bfloat16, float16

FORMATS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"float16": float16, "bfloat16": bfloat16}


class RoundedKVCache(KVCache):
    """Keep keys and values rounded to 16 bits (emulated: the numbers lie in ``dtype``, only 16-bit ones occur).

    Parameters
    ----------
    config : Config
    capacity : int
    dtype : numpy dtype
        The model's own.
    format : {"float16", "bfloat16"}
    """

    def __init__(self, config: Config, capacity: int, dtype: type = np.float32, *, format: str = "float16") -> None:
        if format not in FORMATS:
            raise ValueError(f"format = {format!r}: expected one of {', '.join(FORMATS)}")
        super().__init__(config, capacity, dtype)
        self._rounded = FORMATS[format]

    def extend(self, layer: int, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Store the new rows rounded and return all keys and values as stored: as in ``KVCache``."""
        return super().extend(layer, *(self._rounded(x).astype(x.dtype) for x in (k, v)))

    @property
    def nbytes(self) -> int:
        """Bytes that the entries take in 16 bits."""
        return super().nbytes * 2 // self.dtype.itemsize


class QuantizedKVCache:
    """Keep recent keys and values exactly and older ones in 8, 4 or 2 bits (after KIVI, Liu et al. 2024).

    When ``residual + group`` entries are exact, the oldest ``group`` of them are quantised: keys for each channel
    over the group's positions, since some channels are much larger than others; values for each position over
    ``group`` channels. Every KV head has scales of its own; query heads share what their KV head has. A pass reads
    its own new rows exactly, so a single prefill attends to exact keys and values and stores afterwards.

    Parameters
    ----------
    config : Config
    dtype : numpy dtype
        The model's own.
    bits : {8, 4, 2}
    group : int
        Numbers that share a scale and a zero point; must divide ``d_head``.
    residual : int
        Recent entries that stay exact, at least 0.
    recent : numpy dtype, optional
        Recent entries are kept in it; default: the model's own.
    keys_per : {"channel", "token"}
        "token" is the counter-example: a large channel spoils the others.

    Notes
    -----
    Keys are stored as they are read: turned by their positions already.
    """

    def __init__(
        self,
        config: Config,
        dtype: type = np.float32,
        *,
        bits: int = 4,
        group: int = 32,
        residual: int = 32,
        recent: type | None = None,
        keys_per: str = "channel",
    ) -> None:
        if bits not in BITS:
            raise ValueError(f"bits = {bits}: expected one of {', '.join(map(str, BITS))}")
        if not is_whole(group) or group < 1 or config.d_head % group or group * bits % 8:
            raise ValueError(f"group = {group}: expected a divisor of d_head = {config.d_head} that fills whole bytes")
        if not is_whole(residual) or residual < 0:
            raise ValueError(f"residual = {residual}: expected a whole number of at least 0")
        if keys_per not in ("channel", "token"):
            raise ValueError(f'keys_per = {keys_per!r}: expected "channel" or "token"')
        self.config = config
        self.dtype = np.dtype(dtype)
        self.bits, self.group, self.residual, self.keys_per = bits, group, residual, keys_per
        empty = np.zeros((2, config.n_kv_heads, 0, config.d_head), recent or dtype)
        self._exact = [empty] * config.n_layers  # [key or value, h_kv, entries, d], the newest entries
        self._old: list[list[tuple[Codes, Codes]]] = [[] for _ in range(config.n_layers)]  # keys, values of a group
        self._pending: dict[int, np.ndarray] = {}
        self._length = 0

    @property
    def next_position(self) -> int:
        """Position of the next token: entries are positions 0 .. len - 1."""
        return self._length

    def mask(self, n_queries: int) -> np.ndarray:
        """Return the causal mask of ``n_queries`` new rows over all keys, theirs included: [L, S]."""
        return causal_mask(n_queries, self._length + n_queries)

    def check_room(self, n_rows: int) -> None:
        """Do nothing: this cache grows."""

    def extend(self, layer: int, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take the new rows of one layer; return what was stored before, as stored, and the new rows, exactly.

        Parameters
        ----------
        layer : int
        k, v : ndarray, [h_kv, L, d]

        Returns
        -------
        keys, values : ndarray, [h_kv, len + L, d]
        """
        check_rows(self.config, self.dtype, layer, k, v)
        before = self.entries(layer)
        new = np.stack([k, v]).astype(self._exact[layer].dtype)
        self._pending[layer] = np.concatenate([self._exact[layer], new], axis=2)
        if layer == self.config.n_layers - 1:
            self._commit(k.shape[1])
        return tuple(np.concatenate([old, new], axis=1) for old, new in zip(before, (k, v), strict=True))

    def entries(self, layer: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the keys and values that one layer holds, as a pass reads them: [h_kv, len, d] each."""
        old = [np.stack([codes.values(self.dtype) for codes in pair]) for pair in self._old[layer]]
        keys, values = np.concatenate([*old, self._exact[layer].astype(self.dtype)], axis=2)
        return keys, values

    def truncate(self, n: int) -> None:
        """Keep the first ``n`` entries; of a group that is cut, the values as stored become the exact ones."""
        check_kept(n, self._length)
        groups = len(self._old[0])
        kept = min(groups, n // self.group)
        for layer in range(self.config.n_layers):
            if kept < groups:
                stored = np.stack(self.entries(layer))[:, :, kept * self.group : n]
                self._exact[layer] = stored.astype(self._exact[layer].dtype)
                self._old[layer] = self._old[layer][:kept]
            else:
                self._exact[layer] = self._exact[layer][:, :, : n - kept * self.group]
        self._length = n

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes of codes, scales, zero points and exact entries, as they lie in memory."""
        old = sum(codes.nbytes for layer in self._old for pair in layer for codes in pair)
        return old + sum(exact.nbytes for exact in self._exact)

    @property
    def nbytes_allocated(self) -> int:
        """The same: nothing is set aside."""
        return self.nbytes

    def _commit(self, n_rows: int) -> None:
        self._length += n_rows
        for layer, exact in self._pending.items():
            while exact.shape[2] >= self.residual + self.group:
                k, v = exact[:, :, : self.group].astype(self.dtype)  # [h_kv, group, d] each
                axis = 1 if self.keys_per == "channel" else 2
                self._old[layer].append(
                    (Codes.of(k, self.bits, self.group, axis), Codes.of(v, self.bits, self.group, 2))
                )
                exact = exact[:, :, self.group :]
            self._exact[layer] = exact.copy()
        self._pending = {}


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
    """

    def __init__(self, config: Config, window: int, dtype: type = np.float32, *, sinks: int = 4) -> None:
        if not (is_whole(window) and is_whole(sinks)) or not 0 <= sinks < window:
            raise ValueError(f"a window of {window} keys with {sinks} sinks: it must be larger than its sinks")
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
        """Return the kept and the new keys and values, [h_kv, len + L, d] each; evict when the last layer has read."""
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
        """Keep the first ``n`` entries; what was evicted before does not come back."""
        check_kept(n, self._length)
        self._seen -= self._length - n
        self._length = n

    def _commit(self, n_rows: int) -> None:
        total = self._length + n_rows
        sinks = min(self.sinks, total)
        kept = np.r_[:sinks, max(sinks, total - (self.window - sinks)) : total]
        for layer, rows in self._rows.items():
            for kind in (0, 1):
                self._kv[layer, kind, :, : len(kept)] = rows[kind][:, kept]
        self._rows = {}
        self._seen += n_rows
        self._length = len(kept)
