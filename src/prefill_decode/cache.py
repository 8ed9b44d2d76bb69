"""The KV cache: keys and values of past positions, kept because no later token can change them."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .attention import causal_mask
from .config import Config, is_whole, one_line


class Cache(Protocol):
    """What a forward pass asks of a cache; anything that answers can stand in for ``KVCache``.

    One pass calls ``next_position`` and ``mask`` first, then ``extend`` once a layer, in order.
    """

    @property
    def next_position(self) -> int:
        """Position (for the rotary embedding) of the next token to come."""

    def mask(self, n_queries: int) -> np.ndarray:
        """Which of the keys that ``extend`` will return each new query may read: bool [n_queries, n_keys]."""

    def extend(self, layer: int, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Store new rows [h_kv, L, d] of one layer; return the keys and values to read [h_kv, S, d]."""

    def check_room(self, n_rows: int) -> None:
        """Raise ValueError if so many new rows do not fit, saying what would."""

    @property
    def evicts(self) -> bool:
        """Whether old entries are dropped: ``truncate`` cannot bring them back, and entry i need not be position i."""

    def truncate(self, n: int) -> None:
        """Keep the first n entries; what a pass brought and did not commit is forgotten."""

    def __len__(self) -> int:
        """Entries held, the same in every layer."""

    @property
    def nbytes(self) -> int:
        """Bytes that the entries held occupy."""

    @property
    def nbytes_allocated(self) -> int:
        """Bytes set aside."""


class KVCache:
    """Keep every key and value, in arrays allocated once.

    Parameters
    ----------
    config : Config
        Of the model that will fill it.
    capacity : int
        Entries (positions) to make room for, at least 1.
    dtype : numpy dtype
        Of the keys and values, the model's own.

    Raises
    ------
    ValueError
        If the capacity is no whole number of at least 1.

    Notes
    -----
    An entry is committed when the *last* layer has been extended. A pass that fails or is interrupted before
    leaves the cache as it was; one that is interrupted later is cut off again by ``model.forward``.
    """

    evicts = False

    def __init__(self, config: Config, capacity: int, dtype: type = np.float32) -> None:
        if not is_whole(capacity) or capacity < 1:
            raise ValueError(f"a cache of {one_line(capacity)} entries holds nothing: give a capacity of at least 1")
        self.config = config
        self.capacity = capacity
        shape = (config.n_layers, 2, config.n_kv_heads, capacity, config.d_head)
        self._kv = np.zeros(shape, dtype)  # [layer, key or value, h_kv, capacity, d]
        self._length = 0

    @property
    def dtype(self) -> np.dtype:
        """Dtype of the keys and values."""
        return self._kv.dtype

    @property
    def next_position(self) -> int:
        """Position of the next token: entries are positions 0 .. len - 1."""
        return self._length

    def mask(self, n_queries: int) -> np.ndarray:
        """Return the causal mask of ``n_queries`` new rows over all keys, theirs included: [L, S]."""
        return causal_mask(n_queries, self._length + n_queries)

    def extend(self, layer: int, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Store the new rows of one layer and return all its keys and values.

        Parameters
        ----------
        layer : int
        k, v : ndarray, [h_kv, L, d]

        Returns
        -------
        keys, values : ndarray, [h_kv, len + L, d]
            Views: no copy is made.

        Raises
        ------
        ValueError
            If the rows do not fit in shape, dtype or number. The cache stays as it was.
        """
        check_rows(self.config, self.dtype, layer, k, v)
        self.check_room(k.shape[1])
        end = self._length + k.shape[1]
        keys, values = self._kv[layer, :, :, :end]  # [h_kv, S, d] each
        keys[:, self._length :] = k
        values[:, self._length :] = v
        if layer == self.config.n_layers - 1:
            self._length = end
        return keys, values

    def entries(self, layer: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the keys and values that one layer holds, to look at: [h_kv, len, d] each."""
        keys, values = self._kv[layer, :, :, : self._length]
        return keys, values

    def truncate(self, n: int) -> None:
        """Keep the first ``n`` entries; the rest is forgotten, not freed. ValueError if there are not so many."""
        check_kept(n, self._length)
        self._length = n

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes used: 2 · layers · KV heads · head width · bytes per number · entries."""
        c = self.config
        return 2 * c.n_layers * c.n_kv_heads * c.d_head * self.dtype.itemsize * self._length

    @property
    def nbytes_allocated(self) -> int:
        """Bytes set aside for ``capacity`` entries."""
        return self._kv.nbytes

    def check_room(self, n_rows: int) -> None:
        """Raise ValueError if ``n_rows`` more entries do not fit."""
        if self._length + n_rows > self.capacity:
            raise ValueError(
                f"the cache is full: {self._length} of {self.capacity} entries are used and {n_rows} more were "
                f"asked for; make one with capacity {self._length + n_rows} or truncate it"
            )


def check_rows(config: Config, dtype: np.dtype, layer: int, k: np.ndarray, v: np.ndarray) -> None:
    """Raise ValueError if new keys and values [h_kv, L, d] do not fit the layers, heads or dtype of a cache."""
    if not 0 <= layer < config.n_layers:
        raise ValueError(
            f"layer {layer} of a cache with {config.n_layers} layers: it was made for another configuration"
        )
    if k.shape != v.shape or k.ndim != 3 or (k.shape[0], k.shape[2]) != (config.n_kv_heads, config.d_head):
        expected = f"[{config.n_kv_heads}, L, {config.d_head}]"
        raise ValueError(f"keys {k.shape} and values {v.shape} do not fit this cache: expected {expected}")
    if not k.dtype == v.dtype == dtype:
        raise ValueError(f"keys are {k.dtype}, values {v.dtype}, the cache is {dtype}: give it the model's dtype")


def check_kept(n: int, length: int) -> None:
    """Raise ValueError if a cache of ``length`` entries cannot keep the first ``n``."""
    if not is_whole(n) or not 0 <= n <= length:
        raise ValueError(f"cannot keep {one_line(n)} of {length} entries: give 0 to {length}")
