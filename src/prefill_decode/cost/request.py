"""How long a whole request takes, and how many of them fit on a device."""

from __future__ import annotations

from dataclasses import dataclass

from .latency import Constants, Machine, PassTime, mean_work, pass_time, work_of
from .shape import Shape


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
    if entries < 1:
        raise ValueError(f"entries = {entries}: expected at least 1, every request keeps one")
    return max(0, int((memory - shape.weight_bytes(dtype)) // shape.kv_bytes(entries, dtype)))
