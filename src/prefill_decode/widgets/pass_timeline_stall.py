"""Scene two of a `PassTimeline`: simulations of one engine as dots and bars on one time axis, with their words."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, median

from prefill_decode.cost import Simulation
from prefill_decode.widgets.pass_timeline_schedule import exact, number
from prefill_decode.widgets.pass_timeline_stall_words import sentence, why_tpot_falls

MOST_LANES = 5
LANE = 62  # pixels
MARGIN = 0.14  # of the longest TTFT, shown before the arrival and after the first token
EDGE = 25  # per cent of the width: half of the longest words in the narrowest picture, and a little
OUTSIDE = 3.0  # per cent of the width: how far off the picture a dot is left that is not seen


@dataclass(frozen=True)
class Stall:
    """One scenario: a newcomer's prompt enters, whole or in chunks, while others decode.

    Attributes
    ----------
    run : Simulation
        Its request that arrives last is the newcomer.
    """

    run: Simulation

    @property
    def name(self) -> str:
        """``"whole"`` or the size of a chunk."""
        return "whole" if self.run.chunk is None else str(self.run.chunk)

    @property
    def label(self) -> str:
        """The name as a reader sees it."""
        return "whole" if self.run.chunk is None else f"chunks of {self.run.chunk:,}"

    @property
    def newcomer(self) -> int:
        """The request that arrives last."""
        return self._by_arrival()[-1]

    @property
    def others(self) -> list[int]:
        """All requests but the newcomer, in order of arrival."""
        return self._by_arrival()[:-1]

    def _by_arrival(self) -> list[int]:
        return sorted(range(len(self.run.requests)), key=lambda i: self.run.requests[i].arrival)

    @property
    def arrival(self) -> float:
        """Seconds."""
        return self.run.requests[self.newcomer].arrival

    @property
    def gap(self) -> tuple[int, float, float]:
        """The longest gap of another request after the arrival: whose, from when, to when."""
        waits = []
        for i in self.others:
            times = self.run.times(i)
            waits += [(b - a, i, a, b) for a, b in pairwise(times) if b > self.arrival]
        _, owner, start, end = max(waits, key=lambda wait: wait[0])
        return owner, start, end

    @property
    def gap_ms(self) -> float:
        """The length of that wait."""
        _, start, end = self.gap
        return 1e3 * (end - start)

    @property
    def usual_ms(self) -> float:
        """The median gap of the others."""
        return 1e3 * median(gap for i in self.others for gap in self.run.gaps(i))

    @property
    def pass_ms(self) -> float:
        """What the first pass with the newcomer's prompt takes."""
        return 1e3 * self.run.prompt_passes(self.newcomer)[0].seconds

    @property
    def tpot_ms(self) -> float:
        """The mean TPOT of the others."""
        return 1e3 * mean(self.run.tpot(i) for i in self.others)

    @property
    def ttft_ms(self) -> float:
        """The newcomer's."""
        return 1e3 * self.run.ttft(self.newcomer)

    @property
    def reads(self) -> int:
        """How often the weights are read until the newcomer's prompt is computed."""
        return len(self.run.prompt_passes(self.newcomer))

    @property
    def read_gb(self) -> float:
        """What they take: 10⁹ bytes for each of these reads."""
        return self.run.passes[0].weight_bytes / 1e9


def stalls_of(runs: Sequence[Simulation]) -> list[Stall]:
    """Check that simulations can be compared; return whole prompts first, then ever smaller chunks."""
    stalls = sorted(map(Stall, runs), key=lambda stall: -(stall.run.chunk or float("inf")))
    chunks = [stall.run.chunk for stall in stalls]
    if None not in chunks or len(set(chunks)) < max(2, len(chunks)):
        raise ValueError(f"stall has the chunks {chunks}: expected None (whole) once and one or more different sizes")
    if len({stall.run.requests for stall in stalls}) > 1:
        raise ValueError("the simulations of stall serve different requests: expected the same in each")
    if not 2 <= len(stalls[0].run.requests) <= MOST_LANES:
        raise ValueError(
            f"stall serves {len(stalls[0].run.requests)} requests: expected 2 to {MOST_LANES}, a lane each"
        )
    for stall in stalls:
        if not all(stall.run.gaps(i, stall.arrival) for i in stall.others):
            raise ValueError(
                f"with {stall.label}, a request gets no token after the last arrival: give it more new tokens"
            )
    return stalls


def stall_data(stalls: Sequence[Stall]) -> dict:
    """Return the scenarios as positions in per cent of the width, and their words."""
    horizon = max(stall.ttft_ms for stall in stalls)
    left = -min(MARGIN * horizon, 1e3 * stalls[0].arrival)
    right = horizon * (1 + MARGIN)

    def place(stall: Stall, time: float) -> float:
        share = (1e3 * (time - stall.arrival) - left) / (right - left)
        return round(100 * min(1 + OUTSIDE / 100, max(-OUTSIDE / 100, share)), 2)

    lanes = [*stalls[0].others, stalls[0].newcomer]
    seen = {i: _seen([[place(stall, time) for time in stall.run.times(i)] for stall in stalls]) for i in lanes}
    most = max(stall.reads for stall in stalls)
    return {
        "lanes": len(lanes),
        "arrival": place(stalls[0], stalls[0].arrival),
        "ticks": [[_share(tick, left, right), f"{tick:,}"] for tick in _ticks(right)],
        "why": why_tpot_falls(stalls),
        "scenarios": [
            _scenario(stall, stalls[0], place, {i: seen[i][k] for i in lanes}, most) for k, stall in enumerate(stalls)
        ],
    }


def _seen(places: list[list[float]]) -> list[list[float]]:
    """Keep the tokens that some scenario shows, so that all scenarios have equally many dots."""
    kept = [k for k in range(len(places[0])) if any(0 <= row[k] <= 100 for row in places)]
    return [[row[k] for k in kept] for row in places]


def _share(ms: float, left: float, right: float) -> float:
    return round(100 * (ms - left) / (right - left), 2)


def _ticks(right: float) -> list[int]:
    """Return three to six round numbers of milliseconds from 0 on."""
    sizes = (lead * 10**zeros for zeros in range(10) for lead in (1, 2, 5))
    size = next(size for size in sizes if right / size <= 5)
    return list(range(0, int(right) + 1, size))


def _scenario(stall: Stall, whole: Stall, place, dots: dict[int, list[float]], most: int) -> dict:
    owner, start, end = stall.gap
    bars = [[place(stall, each.start), place(stall, each.end)] for each in stall.run.prompt_passes(stall.newcomer)]
    first = place(stall, stall.run.times(stall.newcomer)[0])
    return {
        "name": stall.name,
        "label": stall.label,
        "row": [
            *map(number, (stall.gap_ms, stall.tpot_ms, stall.ttft_ms)),
            f"{stall.reads:,} × {number(stall.read_gb)}",
        ],
        "dots": list(dots.values()),
        "bars": [[x, round(end - x, 2)] for x, end in bars] + [[0, 0]] * (most - len(bars)),
        "busy": [bars[0][0], round(first - bars[0][0], 2)],
        "gap": _bracket(
            place(stall, start), place(stall, end), list(dots).index(owner), f"longest gap {number(stall.gap_ms)} ms"
        ),
        "ttft": _bracket(place(stall, stall.arrival), first, len(dots) - 1, f"TTFT {number(stall.ttft_ms)} ms"),
        "gapMs": exact(stall.gap_ms),
        "sentence": sentence(stall, whole),
    }


def _bracket(start: float, end: float, lane: int, text: str) -> dict:
    x, anchor = _words_at(start, end)
    return {"from": start, "to": end, "words": x, "anchor": anchor, "top": LANE * lane, "text": text}


def _words_at(start: float, end: float) -> tuple[float, str]:
    """Return where words stand and which part of them: under the middle, or at an end where they would be cut."""
    middle = round((start + end) / 2, 2)
    if middle < EDGE:
        return max(0.5, start), "start"
    return (min(99.5, end), "end") if middle > 100 - EDGE else (middle, "middle")
