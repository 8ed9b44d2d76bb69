"""The markup of a `LedgerTable`: once, for every place it is shown; JavaScript changes texts and attributes in it."""

import html

from prefill_decode.widgets.elements import (
    DASHED,
    POLITE,
    STROKE,
    UNSEEN,
    UPRIGHT,
    drawing,
    label,
    place,
    questions,
    root,
    scale,
    select,
    text,
)
from prefill_decode.widgets.ledger_table_data import BARLESS, BYTES, FLOPS, PHASES, x_of, y_of
from prefill_decode.widgets.page_only import page_only
from prefill_decode.widgets.quantities import count, percent, short

TITLE = "Bytes that one decode token reads: weights against cache, as n grows"
LABELS = {
    "ffn": "feed-forward",
    "kv_read": "K/V read",
    "kv_written": "K/V written",
    "memory": "from memory: <small>weights and K/V</small>",
    "activations": "activations, <small>if none stays on the chip</small>",
    "dense": "pairs",
}
SUMS = ("flops-total", "bytes-memory")
BARS = "A bar is a part’s share: of the pairs a dense kernel computes, of all FLOPs, of the bytes from memory."
GROUPS = (
    (
        "Pairs the mask allows",
        "One head, layer and sequence. Leaves out what a kernel computes and throws away.",
        ("pairs",),
    ),
    (
        "Pairs a dense kernel computes",
        "Every query with every key. Leaves out that good kernels skip masked blocks.",
        ("dense",),
    ),
    (
        "FLOPs",
        "Matrix products, a multiply-add is 2. Leaves out norms, softmax, rotations and masked pairs.",
        tuple(f"flops-{part}" for part in FLOPS),
    ),
    (
        "Bytes",
        "Every array once. Leaves out second reads, and that a fused kernel keeps activations on the chip.",
        tuple(f"bytes-{part}" for part in BYTES),
    ),
)
QUESTIONS = {
    "attention": "When does attention pass the feed-forward?",
    "cache": "When does the cache weigh more than the weights?",
    "dense": "What does a dense kernel compute in vain?",
    "double": "What changes from n to 2n?",
}
RISING = f' fill="none"{STROKE} vector-effect="non-scaling-stroke"'
WHOLE = f' y1="0%"{UPRIGHT}{DASHED}'
ACROSS = f' x1="0%" x2="100%"{STROKE}'
RING, DOT, SQUARE = f' r="8" fill="none"{STROKE}', ' r="6"', ' width="12" height="12" transform="translate(-6 -6)"'
SIDE, FOOT = ' x="0%" dx="6" dy="17"', ' y="100%" dy="-8"'
UPPER, LOWER = ' dy="-30"', ' dy="-14"'


def picture(data: dict, model: str, n: int, *, with_data: bool) -> str:
    """Return the root element of the widget at one model and length.

    Parameters
    ----------
    data : dict
        As `ledger_data` returns it.
    model : str
    n : int
        One of the lengths.
    with_data : bool
        Whether the traits are in the markup: a page has no other model, a notebook has.
    """
    chosen = _chosen(data, model, n)
    texts, places = chosen["texts"], chosen["places"]
    told = {name: texts[source].replace(",", "") for name, source in data["attributes"].items()}
    attributes = {"model": model, "n": str(n), **told}
    traits = {"data": data, "model": model, "n": n} if with_data else None
    body = (
        f'<div class="pd-controls" hidden>{page_only(_controls(data, model, n, texts))}</div>'
        f'<div class="pd-questions" hidden>{page_only(questions(QUESTIONS))}</div>'
        f"{text('p', 'sentence', texts, 'pd-sentence', POLITE)}{_table(model, texts, places)}"
        f'<p class="pd-note">{BARS}</p><p class="pd-title">{TITLE}</p>'
        f'<div class="pd-plot">{_svg(data, texts, places)}</div>'
    )
    return root("ledger-table", "Ledgers of a pass", attributes, traits, body)


def _chosen(data: dict, model: str, n: int) -> dict[str, dict]:
    """Pick one entry of every list, as the module does."""
    index = data["lengths"].index(n)

    def pick(values: list) -> object:
        return values[index] if len(values) > 1 else values[0]

    entries = data["models"][model]
    return {kind: {name: pick(values) for name, values in entries[kind].items()} for kind in ("texts", "places")}


def _table(model: str, texts: dict[str, str], places: dict) -> str:
    def head(phase: str) -> str:
        name, size = text("b", f"{phase}-head", texts), text("small", f"{phase}-size", texts)
        return f'<th scope="col" class="pd-{phase}">{name} {size}</th>'

    caption = f'<caption>Four ledgers of <span data-model-name="">{html.escape(model)}</span>, one sequence</caption>'
    heads = "".join(head(phase) for phase in PHASES)
    groups = "".join(_group(*group, texts, places) for group in GROUPS)
    return f"<table>{caption}<thead><tr><td></td>{heads}</tr></thead>{groups}</table>"


def _group(title: str, leaves_out: str, rows: tuple[str, ...], texts: dict[str, str], places: dict) -> str:
    head = f'<tr><th scope="rowgroup" colspan="3"><b>{title}</b> <small>{leaves_out}</small></th></tr>'
    return f"<tbody>{head}{''.join(_row(row, texts, places) for row in rows)}</tbody>"


def _row(row: str, texts: dict[str, str], places: dict) -> str:
    part = row.rpartition("-")[2]
    cells = "".join(_cell(f"{phase}-{row}", phase, texts, places, bar=row not in BARLESS) for phase in PHASES)
    total = ' data-total=""' if row in SUMS else ""
    return f'<tr data-row="{row}"{total}><th scope="row">{LABELS.get(part, part)}</th>{cells}</tr>'


def _cell(name: str, phase: str, texts: dict[str, str], places: dict, *, bar: bool) -> str:
    exact, rounded = text("span", name, texts, "pd-exact"), text("span", f"{name}-short", texts, "pd-short")
    share = place("i", name, places, "pd-bar") if bar else ""
    return f'<td class="pd-{phase}">{exact} {rounded}{share}</td>'


def _svg(data: dict, texts: dict[str, str], places: dict) -> str:
    box = 'width="100%" height="100%" viewBox="0 0 100 100" preserveAspectRatio="none" overflow="visible"'
    inner = (
        f"{_scale(data)}{place('line', 'now-line', places, 'pd-now', WHOLE)}"
        f"{place('line', 'weights-line', places, 'pd-weights', ACROSS)}"
        f"<svg {box}>{place('polyline', 'cache-line', places, 'pd-cache', RISING)}</svg>"
        f"{place('circle', 'cross', places, 'pd-cross', RING)}"
        f"{place('rect', 'now-weights', places, 'pd-point', SQUARE)}"
        f"{place('circle', 'now-cache', places, 'pd-point', DOT)}"
        f"{label('weights-name', texts, places, 'pd-name', SIDE)}"
        f"{label('cross-name', texts, places, 'pd-name', UPPER)}{label('cross-at', texts, places, 'pd-name', LOWER)}"
        f"{label('now', texts, places, 'pd-name pd-decode', FOOT)}"
    )
    return drawing(TITLE, 240, texts, inner)


def _scale(data: dict) -> str:
    lengths, axes = tuple(data["lengths"]), data["axes"]
    low, high = axes["bytes"]
    across = {percent(x_of(n, lengths)): count(n) for n in lengths[:: max(1, len(lengths) // 4)]}
    up = {percent(y_of(10**power, axes)): f"{short(10**power, 'B')}" for power in range(low, int(high) + 1)}
    whole = {y: written.replace(".00", "").replace(".0", "") for y, written in up.items()}
    title = (
        '<text class="pd-axis" x="100%" y="100%" dy="35" text-anchor="end">n, tokens cached before this one →</text>'
    )
    return scale(across, whole, title)


def _controls(data: dict, model: str, n: int, texts: dict[str, str]) -> str:
    last = len(data["lengths"]) - 1
    return (
        f"{select('Model', 'model', {name: name for name in data['models']}, model)}"
        '<label class="pd-length"><span aria-hidden="true">n</span><input type="range" aria-label="n" min="0"'
        f' max="{last}" step="1" value="{data["lengths"].index(n)}" autocomplete="off"></label>'
        f"{text('span', 'n', texts, 'pd-count', UNSEEN)}"
    )
