"""A row of a table of measurements: read, and what it leaves blank looked up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from . import known
from .classes import class_of, kind_of
from .latency import Constants, Machine, PassTime, Work, mean_work, pass_time, work_of
from .names import BITS, bits_of, is_mixture_of_experts, split_model
from .request import RequestTime
from .shape import Shape, bytes_of

COLUMNS = tuple(
    "source model params weight_bytes hardware peak_flops peak_bw phase batch input_len output_len unit".split()
)
SECONDS = {"s": 1.0, "ms": 1e-3, "s/token": 1.0, "ms/token": 1e-3}
UNITS = {
    "prefill": ("ms", "s", "tokens/s"),
    "decode": ("ms/token", "s/token", "ms", "tokens/s", "out tokens/s"),
    "e2e": ("ms", "s", "tokens/s", "out tokens/s"),
    "e2e_throughput": ("out tokens/s", "tokens/s"),
}
FLOAT8 = re.compile(r"fp8|float8|e4m3", re.IGNORECASE)
INTEGERS = re.compile(r"i?q\d_|w8a8", re.IGNORECASE)  # llama.cpp's packed formats are multiplied as 8-bit integers
# What a number may be: outside of these it was meant in another unit.
RANGES = {
    "params": (1e5, 1e14, "parameters"),
    "weight_bytes": (1e4, 1e14, "bytes"),
    "peak_flops": (1e9, 1e20, "FLOP/s"),
    "peak_bw": (1e8, 1e17, "bytes a second"),
    "batch": (1, 1e7, "sequences"),
    "input_len": (0, 1e9, "tokens"),
    "output_len": (0, 1e9, "tokens"),
}


@dataclass(frozen=True)
class Measurement:
    """What one row says, with what was looked up.

    Attributes
    ----------
    shape : Shape
    approximate : bool
        The model is unknown: its shape is that of the nearest known one, scaled.
    weights_read : float
        Bytes of weights that a pass reads: the row's, without an input embedding that is only looked up.
    machine, ceiling : Machine
        Rates of all its devices together: those that constants are shares of, and those that nothing exceeds.
    prefill, decode : Work or None
        Of the pass of the prompt and of the mean decode pass, as far as the row has them.
    device_class : str
        Of engine and device; constants are shared in it.
    """

    source: str
    shape: Shape
    approximate: bool
    weights_read: float
    dtype: str
    machine: Machine
    ceiling: Machine
    device_class: str
    phase: str
    batch: int
    input_len: int
    output_len: int
    unit: str
    prefill: Work | None = field(init=False)
    decode: Work | None = field(init=False)

    def __post_init__(self) -> None:
        n, m = self.input_len, self.output_len
        has_prefill, has_decode = n > 0 and self.phase != "decode", m > 1 and self.phase != "prefill"
        object.__setattr__(self, "prefill", self._work(n, n) if has_prefill else None)
        mean = mean_work(self._work(1, n + 1), self._work(1, n + m - 1)) if has_decode else None
        object.__setattr__(self, "decode", mean)

    def request(self, constants: Constants, machine: Machine | None = None) -> RequestTime:
        """Return the time of its prefill and of its mean decode pass, as far as the row has them."""
        prefill, decode = (
            work
            and pass_time(work, machine or self.machine, constants, self.shape.layers, prefill=work is self.prefill)
            for work in (self.prefill, self.decode)
        )
        return RequestTime(prefill or PassTime(0, 0, 0), decode, max(1, self.output_len), self.batch)

    def least(self) -> Measurement:
        """Return the same with what an unknown model does at least: its weights; its heads and cache are a guess."""
        if not self.approximate:
            return self
        light = replace(self)
        rows = {"prefill": self.batch * self.input_len, "decode": self.batch}
        for name, count in rows.items():
            if getattr(self, name) is not None:
                work = Work(2 * 0.8 * self.shape.params * count, 0.8 * self.weights_read)  # a large vocabulary aside
                object.__setattr__(light, name, work)
        return light

    def _work(self, n_queries: int, n_keys: int) -> Work:
        return work_of(
            self.shape, n_queries, n_keys, batch=self.batch, dtype=self.dtype, weight_bytes=self.weights_read
        )


def read_row(row: Mapping[str, str]) -> Measurement:
    """Read a row and look up what it leaves blank."""
    if missing := [name for name in COLUMNS if row.get(name) is None]:
        raise ValueError(f"the row lacks {', '.join(missing)}: expected the columns {', '.join(COLUMNS)}")
    phase, unit = row["phase"].strip(), row["unit"].strip()
    if phase not in UNITS:
        raise ValueError(f"unknown phase {phase!r}: expected one of {', '.join(UNITS)}")
    if unit not in UNITS[phase]:
        raise ValueError(f"unit {unit!r} does not fit phase {phase}: expected one of {', '.join(UNITS[phase])}")
    name, word = split_model(row["model"])
    params = _number(row, "params", optional=True)
    shape, approximate = _shape(name, row["model"], params)
    machine, ceiling, kind, has_float8 = _machines(row, word)
    measured = Measurement(
        source=row["source"].strip(),
        shape=shape,
        approximate=approximate,
        weights_read=_weights_read(_number(row, "weight_bytes", optional=True), word, shape, row["model"]),
        dtype="float8" if has_float8 else "float16",
        machine=machine,
        ceiling=ceiling,
        device_class=class_of(row["source"], word, kind),
        phase=phase,
        batch=_whole(row, "batch", least=1),
        input_len=_whole(row, "input_len", least=0 if phase == "decode" else 1),
        output_len=_whole(row, "output_len", least=0 if phase == "prefill" else 1),
        unit=unit,
    )
    if phase == "decode" and measured.output_len < 2:
        raise ValueError("a decode row needs output_len of at least 2: the first token comes out of prefill")
    return measured


def tokens_of(told: Measurement) -> int:
    """Return the tokens of one sequence that a rate of the row counts."""
    return {"prefill": told.input_len, "decode": 1}.get(told.phase, told.output_len)


def _shape(name: str, whole: str, params: float | None) -> tuple[Shape, bool]:
    for spelling in (name, whole):
        try:
            return known.find_model(spelling).shape, False
        except ValueError:
            continue
    if is_mixture_of_experts(whole):
        raise ValueError(f"{whole!r} is a mixture of experts, whose passes read some weights only: give a dense model")
    if params is None:
        known.find_model(name)  # raises, and lists what is known
    return known.nearest_model(params).shape.scaled(params), True


def _machines(row: Mapping[str, str], word: str) -> tuple[Machine, Machine, str, bool]:
    """Return the machine that is expected, the one that nothing exceeds, the kind of device, whether it has float8."""
    count, name, _ = known.read_hardware(row["hardware"])
    peak, bandwidth = _number(row, "peak_flops", optional=True), _number(row, "peak_bw", optional=True)
    try:
        device = known.find_device(name)
    except ValueError:
        if bandwidth is None:
            known.find_device(name)  # raises, and lists what is known
        device = None
    kind = device.kind if device else kind_of(name)
    bandwidth = bandwidth or count * device.bandwidth
    rate = ceiling = None
    if device:
        rate, ceiling = device.peak, device.ceiling(integers=bool(INTEGERS.match(word)))
    has_float8 = bool(FLOAT8.match(word)) and (device is None or device.float8_peak is not None)
    if has_float8 and device:
        rate = ceiling = device.float8_peak
    rate, ceiling = (peak or (per and count * per) for per in (rate, ceiling))
    guess = None if rate else known.guessed_peak(kind, bandwidth)
    expected = Machine(rate, bandwidth, count, guess, known.cores_of(row["hardware"], device))
    return expected, Machine(ceiling, bandwidth, count), kind, has_float8


def _weights_read(told: float | None, word: str, shape: Shape, model: str) -> float:
    """Return the bytes of weights that a pass reads; a table that is only looked up is left out where it is in them."""
    bits = bits_of(word)
    if told is None:
        if bits is None:
            raise ValueError(f"weight_bytes is blank and {model!r} ends in no dtype: expected one of {', '.join(BITS)}")
        told = bytes_of(shape.params, bits)
    looked_up_is_in = bits != 16 or told > 2 * shape.params_read * 1.008
    return told * shape.params_read / shape.params if looked_up_is_in else told


def _number(row: Mapping[str, str], name: str, *, optional: bool = False) -> float | None:
    text = str(row[name]).strip()
    if not text and optional:
        return None
    least, most, what = RANGES[name]
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        blank = " or nothing" if optional else ""
        raise ValueError(f"{name} = {text!r}: expected {what}, a number from {least:g} to {most:g}{blank}")
    return value


def _whole(row: Mapping[str, str], name: str, *, least: int) -> int:
    value = _number(row, name, optional=least == 0) or 0
    if value != int(value) or value < least:
        raise ValueError(f"{name} = {row[name]!r}: expected a whole number of at least {least}")
    return int(value)
