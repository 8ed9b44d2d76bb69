"""Caches that store less than every key and value exactly; each is usable wherever ``KVCache`` is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .attention import causal_mask
from .cache import KVCache, check_kept, check_rows
from .config import Config, is_whole, one_line
from .quantised import BITS, Codes
from .rounding import bfloat16, float16
from .window import WindowKVCache

__all__ = ["QuantizedKVCache", "RoundedKVCache", "WindowKVCache"]

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

    Raises
    ------
    ValueError
        If the format is another one, or the capacity no whole number of at least 1.
    """

    def __init__(self, config: Config, capacity: int, dtype: type = np.float32, *, format: str = "float16") -> None:
        if not isinstance(format, str) or format not in FORMATS:
            raise ValueError(f"format = {one_line(format)}: expected one of {', '.join(FORMATS)}")
        super().__init__(config, capacity, dtype)
        self._rounded = FORMATS[format]

    def extend(self, layer: int, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Store the new rows rounded and return all keys and values as stored: as in ``KVCache``."""
        return super().extend(layer, *(self._rounded(x).astype(x.dtype) for x in (k, v)))

    @property
    def nbytes(self) -> int:
        """Bytes that the entries take in 16 bits."""
        return super().nbytes * 2 // self.dtype.itemsize

    @property
    def nbytes_allocated(self) -> int:
        """Bytes that ``capacity`` entries take in 16 bits."""
        return super().nbytes_allocated * 2 // self.dtype.itemsize


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

    Raises
    ------
    ValueError
        If an option is none of these, or a group does not divide ``d_head`` or fill whole bytes.

    Notes
    -----
    Keys are stored as they are read: turned by their positions already. A pass that is interrupted leaves the entries
    that were there; those that its last layer had quantised stay quantised. ``speculative_generate`` may choose other
    tokens than ``generate`` on such a cache, since a pass of several rows reads its own rows exactly.
    """

    evicts = False

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
        _check_options(config, bits, group, residual, keys_per)
        self.config = config
        self.dtype = np.dtype(dtype)
        self.bits, self.group, self.residual, self.keys_per = bits, group, residual, keys_per
        empty = np.zeros((2, config.n_kv_heads, 0, config.d_head), _floating(dtype if recent is None else recent))
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

        Otherwise as in ``KVCache``, and ValueError if the rows hold what ``Codes`` cannot.
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
        kept = min(len(self._old[0]), n // self.group)  # groups
        layers = range(self.config.n_layers)
        exact = [self._kept(layer, kept, n) for layer in layers]
        old = [self._old[layer][:kept] for layer in layers]
        self._old, self._exact, self._length, self._pending = old, exact, n, {}

    def _kept(self, layer: int, groups: int, n: int) -> np.ndarray:
        """Return what follows ``groups`` whole groups, up to entry n, as the exact entries of a layer."""
        exact = self._exact[layer]
        if groups == len(self._old[layer]):
            return exact[:, :, : n - groups * self.group]
        return np.stack(self.entries(layer))[:, :, groups * self.group : n].astype(exact.dtype)

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
        """Take over the rows of all layers; an interrupt on the way leaves everything as it is."""
        layers = [self._settled(layer) for layer in range(self.config.n_layers)]
        old, exact = [old for old, _ in layers], [exact for _, exact in layers]
        self._old, self._exact, self._length, self._pending = old, exact, self._length + n_rows, {}

    def _settled(self, layer: int) -> tuple[list[tuple[Codes, Codes]], np.ndarray]:
        """Return the groups and the exact entries of a layer, its new rows included."""
        old, exact = [*self._old[layer]], self._pending[layer]
        axis = 1 if self.keys_per == "channel" else 2
        while exact.shape[2] >= self.residual + self.group:
            k, v = exact[:, :, : self.group].astype(self.dtype)  # [h_kv, group, d] each
            old.append((Codes.of(k, self.bits, self.group, axis), Codes.of(v, self.bits, self.group, 2)))
            exact = exact[:, :, self.group :]
        return old, exact.copy()


def _check_options(config: Config, bits: int, group: int, residual: int, keys_per: str) -> None:
    if not is_whole(bits) or bits not in BITS:
        raise ValueError(f"bits = {one_line(bits)}: expected one of {', '.join(map(str, BITS))}")
    if not is_whole(group) or group < 1 or config.d_head % group or group * bits % 8:
        expected = f"a divisor of d_head = {config.d_head} that fills whole bytes"
        raise ValueError(f"group = {one_line(group)}: expected {expected}")
    if not is_whole(residual) or residual < 0:
        raise ValueError(f"residual = {one_line(residual)}: expected a whole number of at least 0")
    if keys_per not in ("channel", "token"):
        raise ValueError(f'keys_per = {one_line(keys_per)}: expected "channel" or "token"')


def _floating(given: object) -> np.dtype:
    try:
        dtype = np.dtype(given)
    except TypeError:  # the name of no dtype: refused with those of other numbers
        dtype = np.dtype(object)
    if dtype.kind != "f":
        raise ValueError(f"recent entries in {one_line(given)}: expected a floating dtype, such as np.float16")
    return dtype
