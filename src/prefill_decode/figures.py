"""Figures of the chapter: Matplotlib, in the colours of the widgets, as SVG that is the same bytes every time."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, NullFormatter

THEME = Path(__file__).parent / "widgets" / "theme.css"


@cache
def palette() -> dict[str, str]:
    """Return the light colours of theme.css by name: ``prefill``, ``decode``, ``ink``, ..."""
    css = THEME.read_text("utf-8")
    return dict(reversed(re.findall(r"--pd-([a-z0-9-]+): (#[0-9a-f]{6});", css)))  # the first of a name wins: light


STYLE = {
    "svg.hashsalt": "prefill-decode",  # ids in the file do not change from run to run
    "svg.fonttype": "none",  # text stays text: it can be searched, read aloud and takes the page's font
    "font.family": "sans-serif",
    "font.size": 11,
    "text.color": palette()["ink"],
    "axes.labelcolor": palette()["ink-muted"],
    "xtick.color": palette()["ink-muted"],
    "ytick.color": palette()["ink-muted"],
    "hatch.linewidth": 0.8,
}


@dataclass(frozen=True)
class Picture:
    """An SVG figure with its alternative text; a notebook shows the one, a screen reader says the other."""

    svg: str
    alt: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Picture: {self.alt}"


def triangle(prompt_len: int, n_new_rows: int = 0) -> Picture:
    """Draw which key each query row reads, and how many pairs each row adds.

    Parameters
    ----------
    prompt_len : int
        Rows of prefill.
    n_new_rows : int
        Rows of decode below them.
    """
    total = prompt_len + n_new_rows
    fig, ax = _square_axes(total, width=0.5 * total + 3.4)
    for q in range(total):
        phase = "prefill" if q < prompt_len else "decode"
        ink = palette()[f"{phase}-ink"]
        _draw_row(ax, q, total, palette()[phase])
        ax.text(total + 0.25, q + 0.5, f"+ {q + 1}", va="center", color=ink)
        if phase == "decode":
            ax.text(total + 1.6, q + 0.5, f"pass {q - prompt_len + 2}", va="center", color=ink)
    ax.plot([total + 1.35] * 2, [0.1, prompt_len - 0.1], color=palette()["prefill"], clip_on=False)
    ax.text(total + 1.6, prompt_len / 2, "pass 1", va="center", color=palette()["prefill-ink"])
    ax.text(total + 0.25, -0.35, "pairs", va="center", color=palette()["ink-muted"])
    counted = f"{prompt_len} query rows of prefill, row i reads keys 0 to i"
    if n_new_rows:
        counted += f"; below them {n_new_rows} of decode, one a pass, in the same triangle"
    return picture(
        fig, f"Lower triangle of {total} by {total} cells: {counted}; {total * (total + 1) // 2} pairs in all."
    )


def passes(prompt_len: int, n_tokens: int) -> Picture:
    """Draw every pass of a generation, with a cache above and without one below.

    Parameters
    ----------
    prompt_len, n_tokens : int
        P and m: m passes.
    """
    total = prompt_len + n_tokens - 1
    with mpl.rc_context(STYLE):
        fig = Figure(figsize=(1.75 * n_tokens, 3.9), layout="constrained")
        axes = fig.subplots(2, n_tokens)
    for i in range(n_tokens):
        n = prompt_len + i
        phase = "prefill" if i == 0 else "decode"
        for ax, first_new in ((axes[0, i], 0 if i == 0 else n - 1), (axes[1, i], 0)):
            _frame(ax, total)
            for q in range(n):
                colour = palette()[phase] if q >= first_new else palette()["line"]
                _draw_row(ax, q, total, colour, masked=False)
        axes[0, i].set_title(f"pass {i + 1}: {phase}", fontsize=11, color=palette()[f"{phase}-ink"])
        axes[0, i].set_xlabel(f"{n * (n + 1) // 2 if i == 0 else n} pairs")
        axes[1, i].set_xlabel(f"{n * (n + 1) // 2} pairs")
    axes[0, 0].set_ylabel("with a cache")
    axes[1, 0].set_ylabel("without")
    kept = total * (total + 1) // 2
    redrawn = sum(t * (t + 1) // 2 for t in range(prompt_len, total + 1))
    alt = (
        f"{n_tokens} passes for {prompt_len} prompt tokens and {n_tokens} new ones. With a cache each pass after "
        f"the first draws one new row, {kept} pairs in all; without one every pass redraws the whole triangle, "
        f"{redrawn} pairs."
    )
    return picture(fig, alt)


def dependencies(n_positions: int, n_layers: int, position: int) -> Picture:
    """Draw which states the topmost state of one position is made from.

    Parameters
    ----------
    n_positions, n_layers : int
        Columns and rows of states; the embeddings are the row below layer 0.
    position : int
        Whose state is asked for.
    """
    with mpl.rc_context(STYLE):
        fig = Figure(figsize=(1.1 * n_positions + 1.4, 0.8 * (n_layers + 1) + 0.3), layout="constrained")
        ax = fig.subplots()
    ax.set(xlim=(-0.5, n_positions - 0.5), ylim=(-0.5, n_layers + 0.5))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.set_xticks(range(n_positions), [f"position {i}" for i in range(n_positions)])
    ax.set_yticks(range(n_layers + 1), ["embedding", *(f"after layer {i}" for i in range(n_layers))])
    for level in range(n_layers + 1):
        for i in range(n_positions):
            needed = i <= position and (level < n_layers or i == position)
            asked = level == n_layers and i == position
            colour = palette()["ink"] if asked else palette()["prefill" if needed else "line"]
            ax.plot(i, level, "s", markersize=17, color=colour)
            for below in range(i + 1) if level and needed else ():
                ax.plot([below, i], [level - 0.78, level - 0.22], color=palette()["prefill"], lw=1)
    alt = (
        f"Grid of {n_positions} positions by {n_layers} layers. The state of position {position} after layer "
        f"{n_layers - 1} needs the states of positions 0 to {position} in every layer below; later positions are not "
        "needed anywhere."
    )
    return picture(fig, alt)


def picture(fig: Figure, alt: str) -> Picture:
    """Return a figure as SVG without date and with fixed ids, and close nothing: it was never open."""
    out = io.StringIO()
    with mpl.rc_context(STYLE):
        fig.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return Picture(out.getvalue(), alt)


def _square_axes(n: int, width: float) -> tuple[Figure, Axes]:
    with mpl.rc_context(STYLE):
        fig = Figure(figsize=(width, 0.5 * n + 0.9), layout="constrained")
        ax = fig.subplots()
    _frame(ax, n)
    ax.set_xlabel("key")
    ax.set_ylabel("query")
    ax.xaxis.set_label_position("top")
    ax.set_xticks([k + 0.5 for k in range(n)], range(n))
    ax.set_yticks([q + 0.5 for q in range(n)], range(n))
    ax.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
    return fig, ax


def _frame(ax: Axes, n: int) -> None:
    ax.set(xlim=(0, n), ylim=(n, 0), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def _draw_row(ax: Axes, q: int, total: int, colour: str, *, masked: bool = True) -> None:
    """Draw one query row: keys 0 .. q filled, later ones hatched."""
    for k in range(total):
        if k <= q:
            ax.add_patch(Rectangle((k + 0.05, q + 0.05), 0.9, 0.9, facecolor=colour, edgecolor="none"))
        elif masked:
            edge = palette()["line"]
            ax.add_patch(
                Rectangle((k + 0.05, q + 0.05), 0.9, 0.9, facecolor="none", edgecolor=edge, hatch="////", lw=0)
            )


def plot_axes(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure of one plot in the chapter's style, sizes in inches."""
    with mpl.rc_context(STYLE):
        fig = Figure(figsize=(width, height), layout="constrained")
        ax = fig.subplots()
    ax.spines[["top", "right"]].set_visible(False)
    for spine in ax.spines.values():
        spine.set_color(palette()["line"])
    ax.tick_params(which="both", color=palette()["line"])
    return fig, ax


def plain_numbers(ax: Axes, *, x: bool = True) -> None:
    """Write 0.1, 10 and 1,000 on logarithmic axes instead of powers of ten."""
    for axis in (ax.xaxis, ax.yaxis) if x else (ax.yaxis,):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.15g}"))
        axis.set_minor_formatter(NullFormatter())
    if not x:
        ax.xaxis.set_minor_formatter(NullFormatter())
