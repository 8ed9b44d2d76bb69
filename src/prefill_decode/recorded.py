"""Times and sizes that were measured once, on a machine that is named: what `make bench` wrote, for pages to draw."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

RECORDED = Path(__file__).with_name("recorded.json")


@dataclass(frozen=True)
class Peer:
    """Another way to the same end, measured in the same run and in the same unit.

    Attributes
    ----------
    what : str
    value : float
    n : int
        Runs behind ``value``.
    statistic : str
        How one number was made from them.
    """

    what: str
    value: float
    n: int
    statistic: str = "median"


@dataclass(frozen=True)
class Measure:
    """One measured number, what it is compared with, and whether that is met.

    Attributes
    ----------
    what : str
    value : float
    unit : str
    n : int
        Runs behind ``value``.
    statistic : str
        How one number was made from them.
    at_most : float, optional
        The limit, in ``unit``.
    peer : Peer, optional
        What it is compared with instead of a limit.
    at_least : float, optional
        The wanted ratio to the peer.
    """

    what: str
    value: float
    unit: str
    n: int
    statistic: str = "median"
    at_most: float | None = None
    peer: Peer | None = None
    at_least: float | None = None

    @property
    def ratio(self) -> float | None:
        """Measured : limit, or measured : peer; None if there is neither."""
        if self.peer is not None:
            return self.value / self.peer.value
        return None if self.at_most is None else self.value / self.at_most

    @property
    def met(self) -> bool | None:
        """Whether the limit or the wanted ratio is met; None if nothing was wanted."""
        if self.at_most is not None:
            return self.value <= self.at_most
        return None if self.at_least is None else self.ratio >= self.at_least


@dataclass(frozen=True)
class Missing:
    """What stands in the place of a measure that could not be made: ``why``, in one line."""

    why: str


@dataclass(frozen=True)
class Run:
    """One part of the record: its measures, and what stands beside every one of them.

    Attributes
    ----------
    date : str
        ISO 8601.
    machine : mapping
        ``cpu``, ``cores``, ``memory_gb`` (10^9 bytes) and ``os``.
    versions : mapping of str to str
    load_average : float
        Of the minute before the run: what else the machine was doing.
    measures : mapping of str to Measure
    missing : mapping of str to str
        What could not be measured there, and why.
    """

    date: str
    machine: Mapping[str, str | int | float]
    versions: Mapping[str, str]
    load_average: float
    measures: Mapping[str, Measure]
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The machine and the day, in one line for a page."""
        box = self.machine
        return f"{box['cpu']}, {box['cores']} cores, {box['memory_gb']} GB, numpy {self.versions['numpy']}, {self.date}"

    def series(self, prefix: str) -> dict[int, float]:
        """Return the values of a curve: those of the measures ``prefix16``, ``prefix64``, … as ``{16: 26.1, 64: …}``.

        Raises
        ------
        ValueError
            If no measure is called so.
        """
        return {n: measure.value for n, measure in self._numbered(prefix).items()}

    def peer_series(self, prefix: str) -> dict[int, float]:
        """Return the values of what a curve is compared with, where it was; see ``series``."""
        return {n: measure.peer.value for n, measure in self._numbered(prefix).items() if measure.peer is not None}

    def _numbered(self, prefix: str) -> dict[int, Measure]:
        names = {key: re.fullmatch(re.escape(prefix) + r"(\d+)", key) for key in self.measures}
        found = {int(match[1]): self.measures[key] for key, match in names.items() if match}
        if not found:
            raise ValueError(f"no measure is called {prefix!r} and a number: there are {', '.join(self.measures)}")
        return dict(sorted(found.items()))


def read(part: str) -> Run:
    """Return one part of the record that the package carries.

    Raises
    ------
    ValueError
        If it has no such part.
    """
    recorded = read_all()
    if part not in recorded:
        raise ValueError(f"nothing is recorded as {part!r}: expected one of {', '.join(recorded)}")
    return recorded[part]


def read_all(path: Path = RECORDED) -> dict[str, Run]:
    """Return every part of a record; of a file that is not there yet, none."""
    told = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return {part: _run(run) for part, run in told.items()}


def _run(told: dict) -> Run:
    return Run(**{**told, "measures": {key: _measure(measure) for key, measure in told["measures"].items()}})


def _measure(told: dict) -> Measure:
    return Measure(**{**told, "peer": Peer(**told["peer"]) if "peer" in told else None})
