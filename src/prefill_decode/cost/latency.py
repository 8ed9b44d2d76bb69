"""How long a pass takes: an overhead, and the slower of arithmetic and memory traffic."""

from __future__ import annotations

from dataclasses import dataclass

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
    gpu_cores : int, optional
        Of an Apple chip, for which no peak is published.
    """

    peak: float | None
    bandwidth: float
    count: int = 1
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
        Stands in for ``compute`` where no peak is known: FLOP/s reached by each GPU core.
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


# Where not even the cores are known: Apple's chips have about one for each so many bytes a second.
BANDWIDTH_OF_A_CORE = 12.5e9
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
    if machine.peak is None:
        reached = constants.core_rate * (machine.gpu_cores or machine.bandwidth / BANDWIDTH_OF_A_CORE)
    else:
        reached = constants.compute * machine.peak
    return PassTime(
        overhead=layers * ((constants.prefill_overhead if prefill else constants.overhead) + constants.sync * apart),
        arithmetic=work.flops / reached,
        memory=work.bytes / (constants.memory * machine.bandwidth),
    )


@dataclass(frozen=True)
class RequestTime:
    """A whole request: the pass of its prompt, then one pass for each further token.

    Attributes
    ----------
    prefill : PassTime
    decode : PassTime or None
        The mean decode pass; None for one new token.
    new_tokens, batch : int
    """

    prefill: PassTime
    decode: PassTime | None
    new_tokens: int
    batch: int

    @property
    def ttft(self) -> float:
        """Seconds until the first token: prefill alone, no queue and no network."""
        return self.prefill.seconds

    @property
    def tpot(self) -> float | None:
        """Seconds for each further token, the mean; None for one new token."""
        return None if self.decode is None else self.decode.seconds

    @property
    def seconds(self) -> float:
        """Seconds until the last token: m tokens take one prefill and m - 1 decode passes."""
        return self.ttft + (self.new_tokens - 1) * (self.tpot or 0.0)

    @property
    def tokens_per_second(self) -> float:
        """New tokens of the whole batch over the whole time."""
        return self.batch * self.new_tokens / self.seconds


def request_time(
    shape: Shape,
    machine: Machine,
    constants: Constants,
    *,
    prompt_len: int,
    new_tokens: int,
    batch: int = 1,
    dtype: object = "float16",
    weight_bytes: float | None = None,
) -> RequestTime:
    """Predict a batch of equal requests, started together.

    The mean decode pass is the pass at the mean number of keys: exact while one thing binds from the first to the
    last, since both times grow by the same amount a token.

    Parameters
    ----------
    shape : Shape
    machine : Machine
    constants : Constants
    prompt_len, new_tokens : int
        Of each request.
    batch, dtype, weight_bytes
        As for ``work_of``.
    """
    if new_tokens < 1:
        raise ValueError(f"new_tokens = {new_tokens}: expected at least 1, the first comes out of prefill")
    common = {"batch": batch, "dtype": dtype, "weight_bytes": weight_bytes}
    prompt = work_of(shape, prompt_len, prompt_len, **common)
    prefill = pass_time(prompt, machine, constants, shape.layers, prefill=True)
    if new_tokens == 1:
        return RequestTime(prefill, None, new_tokens, batch)
    mean = mean_work(*(work_of(shape, 1, prompt_len + i, **common) for i in (1, new_tokens - 1)))
    return RequestTime(prefill, pass_time(mean, machine, constants, shape.layers), new_tokens, batch)


def fits(shape: Shape, *, entries: int, batch: int, dtype: object, memory: float) -> bool:
    """Say whether weights and caches fit into so many bytes; activations and the engine's own needs come on top."""
    return shape.weight_bytes(dtype) + batch * shape.kv_bytes(entries, dtype) <= memory


def largest_batch(shape: Shape, *, entries: int, dtype: object, memory: float) -> int:
    """Return how many requests of so many cache entries fit beside the weights: (memory - weights) / cache."""
    return max(0, int((memory - shape.weight_bytes(dtype)) // shape.kv_bytes(entries, dtype)))
