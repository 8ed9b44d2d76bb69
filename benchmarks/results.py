"""The results as a page: what, measured, limit or peer, ratio, met or not."""

from __future__ import annotations

from itertools import starmap

from prefill_decode.recorded import Measure, Peer, Run

TITLES = {
    "loading": "Loading the real weights",
    "memory": "The memory that a long prompt needs",
    "machine": "What the machine reaches in float32, through NumPy",
    "decode": "Decode and prefill of SmolLM2-135M in float32",
    "unpack": "Packed weights in NumPy",
    "peers": "The same weights in other engines, float32, two threads each",
    "widget": "One step of the attention grid at T = 64",
    "twin": "A phrase in the plain page: the twin in Chromium, float32 of one thread, from a server on this machine",
    "weight": "A page in the browser: what it loads, texts packed by gzip, and how soon its first widget answers",
    "notebooks": "The notebooks, each in a fresh kernel",
    "build": "Building the book",
}
OPENING = """# What it costs, measured

`make bench` writes this page from `recorded.json`. Read the ratios: both sides of one were measured in the same run,
in turn, on the machine named above the table. A time alone says more about the machine than about the code, so no
test asserts one. MB is 10^6 bytes.
"""
HEAD = "| what | measured | limit or peer | ratio | met |\n| --- | --- | --- | --- | --- |"
MET = {True: "yes", False: "**no**", None: ""}


def as_markdown(parts: dict[str, Run]) -> str:
    """Return the page of all recorded parts."""
    sections = [_section(TITLES[part], parts[part]) for part in TITLES if part in parts]
    return "\n".join([OPENING, *sections])


def _section(title: str, run: Run) -> str:
    rows = "\n".join([*map(_row, run.measures.values()), *starmap(_missing_row, run.missing.items())])
    return f"## {title}\n\n{_conditions(run)}\n\n{HEAD}\n{rows}\n"


def _conditions(run: Run) -> str:
    box = run.machine
    versions = ", ".join(f"{name} {number}" for name, number in run.versions.items())
    return (
        f"{run.date} on {box['cpu']}, {box['cores']} cores, {box['memory_gb']} GB, {box['os']}; "
        f"load average before the run {run.load_average}.  \n{versions}."
    )


def _row(measure: Measure) -> str:
    ratio = "" if measure.ratio is None else f"{measure.ratio:.2g}" if measure.ratio < 0.1 else f"{measure.ratio:.2f}"
    cells = [measure.what, _amount(measure, measure.unit), _compared_with(measure), ratio, MET[measure.met]]
    return "| " + " | ".join(cells) + " |"


def _missing_row(what: str, why: str) -> str:
    return f"| {what} | not measured: {why} |  |  |  |"


def _compared_with(measure: Measure) -> str:
    if measure.peer is None:
        return "" if measure.at_most is None else f"at most {measure.at_most:g} {measure.unit}"
    wanted = "" if measure.at_least is None else f"; ratio at least {measure.at_least:.2f}"
    return f"{measure.peer.what}: {_amount(measure.peer, measure.unit)}{wanted}"


def _amount(side: Measure | Peer, unit: str) -> str:
    how = f"{side.statistic} of {side.n}" if side.n > 1 else "once" if side.statistic == "median" else side.statistic
    value = f"{side.value:.0f}" if side.value >= 100 else f"{side.value:.3g}"
    return f"{value} {unit} ({how})"
