"""Figures of the section on cost: predictions held against measurements, and times of the recorded machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.ticker import NullFormatter

from .figures import Picture, palette, picture, plain_numbers, plot_axes

MARKERS = {"prefill": ("s", "prefill"), "decode": ("o", "decode"), "whole request": ("^", "ink-muted")}


def predicted_against_measured(points: Mapping[str, Sequence[tuple[float, float]]]) -> Picture:
    """Draw one mark a measurement: its time, and the time predicted for it.

    Parameters
    ----------
    points : mapping of {"prefill", "decode", "whole request"} to sequence of (float, float)
        Measured and predicted milliseconds.
    """
    fig, ax = plot_axes(6.4, 5.2)
    every = [value for pairs in points.values() for pair in pairs for value in pair]
    low, high = min(every) / 1.5, max(every) * 1.5
    ax.fill_between([low, high], [low * 0.75, high * 0.75], [low * 1.25, high * 1.25], color=palette()["hatch"], lw=0)
    ax.plot([low, high], [low, high], color=palette()["ink-muted"], lw=1)
    for name, pairs in points.items():
        marker, colour = MARKERS[name]
        measured, predicted = zip(*pairs, strict=True)
        ax.plot(
            measured,
            predicted,
            marker,
            color=palette()[colour],
            mfc="none",
            ms=6,
            mew=1.3,
            label=f"{name} ({len(pairs)})",
        )
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    ax.set_xlabel("measured, ms")
    ax.set_ylabel("predicted, ms")
    ax.legend(frameon=False, loc="upper left")
    plain_numbers(ax)
    within = sum(0.75 <= predicted / measured <= 1.25 for pairs in points.values() for measured, predicted in pairs)
    counted = ", ".join(f"{len(pairs)} {name}" for name, pairs in points.items())
    n = sum(map(len, points.values()))
    alt = f"Predicted against measured times of {n} rows ({counted}): {within} lie within 25 % of what was measured."
    return picture(fig, alt)


def passes_with_and_without(with_cache: Mapping[int, float], without: Mapping[int, float]) -> Picture:
    """Draw what one more token takes after n, with a cache and without.

    Parameters
    ----------
    with_cache, without : mapping of int to float
        Tokens before it, to milliseconds.
    """
    lengths = list(with_cache)
    fig, ax = plot_axes(6.4, 3.9)
    ax.plot(*zip(*without.items(), strict=True), "s--", color=palette()["ink-muted"], label="without: all rows again")
    ax.plot(lengths, with_cache.values(), "o-", color=palette()["decode"], label="with a cache: one row")
    ax.set(xscale="log", yscale="log")
    ax.set_xticks(lengths, [f"{n:,}" for n in lengths])
    ax.set_xlabel("tokens before the new one")
    ax.set_ylabel("ms for one more token")
    ax.legend(frameon=False)
    plain_numbers(ax, x=False)
    last = max(without)
    least, most = min(with_cache), max(with_cache)
    alt = (
        f"Milliseconds for one more token against the tokens before it. With a cache {with_cache[least]:.0f} ms after "
        f"{least:,} tokens and {with_cache[most]:.0f} ms after {most:,}; without one "
        f"{without[min(without)]:.0f} ms after {min(without):,} and {without[last]:,.0f} ms after {last:,}."
    )
    return picture(fig, alt)


def prefill_rates(rates: Mapping[str, Mapping[int, float]]) -> Picture:
    """Draw prefill tokens a second against the length of the prompt.

    Parameters
    ----------
    rates : mapping of str to mapping of int to float
        Who computes, to length and tokens a second; the first one is ours.
    """
    fig, ax = plot_axes(6.4, 3.9)
    for (name, curve), style in zip(rates.items(), ("o-", "s--", "^:"), strict=True):
        ours = name == next(iter(rates))
        ax.plot(
            *zip(*curve.items(), strict=True), style, color=palette()["prefill" if ours else "ink-muted"], label=name
        )
    lengths = list(next(iter(rates.values())))
    ax.set(xscale="log", ylim=(0, None))
    ax.set_xticks(lengths, [f"{n:,}" for n in lengths])
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("tokens of the prompt")
    ax.set_ylabel("prefill, tokens a second")
    ax.legend(frameon=False, loc="lower right")
    told = "; ".join(f"{name} {curve[lengths[0]]:.0f} to {curve[lengths[-1]]:.0f}" for name, curve in rates.items())
    alt = f"Prefill tokens a second over prompts of {lengths[0]:,} to {lengths[-1]:,} tokens: {told}."
    return picture(fig, alt)
