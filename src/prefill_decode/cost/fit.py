"""Fit the constants on half of each source and judge them on the other half: ``python -m prefill_decode.cost.fit``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from tqdm import tqdm

from .classes import FITTED, fitted, nearest
from .latency import Constants
from .predictions import predict_measurement
from .published import Row, halves, published
from .search import START, search


def by_source(row: Row) -> str:
    """Return the source of a row: a key to group by."""
    return row.told.source


def by_class(row: Row) -> str:
    """Return the class of engine and device of a row: a key to group by."""
    return row.told.device_class


def by_phase(row: Row) -> str:
    """Return what a row measures, and on how many devices: a key to group by."""
    if row.told.machine.count > 1:
        return "several devices"
    return f"one device, {row.told.phase if row.told.phase in ('prefill', 'decode') else 'whole request'}"


def fit(rows: Sequence[Row]) -> dict:
    """Return the constants of all rows, of each class, and of each source in each class."""
    everything, classes = fit_classes(rows)
    sources: dict[str, dict] = {}
    for (source, name), group in _groups(rows, lambda row: (by_source(row), by_class(row))).items():
        sources.setdefault(source, {})[name] = _as_json(search(group, classes[name]))
    return {
        "all": _as_json(everything),
        "classes": {name: _as_json(found) for name, found in classes.items()},
        "sources": sources,
    }


def fit_classes(rows: Sequence[Row]) -> tuple[Constants, dict[str, Constants]]:
    """Return the constants of all rows, and of each class of engine and device."""
    everything = search(rows, START)
    return everything, {name: search(group, everything) for name, group in _groups(rows, by_class).items()}


@dataclass(frozen=True)
class Errors:
    """How far predictions of some rows are off: |predicted / measured - 1|."""

    n: int
    median: float
    largest: float
    worst: Row


def errors(rows: Iterable[Row], by: Callable[[Row], str] = by_source) -> dict[str, Errors]:
    """Return the errors of rows, by source or by class, each predicted with the constants of its source."""
    return summarise([(row, row.error) for row in rows], by)


def unseen(rows: Sequence[Row]) -> list[tuple[Row, float]]:
    """Return each row and its error where nothing of its source was seen: constants of its class, from others."""
    found = []
    for source in tqdm(sorted({by_source(row) for row in rows}), desc="sources left out", leave=False, disable=None):
        everything, classes = fit_classes([row for row in rows if by_source(row) != source])
        for row in rows:
            if by_source(row) == source:
                constants = classes.get(nearest(by_class(row), classes), everything)
                found.append((row, predict_measurement(row.told, constants).value / row.value - 1))
    return found


def summarise(misses: Iterable[tuple[Row, float]], by: Callable[[Row], str]) -> dict[str, Errors]:
    """Return the errors of rows in groups."""
    summaries = {}
    for name, group in _groups(misses, lambda miss: by(miss[0])).items():
        worst, largest = max(group, key=lambda miss: abs(miss[1]))
        summaries[name] = Errors(len(group), median(abs(miss) for _, miss in group), abs(largest), worst)
    return summaries


def _groups(items: Iterable, key: Callable) -> dict:
    groups: dict = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return dict(sorted(groups.items()))


def _as_json(constants: Constants) -> dict[str, float]:
    return {name: float(f"{value:.6g}") for name, value in asdict(constants).items()}


def main() -> None:
    """Fit, write the constants and what they are worth where a source was not seen, print the errors."""
    rows = published()
    to_fit, to_judge = halves(rows)
    left_out = unseen(rows)
    found = fit(to_fit)
    found["unseen"] = {
        name: {group: _told(told) for group, told in summarise(left_out, by).items()}
        for name, by in (("sources", by_source), ("classes", by_class), ("phases", by_phase))
    }
    FITTED.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    fitted.cache_clear()
    for source, told in errors(to_judge).items():
        elsewhere = found["unseen"]["sources"][source]["median"]
        print(f"{told.median:7.1%} judged, {elsewhere:7.1%} unseen, n = {told.n:3} {source}")


def _told(told: Errors) -> dict:
    return {"n": told.n, "median": round(told.median, 3), "largest": round(told.largest, 3)}


if __name__ == "__main__":
    main()
