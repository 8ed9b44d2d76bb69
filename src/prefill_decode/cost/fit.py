"""Fit the constants on half of each source and judge them on the other half: ``python -m prefill_decode.cost.fit``.

A plain search over a grid, so that two machines find the same constants and a reader can see what was tried.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from statistics import mean, median

import numpy as np

from .classes import FITTED
from .latency import Constants
from .rows import COLUMNS, Measurement, predict_measurement, read_row, value_of

MEASURED = Path(__file__).parent / "measured.csv"
START = Constants(compute=0.6, memory=0.75, overhead=60e-6, prefill_overhead=200e-6, sync=60e-6)
GRID = {
    "compute": np.arange(5, 101) / 100,
    "memory": np.arange(5, 101) / 100,
    "overhead": np.arange(0, 401, 5) / 1e6,
    "prefill_overhead": np.arange(0, 1001, 20) / 1e6,
    "sync": np.arange(0, 201, 5) / 1e6,
    "core_rate": np.arange(10, 61) * 1e10,
}
PULL = 0.1  # rows' worth of error: a constant stays where its class has it unless rows speak of it


@dataclass(frozen=True)
class Row:
    """One measurement with its value, and how often it was published (duplicates are merged: their mean)."""

    told: Measurement
    value: float
    label: str

    @property
    def error(self) -> float:
        """Predicted over measured, minus 1, with the constants of its source."""
        return predict_measurement(self.told).value / self.value - 1


def published(path: Path = MEASURED) -> list[Row]:
    """Return the rows of a file of measurements, sorted, duplicates merged."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = sorted(csv.DictReader(file), key=_key)
    merged = []
    for key, same in groupby(rows, key=_key):
        same = list(same)
        value = mean(float(row["measured_value"]) for row in same)
        merged.append(Row(read_row(same[0]), value, " ".join(key[1:2] + key[4:5] + key[7:12])))
    return merged


def halves(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Split each source: its odd rows, the first one among them, to fit on, the even ones to judge."""
    sources = [list(group) for _, group in groupby(rows, key=lambda row: row.told.source)]
    return [r for group in sources for r in group[0::2]], [r for group in sources for r in group[1::2]]


def fit(rows: Sequence[Row]) -> dict:
    """Return the constants of all rows, of each class, and of each source in each class."""
    everything = search(rows, START)
    by_class = _groups(rows, lambda row: row.told.device_class)
    classes = {name: search(group, everything) for name, group in by_class.items()}
    sources: dict[str, dict] = {}
    for (source, name), group in _groups(rows, lambda row: (row.told.source, row.told.device_class)).items():
        sources.setdefault(source, {})[name] = _as_json(search(group, classes[name]))
    return {
        "all": _as_json(everything),
        "classes": {name: _as_json(found) for name, found in classes.items()},
        "sources": sources,
    }


def search(rows: Sequence[Row], start: Constants) -> Constants:
    """Return the constants of the grid with the smallest mean |log(predicted / measured)|.

    The search goes along one constant after the other, from several places, until none of them changes.
    """
    starts = [replace(start, compute=compute, overhead=wait) for compute in (0.4, 0.7) for wait in (0.0, 60e-6, 2e-4)]
    found = [_descend(rows, first, start) for first in (start, *starts)]
    return min(found, key=lambda pair: pair[1])[0]


def _descend(rows: Sequence[Row], best: Constants, home: Constants) -> tuple[Constants, float]:
    loss = _loss(rows, best, home)
    changed = True
    while changed:
        changed = False
        for name, values in GRID.items():
            for value in values:
                tried = replace(best, **{name: float(value)})
                if (found := _loss(rows, tried, home)) < loss - 1e-9:
                    best, loss, changed = tried, found, True
    return best, loss


def errors(rows: Iterable[Row]) -> dict[str, dict]:
    """Return, by source: n, the median and the largest |predicted / measured - 1|, and the row of the largest."""
    found = {}
    for source, group in _groups(list(rows), lambda row: row.told.source).items():
        worst = max(group, key=lambda row: abs(row.error))
        sizes = [abs(row.error) for row in group]
        found[source] = {"n": len(group), "median": median(sizes), "largest": abs(worst.error), "worst": worst}
    return found


def _key(row: dict) -> tuple[str, ...]:
    return tuple(row[name] for name in COLUMNS)


def _groups(rows: Sequence[Row], key) -> dict:
    groups: dict = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return dict(sorted(groups.items()))


def _loss(rows: Sequence[Row], tried: Constants, home: Constants) -> float:
    misses = [abs(math.log(value_of(row.told.request(tried), row.told) / row.value)) for row in rows]
    moved = sum(
        abs(math.log(getattr(tried, name) / getattr(home, name))) for name in ("compute", "memory", "core_rate")
    )
    return sum(misses) + PULL * moved


def _as_json(constants: Constants) -> dict[str, float]:
    return {name: float(f"{value:.6g}") for name, value in asdict(constants).items()}


def main() -> None:
    """Fit, write the constants, print the errors on both halves."""
    to_fit, to_judge = halves(published())
    FITTED.write_text(json.dumps(fit(to_fit), indent=2) + "\n", "utf-8")
    for source, told in errors(to_judge).items():
        print(f"{told['median']:7.1%} {told['largest']:7.1%} n = {told['n']:3}  {source}")


if __name__ == "__main__":
    main()
