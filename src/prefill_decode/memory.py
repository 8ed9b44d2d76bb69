"""How much memory a computation needs at its worst moment."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable


def peak_bytes(call: Callable[[], object]) -> int:
    """Return the bytes that Python and NumPy held at most while ``call`` ran, beyond what they held before."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        call()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return most - before
