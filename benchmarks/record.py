"""The record: `recorded.json` for pages, and `RESULTS.md` for people, which is made from it."""

from __future__ import annotations

import datetime
import json
from dataclasses import asdict
from pathlib import Path

from benchmarks.machine import machine, versions
from benchmarks.measure import Measure, Peer
from benchmarks.results import as_markdown

HERE = Path(__file__).parent
RECORDED = HERE / "recorded.json"
RESULTS = HERE / "RESULTS.md"
DIGITS = 4  # significant; no time here is known better


def read() -> dict[str, dict]:
    """Return what was recorded: part to its date, machine, versions, load average and measures; empty at first."""
    return json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}


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


def write(part: str, measured: dict[str, Measure], run: dict) -> None:
    """Replace one part of the record; the other parts keep their numbers and their own date.

    Parameters
    ----------
    part : str
    measured : dict
        Key to measure.
    run : dict
        As ``conditions`` returns it.
    """
    measures = {key: as_json(measure) for key, measure in measured.items()}
    recorded = {**read(), part: {**run, "measures": measures}}
    RECORDED.write_text(json.dumps(recorded, indent=2, ensure_ascii=False) + "\n", "utf-8")
    RESULTS.write_text(render(recorded), "utf-8")


def render(recorded: dict[str, dict]) -> str:
    """Return the readable form of a record."""
    return as_markdown({part: {**run, "measures": measures_of(run)} for part, run in recorded.items()})


def measures_of(run: dict) -> dict[str, Measure]:
    """Return the measures of one recorded part as objects."""
    return {key: _from_json(told) for key, told in run["measures"].items()}


def as_json(measure: Measure) -> dict:
    """Return a measure as it is recorded, without what it does not have."""
    told = {name: _rounded(value) for name, value in asdict(measure).items() if value is not None}
    if measure.peer is not None:
        told["peer"] = {name: _rounded(value) for name, value in told["peer"].items()}
    return told


def _from_json(told: dict) -> Measure:
    return Measure(**{**told, "peer": Peer(**told["peer"]) if "peer" in told else None})


def _rounded(value: object) -> object:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
