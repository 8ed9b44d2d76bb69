"""Published measurements: ``measured.csv``, one row each, and the half of them that constants are fitted on."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import mean

from .predictions import predict_measurement, seconds_of
from .rows import COLUMNS, Measurement, read_row

MEASURED = Path(__file__).parent / "measured.csv"


@dataclass(frozen=True)
class Row:
    """One measurement with its value, and how often it was published (duplicates are merged: their mean)."""

    told: Measurement
    value: float
    label: str
    times: int

    @property
    def seconds(self) -> float:
        """What was measured, as a time."""
        return seconds_of(self.value, self.told)

    @property
    def predicted_seconds(self) -> float:
        """What is predicted, as a time."""
        return seconds_of(predict_measurement(self.told).value, self.told)

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
        merged.append(Row(read_row(same[0]), value, " ".join(key[1:2] + key[4:5] + key[7:12]), len(same)))
    return merged


def halves(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Split each source: its odd rows, the first one among them, to fit on, the even ones to judge."""
    sources = [list(group) for _, group in groupby(rows, key=lambda row: row.told.source)]
    return [r for group in sources for r in group[0::2]], [r for group in sources for r in group[1::2]]


def _key(row: dict) -> tuple[str, ...]:
    return tuple(row[name] for name in COLUMNS)
