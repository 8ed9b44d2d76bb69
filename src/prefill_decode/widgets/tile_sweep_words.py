"""A `TileSweep` in words: numbers, a sentence for each step, the questions and their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prefill_decode.widgets.pass_timeline_schedule import count as counted
from prefill_decode.widgets.quantities import count, digits

if TYPE_CHECKING:
    from prefill_decode.tiled import Tiles
    from prefill_decode.widgets.tile_sweep_steps import Correction, Known, Step


def decimals(number: float) -> str:
    """Return a number with two decimals, and a minus sign that is as wide as a digit."""
    text = f"{number:.2f}"
    return "0.00" if text == "-0.00" else text.replace("-", "−")


def scale(factor: float) -> str:
    """Return the factor of what a row knew, from 0 to 1."""
    return f"{factor:.2f}" if factor >= 0.01 else "<0.01"


def option(fast: int, tiles: Tiles) -> str:
    """Return a size of fast memory with the tile that follows from it."""
    return f"M = {count(fast)}: {_tile(tiles.keys, tiles.queries)}"


def _tile(keys: int, queries: int) -> str:
    return f"{counted(keys, 'key')} × {counted(queries, 'query', 'queries')}"


def ratio(total: int, standard: int) -> str:
    """Compare all accesses of a choice with those of standard attention."""
    if total == standard:
        return "as many as standard"
    share = digits(total / standard)
    return f"{share} times as many as standard" if total > standard else f"{share} of standard"


def end(total: int, whole: int, standard: int) -> str:
    """Return where a choice ends, and what of it is due to skipping; standard attention skips nothing."""
    told = f"This choice ends at {count(total)}: {ratio(total, standard)}."
    if whole == total:
        return f"{told} It skips nothing."
    return f"{told} Without skipping it would end at {count(whole)}: {ratio(whole, standard)}."


def ends(memories: Sequence[dict], order: str) -> str:
    """Return where every size of fast memory ends."""
    return "At the end, by M: " + " · ".join(
        f"{count(each['m'])} → {count(each['orders'][order]['total'])}" for each in memories
    )


def span(what: str, positions: slice | range) -> str:
    """Return positions with both ends, counted from 0."""
    first, last = positions.start, positions.stop - 1
    singular, plural = {"queries": ("query", "queries"), "keys": ("key", "keys"), "rows": ("row", "rows")}[what]
    return f"{singular} {last}" if first == last else f"{plural} {first}–{last}"


def start(n: int, standard: int) -> str:
    """Return the sentence of step 0."""
    return (
        f"Nothing is read yet: {n} queries and {n} keys lie in slow memory. Standard attention makes"
        f" {count(standard)} accesses to it."
    )


def visit_sentence(
    step: Step, strongest: Correction, known: Known, scaled: Sequence[int], steps: int, standard: int
) -> str:
    """Return what a step does to its rows, some of them scaled, and what has crossed the edge of fast memory so far."""
    one, skipped, final = step.rows.stop - step.rows.start == 1, len(step.skipped), step.final
    return (
        f"Step {strongest.step} of {steps}: {span('queries', step.rows)} meet{'s' * one} {span('keys', step.keys)}."
        f" {_corrected(step, strongest, known, scaled)}"
        + (f" {span('rows', final).capitalize()} {'is' if len(final) == 1 else 'are'} final." if final else "")
        + (f" {counted(skipped, 'tile')} of later keys {'is' if skipped == 1 else 'are'} skipped." if skipped else "")
        + f" {counted(step.reads, 'read')}, {counted(step.writes, 'write')} so far; standard attention makes"
        f" {count(standard)}."
    )


def _corrected(step: Step, strongest: Correction, known: Known, scaled: Sequence[int]) -> str:
    if not step.keys_before:
        return f"The first keys of {span('rows', step.rows)}: nothing to correct."
    if strongest.factor == 1:
        return "No maximum grew: factor 1."
    old, new, factor = _grown(strongest, known.texts)
    others = _others([i for i in scaled if i != strongest.row])
    return f"Row {strongest.row}: maximum {old} → {new}, so what it knew is scaled by {factor}{others}."


def _others(rows: Sequence[int]) -> str:
    """Name the other rows that a step scales."""
    if not rows:
        return ""
    *before, last = map(str, rows)
    return f"; rows {', '.join(before)} and {last} are scaled, too" if before else f"; row {last} is scaled, too"


def _grown(correction: Correction, texts: list) -> tuple[str, str, str]:
    """Return the old and the new maximum, and the factor."""
    before = correction.before
    (old, *_), (new, *_, factor) = texts[correction.row][before - 1 : before + 1]
    return old, new, factor.replace("<", "less than ")


def questions(data: dict, strongest: Sequence[Correction]) -> list[dict]:
    """Return the questions, each with the choice and the step that answer it, and the answer.

    The strongest correction of each size of memory is given: its factor is no text.
    """
    opened = next(each for each in data["memories"] if each["m"] == data["opened"])
    return [_loses(data), _holds(data), _skips(data, opened), _larger(data, strongest), _other_order(opened)]


def _question(ask: str, memory: dict, answer: str, order: str = "keys", step: int | None = None) -> dict:
    last = memory["orders"][order]["steps"]
    state = {"memory": memory["m"], "order": order, "step": last if step is None else step}
    return {"ask": ask, "set": state, "answer": answer}


def _loses(data: dict) -> dict:
    small, standard = data["memories"][0], data["standard"]
    told, other = small["orders"]["keys"], small["orders"]["queries"]
    by_order = f"With keys staying {count(told['total'])} accesses, {told['ratio']}"
    turned = f"with queries staying {count(other['total'])}."
    if told["total"] <= standard:
        answer = f"Not here, even with M = {small['m']}. {by_order}; {turned}"
    else:
        tile = _tile(small["keys"], small["queries"])
        won = [each["m"] for each in data["memories"] if each["orders"]["keys"]["total"] < standard]
        answer = (
            f"When tiles are small: M = {small['m']} holds {tile}, and what a row knows goes out and comes back"
            f" for every tile of keys. {by_order} ({count(standard)}); {turned}"
            + (f" From M = {won[0]} on, keys that stay make fewer, too, helped by skipped tiles." if won else "")
        )
    return _question("When does tiling lose?", small, answer)


def _holds(data: dict) -> dict:
    n, d, ask = data["n"], data["d"], "When does one tile hold everything?"
    least = max(4 * d, 4 * d * (n - 1) + 1)
    holding = next((each for each in data["memories"] if each["m"] >= least), data["memories"][-1])
    told, tile = holding["orders"]["keys"], _tile(holding["keys"], holding["queries"])
    all_queries = (
        "and all queries with them"
        if n <= d
        else f"so that keys and values are read once. Queries still come {d} at a time: a tile has at most d = {d}"
    )
    shown = "" if holding["m"] >= least else f"None of these does. M = {holding['m']} comes nearest: {tile}. "
    return _question(
        ask,
        holding,
        f"{shown}From M = {count(least)} on, more than 4 d (n − 1), one tile holds all {n} keys, {all_queries}."
        f" M = {holding['m']}: {count(told['total'])} accesses, {told['ratio']}.",
    )


def _skips(data: dict, opened: dict) -> dict:
    def skipped(memory: dict) -> int:
        return memory["orders"]["keys"]["skipped"][-1]

    memory = opened if skipped(opened) else data["memories"][0]
    at = memory["orders"]["keys"]["at"]
    tiles = len(at) * len(at[0])
    answer = (
        f"Those above the diagonal, {skipped(memory)} of {tiles}: all of their keys come later than all of their"
        " queries. They cost no step and no access. A tile on the diagonal is visited, and its later keys are masked."
        if skipped(memory)
        else "None here: every tile holds a key that one of its queries may read."
    )
    return _question("Which tiles are never visited?", memory, answer)


def _larger(data: dict, strongest: Sequence[Correction]) -> dict:
    ask = "What happens to a row when a larger score comes?"
    by_memory = zip(data["memories"], strongest, strict=True)
    memory, most = min(by_memory, key=lambda each: (each[1].factor == 1, each[0]["m"] != data["opened"]))
    if most.factor == 1:
        return _question(ask, memory, "No row meets a larger score here: all factors are 1.00.")
    old, new, factor = _grown(most, memory["known"])
    return _question(
        ask,
        memory,
        f"Row {most.row}: its maximum m grows from {old} to {new}. Its sum ℓ was made with the old one, so ℓ, and"
        f" with it the weight of its output so far, is scaled by exp(old m − new m), here {factor}, before the new"
        " keys are added. No earlier score is needed again.",
        step=most.step,
    )


def _other_order(opened: dict) -> dict:
    keys, queries = (opened["orders"][order] for order in ("keys", "queries"))
    (reads, writes), (other_reads, other_writes) = ((each["reads"][-1], each["writes"][-1]) for each in (keys, queries))
    return _question(
        "What does the other loop order save?",
        opened,
        f"Writes: {count(other_writes)} instead of {count(writes)}. A tile of queries stays until its rows are final,"
        f" so m and ℓ never leave fast memory and each output is written once. Reads: {count(other_reads)} instead of"
        f" {count(reads)}; keys and values are read again for every tile of queries.",
        order="queries",
    )
