"""``python -m prefill_decode cost``: the estimate as text or JSON."""

from __future__ import annotations

import argparse
import json

from .estimate import ENGINES, Estimate, estimate
from .known import devices, models
from .latency import PassTime
from .request import RequestTime
from .shape import DTYPES
from .this_machine import NAME


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to a parser."""
    parser.add_argument("model", metavar="MODEL", help=f"one of {', '.join(models())}")
    parser.add_argument(
        "--device",
        required=True,
        metavar="[Nx]D",
        help=f"{NAME} (measured on the spot), or one of {', '.join(devices())}",
    )
    parser.add_argument("--prompt-len", type=int, required=True, metavar="N", help="tokens of each prompt")
    parser.add_argument("--new-tokens", type=int, required=True, metavar="M", help="tokens that each request gets")
    parser.add_argument("--batch", type=int, default=1, metavar="B", help="requests at a time (default: 1)")
    parser.add_argument("--dtype", metavar="T", help=f"{', '.join(DTYPES)} (default: float16, on this-machine float32)")
    parser.add_argument("--engine", metavar="E", help=f"{' or '.join(repr(name) for name in ENGINES)}")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(args: argparse.Namespace) -> None:
    """Estimate and print; raise ValueError for what cannot be estimated."""
    told = estimate(
        args.model,
        args.device,
        prompt_len=args.prompt_len,
        new_tokens=args.new_tokens,
        batch=args.batch,
        dtype=args.dtype,
        engine=args.engine,
    )
    print(json.dumps(as_json(told)) if args.json else as_text(told))


def as_text(told: Estimate) -> str:
    """Return the estimate as lines."""
    requests = "1 request" if told.batch == 1 else f"{told.batch} requests"
    bound, about = told.bound, told.expected
    tpot = "none: one token comes out of prefill"
    if about.decode is not None:
        tpot = f"{_range(bound and bound.tpot, about.tpot)}; {_binds(about.decode)}"
    at_most = "" if bound is None else f"at most {bound.tokens_per_second:,.1f} tokens/s, "
    return "\n".join(
        [
            f"{told.model} in {told.dtype} on {told.device}: {requests} of {told.prompt_len:,} prompt tokens"
            f" and {told.new_tokens:,} new",
            "",
            f"memory   weights {_size(told.weight_bytes)}, cache {_size(told.cache_bytes)}; {_room(told)}",
            f"TTFT     {_range(bound and bound.ttft, about.ttft)}; {_binds(about.prefill)}",
            f"TPOT     {tpot}",
            f"request  {_range(bound and bound.seconds, about.seconds)}",
            f"rate     {at_most}about {about.tokens_per_second:,.1f} tokens/s, all requests together",
            "",
            _trust(told),
        ]
    )


def as_json(told: Estimate) -> dict:
    """Return the estimate as plain data: bytes, seconds, tokens a second."""
    return {
        "model": told.model,
        "device": told.device,
        "dtype": told.dtype,
        "prompt_len": told.prompt_len,
        "new_tokens": told.new_tokens,
        "batch": told.batch,
        "fits": None if told.memory is None else True,  # what does not fit is an error
        "largest_batch": told.largest_batch,
        "memory_bytes": told.memory,
        "weight_bytes": told.weight_bytes,
        "cache_bytes": told.cache_bytes,
        "ridge_flops_per_byte": told.machine.ridge,
        "bound": told.bound and _times(told.bound),
        "expected": _times(told.expected),
        "trust": vars(told.trust),
    }


def _times(request: RequestTime) -> dict:
    return {
        "ttft_s": request.ttft,
        "tpot_s": request.tpot,
        "request_s": request.seconds,
        "tokens_per_s": request.tokens_per_second,
        "prefill_binds": request.prefill.regime,
        "decode_binds": None if request.decode is None else request.decode.regime,
    }


def _size(count: float) -> str:
    return f"{count / 1e9:,.2f} GB ({count / 2**30:,.2f} GiB)"


def _room(told: Estimate) -> str:
    if told.memory is None:
        return "no source says how much the device has"
    return (
        f"they fit into {told.memory / 1e9:,.0f} GB, the largest batch is {told.largest_batch:,}"
        " (less what the engine itself needs)"
    )


def _range(least: float | None, about: float) -> str:
    return f"about {_duration(about)}" if least is None else f"at least {_duration(least)}, about {_duration(about)}"


def _duration(seconds: float) -> str:
    return f"{seconds:,.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _binds(time: PassTime) -> str:
    shares = (time.overhead, time.arithmetic, time.memory)
    overhead = f", {time.overhead / time.seconds:.0%} overhead" if shares[0] else ""
    return f"{time.regime} binds{overhead}"


def _trust(told: Estimate) -> str:
    worth, lines = told.trust, []
    if told.bound is None:
        return f"trust    {worth.basis}"
    if worth.n is None:
        lines.append(f"about: {worth.basis}, of which no measurement is known here; constants of the nearest kind")
    else:
        measurements = "measurement" if worth.n == 1 else "measurements"
        lines.append(f"about: {worth.basis}; an engine not seen was off by {worth.median:.0%} in the median")
        lines.append(f"of {worth.n} published {measurements}, by {worth.largest:.0%} at worst")
    if told.machine.peak is None:
        lines.append("at least: from the bytes alone, no source gives the peak; prefill will take longer than that")
    else:
        lines.append("at least, at most: data-sheet rates and no overhead; no published measurement here is better")
    return "trust    " + "\n         ".join(lines)
