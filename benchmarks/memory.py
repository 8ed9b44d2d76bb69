"""The most memory that a long prompt needs: weights, prefill of 1024 tokens, cache."""

from __future__ import annotations

from benchmarks.loading import RUNS, loading_processes
from prefill_decode.recorded import Measure

TOKENS = 1024
PREFILL = f"""
from prefill_decode.cache import KVCache
from prefill_decode.model import prefill
prefill(model, range({TOKENS}), KVCache(model.config, {TOKENS}, model.dtype))
"""


def measure() -> dict[str, Measure]:
    """Return the peak memory of fresh processes that load the model and run one prompt."""
    peaks = [run["peak"] for run in loading_processes(PREFILL, what="memory")]
    what = f"peak memory of a process: load, then prefill of {TOKENS} tokens"
    return {f"prefill_peak_mb_{TOKENS}": Measure(what, max(peaks) / 1e6, "MB", RUNS, "largest", at_most=900)}
