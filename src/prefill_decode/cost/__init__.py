"""What a pass costs: ledgers, shapes and devices, a latency model and what it is worth.

One module a concern, each using the ones before it::

    shape        sizes of a model, bits of a dtype
    ledgers      pairs, FLOPs and bytes of a pass, by formula
    counted      the same by execution
    latency      seconds of a pass on a machine
    request      seconds of a request, what fits on a device
    stall        several requests on one engine: who waits for whose prompt
    known        published models and devices by name
    classes      which constants apply to an engine and a device
    rows         a row of a table of measurements, read and looked up
    predictions  what the model says of it, and what nothing can beat
    published    the measurements in measured.csv, and their halves
    search, fit  the constants, from one half; their errors, on the other
"""

from .counted import count_pass
from .latency import IDEAL, Constants, Machine, pass_time, work_of
from .ledgers import Bytes, Flops, Ledger, ledger
from .predictions import Prediction, predict
from .request import RequestTime, fits, largest_batch, request_time
from .shape import DTYPES, Shape
from .stall import EnginePass, Request, Simulation, simulate

__all__ = [
    "DTYPES",
    "IDEAL",
    "Bytes",
    "Constants",
    "EnginePass",
    "Flops",
    "Ledger",
    "Machine",
    "Prediction",
    "Request",
    "RequestTime",
    "Shape",
    "Simulation",
    "count_pass",
    "fits",
    "largest_batch",
    "ledger",
    "pass_time",
    "predict",
    "request_time",
    "simulate",
    "work_of",
]
