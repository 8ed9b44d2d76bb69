"""What a `TokenSampler` sends to its page: the likeliest logits, and of the rest what each setting keeps of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from prefill_decode.sampling import ORDERS, Sampler, draw, softmax
from prefill_decode.widgets.attention_grid_data import shown

SHOWN = 50  # tokens; all others are "the rest"
TEMPERATURES = tuple(i / 10 for i in range(21))
TOP_P = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
MIN_P = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
ONE = TEMPERATURES.index(1.0)
SEEDS, DRAWS = (0, 1, 2), 12
LONGEST = 16  # characters of a token
MOST_APART = 700  # so that no token's share is 0 at T = 1
NARROW = 0.01  # of the strip: a token with less is not told apart from the rest there


@dataclass(frozen=True)
class Choice:
    """A setting; a filter that is None is off. Only what the page offers, so that all of it is exact there."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    order: str = "transformers"
    seed: int = SEEDS[0]
    draws: int = DRAWS

    def __post_init__(self) -> None:
        offered = {
            "temperature": TEMPERATURES,
            "top_k": (None, *range(1, SHOWN + 1)),
            "top_p": (None, *TOP_P),
            "min_p": (None, *MIN_P),
            "order": tuple(ORDERS),
            "seed": SEEDS,
            "draws": range(DRAWS + 1),
        }
        for name, values in offered.items():
            if getattr(self, name) not in values:
                expected = "None or 1 to 50" if name == "top_k" else ", ".join(map(str, values))
                raise ValueError(f"{name} = {getattr(self, name)!r}: the widget offers {expected}")

    def sampler(self) -> Sampler:
        """Return what chooses tokens this way outside of the widget."""
        filters = {name: getattr(self, name) for name in ("temperature", "top_k", "top_p", "min_p")}
        return Sampler(**filters, order=ORDERS[self.order], seed=self.seed)


CHOICES = tuple(each.name for each in fields(Choice))


def uniforms(seed: int) -> list[float]:
    """Return the numbers that the first draws of a seed use."""
    return np.random.default_rng(seed).random(DRAWS).tolist()


def ranked(logits: np.ndarray) -> np.ndarray:
    """Return the ids, the likeliest first."""
    return np.argsort(-np.asarray(logits, np.float64), kind="stable")


def sampler_data(logits: np.ndarray, tokens: Sequence[str], phrase: str) -> dict:
    """Return what the page computes with; logits [V] in any float dtype, used as float64."""
    logits = _checked(logits, tokens)
    ids = ranked(logits)
    tables = [_Table(logits[ids] - logits.max(), value) for value in TEMPERATURES]
    extra = tables[ONE].depths()  # what llama.cpp keeps before it heats
    rests = [table.rests(extra, ids) for table in tables]
    shown_ids = ids[:SHOWN].tolist()
    others = sorted({i for rest in rests for _, _, drawn in rest.values() for i in drawn} - set(shown_ids))
    code_of = {i: code for code, i in enumerate([*shown_ids, *others])}
    for rest in (rest for rests_at in rests for rest in rests_at.values()):
        rest[2] = [code_of[i] for i in rest[2]]
    return {
        "phrase": phrase,
        "vocabulary": len(logits),
        "ids": shown_ids,
        "tokens": [_brief(tokens[i]) for i in ids[:SHOWN]],
        "logits": logits[ids[:SHOWN]].tolist(),
        "temperatures": TEMPERATURES,
        "topP": TOP_P,
        "minP": MIN_P,
        "orders": ORDERS,
        "uniforms": {str(seed): uniforms(seed) for seed in SEEDS},
        "at": [table.told() | {"rest": rest} for table, rest in zip(tables, rests, strict=True)],
        # ids rise, and what one is above the last is shorter
        "others": {"above": np.diff(others, prepend=0).tolist(), "tokens": [_brief(tokens[i]) for i in others]},
    }


def others_of(data: dict) -> dict[int, str]:
    """Return the tokens of the rest that some setting draws, by id."""
    return dict(zip(np.cumsum(data["others"]["above"]).tolist(), data["others"]["tokens"], strict=True))


def _brief(token: str) -> str:
    """Return a token as the page shows it, cut where it is long."""
    text = shown(token)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


class _Table:
    """What filters keep at one temperature: always the likeliest ones, so a number of tokens says it."""

    def __init__(self, below: np.ndarray, value: float) -> None:
        """Take the ranked logits less the largest one."""
        self.powers = np.exp(below / value) if value else np.eye(1, len(below))[0]
        self.sums = np.cumsum(self.powers)
        self.all = int(np.count_nonzero(self.powers))
        self.top_p = [self.nucleus(self.all, p) for p in TOP_P]
        self.min_p = [int(np.count_nonzero(self.powers >= v)) for v in MIN_P]
        self.joint = {i: [self.nucleus(n, p) for p in TOP_P] for i, n in enumerate(self.min_p) if n > SHOWN}

    def nucleus(self, depth: int, value: float) -> int:
        """Return how many of the likeliest ``depth`` tokens have ``value`` of what these have together."""
        before = (self.sums - self.powers)[:depth] / self.sums[depth - 1]
        return int(np.count_nonzero(before < value))

    def depths(self) -> set[int]:
        return {self.all, *self.top_p, *self.min_p, *(n for row in self.joint.values() for n in row)}

    def told(self) -> dict:
        return {"all": self.all, "topP": self.top_p, "minP": self.min_p, "joint": self.joint}

    def rests(self, extra: set[int], ids: np.ndarray) -> dict[int, list]:
        """Return for each depth that reaches into the rest: its mass there, places in the strip, ids drawn."""
        reached = {min(depth, self.all) for depth in self.depths() | extra}
        return {depth: self._rest(depth, ids) for depth in sorted(reached) if depth > SHOWN}

    def _rest(self, depth: int, ids: np.ndarray) -> list:
        p = np.zeros(len(ids))
        p[ids[:depth]] = self.powers[:depth] / self.sums[depth - 1]
        starts = np.cumsum(p) - p
        wide = [round(1e4 * starts[i]) for i in ids[:SHOWN] if p[i] >= NARROW]
        drawn = [draw(p, u) for seed in SEEDS for u in uniforms(seed)]
        mass = round(float(self.powers[SHOWN:depth].sum()), 13)  # the last digits of a sum depend on the CPU
        return [mass, wide, drawn]


def _checked(logits: np.ndarray, tokens: Sequence[str]) -> np.ndarray:
    logits = np.asarray(logits, np.float64)
    softmax(logits)  # refuses other shapes, nan and inf
    if len(logits) < 2:
        raise ValueError("logits has one token: expected at least 2, there is nothing to choose")
    if len(tokens) != len(logits):
        raise ValueError(f"{len(tokens)} tokens for {len(logits)} logits: expected a text for each, give them all")
    if (apart := np.ptp(logits)) > MOST_APART:
        raise ValueError(f"the logits are {apart:g} apart: expected at most {MOST_APART}, give them before any filter")
    return logits
