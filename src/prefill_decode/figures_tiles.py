"""Figures of the section on tiles: slow-memory accesses against fast memory and against length."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from .figures import Picture, palette, picture, plain_numbers, plot_axes
from .tiled import Tiles, standard_accesses, tiled_accesses

MILLION = 1e6
THEOREM = 12  # n / (M / 4d) visits of n rows, 3 d numbers each: 12 n² d² / M


def accesses_over_memory(n: int, d: int, memories: Sequence[int]) -> Picture:
    """Draw the accesses of tiled attention, in fast memories of several sizes, beside those of standard attention.

    Parameters
    ----------
    n, d : int
        Positions and width of one head.
    memories : sequence of int
        M, numbers that fast memory holds, rising.
    """
    standard = standard_accesses(n, d)
    counts = {skip: [_tiled(n, d, m, skip=skip) for m in memories] for skip in (False, True)}
    fig, ax = plot_axes(6.4, 4.2)
    ax.set(xscale="log", yscale="log")
    ax.axhline(standard / MILLION, color=palette()["ink-muted"], ls="--", label="standard: 4n² + 4nd")
    ax.plot(memories, _millions(counts[False]), "o-", ms=4, color=palette()["prefill"], label="tiled, every tile")
    ax.plot(memories, _millions(counts[True]), "s:", ms=4, color=palette()["prefill"], label="tiled, half skipped")
    _draw_theorem(ax, memories, [THEOREM * n * n * d * d / m for m in memories])
    ax.fill_between(
        memories, _millions(counts[False]), standard / MILLION, where=[c > standard for c in counts[False]],
        interpolate=True, color=palette()["hatch"], lw=0,
    )  # fmt: skip
    for times, name in ((1, "M = d²"), (3, "3 d²")):
        ax.axvline(times * d * d, color=palette()["line"], lw=1)
        ax.text(times * d * d * 1.06, standard / MILLION / 9, name, color=palette()["ink-muted"])
    ax.text(memories[0] * 1.3, standard / MILLION * 1.25, "tiling loses", color=palette()["ink-muted"])
    ax.set_xticks(memories[::2], [f"{m:,}" for m in memories[::2]])
    ax.set_xlabel("fast memory M, numbers")
    _finish(ax, x=False)
    at_square, at_most = _tiled(n, d, d * d, skip=False), counts[False][-1]
    alt = (
        f"Slow-memory accesses of one head, {n:,} positions of width {d}, against the size of fast memory. Standard "
        f"attention makes {standard / MILLION:.1f} million whatever the size. Tiled attention without skipping makes "
        f"{at_square / standard:.1f} times as many at M = d² = {d * d:,}, and {at_most / standard:.2f} of them at "
        f"M = {memories[-1]:,}; skipping masked tiles takes off up to half of what is left."
    )
    return picture(fig, alt)


def accesses_over_length(d: int, memory: int, lengths: Sequence[int]) -> Picture:
    """Draw the accesses of both plans against the length, in one fast memory.

    Parameters
    ----------
    d : int
        Width of the head.
    memory : int
        M, numbers that fast memory holds.
    lengths : sequence of int
        Positions, rising.
    """
    standard = [standard_accesses(n, d) for n in lengths]
    tiled = [_tiled(n, d, memory, skip=False) for n in lengths]
    fig, ax = plot_axes(6.4, 3.9)
    ax.set(xscale="log", yscale="log")
    ax.plot(lengths, _millions(standard), "s--", ms=4, color=palette()["ink-muted"], label="standard: 4n² + 4nd")
    ax.plot(lengths, _millions(tiled), "o-", ms=4, color=palette()["prefill"], label="tiled, every tile")
    valid = [n for n in lengths if n * d >= memory]
    _draw_theorem(ax, valid, [THEOREM * n * n * d * d / memory for n in valid])
    ax.set_xticks(lengths, [f"{n:,}" for n in lengths])
    ax.set_xlabel("positions n")
    _finish(ax, x=False)
    ratios = [s / t for s, t in zip(standard, tiled, strict=True)]
    alt = (
        f"Slow-memory accesses of one head of width {d} with {memory:,} numbers of fast memory, against the positions. "
        f"Standard attention makes {ratios[0]:.1f} times as many as tiled at {lengths[0]:,} positions and "
        f"{ratios[-1]:.1f} times as many at {lengths[-1]:,}."
    )
    return picture(fig, alt)


def _draw_theorem(ax: Axes, xs: Sequence[int], accesses: Sequence[float]) -> None:
    label = f"{THEOREM} n²d²/M, grows as in the theorem"
    ax.plot(xs, _millions(accesses), "-", lw=6, alpha=0.25, color=palette()["ink-muted"], label=label)


def _tiled(n: int, d: int, memory: int, *, skip: bool) -> int:
    return tiled_accesses(n, d, Tiles.for_memory(memory, d, n), skip=skip)


def _millions(counts: Sequence[int]) -> list[float]:
    return [count / MILLION for count in counts]


def _finish(ax: Axes, *, x: bool = True) -> None:
    ax.set_ylabel("accesses, million numbers")
    ax.legend(frameon=False)
    plain_numbers(ax, x=x)
