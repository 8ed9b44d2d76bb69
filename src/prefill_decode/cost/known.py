"""Shapes of published models and devices of data sheets, by name; each figure's source stands beside it in the data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

from .latency import Machine
from .names import find, find_close, read_cores, read_hardware, without_cores
from .shape import Dtype, Shape, dtype_of

__all__ = ["Device", "Model", "devices", "find_device", "find_model", "models", "nearest_model", "read_hardware"]

HERE = Path(__file__).parent
GUESSED_RIDGES = {"CPU": 10.0, "Apple silicon": 50.0}  # FLOP per byte; no sheet says: never used for a bound


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
        guess = None if rate else guessed_peak(self.kind, self.bandwidth)
        return Machine(rate and count * rate, count * self.bandwidth, count, guess and count * guess, self.gpu_cores)


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
    return find(name, models(), "model")


def find_device(name: str) -> Device:
    """Return a device by its name, which may also say its make and memory; the error lists the known names.

    A word that makes another device of it (Pro, Super, NVL, another memory) is not passed over.
    """
    return find_close(without_cores(name), devices())


def nearest_model(params: float) -> Model:
    """Return the known model whose size is nearest in ratio."""
    whole = [model for model in models().values() if model.shape.latent_kv is None]
    return min(whole, key=lambda model: max(model.params / params, params / model.params))


def guessed_peak(kind: str, bandwidth: float) -> float:
    """Return what a kind of device usually computes beside such a bandwidth, by the median ridge in the data."""
    known_peaks = [device for device in devices().values() if device.kind == kind and device.peak]
    ridges = [device.peak / device.bandwidth for device in known_peaks] or [GUESSED_RIDGES[kind]]
    return median(ridges) * bandwidth


def cores_of(hardware: str, device: Device | None = None) -> int | None:
    """Return the GPU cores of an Apple chip: those that a text names, else those of the device."""
    return read_cores(hardware) or (device.gpu_cores if device else None)


def _read(name: str) -> dict[str, dict]:
    return json.loads((HERE / name).read_text("utf-8"))


def _model(name: str, entry: dict) -> Model:
    sizes = dict(entry["shape"])
    params = entry["params"]
    if sizes.get("latent_kv") is None:  # what no matrix and no table holds is in norm gains and biases
        sizes["vectors"] = params - Shape(**sizes).params
    return Model(name, Shape(**sizes), params, entry["source"], tuple(entry["aliases"]))
