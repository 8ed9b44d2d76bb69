"""A table as the result of a cell: HTML on a page, aligned text elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

NUMBER = ' class="number"'


@dataclass(frozen=True)
class Table:
    """Rows under named columns; numbers stand on the right, integers with thousands separators.

    Attributes
    ----------
    columns : sequence of str
    rows : sequence of sequences of str or int
        As many cells as columns; the first cell of a row names it. Where neighbours share a name it stands above
        them, and the second cell names the row.
    caption : str
        One sentence that says what the table shows.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str | int]]
    caption: str

    def _repr_html_(self) -> str:
        groups = [(name, list(rows)) for name, rows in groupby(self.rows, key=lambda row: row[0])]
        grouped = len(groups) < len(self.rows)
        numbers = [_is_number(cell) for cell in self.rows[0]]
        head = "".join(list(map(_column, self.columns, numbers))[grouped:])
        body = "".join((_band(name, rows) if grouped else _line(rows[0])) for name, rows in groups)
        caption = f"<caption>{escape(self.caption)}</caption>"
        table = f"<table>{caption}<thead><tr>{head}</tr></thead>{body}</table>"
        # a narrow screen scrolls it sideways, and the keyboard must reach what scrolls
        return f'<div class="pd-table" tabindex="0" role="group" aria-label="{escape(self.caption)}">{table}</div>'

    def __repr__(self) -> str:
        lines = [list(self.columns), *([_text(cell) for cell in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        numbers = [_is_number(cell) for cell in self.rows[0]]
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


def _band(name: str | int, rows: Sequence[Sequence[str | int]]) -> str:
    """Return neighbours of one name: the name over the full width, then a line each."""
    over = f'<tr><th scope="rowgroup" colspan="{len(rows[0]) - 1}">{escape(_text(name))}</th></tr>'
    return f"<tbody>{over}{''.join(_line(row[1:]) for row in rows)}</tbody>"


def _line(row: Sequence[str | int]) -> str:
    first, *rest = row
    return f'<tr><th scope="row">{escape(_text(first))}</th>{"".join(map(_cell, rest))}</tr>'


def _cell(value: str | int) -> str:
    return f"<td{NUMBER if _is_number(value) else ''}>{escape(_text(value))}</td>"


def _is_number(value: str | int) -> bool:
    return isinstance(value, int) or value.replace(".", "", 1).isdigit()


def _text(value: str | int) -> str:
    return f"{value:,}" if isinstance(value, int) else value
