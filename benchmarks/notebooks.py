"""Each notebook from first cell to last in a kernel of its own: what a teacher's server must have for one reader."""

from __future__ import annotations

from statistics import median

from tqdm import tqdm

from benchmarks.environment import ROOT
from benchmarks.measure import in_fresh_process
from prefill_decode.recorded import Measure

RUNS = 3
# The kernel reports itself in one more cell, after the last; ru_maxrss is in bytes on macOS and in KiB elsewhere.
LAST_CELL = """
import resource, sys
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024))
"""
KERNEL = """
import json, time
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read({path!r}, as_version=4)
notebook.cells.append(nbformat.v4.new_code_cell({last!r}))
start = time.perf_counter()
NotebookClient(notebook, timeout=600, resources={{"metadata": {{"path": {folder!r}}}}}).execute()
seconds = time.perf_counter() - start
print(json.dumps({{"seconds": seconds, "peak": int(notebook.cells[-1].outputs[0]["text"])}}))
"""


def measure() -> dict[str, Measure]:
    """Return seconds and peak memory of every notebook, its kernel's start included."""
    measures = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        code = KERNEL.format(path=str(path), folder=str(path.parent), last=LAST_CELL)
        runs = [in_fresh_process(code) for _ in tqdm(range(RUNS), desc=path.stem, leave=False, disable=None)]
        seconds, peaks = ([run[name] for run in runs] for name in ("seconds", "peak"))
        measures[f"{path.stem}_seconds"] = Measure(f"`{path.stem}`, every cell", median(seconds), "s", RUNS)
        # Binder gives a reader 2 GiB
        measures[f"{path.stem}_peak_mb"] = Measure(
            f"`{path.stem}`, peak memory of its kernel", max(peaks) / 1e6, "MB", RUNS, "largest", at_most=2147
        )
    return measures
