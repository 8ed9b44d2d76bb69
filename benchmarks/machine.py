"""What the machine itself reaches in float32, through NumPy: the roof over every other number here."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.measure import alternate
from prefill_decode.cost import this_machine
from prefill_decode.recorded import Measure

RUNS = 5
SIDES = (1024, 2048, 4096)  # of square matrices
MODEL = (1024, 576, 3072)  # a prompt of 1024 rows through gate and up of one layer
COPIED = 1 << 28  # bytes: far beyond any cache of the processor


def measure() -> dict[str, Measure]:
    """Return rates of large products, of a matrix read once for one vector, and of a copy: the best of each."""
    shapes = [MODEL, *((side, side, side) for side in SIDES)]
    source, target = (np.ones(COPIED // 4, np.float32) for _ in range(2))
    actions = [*map(_product, shapes), partial(np.copyto, target, source)]
    *products, copies = alternate(*actions, runs=RUNS, what="machine")
    gflops = [2 * n * k * m / min(times) / 1e9 for (n, k, m), times in zip(shapes, products, strict=True)]
    peak = "the best of these products: what this machine can compute"
    return {
        "model_product_gflops": _best(_product_name(MODEL) + ", as in one layer", gflops[0], "GFLOP/s"),
        **{
            f"product_gflops_{side}": _best(_product_name((side,) * 3), rate, "GFLOP/s")
            for side, rate in zip(SIDES, gflops[1:], strict=True)
        },
        "peak_gflops": _best(peak, max(gflops), "GFLOP/s"),
        **_memory_rates(min(copies)),
    }


def _memory_rates(copy_seconds: float) -> dict[str, Measure]:
    bandwidth = this_machine.measure()[0].bandwidth  # as `cost --device this-machine` has it
    rows, columns = this_machine.TALL
    matrix = f"matrix {rows} × {columns} · vector, the matrix read once"
    copy = f"copy of {COPIED / 1e6:.0f} MB, bytes read and bytes written both counted"
    return {
        "matvec_gb_per_second": _best(matrix, bandwidth / 1e9, "GB/s"),
        "copy_gb_per_second": _best(copy, 2 * COPIED / copy_seconds / 1e9, "GB/s"),
    }


def _product(shape: tuple[int, int, int]) -> partial:
    n, k, m = shape
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((n, k), np.float32), rng.standard_normal((k, m), np.float32)
    return partial(np.matmul, a, b, out=np.empty((n, m), np.float32))  # [n, k] @ [k, m] -> [n, m]


def _product_name(shape: tuple[int, int, int]) -> str:
    n, k, m = shape
    return f"matrix {n} × {k} · matrix {k} × {m}"


def _best(what: str, rate: float, unit: str) -> Measure:
    return Measure(what, rate, unit, RUNS, "best")
