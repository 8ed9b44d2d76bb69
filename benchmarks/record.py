"""Write the record: `recorded.json` in the package for pages, and `RESULTS.md` for people, which is made from it."""

from __future__ import annotations

import datetime
import json
from dataclasses import asdict
from pathlib import Path

from benchmarks.environment import machine, versions
from benchmarks.results import as_markdown
from prefill_decode.recorded import RECORDED, Measure, Missing, Run, read_all

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
DIGITS = 4  # significant; no time here is known better


def conditions(load_average: float) -> dict:
    """Return what stands beside every number of one run.

    Parameters
    ----------
    load_average : float
        Of the last minute, before the run began: what else the machine was doing.
    """
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
        "versions": versions(),
        "load_average": round(load_average, 1),
    }


def write(part: str, measured: dict[str, Measure | Missing], run: dict) -> None:
    """Replace one part of the record; the other parts keep their numbers and their own date.

    Parameters
    ----------
    part : str
    measured : dict
        Key to measure, or to why there is none.
    run : dict
        As ``conditions`` returns it.
    """
    measures = {key: measure for key, measure in measured.items() if isinstance(measure, Measure)}
    missing = {key: gap.why for key, gap in measured.items() if isinstance(gap, Missing)}
    recorded = {**read_all(RECORDED), part: Run(**run, measures=measures, missing=missing)}
    told = {name: as_json(kept) for name, kept in recorded.items()}
    RECORDED.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n", "utf-8")
    RESULTS.write_text(as_markdown(read_all(RECORDED)), "utf-8")


def as_json(run: Run) -> dict:
    """Return a part as it is recorded: numbers rounded, and without what it does not have."""
    told = asdict(run)
    return _kept(told if run.missing else {name: value for name, value in told.items() if name != "missing"})


def _kept(value: object) -> object:
    if isinstance(value, dict):
        return {name: _kept(inner) for name, inner in value.items() if inner is not None}
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
