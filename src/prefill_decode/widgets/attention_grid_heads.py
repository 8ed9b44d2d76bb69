"""The map of all heads under an `AttentionGrid`: one cell a head, coloured by a plain measure of this phrase."""

import base64
import html

from prefill_decode.widgets.attention_grid_panels import head_name, select, token
from prefill_decode.widgets.page_only import page_only

MAP_LABEL = "Heads: layers from left to right, heads from top to bottom"


def heads_card(phrase: dict) -> str:
    """Return the card, hidden until a script runs; the cells of its map are drawn by the script only."""
    n_layers, n_heads = len(phrase["layers"]), len(phrase["heads"])
    return page_only(
        '<div class="pd-card pd-heads" data-card="heads" hidden>'
        f'<div class="pd-heads-top"><p class="pd-title">All {n_layers * n_heads} heads</p>{_measure(phrase)}</div>'
        f'<div class="pd-plot" style="--pd-layers:{n_layers};--pd-heads:{n_heads}">{_axis("head", phrase["heads"])}'
        f'<div class="pd-map" role="radiogroup" aria-label="{MAP_LABEL}"></div>{_axis("layer", phrase["layers"])}</div>'
        f'<p class="pd-told">{_told(phrase)}</p><div class="pd-named">{_named(phrase)}</div></div>'
    )


def _measure(phrase: dict) -> str:
    if not phrase["measures"]:
        return ""
    first = phrase["measures"][0]
    return (
        select("Measure", [measure["name"] for measure in phrase["measures"]], 0)
        + f'<p class="pd-legend"><span>0</span><span class="pd-ramp"></span><span>{first["top"]}</span></p>'
        + f'<p class="pd-meaning">{first["meaning"]}</p>'
    )


def _axis(name: str, labels: list[str]) -> str:
    last = token(labels[-1]) if len(labels) > 1 else ""
    ends = f"{token(labels[0])}<span>{name}</span>{last}"
    return f'<div class="pd-axis" data-axis="{name}" aria-hidden="true">{ends}</div>'


def _told(phrase: dict) -> str:
    layer, head = phrase["open"]
    told = f"layer {html.escape(phrase['layers'][layer])}, head {html.escape(phrase['heads'][head])}"
    if phrase["measures"]:
        measure = phrase["measures"][0]
        byte = base64.b64decode(measure["data"])[layer * len(phrase["heads"]) + head]
        told += f": <b>{byte / 255 * measure['max']:.{measure['decimals']}f}</b> {measure['says']}"
    name = head_name(phrase, layer, head)
    return told + (f" · {token(name)}" if name else "")


def _named(phrase: dict) -> str:
    return "".join(
        f'<button type="button" data-named="{i}" aria-pressed="{"true" if i == 0 else "false"}">'
        f"<span>{html.escape(phrase['layers'][layer])}/{html.escape(phrase['heads'][head])}</span>"
        f" {token(text)}</button>"
        for i, (layer, head, text) in enumerate(phrase["names"])
    )
