"""A piece of a page's HTML as Markdown: what a widget shows in a line, a figure in its words, a table as a table."""

import re
from collections.abc import Sequence

from bs4 import BeautifulSoup, Tag

SPECIAL = re.compile(r"[\\`*]|<(?=[A-Za-z/!])")
# What a widget says about itself, from its title to what its picture shows.
WIDGET_TEXTS = (".pd-heading, .pd-caption, .pd-lead, caption", ".pd-sentence")


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows, the first of them the heading, as a table; short rows are filled up."""
    width = max(map(len, rows))
    filled = [[*(cell.replace("|", r"\|") for cell in row), *[""] * (width - len(row))] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in filled]
    return "\n".join([lines[0], "| " + " | ".join(["---"] * width) + " |", *lines[1:]])


def from_html(markup: str) -> str:
    """Return what a piece of HTML says: a widget and a figure in a line each, a table as a table, else its text."""
    soup = BeautifulSoup(markup, "html.parser")
    if widget := soup.select_one("[data-widget]"):
        return from_widget(widget)
    if figure := soup.select_one("svg[aria-label]"):
        return f"*Figure: {figure['aria-label']}*"
    if tables := soup("table"):
        return "\n\n".join(map(from_table, tables))
    return text_of(soup)


def from_widget(widget: Tag) -> str:
    """Return a line that says what a widget shows; its controls and its data stay on the page."""
    label, *found = [widget["aria-label"], *map(text_of, filter(None, map(widget.select_one, WIDGET_TEXTS)))]
    if not any(text.startswith(label) for text in found):
        found.insert(0, label)
    return f"*Widget: {' '.join(map(as_sentence, found))} On the page it can be stepped or changed.*"


def from_table(element: Tag) -> str:
    """Return an HTML table with its caption below it; a name over several rows stands in a row of its own."""
    rows = [[text_of(cell) for cell in row(["th", "td"])] for row in element("tr")]
    caption = element.caption
    return table(rows) + (f"\n\n*{text_of(caption)}*" if caption else "")


def text_of(element: Tag) -> str:
    """Return an element's text in one line."""
    return " ".join(escape(element.get_text("")).split())


def as_sentence(text: str) -> str:
    """Return a text that ends like a sentence."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def escape(text: str) -> str:
    """Return a text in which no character is a mark of Markdown."""
    return SPECIAL.sub(r"\\\g<0>", text)
