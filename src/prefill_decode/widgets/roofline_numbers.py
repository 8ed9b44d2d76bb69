"""What a `Roofline` says of one choice of model, device, dtype, prompt and batch: numbers, texts, places.

The numbers come from `prefill_decode.cost`. `roofline.js` finds the same from coefficients when a control changes; a
browser test compares both, text by text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from prefill_decode.cost import (
    IDEAL,
    Constants,
    Ledger,
    Machine,
    RequestTime,
    Shape,
    fits,
    largest_batch,
    ledger,
    pass_time,
    request_time,
    work_of,
)
from prefill_decode.cost.latency import PassTime
from prefill_decode.widgets.roofline_data import LONGEST_PROMPT


@dataclass(frozen=True)
class Choice:
    """What the controls say."""

    model: str
    device: str
    dtype: str
    prompt_len: int
    batch: int


@dataclass(frozen=True)
class PassReading:
    """One pass under the roof.

    Attributes
    ----------
    counted : Ledger
    ridge : float
    least, about : PassTime
        At efficiency 1 without overhead, and with the constants.
    """

    counted: Ledger
    ridge: float
    least: PassTime
    about: PassTime

    @property
    def bound(self) -> str:
        """What binds at the limit: the side of the ridge."""
        return "compute" if self.counted.intensity >= self.ridge else "memory"


@dataclass(frozen=True)
class Reading:
    """Everything that a choice leads to.

    Attributes
    ----------
    prefill, decode : PassReading
        The pass of the prompts, and the one after it.
    request : RequestTime
        With the constants.
    request_least : RequestTime
        At efficiency 1.
    prompt_at_ridge : int or None
        The shortest prompt of a single request whose prefill reaches the ridge; None if even the longest does not.
    batch_at_ridge : int or None
        The smallest batch whose decode reaches it; None if no batch does.
    decode_limit : float
        FLOPs a byte to which decode tends as the batch grows: what is left when nobody counts the weights.
    weights, cache, memory : int
        Bytes stored, bytes of all caches at the end, and what the device has.
    reads_all : bool
        Whether a pass reads all weights that are stored; of an embedding that is no head it reads a few rows.
    fits : bool
    largest_batch : int
    """

    prefill: PassReading
    decode: PassReading
    request: RequestTime
    request_least: RequestTime
    prompt_at_ridge: int | None
    batch_at_ridge: int | None
    decode_limit: float
    weights: int
    cache: int
    memory: float
    reads_all: bool
    fits: bool
    largest_batch: int


def read(shape: Shape, machine: Machine, constants: Constants, choice: Choice, *, memory: float, new: int) -> Reading:
    """Ask the cost model about one choice, `new` tokens for each request."""
    n, batch, dtype = choice.prompt_len, choice.batch, choice.dtype
    entries = n + new - 1  # the last token is chosen and never cached
    asked = {"prompt_len": n, "new_tokens": new, "batch": batch, "dtype": dtype}

    def read_pass(queries: int, keys: int) -> PassReading:
        work = work_of(shape, queries, keys, batch=batch, dtype=dtype)
        least, about = (
            pass_time(work, machine, reached, shape.layers, prefill=queries == keys) for reached in (IDEAL, constants)
        )
        return PassReading(ledger(shape, queries, keys, batch=batch, dtype=dtype), machine.ridge, least, about)

    return Reading(
        prefill=read_pass(n, n),
        decode=read_pass(1, n + 1),
        request=request_time(shape, machine, constants, **asked),
        request_least=request_time(shape, machine, IDEAL, **asked),
        prompt_at_ridge=prompt_at_ridge(shape, machine.ridge, dtype),
        batch_at_ridge=batch_at_ridge(shape, machine.ridge, dtype, n),
        decode_limit=decode_limit(shape, dtype, n),
        weights=shape.weight_bytes(dtype),
        cache=batch * shape.kv_bytes(entries, dtype),
        memory=memory,
        reads_all=shape.params_read == shape.params,
        fits=fits(shape, entries=entries, batch=batch, dtype=dtype, memory=memory),
        largest_batch=largest_batch(shape, entries=entries, dtype=dtype, memory=memory),
    )


def prompt_at_ridge(shape: Shape, ridge: float, dtype: str) -> int | None:
    """Return the smallest n whose prefill at batch 1 reaches the ridge; more rows always mean more FLOPs a byte."""
    low, high = 1, LONGEST_PROMPT + 1
    while low < high:
        middle = (low + high) // 2
        if ledger(shape, middle, middle, dtype=dtype).intensity >= ridge:
            high = middle
        else:
            low = middle + 1
    return None if low > LONGEST_PROMPT else low


def decode_limit(shape: Shape, dtype: str, n: int) -> float:
    """Return FLOPs for each byte of K/V read of one sequence that decodes after n tokens."""
    counted = ledger(shape, 1, n + 1, dtype=dtype)
    return counted.flops.total / counted.bytes.kv_read


def batch_at_ridge(shape: Shape, ridge: float, dtype: str, n: int) -> int | None:
    """Return the smallest batch whose decode after n tokens reaches the ridge: flops · B / (weights + cache · B)."""
    counted = ledger(shape, 1, n + 1, dtype=dtype)
    gain = counted.flops.total - ridge * counted.bytes.kv_read
    return None if gain <= 0 else max(1, math.ceil(ridge * counted.bytes.weights / gain))
