"""What a long prompt does to the others: one engine that serves several requests, pass by pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .latency import Constants, Machine, Work, pass_time, work_of
from .ledgers import ledger
from .shape import Shape


@dataclass(frozen=True)
class Request:
    """One request as it reaches the engine.

    Attributes
    ----------
    arrival : float
        Seconds.
    prompt_len, new_tokens : int
    """

    arrival: float
    prompt_len: int
    new_tokens: int

    def __post_init__(self) -> None:
        if not 0 <= self.arrival < float("inf"):
            raise ValueError(f"arrival = {self.arrival}: expected seconds, 0 or more")
        for name, value in (("prompt_len", self.prompt_len), ("new_tokens", self.new_tokens)):
            _check_count(name, value)


@dataclass(frozen=True)
class EnginePass:
    """One pass over the layers with everything that takes part in it.

    Attributes
    ----------
    start, seconds : float
    rows : mapping of int to int
        Query rows of each request that takes part: 1 for a token that is decoded, more for a piece of a prompt.
    flops : int
        Of all rows.
    weight_bytes, kv_bytes : int
        Weights, read once whoever takes part; keys and values read and written, of every participant.
    """

    start: float
    seconds: float
    rows: Mapping[int, int]
    flops: int
    weight_bytes: int
    kv_bytes: int

    @property
    def end(self) -> float:
        """When every token that the pass computes is there."""
        return self.start + self.seconds


@dataclass(frozen=True)
class Simulation:
    """What happened to every request.

    Attributes
    ----------
    requests : tuple of Request
    chunk : int or None
        Prompt rows that a pass takes at most; None for whole prompts.
    passes : tuple of EnginePass
        In order of time.
    tokens : tuple of (int, float)
        Request and time of every new token, in order of time.
    """

    requests: tuple[Request, ...]
    chunk: int | None
    passes: tuple[EnginePass, ...]
    tokens: tuple[tuple[int, float], ...]

    def times(self, request: int) -> tuple[float, ...]:
        """Return when the tokens of one request came."""
        return tuple(time for owner, time in self.tokens if owner == request)

    def gaps(self, request: int, since: float = 0.0) -> tuple[float, ...]:
        """Return the waits between its tokens that end after ``since``: the distribution of inter-token latency."""
        return tuple(after - before for before, after in pairwise(self.times(request)) if after > since)

    def ttft(self, request: int) -> float:
        """Return the seconds from arrival to the first token, the wait for the pass that is running included."""
        return self.times(request)[0] - self.requests[request].arrival

    def tpot(self, request: int) -> float | None:
        """Return the mean gap between tokens; None for one new token."""
        gaps = self.gaps(request)
        return sum(gaps) / len(gaps) if gaps else None

    def largest_gap(self, request: int, since: float = 0.0) -> float | None:
        """Return the longest wait for a further token; None if no gap ends after ``since``."""
        return max(self.gaps(request, since), default=None)

    def prompt_passes(self, request: int) -> tuple[EnginePass, ...]:
        """Return the passes that computed its prompt: one if it was taken whole, else one a chunk."""
        first = self.times(request)[0]
        return tuple(each for each in self.passes if request in each.rows and each.start < first)


def simulate(
    shape: Shape,
    machine: Machine,
    constants: Constants,
    requests: Sequence[Request],
    *,
    chunk: int | None = None,
    dtype: object = "float16",
) -> Simulation:
    """Serve requests, first come, first served: a pass takes every decoding request and a piece of one prompt.

    A pass takes the newest token of each request that decodes. Of the first request in line that still has prompt to
    compute it takes the whole prompt, or the next ``chunk`` tokens of it. Nobody joins a pass that runs.

    Parameters
    ----------
    shape : Shape
    machine : Machine
    constants : Constants
    requests : sequence of Request
        In any order; results count them as given.
    chunk : int, optional
        At most so many prompt rows a pass. Engines often limit all rows of a pass instead, decoded tokens included.
    dtype : str or numpy dtype
        As for ``ledger``.

    Returns
    -------
    Simulation

    Raises
    ------
    ValueError
        Without requests, for a chunk below 1, and where ``ledger`` raises it.

    Notes
    -----
    Passes of mixed requests: Orca (Yu et al., OSDI 2022); chunks beside decoding requests: Sarathi-Serve
    (arXiv:2403.02310). All caches are taken to fit: nobody is preempted.
    """
    if not requests:
        raise ValueError("no requests: expected at least one Request(arrival, prompt_len, new_tokens)")
    if chunk is not None:
        _check_count("chunk", chunk)
    weights = ledger(shape, 1, 1, dtype=dtype).bytes.weights
    line, now = _Line(requests, chunk), 0.0
    passes: list[EnginePass] = []
    tokens: list[tuple[int, float]] = []
    while line.unfinished():
        now = max(now, line.first_start())
        rows = line.rows(now)
        work = _work(shape, rows, line.cached, dtype)
        kv_bytes = work.bytes
        told = Work(work.flops, weights + kv_bytes)
        seconds = pass_time(told, machine, constants, shape.layers, prefill=line.has_prompt(rows)).seconds
        passes.append(EnginePass(now, seconds, rows, work.flops, weights, kv_bytes))
        now = passes[-1].end
        tokens += [(request, now) for request in line.advance(rows)]
    return Simulation(tuple(requests), chunk, tuple(passes), tuple(tokens))


class _Line:
    """How far each request is: the positions it has in its cache, and the tokens it has got."""

    def __init__(self, requests: Sequence[Request], chunk: int | None) -> None:
        self.requests, self.chunk = requests, chunk
        self.cached = [0] * len(requests)
        self.made = [0] * len(requests)

    def unfinished(self) -> list[int]:
        """Return the requests that still lack tokens, the first to arrive first."""
        left = [i for i, request in enumerate(self.requests) if self.made[i] < request.new_tokens]
        return sorted(left, key=lambda i: self.requests[i].arrival)

    def first_start(self) -> float:
        """Return the earliest time at which there is something to do."""
        return self.requests[self.unfinished()[0]].arrival

    def rows(self, now: float) -> dict[int, int]:
        """Choose who takes part in the pass that starts now, and with how many rows."""
        present = [i for i in self.unfinished() if self.requests[i].arrival <= now]
        rows = {i: 1 for i in present if self.made[i]}
        waiting = [i for i in present if not self.made[i]]
        if waiting:
            left = self.requests[waiting[0]].prompt_len - self.cached[waiting[0]]
            rows[waiting[0]] = min(left, self.chunk or left)
        return rows

    def has_prompt(self, rows: Mapping[int, int]) -> bool:
        """Say whether a pass has rows of a prompt in it."""
        return any(not self.made[i] for i in rows)

    def advance(self, rows: Mapping[int, int]) -> list[int]:
        """Note that a pass is over; return the requests that got a token: the last row of a prompt chooses one too."""
        for i, count in rows.items():
            self.cached[i] += count
        served = [i for i in rows if self.cached[i] >= self.requests[i].prompt_len]
        for i in served:
            self.made[i] += 1
        return served


def _work(shape: Shape, rows: Mapping[int, int], cached: Sequence[int], dtype: object) -> Work:
    """Add up what each participant brings: FLOPs, and bytes of keys and values; the weights are nobody's own."""
    parts = [work_of(shape, n, cached[i] + n, dtype=dtype, weight_bytes=0) for i, n in rows.items()]
    return Work(sum(part.flops for part in parts), sum(part.bytes for part in parts))


def _check_count(name: str, value: float) -> None:
    if not 1 <= value < float("inf") or value != int(value):
        raise ValueError(f"{name} = {value}: expected a whole number of at least 1")
