"""Decode against a bare pass over the same matrices, with a cache against without, and prefill at several lengths."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.measure import alternate
from prefill_decode import smollm2
from prefill_decode.cache import KVCache
from prefill_decode.model import Model, decode_step, forward, prefill
from prefill_decode.recorded import Measure, Peer

CACHED = 256
RUNS = 5
CACHED_LENGTHS = (16, 64, 256, 1024, 2048, 4096)
UNCACHED_LENGTHS = (16, 64, 256, 1024)
PREFILL_LENGTHS = (16, 64, 256, 1024, 2048)


def measure() -> dict[str, Measure]:
    """Return rates and times, the best of a few runs each."""
    model, _ = smollm2.load()
    rng = np.random.default_rng(0)
    ids = rng.integers(model.config.vocab_size, size=max(CACHED_LENGTHS) + 1)  # time ignores meaning
    cache = KVCache(model.config, len(ids), model.dtype)
    prefill(model, ids[:-1], cache)
    return {
        "decode_per_second": _decode_against_matrices(model, ids, cache),
        **_with_and_without_cache(model, ids, cache),
        **_prefill_rates(model, ids),
    }


def _decode_against_matrices(model: Model, ids: np.ndarray, cache: KVCache) -> Measure:
    step = step_after(CACHED, model, ids, cache)
    steps, passes = alternate(step, pass_over_matrices(model), runs=RUNS, what="decode")
    peer = Peer("one pass over the same matrices, each as bare `W @ x`", 1 / min(passes), RUNS, "best")
    what = f"decode steps with {CACHED} tokens in the cache"
    return Measure(what, 1 / min(steps), "a second", RUNS, "best", peer=peer, at_least=0.85)


def _with_and_without_cache(model: Model, ids: np.ndarray, cache: KVCache) -> dict[str, Measure]:
    with_cache = [step_after(n, model, ids, cache) for n in CACHED_LENGTHS]
    without = [partial(forward, model, ids[: n + 1], logits="last") for n in UNCACHED_LENGTHS]  # n + 1 rows for one
    best = [1000 * min(times) for times in alternate(*with_cache, *without, runs=RUNS, what="with and without a cache")]
    peers = {
        n: Peer(f"without a cache, all {n + 1} rows", ms, RUNS, "best")
        for n, ms in zip(UNCACHED_LENGTHS, best[len(CACHED_LENGTHS) :], strict=True)
    }
    return {
        f"decode_ms_after_{n}": Measure(f"one token after {n} cached", ms, "ms", RUNS, "best", peer=peers.get(n))
        for n, ms in zip(CACHED_LENGTHS, best, strict=False)
    }


def _prefill_rates(model: Model, ids: np.ndarray) -> dict[str, Measure]:
    passes = [partial(prefill_anew, model, ids[:n]) for n in PREFILL_LENGTHS]
    seconds = alternate(*passes, runs=RUNS, what="prefill")
    return {
        f"prefill_tokens_per_second_{n}": Measure(f"prefill of {n} tokens", n / min(times), "tokens/s", RUNS, "best")
        for n, times in zip(PREFILL_LENGTHS, seconds, strict=True)
    }


def prefill_anew(model: Model, ids: np.ndarray) -> None:
    """Run a prompt into a cache of its own."""
    prefill(model, ids, KVCache(model.config, len(ids), model.dtype))


def step_after(n: int, model: Model, ids: np.ndarray, cache: KVCache) -> Callable[[], None]:
    """Return one decode step that always finds the first ``n`` of ``ids`` in a cache that holds them and more."""
    entries = [cache.entries(layer) for layer in range(model.config.n_layers)]
    own = KVCache(model.config, n + 1, model.dtype)
    for layer, (k, v) in enumerate(entries):
        own.extend(layer, k[:, :n], v[:, :n])

    def step() -> None:
        own.truncate(n)
        decode_step(model, ids[n], own)

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
