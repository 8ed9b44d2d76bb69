"""Columns of a table have their widths from the start: a browser that has read half of it would guess others."""

from docutils import nodes
from sphinx.application import Sphinx

from .formulas import width_of

PADDING = 3  # letters; a cell's padding, and the bold type of its heading
BOX = 2  # letters; the padding of code and its wider type
WIDER = 4  # letters a column gets for the square root of its mean text: long texts may wrap, single words may not


def weight_of(texts: list[str]) -> float:
    """Return how wide a column should be, in letters: room for its longest word, more if its texts are long."""
    longest = max((len(word) for text in texts for word in text.split()), default=1)
    mean = sum(map(len, texts)) / len(texts)
    return PADDING + max(longest, WIDER * mean**0.5)


def shares_of(columns: list[list[str]]) -> list[int]:
    """Return the width of each column in percent of the table."""
    weights = [weight_of(texts) for texts in columns]
    return [round(100 * weight / sum(weights)) for weight in weights]


def text_of(entry: nodes.entry) -> str:
    """Return the text of a cell, with as many letters for a formula as it is wide, and some for the box of code."""
    copy = entry.deepcopy()
    for formula in list(copy.findall(nodes.math)):
        tex = formula.astext()
        formula.replace_self(nodes.Text("x" * round(width_of(tex) or len(tex))))
    for code in list(copy.findall(nodes.literal)):
        code.replace_self(nodes.Text(f"{code.astext()}{'x' * BOX}"))
    return copy.astext()


def give_widths(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Give each table whose author left its widths open the widths of its texts."""
    for table in doctree.findall(nodes.table):
        if "colwidths-given" in table["classes"]:
            continue
        rows = [[text_of(entry) for entry in row.findall(nodes.entry)] for row in table.findall(nodes.row)]
        specs = list(table.findall(nodes.colspec))
        if any(len(row) != len(specs) for row in rows):
            continue  # cells over several columns
        for spec, share in zip(specs, shares_of(list(zip(*rows, strict=True))), strict=True):
            spec["colwidth"] = share
        table["classes"] = [name for name in table["classes"] if name != "colwidths-auto"] + ["colwidths-given"]


def setup(app: Sphinx) -> None:
    """Give widths when links have their texts."""
    app.connect("doctree-resolved", give_widths)
