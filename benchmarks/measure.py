"""One measured number, what it is compared with, and whether that is met."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tqdm import tqdm

WARM_UP = 2


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
    """One line of the results.

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


def alternate(*actions: Callable[[], object], runs: int, what: str) -> list[list[float]]:
    """Time actions in turn, so that whatever slows the machine down slows all of them down.

    Parameters
    ----------
    *actions : callable
    runs : int
        Of each action, after a few that do not count.
    what : str
        Title of the progress bar.

    Returns
    -------
    list of list of float
        Seconds, one list an action.
    """
    seconds = [[] for _ in actions]
    for i in tqdm(range(WARM_UP + runs), desc=what, unit="run", leave=False, disable=None):
        for action, times in zip(actions, seconds, strict=True):
            start = time.perf_counter()
            action()
            if i >= WARM_UP:
                times.append(time.perf_counter() - start)
    return seconds


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the smallest value that at least ``percent`` % of the values do not exceed."""
    return sorted(values)[-(-len(values) * percent // 100) - 1]
