"""The rates of the machine at hand, measured on request: what NumPy's own products reach on it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np

from .latency import Machine

NAME = "this-machine"
RUNS = 5
SIDE = 2048  # of the square matrices: 17 GFLOP a product, long enough to time, short enough to wait for
TALL = (16_384, 4096)  # 268 MB in float32: far beyond any cache of the processor


def measure(dtype: str = "float32") -> tuple[Machine, float | None]:
    """Return the best of five large products as a machine, and the bytes of its memory, None where it does not tell.

    Parameters
    ----------
    dtype : {"float32", "float64"}
        NumPy has no products of narrower numbers that are worth timing.

    Raises
    ------
    ValueError
        For another dtype.
    """
    if dtype not in ("float32", "float64"):
        raise ValueError(f"{NAME} has no fast products in {dtype}: NumPy brings float32 and float64, give one of them")
    rng = np.random.default_rng(0)
    square, tall = (rng.standard_normal(shape, np.float32).astype(dtype) for shape in ((SIDE, SIDE), TALL))
    vector = rng.standard_normal(TALL[1]).astype(dtype)
    peak = 2 * SIDE**3 / _best(lambda: square @ square)
    bandwidth = tall.nbytes / _best(lambda: tall @ vector)  # the matrix is read once, in order
    return Machine(peak, bandwidth), _memory()


def _best(action: Callable[[], object]) -> float:
    """Return the least seconds of a few runs: what other programs take is no property of the machine."""
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _memory() -> float | None:
    names = getattr(os, "sysconf_names", {})
    if not {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= set(names):
        return None
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
