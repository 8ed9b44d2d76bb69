"""Load the real weights in fresh processes: seconds from the page cache, and peak memory."""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median

from tqdm import tqdm

from benchmarks.measure import Measure

RUNS = 5
# ru_maxrss is in bytes on macOS and in KiB elsewhere.
CHILD = """
import json, resource, sys, time
start = time.perf_counter()
from prefill_decode import smollm2
imported = time.perf_counter()
model = smollm2.load()
loaded = time.perf_counter()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps({"imports": imported - start, "load": loaded - imported, "peak": peak}))
"""


def measure() -> dict[str, Measure]:
    """Return the seconds of imports and of ``smollm2.load()``, and the peak memory of a process that did both."""
    _fresh_process()  # brings the file into the page cache
    runs = [_fresh_process() for _ in tqdm(range(RUNS), desc="loading", unit="run", leave=False, disable=None)]
    imports, load, peak = ([run[name] for run in runs] for name in ("imports", "load", "peak"))
    return {
        "load_seconds": Measure("`smollm2.load()` from the page cache", median(load), "s", RUNS, at_most=4.5),
        "import_seconds": Measure("the imports before it", median(imports), "s", RUNS),
        "peak_mb": Measure("peak memory of the process", max(peak) / 1e6, "MB", RUNS, "largest", at_most=800),
    }


def _fresh_process() -> dict[str, float]:
    done = subprocess.run([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit("the process that loads the weights failed: its last line above says why")
    return json.loads(done.stdout)
