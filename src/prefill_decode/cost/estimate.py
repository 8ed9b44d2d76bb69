"""What you want to know before you rent a device: does it fit, how fast will it be, and how sure is that."""

from __future__ import annotations

from dataclasses import dataclass

from . import known
from .classes import COMPILED, class_constants, fitted
from .latency import IDEAL, Constants, Machine, limits_of
from .request import RequestTime, fits, largest_batch, request_time
from .shape import dtype_of
from .this_machine import NAME, measure

MOST = 10**9  # tokens or requests: more is a slip of the keyboard
MEASURED_NOW = "rates of long products, measured just now: smaller ones reach less, overheads come on top"
ENGINES = (COMPILED, "llama.cpp")


@dataclass(frozen=True)
class Trust:
    """How far predictions of a class are off for an engine that the fit has not seen; None where nothing is known.

    Attributes
    ----------
    basis : str
        The class of engine and device, or what else the figures rest on.
    n : int or None
        Published measurements.
    median, largest : float or None
        |predicted / measured - 1|.
    """

    basis: str
    n: int | None
    median: float | None
    largest: float | None


@dataclass(frozen=True)
class Estimate:
    """One batch of equal requests on one machine.

    Attributes
    ----------
    machine : Machine
    memory : float or None
        Bytes on all devices together; None if no source says.
    weight_bytes, cache_bytes : int
        All weights; all caches of the batch when the last token comes.
    largest_batch : int or None
        Requests of these lengths that fit beside the weights.
    bound : RequestTime or None
        At efficiency 1 without overhead; from the bytes alone where no source gives a peak. None where the rates were
        measured and not read off a sheet.
    expected : RequestTime
        With the constants of engine and device.
    trust : Trust
    """

    model: str
    device: str
    dtype: str
    prompt_len: int
    new_tokens: int
    batch: int
    machine: Machine
    memory: float | None
    weight_bytes: int
    cache_bytes: int
    largest_batch: int | None
    bound: RequestTime | None
    expected: RequestTime
    trust: Trust


def estimate(
    model: str,
    device: str,
    *,
    prompt_len: int,
    new_tokens: int,
    batch: int = 1,
    dtype: str | None = None,
    engine: str | None = None,
) -> Estimate:
    """Estimate a batch of requests.

    Parameters
    ----------
    model : str
        A known model.
    device : str
        ``[Nx]device``, or "this-machine", whose rates are then measured.
    prompt_len, new_tokens, batch : int
    dtype : str, optional
        One of ``DTYPES``; default: 16 bits, on this machine float32.
    engine : str, optional
        One of ``ENGINES``; default: "llama.cpp" for Apple silicon and CPUs, else "compiled engine".

    Raises
    ------
    ValueError
        For unknown names, lengths that are not positive, a dtype that the device lacks, or what does not fit.
    """
    dtype = dtype or ("float32" if device == NAME else "float16")
    entry, shape = known.find_model(model), known.find_model(model).shape
    _check(prompt_len=prompt_len, new_tokens=new_tokens, batch=batch)
    name, machine, memory, constants, trust = _hardware(device, dtype, engine)
    entries = prompt_len + new_tokens - 1  # the last token is never fed back
    if 0 < shape.positions < entries:
        raise ValueError(f"{entry.name} has {shape.positions:,} positions, {entries:,} are needed: ask for less")
    weights, cache = shape.weight_bytes(dtype), shape.kv_bytes(entries, dtype)
    most = None if memory is None else largest_batch(shape, entries=entries, dtype=dtype, memory=memory)
    if memory is not None and not fits(shape, entries=entries, batch=batch, dtype=dtype, memory=memory):
        raise ValueError(
            f"does not fit: weights {weights / 1e9:.1f} GB and {batch} x cache {cache / 1e9:.2f} GB, {name} has "
            f"{memory / 1e9:.0f} GB; " + (f"the largest batch is {most}" if most else "take more devices or fewer bits")
        )
    common = dict(prompt_len=prompt_len, new_tokens=new_tokens, batch=batch, dtype=dtype)
    return Estimate(
        model=entry.name,
        device=name,
        machine=machine,
        memory=memory,
        weight_bytes=weights,
        cache_bytes=batch * cache,
        largest_batch=most,
        bound=None if name == NAME else request_time(shape, limits_of(machine), IDEAL, **common),
        expected=request_time(shape, machine, constants, **common),
        trust=trust,
        **common,
    )


def _hardware(device: str, dtype: str, engine: str | None) -> tuple[str, Machine, float | None, Constants, Trust]:
    dtype_of(dtype)  # an unknown dtype is the first thing to say
    if device == NAME:
        machine, memory = measure(dtype)
        return (
            NAME,
            machine,
            memory,
            IDEAL,
            Trust(MEASURED_NOW, None, None, None),
        )
    count, name, _ = known.read_hardware(device)
    found = known.find_device(name)
    engine = engine or ("llama.cpp" if found.kind in ("Apple silicon", "CPU") else COMPILED)
    if engine not in ENGINES:
        raise ValueError(f"unknown engine {engine!r}: expected one of {', '.join(ENGINES)}")
    device_class = f"{engine} on {found.kind}"
    worth = fitted()["unseen"]["classes"].get(device_class, {"n": None, "median": None, "largest": None})
    memory = found.memory and count * found.memory
    label = f"{count}x{found.name}" if count > 1 else found.name
    return label, found.machine(dtype, count), memory, class_constants(device_class), Trust(device_class, **worth)


def _check(**lengths: int) -> None:
    for name, value in lengths.items():
        if not 1 <= value <= MOST:
            raise ValueError(f"{name} = {value}: expected at least 1 and at most {MOST:,}")
