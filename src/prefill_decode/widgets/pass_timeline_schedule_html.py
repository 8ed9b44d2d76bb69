"""Scene one of a `PassTimeline` as HTML: a table of layers over positions, and the passes as bars of time.

Every element with ``data-at`` stands for what that step brings.
"""

import html

from prefill_decode.widgets.attention_grid_panels import step_controls, token
from prefill_decode.widgets.page_only import page_only


def schedule_scene(data: dict, slow: bool, questions: str) -> str:
    """Return the scene at its last step."""
    schedule = data["schedule"]
    variant = schedule["variants"][slow]
    return (
        '<section class="pd-scene" data-scene="schedule" aria-label="One request"><div class="pd-main">'
        '<p class="pd-heading"><b>One request:</b> tokens of a layer run side by side, layers wait for each other</p>'
        f"{_table(schedule, variant)}{_track(schedule, variant)}"
        f'<p class="pd-note">{html.escape(data["source"])}</p>'
        f'<div class="pd-steps" hidden>{page_only(step_controls({"steps": schedule["steps"]}))}</div>'
        f'<p class="pd-sentence" aria-live="polite">{variant["sentences"][-1]}</p>'
        f'<div class="pd-choices" hidden>{page_only(_slow_choice(schedule, slow))}</div></div>'
        f'<div class="pd-side">{_cards(variant)}'
        f'<div class="pd-choices" hidden>{page_only(questions)}</div></div></section>'
    )


def _table(schedule: dict, variant: dict) -> str:
    prompt_len, passes = schedule["promptLen"], len(variant["passes"])
    layers = range(schedule["layers"])
    rows = "".join(_layer_row(schedule, variant, layer) for layer in reversed(layers))
    chosen = "".join(_choice(schedule, number) for number in range(passes))
    before = f'<td colspan="{prompt_len - 1}"></td>' if prompt_len > 1 else ""
    inputs = "".join(_input(schedule, i) for i in range(prompt_len + passes - 1))
    columns = '<colgroup><col class="pd-col-label"></colgroup>'
    return (
        '<table class="pd-layers"><caption>One legal order; a cell says when it is ready, in ms from the start'
        f"</caption>{columns}"
        f'<thead><tr><th scope="row">chosen</th>{before}{chosen}</tr></thead><tbody>{rows}</tbody>'
        f'<tfoot><tr><th scope="row">token</th>{inputs}</tr>'
        '<tr class="pd-phases"><td></td>'
        f'<th scope="colgroup" data-phase="prefill" colspan="{prompt_len}">pass 1, prefill: all tokens at once</th>'
        f'<th scope="colgroup" data-phase="decode" colspan="{passes - 1}">{_decode_passes(passes)}, decode: one token'
        " a pass</th></tr></tfoot></table>"
    )


def _decode_passes(passes: int) -> str:
    return "pass 2" if passes == 2 else f"passes 2 to {passes}"


def _layer_row(schedule: dict, variant: dict, layer: int) -> str:
    passes, prompt_len = len(variant["passes"]), schedule["promptLen"]
    slow = " data-slow-layer" if layer == schedule["slowLayer"] else ""
    cells = "".join(_cell(schedule, variant, 0, layer, position) for position in range(prompt_len)) + "".join(
        _cell(schedule, variant, number, layer, prompt_len + number - 1) for number in range(1, passes)
    )
    return f'<tr{slow}><th scope="row">layer {layer}</th>{cells}</tr>'


def _at(schedule: dict, number: int, layer: int) -> int:
    return number * (schedule["layers"] + 1) + layer + 1


def _cell(schedule: dict, variant: dict, number: int, layer: int, position: int) -> str:
    at, phase = _at(schedule, number, layer), "decode" if number else "prefill"
    place = f'data-layer="{layer}" data-position="{position}"'
    return f'<td data-at="{at}" data-phase="{phase}" {place} data-state="done" data-time>{variant["done"][at - 1]}</td>'


def _choice(schedule: dict, number: int) -> str:
    at = _at(schedule, number, schedule["layers"])
    chosen = token(schedule["tokens"][schedule["promptLen"] + number])
    return f'<td class="pd-chosen" data-at="{at}" data-state="{_state(schedule, at)}">{chosen}</td>'


def _input(schedule: dict, i: int) -> str:
    """Return the token that a column begins with; a chosen one is known from its choice on."""
    new = i - schedule["promptLen"]
    known = f' data-at="{_at(schedule, new, schedule["layers"])}" data-state="done"' if new >= 0 else ""
    return (
        f'<th scope="col" data-phase="{"prefill" if new < 0 else "decode"}"{known}>{token(schedule["tokens"][i])}</th>'
    )


def _track(schedule: dict, variant: dict) -> str:
    passes = "".join(_pass(schedule, variant, number) for number in range(len(variant["passes"])))
    return (
        '<div class="pd-time"><span class="pd-zero">0</span>'
        f'<div class="pd-passes" style="width:{variant["width"]}%">{passes}</div></div>'
    )


def _pass(schedule: dict, variant: dict, number: int) -> str:
    layers, last = schedule["layers"], _at(schedule, number, schedule["layers"])
    segments = "".join(_segment(schedule, variant, number, layer) for layer in range(layers + 1))
    state, phase = _state(schedule, last), "decode" if number else "prefill"
    return (
        f'<div class="pd-pass" data-phase="{phase}" style="flex-grow:{variant["grow"][number]}">'
        f'<span class="pd-told" data-at="{last}" data-state="{state}">{"TPOT" if number else "TTFT"}'
        f'<span><b>{variant["passes"][number]}</b><span class="pd-long"> ms</span></span></span>'
        f'<span class="pd-bar">{segments}</span>'
        f'<span class="pd-end" data-at="{last}" data-state="{state}" data-time>{variant["done"][last - 1]}</span></div>'
    )


def _segment(schedule: dict, variant: dict, number: int, layer: int) -> str:
    at, slow = _at(schedule, number, layer), " data-slow-layer" * (layer == schedule["slowLayer"])
    name = "pd-choice" if layer == schedule["layers"] else "pd-segment"
    size = f'style="flex-grow:{variant["ms"][at - 1]}"'
    return f'<span class="{name}" data-at="{at}" data-state="{_state(schedule, at)}"{slow} {size}></span>'


def _state(schedule: dict, at: int) -> str:
    return "now" if at == schedule["steps"] else "done"


def _cards(variant: dict) -> str:
    return "".join(
        f'<div class="pd-card" data-card="{name}"><p class="pd-title">{title}</p>'
        f'<p class="pd-value"><b>{value}</b> ms</p><p class="pd-small">{formula}</p></div>'
        for name, title, value, formula in (
            ("ttft", "TTFT: all layers once", variant["passes"][0], variant["formulas"][0]),
            ("tpot", "TPOT: all layers again", variant["passes"][1], variant["formulas"][1]),
        )
    )


def _slow_choice(schedule: dict, slow: bool) -> str:
    return (
        f'<label class="pd-check"><input type="checkbox" autocomplete="off"{" checked" * slow}><span>Slow layer:'
        f" layer {schedule['slowLayer']} takes {schedule['slowFactor']} times as long</span></label>"
    )
