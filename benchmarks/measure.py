"""How a number is measured: in turn with what it is compared with, or in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

from tqdm import tqdm

WARM_UP = 2
# On Linux the peak memory of a process counts that of the one that started it: let that be a small one.
LAUNCH = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, *sys.argv[1:]]))"


class CannotMeasureError(RuntimeError):
    """A part needs something that this machine does not have; the message is one line."""


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
    return in_turn(*(partial(_seconds, action) for action in actions), runs=runs, what=what)


def in_turn(*answers: Callable[[], float], runs: int, what: str) -> list[list[float]]:
    """Call in turn what measures itself; otherwise as ``alternate``."""
    values = [[] for _ in answers]
    for i in tqdm(range(WARM_UP + runs), desc=what, unit="run", leave=False, disable=None):
        for answer, kept in zip(answers, values, strict=True):
            value = answer()
            if i >= WARM_UP:
                kept.append(value)
    return values


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def in_fresh_process(code: str) -> dict[str, float]:
    """Run Python code that prints one JSON object in a process of its own, and return the object."""
    command = [sys.executable, "-c", LAUNCH, "-c", code]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit("the process that was to be measured failed: its last line above says why")
    return json.loads(done.stdout)


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the smallest value that at least ``percent`` % of the values do not exceed."""
    return sorted(values)[-(-len(values) * percent // 100) - 1]
