"""A table as the result of a cell: HTML on a page, aligned text elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

NUMBER = ' class="number"'


@dataclass(frozen=True)
class Table:
    """Rows under named columns; integers get thousands separators and stand on the right.

    Attributes
    ----------
    columns : sequence of str
    rows : sequence of sequences of str or int
        As many cells as columns; the first cell of a row names it, neighbours of one name share it.
    caption : str
        One sentence that says what the table shows.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str | int]]
    caption: str

    def _repr_html_(self) -> str:
        numbers = [isinstance(cell, int) for cell in self.rows[0]]
        head = "".join(map(_column, self.columns, numbers))
        body = "".join(
            f"<tr>{_group(name, len(cells)) if not i else ''}{''.join(map(_cell, row))}</tr>"
            for name, cells in self._groups()
            for i, row in enumerate(cells)
        )
        caption = f"<caption>{escape(self.caption)}</caption>"
        table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        # a narrow screen scrolls it sideways, and the keyboard must reach what scrolls
        return f'<div class="pd-table" tabindex="0" role="group" aria-label="{escape(self.caption)}">{table}</div>'

    def _groups(self) -> list[tuple[str | int, list[Sequence[str | int]]]]:
        """Return the rows behind each name: neighbours of one name share it."""
        return [(name, [row[1:] for row in rows]) for name, rows in groupby(self.rows, key=lambda row: row[0])]

    def __repr__(self) -> str:
        lines = [list(self.columns), *([_text(cell) for cell in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        numbers = [isinstance(cell, int) for cell in self.rows[0]]
        aligned = [
            "  ".join(
                cell.rjust(width) if number else cell.ljust(width)
                for cell, width, number in zip(line, widths, numbers, strict=True)
            ).rstrip()
            for line in lines
        ]
        return "\n".join([self.caption, *aligned])


def _column(name: str, number: bool) -> str:
    return f'<th scope="col"{NUMBER if number else ""}>{escape(name)}</th>'


def _group(name: str | int, rows: int) -> str:
    span = f'scope="rowgroup" rowspan="{rows}"' if rows > 1 else 'scope="row"'
    return f"<th {span}>{escape(_text(name))}</th>"


def _cell(value: str | int) -> str:
    return f"<td{NUMBER if isinstance(value, int) else ''}>{escape(_text(value))}</td>"


def _text(value: str | int) -> str:
    return f"{value:,}" if isinstance(value, int) else value
