"""Predict a published measurement from its row, and say what no engine can beat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .classes import constants_of
from .latency import IDEAL, Constants
from .request import RequestTime
from .rows import SECONDS, Measurement, read_row, tokens_of

# Without a known peak a pass with less arithmetic than this for each byte is still bound by memory on any device here.
SURELY_MEMORY_BOUND = 8.0


@dataclass(frozen=True)
class Prediction:
    """What the latency model says of a row.

    Attributes
    ----------
    value : float
        In the row's unit.
    bound : float or None
        At efficiency 1 and without overhead, in the same unit: the least time or the highest rate. None where no
        peak is known and arithmetic may bind.
    regime : {"memory", "compute"}
        What takes most of the time.
    approximate : bool
        The model's shape was guessed from its size.
    """

    value: float
    bound: float | None
    regime: str
    approximate: bool


def predict(row: Mapping[str, str]) -> Prediction:
    """Predict one measurement.

    Parameters
    ----------
    row : mapping
        A ``csv.DictReader`` row with ``COLUMNS``; the measured value, if there, is not looked at. Blank numbers are
        looked up by model and hardware.

    Returns
    -------
    Prediction

    Raises
    ------
    ValueError
        For a column that is missing or cannot be read, and for a model or device that is neither described nor known.
    """
    return predict_measurement(read_row(row))


def predict_measurement(told: Measurement, constants: Constants | None = None) -> Prediction:
    """Predict what was read from a row, with the constants of its source or class unless others are given."""
    request = told.request(constants or constants_of(told.source, told.device_class))
    return Prediction(value_of(request, told), bound_of(told), regime_of(request, told), told.approximate)


def value_of(request: RequestTime, told: Measurement) -> float:
    """Return the time or rate that the row's phase and unit ask for."""
    seconds = {"prefill": request.ttft, "decode": request.tpot}.get(told.phase, request.seconds)
    if told.unit in SECONDS:
        return seconds / SECONDS[told.unit]
    return told.batch * tokens_of(told) / seconds


def seconds_of(value: float, told: Measurement) -> float:
    """Return the seconds that a time or a rate in the row's unit stands for: the inverse of ``value_of``."""
    return value * SECONDS[told.unit] if told.unit in SECONDS else told.batch * tokens_of(told) / value


def bound_of(told: Measurement) -> float | None:
    """Return the value at efficiency 1 and without overhead, or None where it is not known."""
    if told.machine.peak is None and _arithmetic_may_bind(told):
        return None
    return value_of(told.least().request(IDEAL, told.ceiling), told)


def regime_of(request: RequestTime, told: Measurement) -> str:
    """Return what takes most of the row's time."""
    if told.phase == "prefill" or request.decode is None:
        return request.prefill.regime
    decode_seconds = (request.new_tokens - 1) * request.decode.seconds
    return (request.decode if told.phase == "decode" or decode_seconds > request.ttft else request.prefill).regime


def _arithmetic_may_bind(told: Measurement) -> bool:
    passes = [work for work in (told.prefill, told.decode) if work is not None]
    return any(work.flops > SURELY_MEMORY_BOUND * work.bytes for work in passes)
