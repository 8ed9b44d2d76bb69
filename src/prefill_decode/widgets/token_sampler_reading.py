"""What a setting of a `TokenSampler` comes to, by `prefill_decode.sampling` itself: the page's numbers equal these."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prefill_decode.sampling import ORDERS, draw, softmax
from prefill_decode.widgets.token_sampler_data import NARROW, SHOWN, Choice, ranked, uniforms


@dataclass(frozen=True)
class Reading:
    """Shares are of 1; ranks count from 0, the likeliest.

    Parameters
    ----------
    before, after : list of float
        Of each token that is shown, at T = 1 and in the end.
    rest_before, rest : float
        Of all others together.
    left : list of int
        Tokens that have a share after each step of the order.
    kept_mass : float
        What the kept tokens had together where the filters looked: after the temperature, or before it (llama.cpp).
    segments : dict of int to tuple
        Where a token's interval starts in the order of ids and how wide it is, by rank.
    drawn : list of int
        The id that each number so far draws.
    """

    before: list[float]
    after: list[float]
    rest_before: float
    rest: float
    left: list[int]
    kept_mass: float
    segments: dict[int, tuple[float, float]]
    drawn: list[int]

    @property
    def kept(self) -> int:
        """Return how many tokens may be drawn."""
        return self.left[-1]

    def removed_by(self, order: str, rank: int) -> str:
        """Return the step that removed a token, nothing for one that is kept."""
        return next((step for step, left in zip(ORDERS[order], self.left, strict=True) if left <= rank), "")


def read(logits: np.ndarray, choice: Choice) -> Reading:
    """Return the reading of a choice over logits [V]."""
    before, trail = softmax(logits), choice.sampler().trail(logits)
    p, ids = trail[list(trail)[-1]], ranked(logits)[:SHOWN]
    kept_mass, now, left = 1.0, before, []
    for step in ORDERS[choice.order]:
        after = trail.get(step, now)
        if step != "temperature":
            kept_mass *= now[after > 0].sum()
        left.append(int(np.count_nonzero(after)))
        now = after
    starts = np.cumsum(p) - p
    exact = left[-1] <= SHOWN
    least = 0 if exact else NARROW
    return Reading(
        before[ids].tolist(),
        p[ids].tolist(),
        float(np.delete(before, ids).sum()),
        float(np.delete(p, ids).sum()),
        left,
        float(kept_mass),
        {
            rank: (float(starts[i]) if exact else round(1e4 * starts[i]) / 1e4, float(p[i]))
            for rank, i in enumerate(ids)
            if p[i] > 0 and p[i] >= least
        },
        [draw(p, u) for u in uniforms(choice.seed)[: choice.draws]],
    )
