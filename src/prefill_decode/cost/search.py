"""The constants that describe rows best: a plain search over a grid, so that two machines find the same ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .latency import IDEAL, Constants, PassTime
from .published import Row
from .rows import Measurement

START = Constants(compute=0.6, memory=0.75, overhead=60e-6, prefill_overhead=200e-6, sync=60e-6)
GRID = {
    "compute": np.arange(5, 101) / 100,
    "memory": np.arange(5, 101) / 100,
    "overhead": np.arange(0, 401, 5) / 1e6,
    "prefill_overhead": np.arange(0, 1001, 20) / 1e6,
    "sync": np.arange(0, 501, 5) / 1e6,
    "core_rate": np.arange(10, 61) * 1e10,
}
WAITS = ("overhead", "prefill_overhead", "sync")
TERMS = ("arithmetic", "memory")
PULL = 0.1  # rows' worth of error: a constant stays where its class has it unless rows speak of it


def search(rows: Sequence[Row], start: Constants) -> Constants:
    """Return the constants of the grid with the smallest sum of |log(predicted / measured)|.

    Rows of one device decide all constants but ``sync``, which the rows of several devices then decide; where there
    are only those, they decide the overheads too.
    """
    alone = [row for row in rows if row.told.machine.count == 1]
    together = [row for row in rows if row.told.machine.count > 1]
    found = start
    if alone:
        times = Times(alone)
        places = [
            replace(start, compute=compute, overhead=wait) for compute in (0.4, 0.7) for wait in (0.0, 6e-5, 2e-4)
        ]
        names = [name for name in GRID if name != "sync"]
        found = min((_descend(times, place, start, names) for place in (start, *places)), key=lambda pair: pair[1])[0]
    if not together:
        return found
    return _descend(Times(together), found, found, ["sync"] if alone else WAITS)[0]


class Times:
    """The latency model over many rows at once: the terms of ``pass_time``, as arrays of one entry a row."""

    def __init__(self, rows: Sequence[Row]) -> None:
        ideal = [row.told.request(replace(IDEAL, core_rate=1.0)) for row in rows]
        self.passes = []
        for prefill in (True, False):
            times = [request.prefill if prefill else request.decode or PassTime(0, 0, 0) for request in ideal]
            count = [_count(row.told, prefill) for row in rows]
            self.passes.append((prefill, np.array(count), *(np.array([vars(t)[n] for t in times]) for n in TERMS)))
        self.layers = np.array([row.told.shape.layers for row in rows])
        self.apart = np.array([1 - 1 / row.told.machine.count for row in rows])
        self.has_peak = np.array([row.told.machine.peak is not None for row in rows])
        self.measured = np.array([row.seconds for row in rows])

    def seconds(self, constants: Constants) -> np.ndarray:
        """Return the predicted seconds of what each row measures."""
        share = np.where(self.has_peak, constants.compute, constants.core_rate)
        total = np.zeros(len(self.layers))
        for prefill, count, arithmetic, memory in self.passes:
            waits = constants.prefill_overhead if prefill else constants.overhead
            overhead = self.layers * (waits + constants.sync * self.apart)
            total += count * (overhead + np.maximum(arithmetic / share, memory / constants.memory))
        return total

    def loss(self, tried: Constants, home: Constants) -> float:
        """Return the sum of the rows' errors, and a little for leaving home."""
        moved = sum(abs(math.log(vars(tried)[n] / vars(home)[n])) for n in ("compute", "memory", "core_rate"))
        return float(np.abs(np.log(self.seconds(tried) / self.measured)).sum()) + PULL * moved


def _descend(times: Times, best: Constants, home: Constants, names: Sequence[str]) -> tuple[Constants, float]:
    """Go along one constant after the other until none of them changes."""
    loss = times.loss(best, home)
    changed = True
    while changed:
        changed = False
        for name in names:
            for value in GRID[name]:
                tried = replace(best, **{name: float(value)})
                if (found := times.loss(tried, home)) < loss - 1e-9:
                    best, loss, changed = tried, found, True
    return best, loss


def _count(told: Measurement, prefill: bool) -> int:
    """Return how many passes of a kind are in what a row measures."""
    if told.phase in ("prefill", "decode"):
        return int(prefill == (told.phase == "prefill"))
    return 1 if prefill else told.output_len - 1
