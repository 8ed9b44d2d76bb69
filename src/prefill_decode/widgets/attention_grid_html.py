"""The finished picture of an `AttentionGrid` as HTML: what is read without JavaScript, in print and by nbval.

`attention_grid.js` draws the same elements from the same data; a browser test compares the two.
"""

import base64
import html
import json

import numpy as np

from prefill_decode.widgets.attention_grid_heads import heads_card
from prefill_decode.widgets.attention_grid_panels import (
    choices,
    head_name,
    ledger,
    pairs,
    sentence,
    step_controls,
    token,
)
from prefill_decode.widgets.elements import questions
from prefill_decode.widgets.page_only import page_only

# The two ignore classes keep MathJax away from tokens such as "$".
ROOT_CLASS = "pd-grid tex2jax_ignore mathjax_ignore"
ROOT_LABEL = "Attention of one head, row by row"
COLUMNS = '<colgroup><col class="pd-col-phase"><col class="pd-col-pass"><col class="pd-col-label"></colgroup>'


def picture(data: dict) -> str:
    """Return the root element of the widget at its last step.

    Parameters
    ----------
    data : dict
        `{"phrases": [...]}`, each phrase as `phrase_data` returns it; the first one is drawn.
    """
    phrase = data["phrases"][0]
    steps, prompt_len = phrase["steps"], phrase["promptLen"]
    traits = {"data": data, **opening(phrase)}
    text = json.dumps(traits, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<div data-widget="attention-grid" class="{ROOT_CLASS}" role="group" aria-label="{ROOT_LABEL}"'
        f' data-steps="{steps}" data-step="{steps}" data-prompt-len="{prompt_len}" data-phase="{_phase(phrase)}"'
        f' data-pairs="{pairs(steps)}" data-cache="{steps}" data-size="{"large" if steps > 16 else "small"}">'
        f'<script type="application/json">{text}</script>{_body(data, phrase)}</div>'
    )


def opening(phrase: dict) -> dict:
    """Return the traits a phrase opens with: finished, on its first named head."""
    layer, head = phrase["open"]
    return {
        "phrase": 0,
        "step": phrase["steps"],
        "layer": phrase["layers"][layer],
        "head": phrase["heads"][head],
        "without_cache": False,
    }


def _body(data: dict, phrase: dict) -> str:
    return (
        f'<div class="pd-tokens" role="list" aria-label="Tokens">{_chips(phrase)}</div>'
        f'<div class="pd-main"><div class="pd-scroll">{_table(phrase)}</div>'
        f'<p class="pd-readout">{_readout(phrase)}</p>{_note(phrase)}'
        f'<div class="pd-steps" hidden>{page_only(step_controls(phrase))}</div>'
        f'<p class="pd-sentence" aria-live="polite">{sentence(phrase)}</p>{_asked(phrase)}'
        f'<div class="pd-choices" hidden>{page_only(choices(data["phrases"]))}</div></div>'
        f'<div class="pd-ledger">{ledger(phrase)}</div>{heads_card(phrase)}'
    )


def _asked(phrase: dict) -> str:
    asked = {str(i): html.escape(each["ask"]) for i, each in enumerate(phrase["questions"])}
    return f'<div class="pd-questions" hidden>{page_only(questions(asked))}</div>' if asked else ""


def _phase(phrase: dict) -> str:
    return "prefill" if phrase["steps"] <= phrase["promptLen"] else "decode"


def origin(phrase: dict, i: int) -> str:
    """Return whether the prompt or the model brought token i."""
    return "prompt" if i < phrase["promptLen"] else "new"


def _chips(phrase: dict) -> str:
    def chip(i: int, text: str) -> str:
        source = origin(phrase, i)
        state = (
            "chosen" if i == phrase["steps"] and source == "new" else "current" if i == phrase["steps"] - 1 else "known"
        )
        return f'<span role="listitem" data-origin="{source}" data-chip="{state}">{token(text)}</span>'

    return " ".join(chip(i, text) for i, text in enumerate(phrase["tokens"]))


def _triangle(phrase: dict) -> np.ndarray:
    """Return the bytes of the head that is drawn, row after row."""
    layer, head = phrase["open"]
    size = pairs(phrase["steps"])
    start = (layer * len(phrase["heads"]) + head) * size
    return np.frombuffer(base64.b64decode(phrase["weights"]), dtype=np.uint8)[start : start + size]


def _table(phrase: dict) -> str:
    steps, prompt_len = phrase["steps"], phrase["promptLen"]
    cells = _triangle(phrase)
    split = min(steps, prompt_len)
    groups = _group(phrase, "prefill", range(split), cells)
    if steps > prompt_len:
        groups += _group(phrase, "decode", range(split, steps), cells)
    columns = "".join(
        f'<th scope="col" data-i="{k}" data-origin="{origin(phrase, k)}">{token(phrase["tokens"][k])}</th>'
        for k in range(steps)
    )
    return (
        f'<table class="pd-table" style="--pd-n:{steps};--pd-p:{split};--pd-m:{steps - split}">'
        f"<caption>{_caption(phrase)}</caption>{COLUMNS}"
        '<thead><tr><td class="pd-corner" colspan="3"><span>key →</span> <span>query ↓</span></td>'
        f"{columns}</tr></thead>{groups}</table>"
    )


def _caption(phrase: dict) -> str:
    layer, head = phrase["open"]
    name = head_name(phrase, layer, head)
    return (
        f"Attention weights, layer {html.escape(phrase['layers'][layer])}, head {html.escape(phrase['heads'][head])}"
        + (f" · <bdi>{html.escape(name)}</bdi>" if name else "")
    )


def _group(phrase: dict, phase: str, rows: range, cells: np.ndarray) -> str:
    body = "".join(_row(phrase, phase, q, cells[pairs(q) : pairs(q + 1)], first=q == rows[0]) for q in rows)
    computed = " data-computed" if phase == "prefill" else ""
    return f'<tbody data-part="{phase}"{computed}>{body}</tbody>'


def _row(phrase: dict, phase: str, q: int, weights: np.ndarray, *, first: bool) -> str:
    steps, prompt_len = phrase["steps"], phrase["promptLen"]
    split = min(steps, prompt_len)
    lead = ""
    if first:
        rows, rest = (split, " · one pass") if phase == "prefill" else (steps - split, " · one row a pass")
        words = f"<span><b>{phase}</b><span>{rest}</span></span>"
        lead = f'<th class="pd-phase" scope="rowgroup" rowspan="{rows}">{words}</th>'
    if first or phase == "decode":
        span = f' rowspan="{split}"' if phase == "prefill" else ""
        number = 1 if phase == "prefill" else q - prompt_len + 2
        lead += f'<th class="pd-pass" scope="{"rowgroup" if span else "row"}"{span}>{pass_label(number)}</th>'
    current = ' aria-current="step"' if q == steps - 1 else ""
    label = f'<th class="pd-label" scope="row">{token(phrase["tokens"][q])}</th>'
    masked = "".join(
        f'<td class="pd-masked" data-q="{q}" data-k="{k}" data-state="masked"></td>' for k in range(q + 1, steps)
    )
    cells = "".join(_cell(q, k, phase, int(byte)) for k, byte in enumerate(weights))
    return f'<tr data-row="{q}" style="--pd-q:{q + 1}" data-shown{current}>{lead}{label}{cells}{masked}</tr>'


def pass_label(number: int) -> str:
    """Return the label of a pass; narrow screens keep the number only."""
    return f"<span><span>pass </span>{number}</span>"


def _cell(q: int, k: int, state: str, byte: int) -> str:
    shade = f"{(byte / 255) ** 0.5:.3f}"  # the square root lets small weights be seen
    place = f'data-q="{q}" data-k="{k}" data-state="{state}"'
    return f'<td {place} style="--pd-s:{shade}">{byte / 255:.2f}</td>'


def _readout(phrase: dict) -> str:
    last = phrase["steps"] - 1
    row = _triangle(phrase)[pairs(last) :]
    k = int(row.argmax())
    query, key = _place(phrase, last), _place(phrase, k)
    weight = f"weight <b>{row[k] / 255:.2f}</b>"
    return f"Largest in this row: query {query}, key {key}: {_score(phrase, last, k)}{weight}"


def _place(phrase: dict, i: int) -> str:
    """Return a token, with its position where another one is called the same."""
    text = phrase["tokens"][i]
    same = phrase["tokens"][: phrase["steps"]].count(text) > 1
    return f"“{token(text)}”" + (f" ({i})" if same else "")


def _score(phrase: dict, q: int, k: int) -> str:
    scores = phrase["scores"]
    if scores is None or phrase["open"] not in scores["heads"]:
        return ""
    index = scores["heads"].index(phrase["open"]) * pairs(phrase["steps"]) + pairs(q) + k
    value = int(np.frombuffer(base64.b64decode(scores["data"]), dtype="<i2")[index])
    if value == -32768:
        return ""
    return f"score <b>{value * scores['step']:.{scores['decimals']}f}</b>, ".replace("-", "−")


def _note(phrase: dict) -> str:
    if phrase["positions"] == phrase["steps"]:
        return ""
    return f'<p class="pd-note">Shows the first {phrase["steps"]} of {phrase["positions"]} positions.</p>'
