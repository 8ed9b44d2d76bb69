"""Decode against a bare pass over the same matrices, with a cache against without, and prefill at four lengths."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np

from benchmarks.measure import Measure, Peer, alternate
from prefill_decode import smollm2
from prefill_decode.cache import KVCache
from prefill_decode.model import Model, decode_step, forward, prefill

CACHED = 256
RUNS = 30
FEW_RUNS = 5
PREFILL_LENGTHS = (16, 64, 256, 1024)


def measure() -> dict[str, Measure]:
    """Return rates in passes or tokens a second: the reciprocal of the median time."""
    model, _ = smollm2.load()
    ids = np.random.default_rng(0).integers(model.config.vocab_size, size=max(PREFILL_LENGTHS))  # time ignores meaning
    return {
        "decode_per_second": _decode_against_matrices(model, ids),
        "pass_with_cache_ms": _with_and_without_cache(model, ids),
        **_prefill_rates(model, ids),
    }


def _decode_against_matrices(model: Model, ids: np.ndarray) -> Measure:
    steps, passes = alternate(step_at(model, ids), pass_over_matrices(model), runs=RUNS, what="decode")
    peer = Peer("one pass over the same matrices, each as bare `W @ x`", 1 / median(passes), RUNS)
    what = f"decode steps with {CACHED} tokens in the cache"
    return Measure(what, 1 / median(steps), "a second", RUNS, peer=peer, at_least=0.80)


def _with_and_without_cache(model: Model, ids: np.ndarray) -> Measure:
    everything = partial(forward, model, ids[: CACHED + 1], logits="last")  # all rows again, for one row's logits
    with_cache, without = alternate(step_at(model, ids), everything, runs=FEW_RUNS, what="with and without a cache")
    peer = Peer("the same row without a cache", 1000 * median(without), FEW_RUNS)
    return Measure(f"row {CACHED + 1} with a cache", 1000 * median(with_cache), "ms", FEW_RUNS, peer=peer)


def _prefill_rates(model: Model, ids: np.ndarray) -> dict[str, Measure]:
    passes = [partial(_prefill_anew, model, ids[:n]) for n in PREFILL_LENGTHS]
    seconds = alternate(*passes, runs=FEW_RUNS, what="prefill")
    return {
        f"prefill_{n}_tokens_per_second": Measure(f"prefill of {n} tokens", n / median(times), "tokens/s", FEW_RUNS)
        for n, times in zip(PREFILL_LENGTHS, seconds, strict=True)
    }


def _prefill_anew(model: Model, ids: np.ndarray) -> None:
    prefill(model, ids, KVCache(model.config, len(ids), model.dtype))


def step_at(model: Model, ids: np.ndarray) -> Callable[[], None]:
    """Return one decode step that always finds the same ``CACHED`` entries."""
    cache = KVCache(model.config, CACHED + 1, model.dtype)
    prefill(model, ids[:CACHED], cache)

    def step() -> None:
        cache.truncate(CACHED)
        decode_step(model, ids[CACHED], cache)

    return step


def pass_over_matrices(model: Model) -> Callable[[], None]:
    """Return the products of one decode step and nothing else: every matrix of every layer, then the head."""
    layers = [w for layer in model.layers for w in (layer.qkv, layer.output, layer.gate_up, layer.down)]
    rng = np.random.default_rng(0)
    products = [(w, rng.standard_normal(w.shape[1], np.float32)) for w in (*layers, model.embedding)]

    def run() -> None:
        for w, x in products:
            w @ x  # [out, in] @ [in] -> [out]

    return run
