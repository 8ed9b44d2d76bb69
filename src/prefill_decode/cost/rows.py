"""A row of a table of measurements: read, and what it leaves blank looked up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from . import known
from .classes import class_of, kind_of
from .latency import Constants, Machine, PassTime, Work, mean_work, pass_time, work_of
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
# Bits a weight of a file takes, scales of its groups included: the block formats of llama.cpp, then common words.
WORD_BITS = {
    "f32": 32, "fp32": 32, "float32": 32, "f16": 16, "fp16": 16, "float16": 16, "bf16": 16, "bfloat16": 16,
    "fp8": 8, "float8": 8, "int8": 8, "w8a8": 8, "w8a16": 8, "q8_0": 8.5, "q6_k": 6.56, "q5_k_m": 5.7, "q5_k_s": 5.5,
    "q5_0": 5.5, "q4_k_m": 4.9, "q4_k_s": 4.6, "q4_0": 4.5, "q4_1": 5.0, "iq4_xs": 4.3, "q3_k_m": 3.9, "q2_k": 3.35,
    "int4": 4.25, "w4a16": 4.25, "awq": 4.25, "gptq": 4.25, "int4g32": 5.0, "int4g128": 4.25, "nf4": 4.5, "mxfp4": 4.25,
}  # fmt: skip
FLOAT8_WORDS = ("fp8", "float8")
INTEGER_WORD = re.compile(r"^(?:I?Q\d_\w+|w8a8)$")  # llama.cpp's packed formats are multiplied as 8-bit integers


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
    machine, ceiling, kind = _machines(row, word)
    measured = Measurement(
        source=row["source"].strip(),
        shape=shape,
        approximate=approximate,
        weights_read=_weights_read(_number(row, "weight_bytes", optional=True), word, shape, row["model"]),
        dtype="float8" if word.lower() in FLOAT8_WORDS else "float16",
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


def split_model(text: str) -> tuple[str, str]:
    """Split "Llama-2-7B fp16" into the model and the word for its dtype."""
    name, _, word = text.strip().rpartition(" ")
    return (name.strip(), word) if name else (word, "")


def _shape(name: str, whole: str, params: float | None) -> tuple[Shape, bool]:
    for spelling in (name, whole):
        try:
            return known.find_model(spelling).shape, False
        except ValueError:
            continue
    if params is None:
        known.find_model(name)  # raises, and lists what is known
    return known.nearest_model(params).shape.scaled(params), True


def _machines(row: Mapping[str, str], word: str) -> tuple[Machine, Machine, str]:
    """Return the machine that constants are shares of, the one that nothing exceeds, and the kind of device."""
    count, name, note = known.read_hardware(row["hardware"])
    peak, bandwidth = _number(row, "peak_flops", optional=True), _number(row, "peak_bw", optional=True)
    try:
        device = known.find_device(name)
    except ValueError:
        if bandwidth is None:
            known.find_device(name)  # raises, and lists what is known
        machine = Machine(peak, bandwidth, count, _cores(note))
        return machine, machine, kind_of(name)
    rate, ceiling = device.peak, device.ceiling(integers=bool(INTEGER_WORD.match(word)))
    if word.lower() in FLOAT8_WORDS:
        rate = ceiling = device.float8_peak
    bandwidth, cores = bandwidth or count * device.bandwidth, _cores(note) or device.gpu_cores
    machines = (Machine(peak or (per and count * per), bandwidth, count, cores) for per in (rate, ceiling))
    return *machines, device.kind


def _cores(note: str) -> int | None:
    """Read the note of an Apple chip, such as "10gpu"."""
    found = re.search(r"(\d+)[ -]?gpu", note)
    return int(found[1]) if found else None


def _weights_read(told: float | None, word: str, shape: Shape, model: str) -> float:
    """Return the bytes of weights that a pass reads; a table that is only looked up is left out where it is in them."""
    bits = WORD_BITS.get(word.lower())
    if told is None:
        if bits is None:
            raise ValueError(
                f"weight_bytes is blank and {model!r} does not end in a dtype: expected {', '.join(WORD_BITS)}"
            )
        told = bytes_of(shape.params, bits)
    looked_up_is_in = bits is None or bits != 16 or told > 2 * shape.params_read * 1.008
    return told * shape.params_read / shape.params if looked_up_is_in else told


def _number(row: Mapping[str, str], name: str, *, optional: bool = False) -> float | None:
    text = str(row[name]).strip()
    if not text and optional:
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value < float("inf") or (value == 0 and optional):
        raise ValueError(f"{name} = {text!r}: expected a number above 0" + (" or nothing" if optional else ""))
    return value


def _whole(row: Mapping[str, str], name: str, *, least: int) -> int:
    value = _number(row, name)
    if value != int(value) or value < least:
        raise ValueError(f"{name} = {row[name]!r}: expected a whole number of at least {least}")
    return int(value)
