"""Load the real weights in fresh processes: seconds from the page cache, and peak memory."""

from __future__ import annotations

from statistics import median

from tqdm import tqdm

from benchmarks.measure import in_fresh_process
from prefill_decode.recorded import Measure

RUNS = 5
# ru_maxrss is in bytes on macOS and in KiB elsewhere.
PEAK = """
import json, resource, sys, time
start = time.perf_counter()
from prefill_decode import smollm2
imported = time.perf_counter()
model, _ = smollm2.load()
loaded = time.perf_counter()
{afterwards}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps({{"imports": imported - start, "load": loaded - imported, "peak": peak}}))
"""


def measure() -> dict[str, Measure]:
    """Return the seconds of imports and of ``smollm2.load()``, and the peak memory of a process that did both."""
    loads = loading_processes(what="loading")
    imports, load, peak = ([run[name] for run in loads] for name in ("imports", "load", "peak"))
    return {
        "load_seconds": Measure("`smollm2.load()` from the page cache", median(load), "s", RUNS, at_most=4.5),
        "import_seconds": Measure("the imports before it", median(imports), "s", RUNS),
        "peak_mb": Measure("peak memory of the process", max(peak) / 1e6, "MB", RUNS, "largest", at_most=800),
    }


def loading_processes(afterwards: str = "", *, what: str) -> list[dict[str, float]]:
    """Load the model in fresh processes, one after another.

    Parameters
    ----------
    afterwards : str
        Python code that each runs then; it has the ``model``.
    what : str
        Title of the progress bar.

    Returns
    -------
    list of dict
        Of each process ``imports`` and ``load`` in seconds, and ``peak``, the most memory it held, in bytes.
    """
    code = PEAK.format(afterwards=afterwards)
    in_fresh_process(code)  # brings the file into the page cache
    return [in_fresh_process(code) for _ in tqdm(range(RUNS), desc=what, unit="run", leave=False, disable=None)]
