"""The markup of a `TokenSampler`: once, for every place it is shown; JavaScript changes texts and attributes in it."""

import html
from collections.abc import Mapping

from prefill_decode.sampling import ORDERS
from prefill_decode.widgets.elements import POLITE, UNSEEN, questions, room, root, select, text
from prefill_decode.widgets.page_only import for_page, page_only
from prefill_decode.widgets.quantities import count, percent, plain
from prefill_decode.widgets.token_sampler_data import (
    DRAWS,
    MIN_P,
    SEEDS,
    SHOWN,
    TEMPERATURES,
    TOP_P,
    Choice,
    uniforms,
)
from prefill_decode.widgets.token_sampler_reading import Reading
from prefill_decode.widgets.token_sampler_words import (
    STEPS,
    TOLD,
    length,
    number,
    rest,
    sentence,
    share,
    steps,
    tally,
    value,
)

ENGINES = {"transformers": "transformers", "vllm": "vLLM", "llama.cpp": "llama.cpp"}
TITLES = {"temperature": "Temperature", "top_k": "Top-k", "top_p": "Top-p", "min_p": "Min-p"}
LEGEND = (
    ("before", "before, at T = 1"),
    ("after", "after"),
    ("chosen", "drawn last"),
    ("removed", "removed, and by which step"),
)


def picture(data: dict, choice: Choice, reading: Reading, *, with_data: bool) -> str:
    """Return the root with a choice shown; `with_data` for a page, where controls wait in their wrapping."""
    told = _texts(data, choice, reading)
    asked = {str(i): html.escape(each["ask"]) for i, each in enumerate(data["questions"])}
    body = (
        f'<p class="pd-heading"><b>The next token after</b> “{html.escape(data["phrase"])}”</p>'
        f'<div class="pd-controls" hidden>{page_only(_controls(choice))}</div>'
        f'<div class="pd-questions" hidden>{page_only(questions(asked))}</div>'
        f"{text('p', 'sentence', told, 'pd-sentence', POLITE + room(_said(data)))}"
        f"{_trail(told)}{_bars(data, choice, reading, told)}{_strip(data, choice, reading)}"
        f"{text('p', 'tally', told, 'pd-tally', room([_longest_tally(data)]))}"
    )
    traits = {"data": data, **vars(choice)} if with_data else None
    markup = root("token-sampler", "Sampler", attributes(choice, reading), traits, body)
    return markup if with_data else for_page(markup)


def attributes(choice: Choice, reading: Reading) -> dict[str, str]:
    """Return the state as the root tells it."""
    told = {
        "temperature": value(choice, "temperature"),
        **{name.replace("_", "-"): value(choice, name) for name in ("top_k", "top_p", "min_p")},
        "order": choice.order,
        "kept": reading.kept,
        "kept-mass": plain(reading.kept_mass),
        "seed": choice.seed,
        "draws": choice.draws,
        "token": reading.drawn[-1] if reading.drawn else "",
    }
    return {name: str(each) for name, each in told.items()}


def _texts(data: dict, choice: Choice, reading: Reading) -> dict[str, str]:
    named = {}
    for i, (name, left) in enumerate(steps(choice, reading)):
        named |= {f"step-{i}": name, f"left-{i}": left}
    return named | {
        "sentence": sentence(data, choice, reading),
        "tally": tally(data, choice, reading),
        "rest": rest(choice, reading),
    }


def _said(data: dict) -> list[str]:
    """Return all that the sentence may say, or something as long."""
    longest = _longest(data)[0]
    whole = count(data["vocabulary"])
    state = (
        f"{whole} of {whole} tokens are kept; before heating they have >99.9% together. Draw {DRAWS}: u = 0.0000 falls"
        f" to “{longest}” (one of the rest)."
    )
    return [state, *(each["answer"] for each in data["questions"])]


def _longest(data: dict) -> list[str]:
    """Return as many tokens as the count of draws names, the longest first."""
    return sorted((*data["tokens"], *data["others"]["tokens"]), key=len, reverse=True)[:TOLD]


def _longest_tally(data: dict) -> str:
    named = ", ".join(f"“{token}” 1" for token in _longest(data))
    return f"{DRAWS} draws of seed {SEEDS[-1]}: {named}, others {DRAWS - TOLD}."


def _trail(told: Mapping[str, str]) -> str:
    """Return the steps in order, each with what it leaves."""
    listed = "".join(
        f"<li>{text('b', f'step-{i}', told)} {text('span', f'left-{i}', told)}</li>" for i in range(len(STEPS))
    )
    return f'<ol class="pd-trail" aria-label="Steps, the first one first">{listed}</ol>'


def _strip(data: dict, choice: Choice, reading: Reading) -> str:
    """Return the cumulative distribution, in the order of ids, with the numbers that fell on it."""

    def segment(rank: int) -> str:
        start, width = reading.segments.get(rank, (0, 0))
        drawn = " data-drawn" if reading.drawn and reading.drawn[-1] == data["ids"][rank] else ""
        placed = " data-placed" if width else ""
        wide = " data-wide" if width >= 0.1 else ""
        style = f"left:{percent(start)};width:{percent(width)}"
        token = html.escape(data["tokens"][rank], quote=False)
        return f'<span data-segment="{rank}" style="{style}"{placed}{drawn}{wide}><bdi>{token}</bdi></span>'

    def tick(i: int) -> str:
        state = "future" if i >= choice.draws else "now" if i == choice.draws - 1 else "done"
        return f'<i data-tick="{i}" data-state="{state}" style="left:{percent(uniforms(choice.seed)[i])}"></i>'

    segments = "".join(segment(rank) for rank in range(len(data["tokens"])))
    ticks = "".join(tick(i) for i in range(DRAWS))
    return (
        '<div class="pd-draw"><p class="pd-note">Probabilities side by side, in the order of token ids: u from 0 to 1'
        f" falls into the interval of one token; in a gap lie tokens of less than 1%</p>"
        f'<div class="pd-strip"{UNSEEN}>{segments}{ticks}</div>'
        f'<p class="pd-ends"{UNSEEN}><span>0</span><span>u</span><span>1</span></p></div>'
    )


def _bars(data: dict, choice: Choice, reading: Reading, told: Mapping[str, str]) -> str:
    rows = "".join(_bar(data, choice, reading, rank) for rank in range(len(data["tokens"])))
    legend = "".join(f'<span data-legend="{name}">{words}</span>' for name, words in LEGEND)
    # a narrow screen scrolls the list, beside the sliders that move it; the keyboard must reach what scrolls
    return (
        '<div class="pd-likeliest" tabindex="0" role="group" aria-label="The likeliest tokens: share before, share'
        f' after"><ol class="pd-bars">{rows}</ol></div>'
        f"{_rest(data, choice, reading, told) if data['vocabulary'] > SHOWN else ''}"
        f'<p class="pd-legend">{legend}<span>bars: 0.01% to 100%, each line 10 times the one before</span></p>'
    )


def state_of(data: dict, choice: Choice, reading: Reading, rank: int) -> str:
    """Return what a token is in the end."""
    if reading.removed_by(choice.order, rank):
        return "removed"
    return "chosen" if reading.drawn and reading.drawn[-1] == data["ids"][rank] else "kept"


def _bar(data: dict, choice: Choice, reading: Reading, rank: int) -> str:
    token = html.escape(data["tokens"][rank], quote=False)
    return (
        f'<li data-rank="{rank}" data-state="{state_of(data, choice, reading, rank)}"><bdi>{token}</bdi>'
        f"{_track(reading.before[rank], reading.after[rank])}<small>{share(reading.before[rank])}</small>"
        f" <b>{number(choice, reading, rank)}</b></li>"
    )


def _track(before: float, after: float) -> str:
    return (
        f'<span class="pd-track"{UNSEEN}><i data-bar="after" style="width:{length(after)}"></i>'
        f'<i data-bar="before" style="width:{length(before)}"></i></span>'
    )


def _rest(data: dict, choice: Choice, reading: Reading, told: Mapping[str, str]) -> str:
    outside = bool(reading.drawn) and reading.drawn[-1] not in data["ids"]
    state = "removed" if reading.kept <= SHOWN else "chosen" if outside else "kept"
    return (
        f'<p class="pd-rest" data-state="{state}"><span>the other {count(data["vocabulary"] - SHOWN)} tokens</span>'
        f"{_track(reading.rest_before, reading.rest)}<small>{share(reading.rest_before)}</small>"
        f" {text('b', 'rest', told)}</p>"
    )


def _controls(choice: Choice) -> str:
    ranges = (
        _range("temperature", 0, len(TEMPERATURES) - 1, TEMPERATURES.index(choice.temperature), choice)
        + _range("top_k", 1, SHOWN + 1, choice.top_k or SHOWN + 1, choice)
        + _range("top_p", 0, len(TOP_P), TOP_P.index(choice.top_p) if choice.top_p else len(TOP_P), choice)
        + _range("min_p", 0, len(MIN_P), MIN_P.index(choice.min_p) + 1 if choice.min_p else 0, choice)
    )
    selects = select("Order", "order", {name: ENGINES[name] for name in ORDERS}, choice.order)
    selects += select("Seed", "seed", {str(seed): str(seed) for seed in SEEDS}, str(choice.seed))
    acts = {"draw": "Draw", "restart": "Start over"}
    buttons = "".join(f'<button type="button" data-act="{act}">{shown}</button>' for act, shown in acts.items())
    return f'<div class="pd-ranges">{ranges}</div><div class="pd-choices">{selects}{buttons}</div>'


def _range(name: str, least: int, most: int, at: int, choice: Choice) -> str:
    shown = value(choice, name)
    return (
        f'<label><span aria-hidden="true">{TITLES[name]}</span><input type="range" name="{name}"'
        f' aria-label="{TITLES[name]}" aria-valuetext="{shown}" min="{least}" max="{most}" step="1" value="{at}"'
        f' autocomplete="off"><b data-value="{name}" aria-hidden="true">{shown}</b></label>'
    )
