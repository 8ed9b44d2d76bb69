"""A table as the result of a cell: HTML on a page, aligned text elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Table:
    """Rows under named columns; integers get thousands separators and stand on the right.

    Attributes
    ----------
    columns : sequence of str
    rows : sequence of sequences of str or int
        As many cells as columns; the first cell of a row names it.
    caption : str
        One sentence that says what the table shows.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str | int]]
    caption: str

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.columns)
        body = "".join(f"<tr>{_header(first)}{''.join(map(_cell, rest))}</tr>" for first, *rest in self.rows)
        caption = f"<caption>{escape(self.caption)}</caption>"
        return f'<table class="pd-table">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'

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


def _header(value: str | int) -> str:
    return f'<th scope="row">{escape(_text(value))}</th>'


def _cell(value: str | int) -> str:
    kind = ' class="number"' if isinstance(value, int) else ""
    return f"<td{kind}>{escape(_text(value))}</td>"


def _text(value: str | int) -> str:
    return f"{value:,}" if isinstance(value, int) else value
