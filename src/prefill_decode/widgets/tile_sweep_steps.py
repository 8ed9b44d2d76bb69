"""The steps of a `TileSweep`: what each visit does to its rows, skipped tiles counted to the visit they go with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from prefill_decode.tiled import Partial, Tiles, Visit, sweep
from prefill_decode.widgets.tile_sweep_words import decimals, scale


@dataclass(frozen=True)
class Step:
    """A visit and the skipped ones that are passed with it.

    Attributes
    ----------
    rows, keys : slice
        Of the tile that is visited.
    keys_before : int
        Tiles of keys to its left: what its rows have met before.
    partial : Partial
        What the rows know afterwards, [1, 1, b, ...].
    skipped : tuple of Visit
    reads, writes : int
        Slow-memory accesses so far, when all of this is done.
    """

    rows: slice
    keys: slice
    keys_before: int
    partial: Partial
    skipped: tuple[Visit, ...]
    reads: int
    writes: int

    @property
    def reading(self) -> range:
        """The rows that read at least one key of the tile; a row above it reads none."""
        return range(max(self.rows.start, self.keys.start), self.rows.stop)

    @property
    def final(self) -> range:
        """The rows that have now met all of their keys."""
        return range(self.reading.start, max(self.reading.start, min(self.rows.stop, self.keys.stop)))


def steps_of(q: np.ndarray, k: np.ndarray, v: np.ndarray, tiles: Tiles, order: str) -> list[Step]:
    """Return the steps of a sweep: a skipped tile goes with the visit that shares the tile which stays.

    With keys staying it comes before that visit; with queries staying after it, and so does the write of the outputs.
    """
    steps: list[Step] = []
    waiting: list[Visit] = []
    for visit in sweep(q, k, v, tiles, outer=order):
        if visit.partial is not None:
            before, passed = visit.keys.start // tiles.keys, tuple(waiting)
            steps.append(Step(visit.rows, visit.keys, before, visit.partial, passed, visit.reads, visit.writes))
            waiting = []
        elif order == "keys":
            waiting.append(visit)
        else:
            passed = (*steps[-1].skipped, visit)
            steps[-1] = replace(steps[-1], skipped=passed, reads=visit.reads, writes=visit.writes)
    return steps


@dataclass(frozen=True)
class Known:
    """What each row knows after each tile of keys that it reads.

    Attributes
    ----------
    texts : list
        A row's m, ℓ, output and the factor by which what it knew before was scaled.
    factors : list
        These factors as numbers; 0 for a row that knew nothing.
    """

    texts: list[list[list]]
    factors: list[list[float]]


class Correction(NamedTuple):
    """How far the maximum of a row grew: the smaller the factor, the more. Their order is by factor.

    Attributes
    ----------
    factor : float
    row : int
    before : int
        Tiles of keys that the row had met.
    step : int
    """

    factor: float
    row: int
    before: int
    step: int


def known_of(steps: Sequence[Step], n: int) -> Known:
    """Return what the rows know; the same in both orders, since every row meets the keys from left to right."""
    texts: list[list[list]] = [[] for _ in range(n)]
    factors: list[list[float]] = [[] for _ in range(n)]
    maxima = [-np.inf] * n
    for step in steps:
        for i in step.reading:
            m, total, output = (part[0, 0, i - step.rows.start] for part in vars(step.partial).values())
            factors[i].append(float(np.exp(maxima[i] - m)))
            maxima[i] = m
            told = scale(factors[i][-1]) if step.keys_before else ""  # a row that knew nothing has nothing to scale
            texts[i].append([decimals(m), decimals(total), [decimals(x) for x in output], told])
    return Known(texts, factors)


def scaled_in(step: Step, known: Known) -> list[int]:
    """Return the rows whose maximum grows in a step: what they knew is scaled."""
    before = step.keys_before
    return [i for i in step.reading if known.factors[i][before] < 1] if before else []


def strongest_in(step: Step, known: Known, number: int) -> Correction:
    """Return the strongest correction of a step; its factor is 1 where nothing is scaled."""
    before = step.keys_before
    if not before:
        return Correction(1.0, step.rows.start, 0, number)
    return min(Correction(known.factors[i][before], i, before, number) for i in step.reading)


def strongest_of(steps: Sequence[Step], known: Known) -> Correction:
    """Return the strongest correction of a sweep."""
    return min(strongest_in(step, known, number) for number, step in enumerate(steps, 1))
