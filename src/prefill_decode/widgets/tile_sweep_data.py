"""What a `TileSweep` shows: for every size of fast memory what each row knows, for both loop orders the visits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from prefill_decode.tiled import Tiles, standard_accesses, tiled_accesses
from prefill_decode.widgets.attention_grid_data import shown
from prefill_decode.widgets.tile_sweep_steps import (
    Correction,
    Known,
    Step,
    known_of,
    scaled_in,
    steps_of,
    strongest_in,
    strongest_of,
)
from prefill_decode.widgets.tile_sweep_words import decimals, end, ends, option, questions, ratio, start, visit_sentence

ORDERS = {
    "keys": "keys stay (FlashAttention 1)",
    "queries": "queries stay (FlashAttention 2)",
}
MOST_ROWS, MOST_WIDTH, MOST_MEMORIES = 16, 4, 8  # what is drawn stays legible on a phone
SIZE = 10  # of scores and values: one digit and two decimals fit a cell


def sweep_data(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    memories: Sequence[int],
    labels: Sequence[str] | None,
    memory: int | None,
) -> dict:
    """Return what the page needs, all numbers as text or whole; q, k, v are [1, n, d].

    Questions are answered with the size that it opens with; the one in the middle without it.
    """
    n, d = _checked_shape(q, k, v)
    scores = _checked_scores(q, k, v)
    sizes = _checked_memories(memories)
    opened = sizes[len(sizes) // 2] if memory is None else int(memory)
    if opened not in sizes:
        raise ValueError(f"memory = {memory}: expected one of {', '.join(map(str, sizes))}")
    chosen, strongest = zip(*(_memory(q, k, v, fast) for fast in sizes), strict=True)
    standard = standard_accesses(n, d)
    longest = max(standard, *(each["orders"][order]["total"] for each in chosen for order in ORDERS))
    data = {
        "n": n,
        "d": d,
        "labels": None if labels is None else _checked_labels(labels, n),
        "scores": [[decimals(scores[i, j]) for j in range(i + 1)] for i in range(n)],
        "standard": standard,
        "phases": [
            2 * n * d + n * n,
            2 * n * n,
            n * n + 2 * n * d,
        ],  # read Q, K, write A; read A, write W; read W, V, write O
        "longest": longest,
        "memories": chosen,
        "ends": {order: ends(chosen, order) for order in ORDERS},
        "opened": opened,
    }
    return data | {"questions": questions(data, strongest)}


def memory_of(data: dict, fast: int) -> dict:
    """Return what belongs to one size of fast memory."""
    return next(each for each in data["memories"] if each["m"] == fast)


def _memory(q: np.ndarray, k: np.ndarray, v: np.ndarray, fast: int) -> tuple[dict, Correction]:
    """Return what one size of fast memory shows, and where a row of it is scaled down most."""
    _, n, d = q.shape
    tiles = Tiles.for_memory(fast, d, n)
    steps = {order: steps_of(q, k, v, tiles, order) for order in ORDERS}
    known = known_of(steps["keys"], n)
    memory = {
        "m": fast,
        "option": option(fast, tiles),
        "queries": tiles.queries,
        "keys": tiles.keys,
        "known": known.texts,
        "orders": {order: _order(steps[order], known, tiles, q.shape, order) for order in ORDERS},
    }
    return memory, strongest_of(steps["keys"], known)


def _order(steps: Sequence[Step], known: Known, tiles: Tiles, shape: tuple[int, ...], order: str) -> dict:
    _, n, d = shape
    standard = standard_accesses(n, d)
    total, whole = (tiled_accesses(n, d, tiles, outer=order, skip=skip) for skip in (True, False))
    return {
        "steps": len(steps),
        "at": _numbers(steps, tiles, n),
        "tiles": [[-1, -1], *([step.rows.start // tiles.queries, step.keys_before] for step in steps)],
        "reads": [0, *(step.reads for step in steps)],
        "writes": [0, *(step.writes for step in steps)],
        "skipped": [0, *np.cumsum([len(step.skipped) for step in steps]).tolist()],
        "total": total,
        "ratio": ratio(total, standard),
        "end": end(total, whole, standard),
        "sentences": [start(n, standard)]
        + [
            visit_sentence(step, strongest_in(step, known, number), known, scaled_in(step, known), len(steps), standard)
            for number, step in enumerate(steps, 1)
        ],
    }


def _numbers(steps: Sequence[Step], tiles: Tiles, n: int) -> list[list[int]]:
    """Return the step that visits or passes each tile, a row of tiles after the other."""
    at = [[0] * -(-n // tiles.keys) for _ in range(0, n, tiles.queries)]
    for number, step in enumerate(steps, 1):
        for visit in (step, *step.skipped):
            at[visit.rows.start // tiles.queries][visit.keys.start // tiles.keys] = number
    return at


def _checked_shape(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> tuple[int, int]:
    if not (q.ndim == 3 and q.shape[0] == 1 and q.shape == k.shape == v.shape):
        raise ValueError(f"q {q.shape}, k {k.shape}, v {v.shape}: expected one head, [1, n, d] for each")
    _, n, d = q.shape
    for what, value, most in (("rows", n, MOST_ROWS), ("numbers in a row", d, MOST_WIDTH)):
        if not 1 <= value <= most:
            raise ValueError(f"q has {value} {what}: expected 1 to {most}, give fewer")
    return n, d


def _checked_scores(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    scores = (q * q.dtype.type(q.shape[2] ** -0.5))[0] @ k[0].T  # [n, d] @ [d, n] -> [n, n]
    for what, values, given in (("scores", scores, "q or k"), ("values", v, "v")):
        if not np.all(np.abs(values).round(2) < SIZE):  # NaN is not below either
            raise ValueError(f"{what} reach {np.abs(values).max():.3g}: expected sizes below {SIZE}, scale {given}")
    return scores


def _checked_memories(memories: Sequence[int]) -> list[int]:
    given = list(memories)
    if not 1 <= len(given) <= MOST_MEMORIES or any(a >= b for a, b in pairwise(given)):
        raise ValueError(f"memories = {given}: expected 1 to {MOST_MEMORIES} sizes, rising")
    if any(fast != int(fast) for fast in given):
        raise ValueError(f"memories = {given}: expected whole numbers")
    return [int(fast) for fast in given]


def _checked_labels(labels: Sequence[str], n: int) -> list[str]:
    if len(labels) != n:
        raise ValueError(f"{len(labels)} labels for {n} rows: give one for each")
    return [shown(text) for text in labels]
