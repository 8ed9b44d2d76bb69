"""Our decoder and its peers in turn: same weights, same tokens, same number of threads, float32."""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measure import CannotMeasureError, in_turn
from benchmarks.peers.handover import hand_over
from benchmarks.peers.install import python_with
from benchmarks.peers.worker import Worker
from prefill_decode import smollm2
from prefill_decode.recorded import Measure, Missing, Peer

PEERS = ("transformers", "llama_cpp")
RUNS = 5
PAUSE = 0.1  # seconds: threads that had work spin for a while, and would take the next one's cores
PREFILL_LENGTHS = (16, 64, 256, 1024)
CACHED = 256
CHECKED = 64  # tokens of the prompt after which logits are compared
TOLERANCE = 1e-3
WANTED = {"prefill_against_transformers_1024": 0.90, f"decode_against_transformers_{CACHED}": 2.0}


def measure() -> dict[str, Measure | Missing]:
    """Return tokens a second, the best of a few runs: ours, and as its peer the other engine's in the same run."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        _prepare(folder)
        ours = running.enter_context(Worker(sys.executable, "run_ours.py", folder))
        peers, missing = {}, {}
        for peer in PEERS:
            try:
                peers[peer] = _agreeing_peer(peer, ours, folder, running)
            except CannotMeasureError as error:
                missing[peer] = Missing(str(error))
        if not peers:
            raise CannotMeasureError("; ".join(f"{peer}: {reason.why}" for peer, reason in missing.items()))
        return {**_rates(ours, peers), **_packed(peers, folder, running), **missing}


def check_agreement(ours: list[list[float]], theirs: list[list[float]]) -> None:
    """Raise ``CannotMeasureError`` unless both computed the same: logits close, the same token the likeliest."""
    mine, other = np.array(ours), np.array(theirs)  # [passes, V] each
    if mine.shape != other.shape or not np.array_equal(mine.argmax(-1), other.argmax(-1)):
        raise CannotMeasureError("it computes something else: its likeliest next token is another one")
    if (furthest := np.abs(mine - other).max()) > TOLERANCE:
        raise CannotMeasureError(f"it computes something else: a logit differs by {furthest:.1g}, over {TOLERANCE:g}")


def _prepare(folder: Path) -> None:
    model, _ = smollm2.load()
    ids = np.random.default_rng(0).integers(model.config.vocab_size, size=max(PREFILL_LENGTHS) + 1)
    hand_over(model, ids, folder)


def _agreeing_peer(name: str, ours: Worker, folder: Path, running: ExitStack) -> Worker:
    peer = running.enter_context(Worker(python_with(f"{name}.txt"), f"run_{name}.py", folder))
    check_agreement(ours.ask(f"logits {CHECKED}"), peer.ask(f"logits {CHECKED}"))
    return peer


def _rates(ours: Worker, peers: dict[str, Worker]) -> dict[str, Measure]:
    measures = {}
    for n in PREFILL_LENGTHS:
        measures |= _against("prefill", n, f"prefill of {n} tokens", n, ours, peers)
    return measures | _against("decode", CACHED, f"decode with {CACHED} tokens in the cache", 1, ours, peers)


def _packed(peers: dict[str, Worker], folder: Path, running: ExitStack) -> dict[str, Measure | Missing]:
    """Return what packed weights change in an engine that has kernels for them: its peer is itself in float32."""
    if "llama_cpp" not in peers:
        return {}
    try:
        packed = running.enter_context(Worker(python_with("llama_cpp.txt"), "run_llama_cpp_packed.py", folder))
    except CannotMeasureError as error:
        return {"llama_cpp_packed": Missing(str(error))}
    own = {"float32": peers["llama_cpp"]}
    prefill = _against("prefill", CACHED, f"prefill of {CACHED} tokens, packed weights", CACHED, packed, own)
    decode = _against("decode", CACHED, f"decode with {CACHED} tokens in the cache, packed weights", 1, packed, own)
    return {f"llama_cpp_packed_{key}": measure for key, measure in (prefill | decode).items()}


def _against(phase: str, n: int, what: str, tokens: int, ours: Worker, peers: dict[str, Worker]) -> dict[str, Measure]:
    """Return one measure a peer; ``tokens`` is how many an answer's seconds are for."""
    asked = [partial(_ask_at_rest, worker, f"{phase} {n}") for worker in (ours, *peers.values())]
    seconds = in_turn(*asked, runs=RUNS, what=f"{phase} {n}")
    rate, *others = [tokens / min(times) for times in seconds]
    keys = [f"{phase}_against_{name}_{n}" for name in peers]
    sides = [Peer(peer.name, other, RUNS, "best") for peer, other in zip(peers.values(), others, strict=True)]
    return {
        key: Measure(what, rate, "tokens/s", RUNS, "best", peer=side, at_least=WANTED.get(key))
        for key, side in zip(keys, sides, strict=True)
    }


def _ask_at_rest(worker: Worker, request: str) -> float:
    time.sleep(PAUSE)
    return worker.ask(request)
