"""The picture of the site where an address is shared: the triangle and the title, in the colours of theme.css."""

import io

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from prefill_decode.figures import palette

FILE = "card.png"
WIDTH, HEIGHT = 1200, 630  # what sites that show such pictures ask for
LINES = "What a language model does\nbetween Enter and the first word,\nand between one word and the next"
N_PREFILL, N_DECODE = 5, 3
ALT = (
    f"A triangle of cells: {N_PREFILL} blue rows of prefill, computed in one pass, then {N_DECODE} orange rows of "
    "decode, one a pass"
)
CELL, LEFT, TOP = 58, 80, 83  # pixels


def draw(title: str) -> bytes:
    """Return the card as a PNG file, the same bytes every time."""
    colours, dpi = palette(), 100
    with mpl.rc_context({"font.family": "DejaVu Sans"}):  # Matplotlib's own: the same letters on every machine
        fig = Figure(figsize=(WIDTH / dpi, HEIGHT / dpi), dpi=dpi, facecolor=colours["surface"])
        ax = fig.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0))
        ax.set_axis_off()
        for q in range(N_PREFILL + N_DECODE):
            colour = colours["prefill" if q < N_PREFILL else "decode"]
            for k in range(q + 1):
                corner = (LEFT + k * CELL, TOP + q * CELL)
                ax.add_patch(Rectangle(corner, CELL - 6, CELL - 6, facecolor=colour, edgecolor="none"))
        ax.text(1120, 150, title, size=40, weight="bold", color=colours["ink"], ha="right", va="center")
        ax.text(1120, 208, LINES, size=18, color=colours["ink-muted"], ha="right", va="top", linespacing=1.5)
        out = io.BytesIO()
        fig.savefig(out, format="png", dpi=dpi, facecolor=fig.get_facecolor(), metadata={"Software": None})
    return out.getvalue()
