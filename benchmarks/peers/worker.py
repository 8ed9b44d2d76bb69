"""Our side of a worker: a process that has one decoder, and answers when it is asked."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Self

from benchmarks.measure import CannotMeasureError

HERE = Path(__file__).parent
THREADS = 2  # of every decoder
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
PATIENCE = 5  # seconds to end


class Worker:
    """Start a worker and wait until its decoder is there.

    Parameters
    ----------
    python : str or Path
        Interpreter of the environment that has the engine.
    script : str
        Name of a file beside this one.
    folder : Path
        What was handed over; the worker's complaints are left there.

    Raises
    ------
    CannotMeasureError
        If it ends instead, now or while it is asked.
    """

    def __init__(self, python: str | Path, script: str, folder: Path) -> None:
        env = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(THREADS))}
        self._complaints = folder / f"{script}.txt"
        with self._complaints.open("w") as stderr:
            self._process = subprocess.Popen(
                [str(python), str(HERE / script), str(folder)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, env=env,
            )  # fmt: skip
        self.name: str = self._answer()

    def ask(self, request: str) -> float | list[list[float]]:
        """Return the answer to one line, as ``serve`` describes them."""
        with suppress(BrokenPipeError):  # if it has ended, the missing answer says so
            print(request, file=self._process.stdin, flush=True)
        return self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.stdin.close()  # which ends it
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _answer(self) -> str | float | list[list[float]]:
        line = self._process.stdout.readline()
        if not line:
            with suppress(BrokenPipeError):  # what it did not read is lost
                self.__exit__()
            said = self._complaints.read_text("utf-8", "replace").strip().splitlines()
            raise CannotMeasureError(f"its worker ended: {said[-1] if said else 'it says nothing'}")
        return json.loads(line)
