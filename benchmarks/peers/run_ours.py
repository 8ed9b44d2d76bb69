"""The chapter's decoder as a worker, so that it has as many threads as its peers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from serve import Decoder, serve

from prefill_decode import smollm2
from prefill_decode.cache import KVCache
from prefill_decode.model import decode_step, prefill


class Ours(Decoder):
    """NumPy, with the weights as the loader gives them."""

    name = "the chapter's decoder"

    def __init__(self, folder: Path) -> None:
        self._model, _ = smollm2.load()

    def prefill(self, ids: np.ndarray) -> np.ndarray:
        """Run a prompt into an empty cache that has room for one more token."""
        self._cache = KVCache(self._model.config, len(ids) + 1, self._model.dtype)
        return prefill(self._model, ids, self._cache)

    def keep(self, n: int) -> None:
        """Forget all but the first ``n`` entries."""
        self._cache.truncate(n)

    def step(self, token: int) -> np.ndarray:
        """Run one more token."""
        return decode_step(self._model, token, self._cache)


if __name__ == "__main__":
    serve(Ours)
