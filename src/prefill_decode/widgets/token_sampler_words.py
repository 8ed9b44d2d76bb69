"""A `TokenSampler` in words: shares, a sentence for each state, what was drawn, the questions and their answers."""

from __future__ import annotations

from collections import Counter
from math import log10

import numpy as np

from prefill_decode.sampling import ORDERS
from prefill_decode.widgets.quantities import count, percent
from prefill_decode.widgets.token_sampler_data import (
    DRAWS,
    ONE,
    SEEDS,
    SHOWN,
    TEMPERATURES,
    TOP_P,
    Choice,
    others_of,
    uniforms,
)
from prefill_decode.widgets.token_sampler_reading import Reading, read

STEPS = {"temperature": "temperature", "top_k": "top-k", "top_p": "top-p", "min_p": "min-p"}
DECADES = 4  # of the bars: 0.01% to 100%
TOLD = 4  # tokens that the count of draws names


def share(p: float) -> str:
    """Return a share as a percentage that never rounds to nothing or all."""
    if p == 0:
        return "0%"
    if p > 1 - 1e-9:
        return "100%"
    value = 100 * p
    if value < 0.01:
        return "<0.01%"
    return ">99.9%" if value >= 99.95 else f"{value:.{1 if value >= 9.995 else 2}f}%"


def length(p: float) -> str:
    """Return how long the bar of a share is, on a logarithmic scale."""
    return percent(0 if p <= 0 else max(0, 1 + log10(p) / DECADES))


def value(choice: Choice, step: str) -> str:
    """Return what a step is set to."""
    number = getattr(choice, step)
    if number is None:
        return "off"
    return str(number) if step == "top_k" else f"{number:.{1 if step == 'temperature' else 2}f}"


def steps(choice: Choice, reading: Reading) -> list[tuple[str, str]]:
    """Return each step in order: its name with its value, and how many tokens it leaves."""
    named = (f"{STEPS[step]} {value(choice, step)}" for step in ORDERS[choice.order])
    return list(zip(named, (f"{count(left)} left" for left in reading.left), strict=True))


def number(choice: Choice, reading: Reading, rank: int) -> str:
    """Return a token's share, or what removed it."""
    by = reading.removed_by(choice.order, rank)
    if by == "temperature":
        return f"T = {value(choice, by)}"
    return STEPS[by] if by else share(reading.after[rank])


def rest(choice: Choice, reading: Reading) -> str:
    """Return what becomes of the tokens that are not shown."""
    kept = max(0, reading.kept - SHOWN)
    by = reading.removed_by(choice.order, SHOWN)
    return f"none kept ({STEPS[by]})" if by else f"{share(reading.rest)}, {count(kept)} kept"


def token_of(data: dict, token: int) -> str:
    """Return the text of a token that was drawn."""
    return data["tokens"][data["ids"].index(token)] if token in data["ids"] else others_of(data)[token]


def sentence(data: dict, choice: Choice, reading: Reading) -> str:
    """Return what a state keeps and what its last number draws."""
    return f"{_kept(data, choice, reading)} {_last(data, choice, reading)}"


def _kept(data: dict, choice: Choice, reading: Reading) -> str:
    if reading.kept == 1:
        return f"{'T = 0 is greedy: one' if choice.temperature == 0 else 'One'} token is left, “{data['tokens'][0]}”."
    if reading.kept == data["vocabulary"]:
        return f"All {count(reading.kept)} tokens are kept."
    where = "before heating" if choice.order == "llama.cpp" else f"at T = {value(choice, 'temperature')}"
    return (
        f"{count(reading.kept)} of {count(data['vocabulary'])} tokens are kept; {where} they have"
        f" {share(reading.kept_mass)} together."
    )


def _last(data: dict, choice: Choice, reading: Reading) -> str:
    if not reading.drawn:
        return "Nothing is drawn yet."
    token, u = reading.drawn[-1], uniforms(choice.seed)[choice.draws - 1]
    known = token in data["ids"]
    which = share(reading.after[data["ids"].index(token)]) if known else "one of the rest"
    return f"Draw {choice.draws}: u = {u:.4f} falls to “{token_of(data, token)}” ({which})."


def tally(data: dict, choice: Choice, reading: Reading) -> str:
    """Return how often each token was drawn."""
    drawn = reading.drawn
    if not drawn:
        return f"No draw of seed {choice.seed} yet."
    counted = Counter(drawn).most_common()  # of equal ones, the one drawn first
    named = [f"“{token_of(data, token)}” {times}" for token, times in counted[:TOLD]]
    others = len(drawn) - sum(times for _, times in counted[:TOLD])
    more = [f"others {others}"] if others else []
    draws = f"{len(drawn)} draw{'s' * (len(drawn) != 1)}"
    return f"{draws} of seed {choice.seed}: {', '.join(named + more)}."


def questions(data: dict, logits: np.ndarray) -> list[dict]:
    """Return what the buttons ask, each with the choice that answers it, and the answer."""
    return [_greedy(data, logits), _nonsense(data, logits), _sure(data, logits), _order(logits), _seed(data, logits)]


def _question(ask: str, choice: Choice, answer: str) -> dict:
    return {"ask": ask, "set": dict(vars(choice)), "answer": answer}


def _greedy(data: dict, logits: np.ndarray) -> dict:
    low = read(logits, Choice(0.1)).after[0]
    return _question(
        "When is it greedy?",
        Choice(0.0),
        f"At T = 0: the token with the largest logit, “{data['tokens'][0]}”, has everything, so every u draws it,"
        f" whatever the seed and the filters. At T = 0.1 it has {share(low)}.",
    )


def _nonsense(data: dict, logits: np.ndarray) -> dict:
    hot, plain = (read(logits, Choice(value)) for value in (1.5, 1.0))
    outside = sum(token not in data["ids"] for token in hot.drawn)
    return _question(
        "Does a high temperature let nonsense in?",
        Choice(1.5),
        f"At T = 1.5 without a filter the {count(len(logits) - len(hot.after))} tokens that are not shown have"
        f" {share(hot.rest)} together; at T = 1 they have {share(plain.rest)}. None of them is likely, but they are"
        f" many: {outside} of these {DRAWS} draws fall{'s' * (outside == 1)} among them.",
    )


def _sure(data: dict, logits: np.ndarray) -> dict:
    choice = Choice(top_p=0.9)
    reading = read(logits, choice)
    first = reading.before[0]
    alone = [p for p in TOP_P if data["at"][ONE]["topP"][TOP_P.index(p)] == 1]
    more = f" Up to top-p {alone[-1]:.2f} it stays alone." if alone else ""
    return _question(
        "What does the nucleus keep when the model is sure?",
        choice,
        f"At T = 1 and top-p 0.90 it keeps {count(reading.kept)} of {count(len(logits))} tokens:"
        f" “{data['tokens'][0]}” alone has {share(first)}.{more} A flat distribution keeps many: at T = 2 it would be"
        f" {count(read(logits, Choice(2.0, top_p=0.9)).kept)}.",
    )


def _order(logits: np.ndarray) -> dict:
    chosen = {name: Choice(2.0, top_p=0.8, order=name) for name in ORDERS}
    hot, cold = (read(logits, chosen[name]).kept for name in ("transformers", "llama.cpp"))
    return _question(
        "Does the order matter?",
        chosen["llama.cpp"],
        f"At T = 2 and top-p 0.80 transformers and vLLM heat first: the nucleus of the flat distribution has"
        f" {count(hot)} tokens. llama.cpp filters first: {count(cold)} of them {'is' if cold == 1 else 'are'} left"
        " when the heat comes. Switch Order and watch the steps.",
    )


def _seed(data: dict, logits: np.ndarray) -> dict:
    seed, chosen = SEEDS[1], TEMPERATURES.index(1.5)
    choice = Choice(TEMPERATURES[chosen], draws=1, seed=seed)
    drawn = [read(logits, Choice(t, draws=1, seed=seed)).drawn[0] for t in TEMPERATURES]
    turned = next((t for t, token in zip(TEMPERATURES, drawn, strict=True) if token != drawn[chosen]), None)
    token, more = token_of(data, drawn[chosen]), " It does so at every temperature here."
    if turned is not None:
        other = token_of(data, drawn[TEMPERATURES.index(turned)])
        more = f" The same u at T = {turned:.1f} falls to “{other}”: a seed fixes the numbers, not the tokens."
    return _question(
        "Same seed, same token?",
        choice,
        f"With the same setting, yes: seed {seed} starts with u = {uniforms(seed)[0]:.4f}, which falls to “{token}” at"
        f" T = 1.5.{more}",
    )
