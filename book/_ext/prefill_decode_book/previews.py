"""The first thing to see on a section: a small picture that moves once, and leads to the section's first widget.

A section explains before its widget can be understood, so the widget itself may stand far down. The picture is drawn
from what that widget shows; for a widget without a drawing here it is only the link.
"""

from collections.abc import Callable, Iterable, Iterator

from bs4 import BeautifulSoup, Tag
from docutils import nodes
from sphinx.application import Sphinx

SIDE = 16  # of the picture, in its own units
GAP = 0.88  # of a cell is filled
SECTIONS = "notebooks/"

Cells = Iterable[tuple[int, int]]
Part = tuple[int, str, str]  # when it appears, in steps; its class; its path


def rectangle(x: float, y: float, width: float, height: float) -> str:
    """Return the path of a rectangle."""
    return f"M{x:.2f} {y:.2f}h{width:.2f}v{height:.2f}h-{width:.2f}z"


def squares(cells: Cells, n: int) -> str:
    """Return the path of cells (row, column) of an n by n grid."""
    unit = SIDE / n
    return "".join(rectangle(column * unit, row * unit, GAP * unit, GAP * unit) for row, column in cells)


def row_by_row(grid: Tag) -> Iterator[Part]:
    """Draw the rows of prefill at once, then a row of decode a step: as many as the grid has."""
    n_prompt, n = int(grid["data-prompt-len"]), int(grid["data-steps"])
    yield 1, "prefill", squares(((q, k) for q in range(n_prompt) for k in range(q + 1)), n)
    for q in range(n_prompt, n):
        yield 2 + q - n_prompt, "decode", squares(((q, k) for k in range(q + 1)), n)


def bars(ledgers: Tag) -> Iterator[Part]:
    """Draw what prefill and decode compute, far apart, and the weights that each reads, alike."""
    most = int(ledgers["data-prefill-flops"])
    lengths = (1, int(ledgers["data-decode-flops"]) / most, 1, 1)
    for at, (length, phase) in enumerate(zip(lengths, ("prefill", "decode") * 2, strict=True), start=1):
        yield at, phase, rectangle(0, 4 * at - 3.5, max(length * SIDE, 0.3), 2.6)


def tile_by_tile(_: Tag) -> Iterator[Part]:
    """Draw a causal triangle of tiles, one a step."""
    n = 4
    tiles = [(q, k) for q in range(n) for k in range(q + 1)]
    for at, tile in enumerate(tiles, start=1):
        yield at, "prefill", squares([tile], n)


def mask_by_mask(gallery: Tag) -> Iterator[Part]:
    """Draw a window and two packed texts, each for a while, then the causal mask."""
    n = int(gallery["data-steps"])
    causal = [(q, k) for q in range(n) for k in range(q + 1)]
    yield 1, "prefill pd-passing", squares(((q, k) for q, k in causal if q - k < n // 3), n)
    yield 4, "prefill pd-passing", squares(((q, k) for q, k in causal if (2 * q) // n == (2 * k) // n), n)
    yield 7, "prefill", squares(causal, n)


def draw_one(_: Tag) -> Iterator[Part]:
    """Draw candidates, each less likely than the one before, and then the one that is chosen."""
    chosen, heights = 2, [SIDE * 0.72**rank for rank in range(6)]
    places = [rectangle(rank * 2.7, SIDE - height, 2.3, height) for rank, height in enumerate(heights)]
    yield 1, "prefill", "".join(place for rank, place in enumerate(places) if rank != chosen)
    yield 1, "prefill pd-passing", places[chosen]
    yield 4, "decode", places[chosen]


DRAWINGS: dict[str, Callable[[Tag], Iterator[Part]]] = {
    "attention-grid": row_by_row,
    "ledger-table": bars,
    "tile-sweep": tile_by_tile,
    "mask-gallery": mask_by_mask,
    "token-sampler": draw_one,
}


def picture_of(widget: Tag) -> str:
    """Return the moving picture of a widget as an SVG, "" if there is no drawing for it."""
    draw = DRAWINGS.get(widget["data-widget"])
    if draw is None:
        return ""
    parts = "".join(f'<path class="pd-{kind}" style="--at:{at}" d="{path}"/>' for at, kind, path in draw(widget))
    return f'<svg aria-hidden="true" viewBox="0 0 {SIDE} {SIDE}">{parts}</svg>'


def first_widget(doctree: nodes.document) -> tuple[nodes.section, Tag] | None:
    """Return the first widget of a page and the section in which it stands."""
    for raw in doctree.findall(nodes.raw):
        if "data-widget=" in raw.astext():
            widget = BeautifulSoup(raw.astext(), "html.parser").select_one("[data-widget]")
            section = raw.parent
            while not isinstance(section, nodes.section):
                section = section.parent
            return section, widget
    return None


def open_with_widget(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the picture below the first paragraph of a section of the chapter."""
    found = first_widget(doctree) if docname.startswith(SECTIONS) else None
    if found is None:
        return
    section, widget = found
    title = next(section.findall(nodes.title)).astext()
    link = nodes.reference("", "", refuri=f"#{section['ids'][0]}", internal=True, classes=["pd-preview"])
    link += nodes.raw("", picture_of(widget), format="html")
    link += nodes.inline("", "See it move: ", nodes.strong("", title))
    first = next(doctree.findall(nodes.paragraph))
    first.parent.insert(first.parent.index(first) + 1, nodes.paragraph("", "", link))


def setup(app: Sphinx) -> None:
    """Add the pictures when a page is otherwise complete."""
    app.connect("doctree-resolved", open_with_widget, priority=950)  # after terms, which link words of the text
