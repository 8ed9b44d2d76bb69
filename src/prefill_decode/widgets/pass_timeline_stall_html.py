"""Scene two of a `PassTimeline` as HTML: an SVG whose x are per cent and y are pixels, so that no text ever shrinks."""

import html

from prefill_decode.widgets.page_only import page_only
from prefill_decode.widgets.pass_timeline_stall import LANE

AXIS = 24  # pixels


def stall_scene(data: dict, chosen: dict, questions: str) -> str:
    """Return the scene with one scenario drawn and all of them in the table."""
    stall = data["stall"]
    return (
        '<section class="pd-scene" data-scene="stall" aria-label="Several requests"><div class="pd-main">'
        '<p class="pd-heading"><b>Several requests:</b> a long prompt enters while others decode</p>'
        f"{_drawing(stall, chosen)}"
        f'<p class="pd-note">{html.escape(data["stallSource"])}</p>'
        f'<form class="pd-scenarios" hidden>{page_only(_radios(stall, chosen))}</form>'
        f'<p class="pd-sentence" aria-live="polite">{chosen["sentence"]}</p>'
        f'</div><div class="pd-side">{_table(stall, chosen)}{_why(stall)}'
        f'<div class="pd-choices" hidden>{page_only(questions)}</div></div></section>'
    )


def _drawing(stall: dict, chosen: dict) -> str:
    floor = LANE * stall["lanes"]
    arrival, (busy, width) = stall["arrival"], chosen["busy"]
    lanes = "".join(_lane(stall, chosen, i) for i in range(stall["lanes"]))
    ticks = "".join(
        f'<line class="pd-tick" x1="{x}%" x2="{x}%" y1="{floor}" y2="{floor + 5}"></line>'
        f'<text class="pd-small" x="{x}%" y="{floor + 18}" text-anchor="{_anchor(x)}">{text}</text>'
        for x, text in stall["ticks"]
    )
    return (
        f'<svg class="pd-lanes" role="img" aria-label="Tokens of each request over time" height="{floor + AXIS}">'
        "<desc>Dots are tokens, bars are passes with the newcomer’s prompt. The numbers are in the table.</desc>"
        f'<rect class="pd-busy" x="{busy}%" width="{width}%" y="0" height="{floor}"></rect>'
        f'<line class="pd-arrival" x1="{arrival}%" x2="{arrival}%" y1="0" y2="{floor}"></line>'
        f"{lanes}{_bracket('gap', chosen['gap'])}"
        f"{_bracket('ttft', chosen['ttft'])}"
        f'<line class="pd-tick" x1="0" x2="100%" y1="{floor}" y2="{floor}"></line>{ticks}</svg>'
        '<p class="pd-axis"><span>a token</span> <span>a pass with the newcomer’s prompt</span>'
        " <span>ms since its arrival</span></p>"
    )


def _anchor(x: float) -> str:
    """Keep the number of a tick in the picture: beside the tick where the edge is near."""
    return "start" if x < 5 else "end" if x > 95 else "middle"


def _lane(stall: dict, chosen: dict, i: int) -> str:
    top, last = LANE * i, i == stall["lanes"] - 1
    name = "newcomer" if last else f"request {'ABCD'[i]}"
    bars = "".join(
        f'<rect class="pd-chunk" x="{x}%" width="{width}%" y="{top + 22}" height="16"></rect>'
        for x, width in (chosen["bars"] if last else [])
    )
    dots = "".join(f'<circle cx="{x}%" cy="{top + 30}"></circle>' for x in chosen["dots"][i])
    return f'<g data-lane="{i}"><text x="2" y="{top + 15}">{name}</text>{bars}{dots}</g>'


def _bracket(name: str, measured: dict) -> str:
    start, end = f"{measured['from']}%", f"{measured['to']}%"
    lines = "".join(
        f'<line x1="{x1}" x2="{x2}" y1="{y1}" y2="{y2}"></line>'
        for x1, x2, y1, y2 in ((start, end, 43, 43), (start, start, 39, 47), (end, end, 39, 47))
    )
    words = f'<text x="{measured["words"]}%" y="57" text-anchor="{measured["anchor"]}">{measured["text"]}</text>'
    return f'<g class="pd-bracket" data-bracket="{name}" transform="translate(0 {measured["top"]})">{lines}{words}</g>'


def _radios(stall: dict, chosen: dict) -> str:
    choices = "".join(
        f'<label><input type="radio" name="scenario" value="{each["name"]}" autocomplete="off"'
        f"{' checked' * (each is chosen)}><span>{each['label']}</span></label>"
        for each in stall["scenarios"]
    )
    return f"<fieldset><legend>Prompt</legend>{choices}</fieldset>"


def _table(stall: dict, chosen: dict) -> str:
    rows = "".join(_row(each, each is chosen) for each in stall["scenarios"])
    return (
        '<table class="pd-numbers"><colgroup><col></colgroup><colgroup span="2"></colgroup>'
        '<colgroup span="2"></colgroup><thead><tr><td></td><th scope="colgroup" colspan="2"><b>others</b></th>'
        '<th scope="colgroup" colspan="2"><b>newcomer</b></th></tr><tr><th scope="col">prompt enters</th>'
        '<th scope="col">longest gap, ms</th><th scope="col">their TPOT, ms</th>'
        '<th scope="col">TTFT, ms</th><th scope="col">weights read, GB</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _why(stall: dict) -> str:
    return f'<p class="pd-note">{stall["why"]}</p>' if stall["why"] else ""


def _row(scenario: dict, is_chosen: bool) -> str:
    current = ' aria-current="true"' * is_chosen
    cells = "".join(f"<td>{text}</td>" for text in scenario["row"])
    return f'<tr data-scenario="{scenario["name"]}"{current}><th scope="row">{scenario["label"]}</th>{cells}</tr>'
