"""Fit the constants on half of each source and judge them on the other half: ``python -m prefill_decode.cost.fit``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from statistics import median

from tqdm import tqdm

from .classes import FITTED, fitted, nearest
from .latency import Constants
from .predictions import predict_measurement
from .published import Row, halves, published
from .search import START, search


def fit(rows: Sequence[Row]) -> dict:
    """Return the constants of all rows, of each class, and of each source in each class."""
    everything, classes = fit_classes(rows)
    sources: dict[str, dict] = {}
    for (source, name), group in _groups(rows, lambda row: (row.told.source, row.told.device_class)).items():
        sources.setdefault(source, {})[name] = _as_json(search(group, classes[name]))
    return {
        "all": _as_json(everything),
        "classes": {name: _as_json(found) for name, found in classes.items()},
        "sources": sources,
    }


def fit_classes(rows: Sequence[Row]) -> tuple[Constants, dict[str, Constants]]:
    """Return the constants of all rows, and of each class of engine and device."""
    everything = search(rows, START)
    by_class = _groups(rows, lambda row: row.told.device_class)
    return everything, {name: search(group, everything) for name, group in by_class.items()}


def errors(rows: Iterable[Row], key: Callable[[Row], str] = lambda row: row.told.source) -> dict[str, dict]:
    """Return, by source: n, the median and the largest |predicted / measured - 1|, and the row of the largest."""
    return {name: _summary(group, [row.error for row in group]) for name, group in _groups(list(rows), key).items()}


def unseen(rows: Sequence[Row]) -> dict[str, dict]:
    """Return the same where nothing of a source was seen: its rows with constants of their class from other sources."""
    found = {}
    for source in tqdm(sorted({row.told.source for row in rows}), desc="sources left out", leave=False, disable=None):
        everything, classes = fit_classes([row for row in rows if row.told.source != source])
        group = [row for row in rows if row.told.source == source]
        constants = [nearest(row.told.device_class, classes, everything) for row in group]
        misses = [
            predict_measurement(row.told, one).value / row.value - 1 for row, one in zip(group, constants, strict=True)
        ]
        found[source] = _summary(group, misses)
    return found


def _summary(rows: Sequence[Row], misses: Sequence[float]) -> dict:
    largest, worst = max(zip(map(abs, misses), rows, strict=True), key=lambda pair: pair[0])
    return {"n": len(rows), "median": median(map(abs, misses)), "largest": largest, "worst": worst}


def _groups(rows: Sequence[Row], key) -> dict:
    groups: dict = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return dict(sorted(groups.items()))


def _as_json(constants: Constants) -> dict[str, float]:
    return {name: float(f"{value:.6g}") for name, value in asdict(constants).items()}


def main() -> None:
    """Fit, write the constants and what they are worth, print the errors on both halves."""
    rows = published()
    to_fit, to_judge = halves(rows)
    found = fit(to_fit)
    FITTED.write_text(json.dumps(found, indent=1) + "\n", "utf-8")  # what follows predicts with them
    fitted.cache_clear()
    by_class = errors(to_judge, key=lambda row: row.told.device_class)
    found["judged"] = {name: _told(summary) for name, summary in by_class.items()}
    found["unseen"] = {name: _told(summary) for name, summary in unseen(rows).items()}
    FITTED.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    for source, told in errors(to_judge).items():
        elsewhere = found["unseen"][source]["median"]
        print(f"{told['median']:7.1%} judged, {elsewhere:7.1%} unseen, n = {told['n']:3} {source}")


def _told(summary: dict) -> dict:
    return {"n": summary["n"], "median": round(summary["median"], 3), "largest": round(summary["largest"], 3)}


if __name__ == "__main__":
    main()
