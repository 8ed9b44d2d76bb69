"""A small `TileSweep` and the arrays it shows: n ≠ d, and sizes of memory whose tiles divide n or do not."""

import numpy as np

from prefill_decode.widgets import TileSweep

N, D = 10, 3
MEMORIES = (12, 24, 37, 48, 120)  # tiles of 1 × 1, 2 × 2, 4 × 3, 4 × 3 and 10 × 3 keys × queries
LABELS = ["The", " old", " cat", " sleeps", " here", " and", " <b>", " of", " mice", "."]


def arrays(n: int = N, d: int = D, seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, k, v of one head."""
    q, k, v = np.random.default_rng(seed).normal(0, 1.4, (3, 1, n, d))
    return q, k, v


def tile_sweep(**options: object) -> TileSweep:
    """Return a sweep over the arrays that opens with M = 24, 5 × 5 tiles."""
    given = {"memories": MEMORIES, "memory": 24, "labels": LABELS} | options
    q, k, v = given.pop("arrays", arrays())
    return TileSweep(q, k, v, **given)
