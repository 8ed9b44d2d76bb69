"""What a mask stands for: its rows and columns by prompt and position, its passes, and why a row may read a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from prefill_decode.schedules.masks import PAD

FREE = -2  # the prompt of a column in which nothing is stored
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Place(NamedTuple):
    """What stands at a row or a column: a position of a prompt, a pad (`PAD`) or nothing (`FREE`)."""

    prompt: int
    position: int = 0

    @property
    def label(self) -> str:
        """Prompts have letters: b0 is the first position of the second prompt."""
        return {PAD: "–", FREE: "/"}.get(self.prompt) or f"{LETTERS[self.prompt]}{self.position}"


class Pass(NamedTuple):
    """Rows that run together, and how many keys are there for them: their own and those of earlier passes."""

    rows: int
    keys: int


@dataclass(frozen=True, eq=False)
class MaskCase:
    """A mask and what its rows and columns stand for.

    Attributes
    ----------
    name, title : str
        For programs, and for readers.
    mask : ndarray of bool, [L, S]
        True = the row may read the key.
    rows, columns : sequence of Place, [L] and [S]
    bands : sequence of (str, int)
        What stands above the columns: a heading and how many columns it spans, S in all.
    note : str
        What the case shows, in a sentence or two.
    passes : sequence of Pass
        One after the other, L rows in all; a single pass over all keys without it.
    window : int, optional
        How many keys a row may read, its own and the newest; all without it.
    lines : int
        How many lines of one length the rows are; an engine holds them as a dimension and meets no pair between them.

    Raises
    ------
    ValueError
        If the mask is no bool matrix, or the parts do not fit it.
    """

    name: str
    title: str
    mask: np.ndarray
    rows: Sequence[Place]
    columns: Sequence[Place]
    bands: Sequence[tuple[str, int]]
    note: str
    passes: Sequence[Pass] = ()
    window: int | None = None
    lines: int = 1

    def __post_init__(self) -> None:
        if self.mask.ndim != 2 or self.mask.dtype != bool or not self.mask.size:
            raise ValueError(
                f"the mask of {self.name!r} is {self.mask.dtype} {list(self.mask.shape)}: expected bool [rows, keys]"
            )
        if not self.passes:
            object.__setattr__(self, "passes", (Pass(*self.mask.shape),))
        n_rows, n_keys = self.mask.shape
        for what, given, expected in (
            ("rows", len(self.rows), n_rows),
            ("columns", len(self.columns), n_keys),
            ("columns under bands", sum(span for _, span in self.bands), n_keys),
            ("rows in passes", sum(each.rows for each in self.passes), n_rows),
        ):
            if given != expected:
                raise ValueError(f"{self.name!r} has {given} {what}: expected {expected}, as its mask has")
        self._check_passes()
        self._check_lines()

    def _check_passes(self) -> None:
        for number, (start, each) in enumerate(zip(self.starts, self.passes, strict=True), 1):
            if each.rows < 1 or not 1 <= each.keys <= self.mask.shape[1]:
                raise ValueError(f"pass {number} of {self.name!r} has {each.rows} rows and {each.keys} keys: expected"
                                 f" 1 row or more and 1 to {self.mask.shape[1]} keys")  # fmt: skip
            if self.mask[start : start + each.rows, each.keys :].any():
                raise ValueError(
                    f"pass {number} of {self.name!r} reads beyond its {each.keys} keys: give it more or mask them"
                )

    def _check_lines(self) -> None:
        n_rows, n_keys = self.mask.shape
        if self.lines == 1:
            return
        if self.lines < 1 or n_rows != n_keys or n_rows % self.lines or len(self.passes) > 1:
            raise ValueError(
                f"{self.name!r} has {self.lines} lines, a mask [{n_rows}, {n_keys}] and {len(self.passes)} passes:"
                " expected one pass, as many keys as rows, and lines of one length"
            )
        line = np.arange(n_rows) // self.line_rows
        if self.mask[line[:, None] != line].any():
            raise ValueError(f"{self.name!r} has pairs between its {self.lines} lines: mask them or give it one line")

    @property
    def line_rows(self) -> int:
        """Rows of one line."""
        return len(self.rows) // self.lines

    @property
    def starts(self) -> list[int]:
        """The first row of each pass."""
        return [sum(each.rows for each in self.passes[:i]) for i in range(len(self.passes))]

    def pass_of(self, q: int) -> int:
        """Return which pass runs a row, counted from 0."""
        return sum(start <= q for start in self.starts) - 1

    @property
    def allowed(self) -> int:
        """Pairs the mask allows."""
        return int(self.mask.sum())

    @property
    def formula(self) -> int:
        """What n(n+1)/2 says for all lines, n being the rows of one."""
        return self.lines * self.line_rows * (self.line_rows + 1) // 2

    @property
    def dense(self) -> int:
        """Pairs that a dense kernel computes: in each pass every row of a line with every key of it that is there.

        Blocks of others and free ones are in no page table, so it never touches them.
        """
        return sum(rows * keys for rows, keys in self._squares) * self.lines

    @property
    def dense_how(self) -> str:
        """These pairs for one line, as a sum over passes."""
        return " + ".join(f"{rows} × {keys}" for rows, keys in self._squares)

    @property
    def _squares(self) -> list[tuple[int, int]]:
        """Rows and keys of one line, for each pass."""
        used = [not self._unused(k) for k in range(self.mask.shape[1])]
        return [(each.rows // self.lines, sum(used[: each.keys]) // self.lines) for each in self.passes]

    @property
    def wasted_rows(self) -> int:
        """Rows that are pads."""
        return sum(row.prompt == PAD for row in self.rows)

    def state(self, q: int, k: int) -> str:
        """Return "allowed", "pad", "unused" (no row of this array may ever read the key) or "masked"."""
        if self.mask[q, k]:
            return "allowed"
        if self._unused(k):
            return "unused"
        return "pad" if PAD in (self.rows[q].prompt, self.columns[k].prompt) else "masked"

    def reason(self, q: int, k: int) -> str:
        """Say why the mask allows or forbids a pair; a mask that contradicts its places is called a mistake."""
        obstacle, allowed = self._obstacle(q, k), self.mask[q, k]
        if obstacle is None:
            why = "its own key" if self.rows[q] == self.columns[k] else "same prompt, earlier"
            return why if allowed else f"a mistake, {why}"
        return f"a mistake, {obstacle}" if allowed else obstacle

    def _obstacle(self, q: int, k: int) -> str | None:
        row, key = self.rows[q], self.columns[k]
        obstacles = {
            "a free block": key.prompt == FREE,
            "a block of another sequence": self._unused(k),
            "the row is a pad": row.prompt == PAD,
            "a pad": key.prompt == PAD,
            "another prompt": key.prompt != row.prompt,
            "comes later": key.position > row.position,
            f"outside the window of {self.window} keys": self.window and key.position <= row.position - self.window,
        }
        return next((why for why, holds in obstacles.items() if holds), None)

    def _unused(self, k: int) -> bool:
        prompt = self.columns[k].prompt
        return prompt != PAD and all(row.prompt != prompt for row in self.rows)


def own(prompt: int, length: int) -> list[Place]:
    """Return the places of a prompt."""
    return [Place(prompt, position) for position in range(length)]
