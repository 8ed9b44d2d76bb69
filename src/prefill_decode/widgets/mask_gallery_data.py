"""The data of a `MaskGallery`: for each case and step the counts and a sentence, for each cell a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from prefill_decode.schedules.masks import PAD
from prefill_decode.widgets.attention_grid_panels import keys
from prefill_decode.widgets.mask_gallery_cases import MaskCase, Place

CODES = "0123456789abcdefghijklmnopqrstuvwxyz"  # a letter a reason: a row of cells is a short text


@dataclass(frozen=True)
class Question:
    """A question, the case that answers it when all its rows have run, the answer, and the cell to look at."""

    ask: str
    case: str
    answer: str
    cell: tuple[int, int]


def check_cases(cases: Sequence[MaskCase], questions: Sequence[Question]) -> None:
    """Raise ValueError if there is no case, a name stands twice, or a question points at nothing."""
    if not cases:
        raise ValueError("the gallery has no cases: give at least one MaskCase")
    shapes = {case.name: case.mask.shape for case in cases}
    if len(shapes) < len(cases):
        raise ValueError(f"cases are called {', '.join(case.name for case in cases)}: give each a name of its own")
    for question in questions:
        if question.case not in shapes:
            raise ValueError(
                f"{question.ask!r} is about the case {question.case!r}: expected one of {', '.join(shapes)}"
            )
        if not all(0 <= at < size for at, size in zip(question.cell, shapes[question.case], strict=True)):
            raise ValueError(
                f"{question.ask!r} points at cell {question.cell}: expected one of a mask {list(shapes[question.case])}"
            )


def gallery_data(cases: Sequence[MaskCase], questions: Sequence[Question]) -> dict:
    """Return what the module shows: texts, and whole numbers for the root's attributes."""
    reasons = _reasons(cases)
    return {
        "cases": {case.name: _case(case, reasons) for case in cases},
        "reasons": reasons,
        "questions": [
            {"ask": each.ask, "case": each.case, "answer": each.answer, "cell": list(each.cell)} for each in questions
        ],
    }


def _case(case: MaskCase, reasons: list[str]) -> dict:
    n_rows, n_keys = case.mask.shape
    codes = {reason: CODES[i] for i, reason in enumerate(reasons)}
    return {
        "steps": n_rows,
        "pairs": [0, *np.cumsum(case.mask.sum(axis=1)).tolist()],  # [L, S] -> [L + 1]
        "allowed": case.allowed,
        "dense": case.dense,
        "formula": case.formula,
        "wastedRows": case.wasted_rows,
        "sentences": [step_sentence(case, step) for step in range(n_rows + 1)],
        "rows": [_name(place, q) for q, place in enumerate(case.rows)],
        "keys": [_name(place, k) for k, place in enumerate(case.columns)],
        "why": ["".join(codes[_why(case, q, k)] for k in range(n_keys)) for q in range(n_rows)],
    }


def _reasons(cases: Sequence[MaskCase]) -> list[str]:
    """Return each reason once, with verb."""
    told = {_why(case, q, k): None for case in cases for q, k in np.ndindex(case.mask.shape)}
    return list(told)


def _why(case: MaskCase, q: int, k: int) -> str:
    """Return a reason with room for the names of row and key."""
    verb = "reads" if case.mask[q, k] else "may not read"
    return f"row {{row}} {verb} key {{key}}: {case.reason(q, k)}"


def _name(place: Place, at: int) -> str:
    """Return what a sentence calls a row or key: its label, or where it stands if it is nobody's."""
    return place.label if place.prompt >= 0 else str(at)


def step_sentence(case: MaskCase, step: int) -> str:
    """Say what the newest row reads, and how many pairs that makes."""
    n_rows, n_keys = case.mask.shape
    if step == 0:
        return f"No row has run yet: {n_rows} rows, {n_keys} keys. The mask says which row may read which key."
    pairs = int(case.mask[:step].sum())
    end = f"{pairs} pair{'s' * (pairs != 1)} so far."
    if step == n_rows:
        lines = f"{case.lines} lines of " * (case.lines > 1)
        end = (
            f"All {n_rows} rows have run: {pairs} pairs; n(n+1)/2 of {lines}{case.line_rows} rows says {case.formula}."
        )
    return f"{_pass(case, step - 1)}{_row(case, step - 1)}. {end}"


def _pass(case: MaskCase, q: int) -> str:
    if len(case.passes) == 1:
        return "One pass: "
    number = case.pass_of(q)
    start, rows = case.starts[number], case.passes[number].rows
    together = f"{case.rows[start].label} to {case.rows[start + rows - 1].label} together" if rows > 1 else "one row"
    return f"Pass {number + 1} of {len(case.passes)}, {together}: "


def _row(case: MaskCase, q: int) -> str:
    read = sorted(case.columns[k] for k in np.flatnonzero(case.mask[q]))
    name = _name(case.rows[q], q)
    if case.rows[q].prompt == PAD:
        return f"row {name} is a pad; it runs through all layers and reads {'nothing' if not read else keys(len(read))}"
    return f"row {name} reads {keys(len(read))}{', ' * bool(read)}{_listed(read)}"


def _listed(read: list[Place]) -> str:
    """Name keys: three or more in a row by the first and the last."""
    in_a_row = all(b.prompt == a.prompt and b.position == a.position + 1 for a, b in pairwise(read))
    labels = [place.label for place in read]
    if in_a_row and len(read) > 2:
        return f"{labels[0]} to {labels[-1]}"
    return " and ".join(filter(None, (", ".join(labels[:-1]), *labels[-1:])))
