"""The figure of the section on storing: how much worse a text is predicted, for how many bytes a token."""

from __future__ import annotations

from collections.abc import Mapping

from .figures import Picture, palette, picture, plain_numbers, plot_axes


def trade_off(points: Mapping[str, tuple[float, float]]) -> Picture:
    """Draw perplexity against bytes a token.

    Parameters
    ----------
    points : mapping of str to (float, float)
        Way of storing, to bytes a token and perplexity; the first one is exact, and drawn as a line.
    """
    fig, ax = plot_axes(6.4, 4.2)
    ax.set(xscale="log")
    (exact_name, (_, exact)), *others = points.items()
    ax.axhline(exact, color=palette()["ink-muted"], lw=1, ls="--")
    for name, (size, perplexity) in others:
        window = "window" in name
        marker, below = ("^", -14) if window else ("o", 6)
        ax.plot(size, perplexity, marker, color=palette()["decode"], mfc="none", mew=1.4, ms=7)
        muted = dict(color=palette()["ink-muted"], fontsize=10, textcoords="offset points")
        ax.annotate(name, (size, perplexity), (7, below), **muted)
    ax.set_xlabel("bytes of cache a token")
    ax.set_ylabel("perplexity of the text")
    sizes = [size for size, _ in points.values()]
    ax.set_xlim(min(sizes) / 1.2, max(sizes) * 1.6)
    ax.annotate(exact_name, (min(sizes) / 1.15, exact), (0, 4), **muted)
    ticks = [5_000, 10_000, 20_000]
    ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    plain_numbers(ax, x=False)
    told = "; ".join(f"{name} {size:,.0f} bytes, {perplexity:.1f}" for name, (size, perplexity) in points.items())
    return picture(fig, f"Perplexity of one text against the bytes of cache that a token takes: {told}.")
