"""The worker's side: do one pass for each line of standard input and answer with one line of JSON.

Requests are `logits n`, `prefill n` and `decode n`. It needs only NumPy: peers run it in an environment of their own.
"""

from __future__ import annotations

import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

import numpy as np

STEPS = 8  # decode steps behind one answer


class Decoder(ABC):
    """One engine with the weights of the folder that it was made with."""

    name: str

    @abstractmethod
    def prefill(self, ids: np.ndarray) -> np.ndarray:
        """Run a prompt into an empty cache; return the last position's logits [V]."""

    @abstractmethod
    def keep(self, n: int) -> None:
        """Forget all but the first ``n`` entries of the cache."""

    @abstractmethod
    def step(self, token: int) -> np.ndarray:
        """Run one more token against the cache; return its logits [V]."""


def serve(make: Callable[[Path], Decoder]) -> None:
    """Make a decoder from the folder named on the command line and answer until standard input ends."""
    folder = Path(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is no answer
    decoder, ids = make(folder), np.load(folder / "ids.npy")
    print(json.dumps(decoder.name), file=answers, flush=True)
    requests = {"logits": logits, "prefill": prefill_seconds, "decode": decode_seconds}
    for line in sys.stdin:
        what, n = line.split()
        print(json.dumps(requests[what](decoder, ids, int(n))), file=answers, flush=True)


def logits(decoder: Decoder, ids: np.ndarray, n: int) -> list[list[float]]:
    """Return the last logits of a prompt of ``n`` tokens, and those of one decode step after it."""
    return [decoder.prefill(ids[:n]).tolist(), decoder.step(int(ids[n])).tolist()]


def prefill_seconds(decoder: Decoder, ids: np.ndarray, n: int) -> float:
    """Return the time of a prompt of ``n`` tokens."""
    start = time.perf_counter()
    decoder.prefill(ids[:n])
    return time.perf_counter() - start


def decode_seconds(decoder: Decoder, ids: np.ndarray, n: int) -> float:
    """Return the mean time of decode steps that each find ``n`` entries; the prompt before them does not count."""
    decoder.prefill(ids[:n])
    seconds = 0.0
    for _ in range(STEPS):
        decoder.keep(n)
        start = time.perf_counter()
        decoder.step(int(ids[n]))
        seconds += time.perf_counter() - start
    return seconds / STEPS
