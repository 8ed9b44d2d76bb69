"""Shapes of published models and devices of data sheets, by name; each figure's source stands beside it in the data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .latency import Machine
from .shape import Dtype, Shape, dtype_of

HERE = Path(__file__).parent
DEVICES_SHARED = re.compile(r"^(\d+)\s*[xX×]\s*(?=\S)")
NOTE = re.compile(r"\(([^)]*)\)\s*$")
SAID_OFTEN = {"nvidia", "amd", "google", "geforce", "gpu", "cpu", "instinct", "tensor", "core", "ada", "generation"}


@dataclass(frozen=True)
class Model:
    """A published model: its shape, its parameters as counted in the source, and the source."""

    name: str
    shape: Shape
    params: int
    source: str
    aliases: tuple[str, ...]


@dataclass(frozen=True)
class Device:
    """One device of a data sheet; what no source says is None.

    Attributes
    ----------
    peak : float or None
        FLOP/s of dense 16-bit matrix products; never the figure for sparse ones, which is twice as large.
    fp16_accumulate_peak : float or None
        The same where sums are kept in 16 bits too, on cards that are then faster (GeForce).
    int8_peak, float8_peak, float32_peak : float or None
        The same in other formats.
    bandwidth : float
        Bytes a second of its memory.
    memory : float or None
        Bytes (GB on the sheet: 10^9 each).
    gpu_cores : int or None
        Of an Apple chip, whose rates no data sheet gives.
    kind : str
        "GPU with HBM", "GPU with GDDR", "AMD GPU with HBM", "Apple silicon", "TPU" or "CPU".
    """

    name: str
    kind: str
    peak: float | None
    fp16_accumulate_peak: float | None
    int8_peak: float | None
    float8_peak: float | None
    float32_peak: float | None
    bandwidth: float
    memory: float | None
    gpu_cores: int | None
    source: str
    aliases: tuple[str, ...]

    def rate(self, dtype: Dtype) -> float | None:
        """Return the peak that applies to a dtype, or None."""
        return {"float16": self.peak, "float8": self.float8_peak, "float32": self.float32_peak}.get(dtype.arithmetic)

    def ceiling(self, *, integers: bool = False) -> float | None:
        """Return the fastest rate that an engine with 16-bit or, if it multiplies so, with 8-bit integers can have."""
        if self.peak is None:
            return None
        return max(self.peak, self.fp16_accumulate_peak or 0, self.int8_peak or 0 if integers else 0)

    def machine(self, dtype: object = "float16", count: int = 1) -> Machine:
        """Return ``count`` of it as a machine for one dtype.

        Raises
        ------
        ValueError
            If the device has no such arithmetic, or no source for its rate, while it has one for 16 bits.
        """
        rate = self.rate(dtype_of(dtype))
        if rate is None and self.peak is not None:
            raise ValueError(f"{self.name} has no sourced rate for {dtype}: try float16, bfloat16, int8 or int4")
        return Machine(None if rate is None else count * rate, count * self.bandwidth, count, self.gpu_cores)


@cache
def models() -> dict[str, Model]:
    """Return every known model by name."""
    return {name: _model(name, entry) for name, entry in _read("shapes.json").items()}


@cache
def devices() -> dict[str, Device]:
    """Return every known device by name."""
    return {
        name: Device(name=name, **{**entry, "aliases": tuple(entry["aliases"])})
        for name, entry in _read("devices.json").items()
    }


def find_model(name: str) -> Model:
    """Return a model by its name or another name of it, in any spelling; the error lists the known names."""
    return _find(name, models(), "model")


def find_device(name: str) -> Device:
    """Return a device by its name or another name of it, in any spelling; the error lists the known names."""
    return _find(name, devices(), "device")


def nearest_model(params: float) -> Model:
    """Return the known model whose size is nearest in ratio."""
    whole = [model for model in models().values() if model.shape.latent_kv is None]
    return min(whole, key=lambda model: max(model.params / params, params / model.params))


def read_hardware(text: str) -> tuple[int, str, str]:
    """Split ``[Nx]device[(note)]`` into the number of devices, the device and the note."""
    found = DEVICES_SHARED.match(text.strip())
    count = int(found[1]) if found else 1
    if count < 1:
        raise ValueError(f"hardware {text!r}: expected at least one device")
    rest = DEVICES_SHARED.sub("", text.strip())
    note = NOTE.search(rest)
    return count, NOTE.sub("", rest).strip(), note[1] if note else ""


def _read(name: str) -> dict[str, dict]:
    return json.loads((HERE / name).read_text("utf-8"))


def _model(name: str, entry: dict) -> Model:
    sizes = dict(entry["shape"])
    params = entry["params"]
    if sizes.get("latent_kv") is None:  # what no matrix and no table holds is in norm gains and biases
        sizes["vectors"] = params - Shape(**sizes).params
    return Model(name, Shape(**sizes), params, entry["source"], tuple(entry["aliases"]))


def _find(name: str, known: Mapping[str, Model | Device], what: str) -> Model | Device:
    wanted = _words(name)
    spelled = [(entry, _words(spelling)) for entry in known.values() for spelling in (entry.name, *entry.aliases)]
    for entry, words in spelled:
        if words == wanted:
            return entry
    if what == "device":  # "NVIDIA A100-SXM4-80GB": every word of ours is there; the entry that names most of them wins
        part_of = [(len(words), entry) for entry, words in spelled if words and words <= wanted]
        if part_of:
            return max(part_of, key=lambda pair: pair[0])[1]
    raise ValueError(f"unknown {what} {name!r}: expected one of {', '.join(known)}")


def _words(name: str) -> frozenset[str]:
    words = re.findall(r"[a-z]+|\d+(?:\.\d+)?", name.lower())
    return frozenset(words) - SAID_OFTEN
