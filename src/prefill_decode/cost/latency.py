"""How long a pass takes: an overhead, and the slower of arithmetic and memory traffic."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .ledgers import ledger
from .shape import Shape


@dataclass(frozen=True)
class Machine:
    """One device, or several that share the work.

    Attributes
    ----------
    peak : float or None
        FLOP/s of dense matrix products in the dtype of the pass, all devices together; None if no source says.
    bandwidth : float
        Bytes a second between memory and chip, all devices together.
    count : int
        Devices.
    guessed_peak : float, optional
        Stands in for an unknown peak where a time is expected, never where it is bounded.
    gpu_cores : int, optional
        The same for Apple's chips, whose cores are alike.
    """

    peak: float | None
    bandwidth: float
    count: int = 1
    guessed_peak: float | None = None
    gpu_cores: int | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not 0 < value < float("inf"):
                raise ValueError(f"{name} = {value}: expected a number above 0")

    @property
    def ridge(self) -> float | None:
        """FLOPs for each byte above which arithmetic, not memory, is the limit (Williams et al. 2009)."""
        return None if self.peak is None else self.peak / self.bandwidth


@dataclass(frozen=True)
class Constants:
    """What an engine reaches of its device's data sheet.

    Attributes
    ----------
    compute, memory : float
        Shares of peak and bandwidth, above 0 and at most 1.
    overhead : float
        Seconds a layer and decode pass in which neither works: launches, norms, the choice of a token.
    prefill_overhead : float
        The same for the pass of a prompt, where engines schedule, allocate and launch kernel by kernel.
    sync : float
        Seconds a layer and pass that N devices wait for each other, times 1 - 1/N.
    core_rate : float
        Stands in for ``compute`` on Apple's chips: FLOP/s reached by each GPU core.
    """

    compute: float
    memory: float
    overhead: float = 0.0
    prefill_overhead: float = 0.0
    sync: float = 0.0
    core_rate: float = 0.27e12

    def __post_init__(self) -> None:
        for name, value in (("compute", self.compute), ("memory", self.memory)):
            if not 0 < value <= 1:
                raise ValueError(f"{name} = {value}: an efficiency is above 0 and at most 1")
        for name in ("overhead", "prefill_overhead", "sync"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name} = {getattr(self, name)}: expected seconds, 0 or more")


IDEAL = Constants(compute=1.0, memory=1.0)  # no pass is faster: every bound here is a time at these


@dataclass(frozen=True)
class Work:
    """What a pass has to do whatever the engine: its FLOPs, and the bytes of weights and keys and values."""

    flops: float
    bytes: float


@dataclass(frozen=True)
class PassTime:
    """Seconds of one pass, term by term; the pass takes overhead and the larger of the other two.

    Attributes
    ----------
    overhead, arithmetic, memory : float
    """

    overhead: float
    arithmetic: float
    memory: float

    @property
    def seconds(self) -> float:
        """The time of the pass."""
        return self.overhead + max(self.arithmetic, self.memory)

    @property
    def regime(self) -> str:
        """What binds: "compute" or "memory"."""
        return "compute" if self.arithmetic > self.memory else "memory"


def work_of(
    shape: Shape,
    n_queries: int,
    n_keys: int,
    *,
    batch: int = 1,
    dtype: object = "float16",
    weight_bytes: float | None = None,
) -> Work:
    """Return the FLOPs of a pass and the bytes that no fused kernel avoids: weights, K/V read, K/V written.

    Parameters
    ----------
    shape : Shape
    n_queries, n_keys, batch, dtype
        As for ``ledger``.
    weight_bytes : float, optional
        What the weights that a pass reads really take, where it is known better than the dtype tells.
    """
    counted = ledger(shape, n_queries, n_keys, batch=batch, dtype=dtype)
    weights = counted.bytes.weights if weight_bytes is None else weight_bytes
    return Work(counted.flops.total, weights + counted.bytes.kv_read + counted.bytes.kv_written)


def mean_work(first: Work, last: Work) -> Work:
    """Return the mean of passes whose work grows by the same amount from the first to the last."""
    return Work((first.flops + last.flops) / 2, (first.bytes + last.bytes) / 2)


def reached_rate(machine: Machine, constants: Constants) -> float | None:
    """Return the FLOP/s that constants lead one to expect; None where nothing is known of the arithmetic."""
    if machine.peak is None and machine.gpu_cores:
        return constants.core_rate * machine.gpu_cores
    peak = machine.peak or machine.guessed_peak
    return peak and constants.compute * peak


def limits_of(machine: Machine) -> Machine:
    """Return the machine without what was only guessed: with ``IDEAL`` its times are bounds."""
    return replace(machine, guessed_peak=None, gpu_cores=None)


def pass_time(work: Work, machine: Machine, constants: Constants, layers: int, *, prefill: bool = False) -> PassTime:
    """Return overhead + max(FLOPs / (efficiency · peak), bytes / (efficiency · bandwidth)).

    Parameters
    ----------
    work : Work
    machine : Machine
    constants : Constants
    layers : int
        Overheads are a layer's.
    prefill : bool
        Whether the pass has rows of a prompt in it.
    """
    apart = 1 - 1 / machine.count
    rate = reached_rate(machine, constants)
    return PassTime(
        overhead=layers * ((constants.prefill_overhead if prefill else constants.overhead) + constants.sync * apart),
        arithmetic=0.0 if rate is None else work.flops / rate,
        memory=work.bytes / (constants.memory * machine.bandwidth),
    )
