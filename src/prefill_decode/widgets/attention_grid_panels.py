"""The parts of the `AttentionGrid` picture around the triangle: sentence, controls and ledger, at the last step."""

import html

ICONS = {
    "first": "M3 3h2v10H3zM13 3v10L6 8z",
    "previous": "M11 3v10L4 8z",
    "play": "M4 2.5v11L13 8z",
    "next": "M5 3v10l7-5z",
    "last": "M11 3h2v10h-2zM3 3v10l7-5z",
}


def token(text: str) -> str:
    """Return a token as text that cannot be markup and does not turn the line around it."""
    return f"<bdi>{html.escape(text)}</bdi>"


def pairs(step: int) -> int:
    """Return the query-key pairs of the first `step` rows of one causal triangle."""
    return step * (step + 1) // 2


def head_name(phrase: dict, layer: int, head: int) -> str:
    """Return what is said of a head: its given name, "sink", or nothing."""
    texts = [text for named_layer, named_head, text in phrase["names"] if (named_layer, named_head) == (layer, head)]
    return texts[0] if texts else "sink" if layer * len(phrase["heads"]) + head in phrase["sinks"] else ""


def sentence(phrase: dict) -> str:
    """Return the sentence of the last step."""
    step, prompt_len = phrase["steps"], phrase["promptLen"]
    query, total = token(phrase["tokens"][step - 1]), f"{pairs(step):,} pair{'s' * (step > 1)} so far."
    triangle = f"{step}·{step + 1}/2"
    if step > prompt_len:
        return (
            f"Decode, pass {step - prompt_len + 1}: one new query, “{query}”, reads {step} keys, {step - 1} of them"
            f" from the cache{_chosen(phrase, '; its logits choose')}. {step - 1}·{step}/2 + {step} = {total}"
        )
    start = f"Prefill, pass 1: all {prompt_len} prompt rows are computed at once"
    if step < prompt_len:
        return f"{start}, shown one by one. Row {step}, “{query}”, reads {keys(step)}. {triangle} = {total}"
    return f"{start}{_chosen(phrase, '; the last row’s logits choose')}. {triangle} = {total}"


def keys(count: int) -> str:
    """Return a count of keys in words."""
    return f"{count} key{'s' * (count != 1)}"


def _chosen(phrase: dict, words: str) -> str:
    return f"{words} “{token(phrase['tokens'][phrase['steps']])}”"


def step_controls(phrase: dict) -> str:
    """Return buttons and slider; they are hidden until a script runs."""
    steps = phrase["steps"]
    return (
        f"{_button('first', 'First step')}{_button('previous', 'Previous step')}"
        f'<button type="button" data-act="play">{_icon("play")}<span>Play</span></button>'
        f"{_button('next', 'Next step')}{_button('last', 'Last step')}"
        f'<input type="range" aria-label="Step" min="0" max="{steps}" step="1" value="{steps}" autocomplete="off">'
        f'<span class="pd-count" aria-hidden="true">{steps} / {steps}</span>'
    )


def choices(phrases: list[dict]) -> str:
    """Return the selects and the checkbox; they are hidden until a script runs."""
    phrase = phrases[0]
    layer, head = phrase["open"]
    labels = [entry["label"] or f"Phrase {i + 1}" for i, entry in enumerate(phrases)]
    heads = [_head_option(phrase, layer, i) for i in range(len(phrase["heads"]))]
    return (
        (select("Phrase", labels, 0) if len(phrases) > 1 else "")
        + '<label class="pd-check"><input type="checkbox" autocomplete="off"><span>Without a cache</span></label>'
        + f'<div class="pd-pair">{select("Layer", phrase["layers"], layer)}{select("Head", heads, head)}</div>'
    )


def _button(act: str, name: str) -> str:
    return f'<button type="button" data-act="{act}" aria-label="{name}" title="{name}">{_icon(act)}</button>'


def _icon(name: str) -> str:
    return f'<svg viewBox="0 0 16 16" aria-hidden="true"><path d="{ICONS[name]}"></path></svg>'


def select(name: str, labels: list[str], chosen: int) -> str:
    """Return a select with its label; values are indices."""
    options = "".join(
        f'<option value="{i}"{" selected" * (i == chosen)}>{html.escape(label)}</option>'
        for i, label in enumerate(labels)
    )
    return (
        f'<label data-choice="{name.lower()}"><span aria-hidden="true">{name}</span>'
        f'<select aria-label="{name}" autocomplete="off">{options}</select></label>'
    )


def _head_option(phrase: dict, layer: int, head: int) -> str:
    name = head_name(phrase, layer, head)
    return phrase["heads"][head] + (f" · {name}" if name else "")


def ledger(phrase: dict) -> str:
    """Return the cards beside the triangle: pairs, cache, next token."""
    return _pairs_card(phrase) + _cache_card(phrase) + _next_card(phrase)


def _pairs_card(phrase: dict) -> str:
    step, prompt_len = phrase["steps"], phrase["promptLen"]
    passes = [pairs(t) for t in range(min(step, prompt_len), step + 1)]
    total = sum(passes)
    triangle = f"{step}·{step + 1}/2"
    return _card(
        "pairs",
        "Query–key pairs, one head",
        _bar_line("with", "with a cache", pairs(step), f"= {triangle}", pairs(step) / total)
        + _bar_line("without", "without", total, f"= {sum_of(passes) if len(passes) > 1 else triangle}", 1.0),
    )


def sum_of(terms: list[int]) -> str:
    """Return a sum written out, with its middle left out where it is long."""
    shown = [f"{term:,}" for term in terms]
    return " + ".join(shown if len(shown) <= 3 else [shown[0], "…", shown[-1]])


def _bar_line(mode: str, what: str, value: int, formula: str, share: float) -> str:
    return (
        f'<div class="pd-line" data-mode="{mode}"><b>{value:,}</b> <span class="pd-formula">{formula}</span>'
        f' <span class="pd-what">{what}</span>'
        f'<div class="pd-meter"><span style="--pd-v:{share:.4f}"></span></div></div>'
    )


def _card(name: str, title: str, body: str) -> str:
    return f'<div class="pd-card" data-card="{name}"><p class="pd-title">{title}</p>{body}</div>'


def _cache_card(phrase: dict) -> str:
    step, per_token = phrase["steps"], phrase["kvBytes"]
    size = "" if per_token is None else f" · {per_token * step:,} B"
    dtype = f", {html.escape(phrase['dtype'])}" if phrase["dtype"] else ""
    each = "" if per_token is None else f'<p class="pd-small">{per_token:,} B a position{dtype}</p>'
    first = min(step, phrase["promptLen"])
    return _card(
        "cache",
        "KV cache, all layers",
        f'<p class="pd-value"><b>{step}</b> <span>{"entry" if step == 1 else "entries"}{size}</span></p>'
        f'<div class="pd-entries" style="--pd-n:{step};--pd-a:{first};--pd-b:{step - first}"></div>{each}',
    )


def _next_card(phrase: dict) -> str:
    likely = " data-likely" if phrase["next"] else ""
    return _card("next", "Next token", f'<div class="pd-next"{likely}>{_next_lines(phrase)}</div>')


def _next_lines(phrase: dict) -> str:
    step = phrase["steps"]
    if step < phrase["promptLen"]:
        return NOTHING_CHOSEN
    chosen = phrase["tokens"][step]
    rows = phrase["next"][step - 1] if phrase["next"] else []
    lines = "".join(_likely(text, permille, text == chosen) for text, permille in rows)
    return f"<p>This row’s logits choose <b>{token(chosen)}</b></p>{lines}"


NOTHING_CHOSEN = (
    "<p>Nothing is chosen from this row: the prompt says what comes next. Only its last row’s logits are needed.</p>"
)


def _likely(text: str, permille: int, is_chosen: bool) -> str:
    return (
        f'<div class="pd-likely"{" data-chosen" * is_chosen}>{token(text)}'
        f'<div class="pd-meter"><span style="--pd-v:{permille / 1000:.3f}"></span></div>'
        f"<span>{permille // 10}.{permille % 10} %</span></div>"
    )
