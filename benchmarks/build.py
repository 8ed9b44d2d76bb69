"""Build the book from nothing, as `make build` does, into a folder that is thrown away."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.environment import ROOT
from prefill_decode.recorded import Measure

JUPYTER_BOOK = Path(sys.executable).with_name("jupyter-book")
FLAGS = ("--all", "-W", "-n", "--keep-going", "-q")  # of the Makefile


def measure() -> dict[str, Measure]:
    """Return the seconds of one clean build; every notebook runs."""
    with tempfile.TemporaryDirectory() as folder:
        command = [JUPYTER_BOOK, "build", ".", *FLAGS, "--path-output", folder]
        start = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        elapsed = time.perf_counter() - start
        if done.returncode or not Path(folder, "_build", "html", "index.html").exists():
            raise SystemExit("the book was not built: the lines above say where")
    return {"build_seconds": Measure("clean build, all notebooks run", elapsed, "s", 1, at_most=90)}
