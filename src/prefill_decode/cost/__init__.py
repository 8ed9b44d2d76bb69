"""What a pass costs: ledgers, shapes and devices, a latency model and what it is worth."""

from .counted import count_pass
from .latency import IDEAL, Constants, Machine, RequestTime, fits, largest_batch, pass_time, request_time, work_of
from .ledgers import Bytes, Flops, Ledger, ledger
from .shape import DTYPES, Shape

__all__ = [
    "DTYPES",
    "IDEAL",
    "Bytes",
    "Constants",
    "Flops",
    "Ledger",
    "Machine",
    "RequestTime",
    "Shape",
    "count_pass",
    "fits",
    "largest_batch",
    "ledger",
    "pass_time",
    "request_time",
    "work_of",
]
