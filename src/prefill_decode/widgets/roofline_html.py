"""The markup of a `Roofline`: once, for every place it is shown; JavaScript changes texts and attributes in it."""

from prefill_decode.widgets.elements import (
    DASHED,
    POLITE,
    STATUS,
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
from prefill_decode.widgets.page_only import page_only
from prefill_decode.widgets.quantities import count, percent
from prefill_decode.widgets.roofline_data import LARGEST_BATCH, LONGEST_PROMPT
from prefill_decode.widgets.roofline_texts import PLOT_HEIGHT

TITLE = "Roofline: FLOP per byte against attainable TFLOP/s, prefill and decode as two points"
PASS_ROWS = (
    ("rows", "tokens computed", ""),
    ("flops", "arithmetic", ""),
    ("weights", "weights read", "weights-read"),
    ("read", "K/V cache read", ""),
    ("written", "K/V cache written", ""),
    ("intensity", "FLOP per byte", "weights and K/V read"),
    ("bound", "what binds", ""),
    ("least", "time, at least", "efficiency 1"),
    ("about", "time, about", "constants below"),
)
REQUEST_ROWS = (
    ("TTFT", "ttft-least", "ttft"),
    ("TPOT", "tpot-least", "tpot"),
    ("whole request", "whole-least", "whole"),
    ("output, each", "rate"),
    ("output, all", "rate-all"),
    ("prefill crosses at", "prompt-at-ridge"),
    ("decode crosses at", "batch-at-ridge"),
)
DEVICE_ROWS = (
    ("peak, dense", "peak"),
    ("bandwidth", "bandwidth"),
    ("memory", "memory"),
    ("constants<small>behind “about”</small>", "class"),
)
MEMORY_ROWS = (
    ("weights<small>stored, input embedding included</small>", "memory-weights"),
    ("cache at the end", "memory-cache"),
    ("both", "memory-all"),
    ("largest batch", "largest"),
)
QUESTIONS = {
    "short": "A 5-token prompt: what binds?",
    "ridge": "Which prompt stands at the ridge?",
    "never": "Can a batch stay memory-bound for ever?",
    "int4": "What do int4 weights speed up?",
    "unfit": "A batch that does not fit?",
}
WHOLE = ' y="0" height="100%" fill="none"'
SQUARE, DOT = ' width="15" height="15" transform="translate(-7.5 -7.5)"', ' r="8"'
RING = f' r="5" fill="none"{STROKE}'


def picture(traits: dict, attributes: dict[str, str], texts: dict[str, str], places: dict, *, with_data: bool) -> str:
    """Return the root element of the widget.

    Parameters
    ----------
    traits : dict
        The data and the choice, as the page's model holds them.
    attributes, texts, places : dict
        As `roofline_texts` returns them.
    with_data : bool
        Whether the traits are in the markup: a page has no other model, a notebook has.
    """
    device = _rows("pd-device", "The device", "", DEVICE_ROWS, texts, columns=1)
    side = f"{device}{_passes(texts)}{_request(texts)}{text('p', 'reached', texts, 'pd-note')}"
    body = (
        f'{text("p", "caption", texts, "pd-caption")}<div class="pd-main">'
        f'<div class="pd-plot">{_svg(traits["data"]["axes"], texts, places)}</div>'
        f'<div class="pd-controls" hidden>{page_only(_controls(traits))}</div><p class="pd-alert" role="alert"></p>'
        f"{text('p', 'sentence', texts, 'pd-sentence', POLITE)}"
        f'<div class="pd-questions" hidden>{page_only(questions(QUESTIONS))}</div>{_memory(texts, places)}</div>'
        f'<div class="pd-side">{side}</div>'
    )
    return root("roofline", "Roofline", attributes, traits if with_data else None, body)


def _svg(axes: dict, texts: dict[str, str], places: dict) -> str:
    points = (
        f"{place('circle', 'limit-point', places, 'pd-limit', RING)}"
        f"{place('rect', 'prefill-point', places, 'pd-point pd-prefill', SQUARE)}"
        f"{place('circle', 'decode-point', places, 'pd-point pd-decode', DOT)}"
    )
    inner = (
        f"{place('rect', 'zone', places, 'pd-zone', WHOLE)}{_scale(axes)}"
        f"{place('line', 'ridge-line', places, 'pd-ridge', UPRIGHT + DASHED)}"
        f"{place('line', 'limit-drop', places, 'pd-limit', UPRIGHT + DASHED)}"
        f"{place('line', 'prefill-drop', places, 'pd-drop pd-prefill', UPRIGHT)}"
        f"{place('line', 'decode-drop', places, 'pd-drop pd-decode', UPRIGHT)}"
        f"{place('line', 'slope', places, 'pd-roof', STROKE)}{place('line', 'flat', places, 'pd-roof', STROKE)}"
    )
    return drawing(TITLE, PLOT_HEIGHT, texts, inner + points + _labels(texts, places))


def _scale(axes: dict) -> str:
    """Draw a line and a number for each power of ten; the vertical axis counts TFLOP/s."""
    (x0, x1), (y0, y1) = axes["x"], axes["y"]
    across = {percent((power - x0) / (x1 - x0)): _power(power) for power in range(x0, x1 + 1)}
    up = {percent((y1 - power) / (y1 - y0)): _power(power - 12) for power in range(y0, int(y1) + 1)}
    titles = (
        '<text class="pd-axis" x="0%" y="0%" dx="-34" dy="-9">TFLOP/s</text>'
        '<text class="pd-axis" x="100%" y="100%" dy="53" text-anchor="end">FLOP per byte →</text>'
    )
    return scale(across, up, titles)


def _power(power: int) -> str:
    if power < 0:
        return f"{10.0**power:.{-power}f}"
    return str(10**power) if power < 3 else f"{10 ** (power - 3)}k" if power < 6 else f"{10 ** (power - 6)}M"


def _labels(texts: dict[str, str], places: dict) -> str:
    left, right = (f' y="100%" dx="{dx}" dy="35" text-anchor="{anchor}"' for dx, anchor in ((-6, "end"), (6, "start")))
    return (
        place("text", "memory-side", places, "pd-side-name", left, "memory binds ◂")
        + place("text", "compute-side", places, "pd-side-name", right, "▸ compute binds")
        + label("ridge", texts, places, "pd-ridge-name", ' y="0%" dy="-25"', "ridge-label")
        + label("ridge-prompt", texts, places, "pd-ridge-name", ' y="0%" dy="-9"', "ridge-label")
        + label("limit-name", texts, places, "pd-limit-name")
        + label("limit-at", texts, places, "pd-limit-name")
        + label("decode-name", texts, places, "pd-name pd-decode")
        + label("decode-at", texts, places, "pd-at pd-decode")
        + label("prefill-name", texts, places, "pd-name pd-prefill")
        + label("prefill-at", texts, places, "pd-at pd-prefill")
    )


def _passes(texts: dict[str, str]) -> str:
    def row(name: str, title: str, small: str) -> str:
        known = text("small", small, texts) if small in texts else f"<small>{small}</small>"
        more = known if small else ""
        cells = "".join(text("td", f"{phase}-{name}", texts) for phase in ("prefill", "decode"))
        return f'<tr data-row="{name}"><th scope="row">{title}{more}</th>{cells}</tr>'

    return (
        '<table class="pd-passes"><caption>One pass</caption><thead><tr><td></td>'
        '<th scope="col" class="pd-prefill"><span aria-hidden="true">■</span> prefill</th>'
        '<th scope="col" class="pd-decode"><span aria-hidden="true">●</span> decode</th></tr></thead>'
        f"<tbody>{''.join(row(*entry) for entry in PASS_ROWS)}</tbody></table>"
    )


def _request(texts: dict[str, str]) -> str:
    heads = '<thead><tr><td></td><th scope="col">at least</th><th scope="col">about</th></tr></thead>'
    return _rows("pd-request", "The request", heads, REQUEST_ROWS, texts, columns=2)


def _memory(texts: dict[str, str], places: dict) -> str:
    bar = place("div", "room", places, "pd-room", UNSEEN, "<span></span><span></span><i></i>")
    table = _rows("pd-memory", "Memory", "", MEMORY_ROWS, texts, columns=1)
    return f"{table}{bar}{text('p', 'unfit', texts, 'pd-unfit', STATUS)}"


def _rows(css: str, title: str, heads: str, rows: tuple, texts: dict[str, str], *, columns: int) -> str:
    """Return a table of which each row is a label and the names of one text or of one for each column."""

    def row(first: str, *names: str) -> str:
        wide = f' colspan="{columns}"' if len(names) < columns else ""
        return f'<tr><th scope="row">{first}</th>{"".join(text("td", name, texts, "", wide) for name in names)}</tr>'

    body = "".join(row(*entry) for entry in rows)
    return f'<table class="{css}"><caption>{title}</caption>{heads}<tbody>{body}</tbody></table>'


def _controls(traits: dict) -> str:
    data = traits["data"]
    dtypes = {name: dtype["label"] for name, dtype in data["dtypes"].items()}
    models, devices = ({name: name for name in data[kind]} for kind in ("models", "devices"))
    selects = (
        select("Model", "model", models, traits["model"])
        + select("Device", "device", devices, traits["device"])
        + select("Dtype", "dtype", dtypes, traits["dtype"])
    )
    lengths = _number("Prompt length", "prompt_len", LONGEST_PROMPT, traits)
    fixed = f'<p class="pd-note">New tokens: {count(data["newTokens"])} a request, fixed.</p>'
    batch = _number("Batch", "batch", LARGEST_BATCH, traits)
    return f'<div class="pd-selects">{selects}</div>{lengths}{batch}{fixed}'


def _number(title: str, name: str, largest: int, traits: dict) -> str:
    return (
        f'<div class="pd-number"><label><span aria-hidden="true">{title}</span><input type="number" name="{name}"'
        f' aria-label="{title}" min="1" max="{largest}" step="1" value="{traits[name]}" autocomplete="off"></label>'
        f'<input type="range" name="{name}" aria-label="{title}, slider" min="0" max="1" step="1" value="1"'
        ' autocomplete="off"></div>'
    )
