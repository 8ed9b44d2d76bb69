"""The markup of a `MaskGallery`, all rows run: thumbnails, and for each case a table of its mask and a ledger."""

import html
from collections.abc import Mapping

from prefill_decode.schedules.masks import PAD
from prefill_decode.widgets.attention_grid_panels import step_controls
from prefill_decode.widgets.elements import POLITE, questions, room, root
from prefill_decode.widgets.mask_gallery_cases import MaskCase, Place
from prefill_decode.widgets.mask_gallery_thumbnail import thumbnail
from prefill_decode.widgets.page_only import for_page, page_only
from prefill_decode.widgets.quantities import count

LABEL = "Gallery of attention masks"
MANY = 12  # columns; more are too narrow on a phone for a letter and a digit
HINT = "Point at a cell, tap it, or go there with Tab and arrow keys: it says why its row may read its key."
MARKS = {"allowed": "1", "masked": "", "pad": "–", "unused": "/"}  # for readers without styles
LEGEND = {
    "allowed": "row reads key",
    "masked": "masked",
    "pad": "pad",
    "unused": "block of others, or free",
    "absent": "not there yet",
}


def picture(cases: Mapping[str, MaskCase], data: dict, chosen: str, *, with_data: bool) -> str:
    """Return the root with one case in sight; `with_data` for a page, where controls wait in their wrapping."""
    shown = data["cases"][chosen]
    steps = shown["steps"]
    attributes = {"case": chosen, "step": steps, "steps": steps, "pairs": shown["allowed"]}
    attributes |= {name: shown[name] for name in ("allowed", "dense", "formula")} | {"wasted-rows": shown["wastedRows"]}
    asked = {str(i): html.escape(each["ask"]) for i, each in enumerate(data["questions"])}
    tried = f'<div class="pd-questions" hidden>{page_only(questions(asked))}</div>' if asked else ""
    reason = f"<p{POLITE}{room([HINT, *data['reasons']])}>{HINT}</p>"
    body = (
        '<p class="pd-heading"><b>Who may read whom:</b> a row is a query, a column is a key, all to one scale</p>'
        f'<div class="pd-thumbs">{"".join(_choice(case, chosen) for case in cases.values())}</div>'
        f'{tried}<div class="pd-steps" hidden>{page_only(step_controls({"steps": steps}))}</div>'
        f'<p class="pd-sentence"{POLITE}{room(_said(data))}>{html.escape(shown["sentences"][-1], quote=False)}</p>'
        f'<div class="pd-stage">{"".join(_shown(case, chosen) for case in cases.values())}</div>'
        f'<div class="pd-cell-line" hidden>{page_only(reason)}</div>'
    )
    traits = {"data": data, "case": chosen, "step": steps} if with_data else None
    markup = root("mask-gallery", LABEL, {name: str(value) for name, value in attributes.items()}, traits, body)
    return markup if with_data else for_page(markup)


def _said(data: dict) -> list[str]:
    """Return all that the sentence may say."""
    steps = [sentence for case in data["cases"].values() for sentence in case["sentences"]]
    return steps + [each["answer"] for each in data["questions"]]


def _choice(case: MaskCase, chosen: str) -> str:
    """Return a thumbnail with its counts; the button that covers it is there with scripts only."""
    title, pressed = html.escape(case.title), str(case.name == chosen).lower()
    cover = page_only(
        f'<button type="button" data-choose="{html.escape(case.name)}" aria-pressed="{pressed}" aria-label="{title}"'
        " hidden></button>"
    )
    return (
        f"<figure>{thumbnail(case)}<figcaption><b>{title}</b><span>{count(case.allowed)} pairs</span>"
        f"<small>n(n+1)/2: {count(case.formula)}</small></figcaption>{cover}</figure>"
    )


def _shown(case: MaskCase, chosen: str) -> str:
    """Return a case; those out of sight are of no use where styles or scripts are missing."""
    mark = " data-chosen" * (case.name == chosen)
    section = (
        f'<section class="pd-case" data-mask="{html.escape(case.name)}" aria-label="{html.escape(case.title)}"{mark}>'
        f'<div class="pd-main">{_table(case)}{_legend(case)}</div><div class="pd-side">{_ledger(case)}'
        f'<p class="pd-note">{html.escape(case.note, quote=False)}</p></div></section>'
    )
    return section if mark else page_only(section)


def _table(case: MaskCase) -> str:
    n_rows, n_keys = case.mask.shape
    title = html.escape(case.title)
    bands = "".join(f'<th scope="colgroup" colspan="{span}">{html.escape(name)}</th>' for name, span in case.bands)
    groups = "".join(f'<colgroup span="{span}"></colgroup>' for _, span in case.bands)
    labels = "".join(_head("col", _heading(place), place.prompt == PAD) for place in case.columns)
    many = " data-many" * (n_keys > MANY)
    return (
        f'<table class="pd-mask"{many} style="--pd-keys:{n_keys};--pd-rows:{n_rows}"><caption>{title}: {n_rows} rows,'
        f' {n_keys} keys</caption><colgroup><col class="pd-pass"><col class="pd-label"></colgroup>{groups}'
        f'<colgroup><col class="pd-read"></colgroup><thead><tr><td colspan="2"></td>{bands}<td></td></tr>'
        f'<tr><td colspan="2"></td>{labels}<th scope="col">keys</th></tr></thead>{_passes(case)}</table>'
    )


def _heading(place: Place) -> str:
    """Return a label whose letter, which the band above has, too, may go where columns are narrow."""
    return f"<span>{place.label[0]}</span>{place.label[1:]}" if place.prompt >= 0 else place.label


def _head(scope: str, label: str, is_pad: bool) -> str:
    pad = ' aria-label="pad"' if is_pad else ""
    return f'<th scope="{scope}"{pad}>{label}</th>'


def _passes(case: MaskCase) -> str:
    bodies = []
    for number, (start, each) in enumerate(zip(case.starts, case.passes, strict=True), 1):
        rows = f"{each.rows} row{'s' * (each.rows != 1)}"
        bracket = f'<th scope="rowgroup" rowspan="{each.rows}"><span>pass {number}: <br>{rows}</span></th>'
        inner = [_row(case, q, bracket if q == start else "") for q in range(start, start + each.rows)]
        bodies.append(f"<tbody>{''.join(inner)}</tbody>")
    return "".join(bodies)


def _row(case: MaskCase, q: int, bracket: str) -> str:
    place, n_keys = case.rows[q], case.mask.shape[1]
    cells = "".join(_cell(case, q, k) for k in range(n_keys))
    now = "now" if q == len(case.rows) - 1 else "done"
    return (
        f'<tr data-row="{q}" data-run="{now}">{bracket}{_head("row", place.label, place.prompt == PAD)}{cells}'
        f'<td class="pd-read">{int(case.mask[q].sum())}</td></tr>'
    )


def _cell(case: MaskCase, q: int, k: int) -> str:
    state = case.state(q, k)
    sides = "".join(side for side, (i, j) in zip("tblr", _neighbours(q, k), strict=True) if not _own(case, i, j))
    edge = f' data-edge="{sides}"' if sides and _own(case, q, k) else ""
    absent = " data-absent" * (k >= case.passes[case.pass_of(q)].keys)
    return f'<td data-q="{q}" data-k="{k}" data-state="{state}"{edge}{absent}>{MARKS[state]}</td>'


def _neighbours(q: int, k: int) -> tuple[tuple[int, int], ...]:
    return (q - 1, k), (q + 1, k), (q, k - 1), (q, k + 1)


def _own(case: MaskCase, q: int, k: int) -> bool:
    """Say whether row and key are of one prompt: these pairs are outlined."""
    n_rows, n_keys = case.mask.shape
    return 0 <= q < n_rows and 0 <= k < n_keys and case.rows[q].prompt == case.columns[k].prompt >= 0


def _legend(case: MaskCase) -> str:
    states = {case.state(q, k) for q in range(case.mask.shape[0]) for k in range(case.mask.shape[1])}
    if any(each.keys < case.mask.shape[1] for each in case.passes):
        states.add("absent")
    shown = "".join(f'<span data-legend="{state}">{text}</span>' for state, text in LEGEND.items() if state in states)
    return f'<p class="pd-legend">{shown}</p>'


def _ledger(case: MaskCase) -> str:
    vain = case.dense - case.allowed
    pads = f"{case.wasted_rows} are pads" if case.wasted_rows else "no pads"
    lines = f"{case.lines} lines of " * (case.lines > 1)
    formula, dense = (lines + how for how in (f"{case.line_rows} · {case.line_rows + 1} / 2", case.dense_how))
    most = max(case.dense, case.formula)
    n, pairs = len(case.rows), f'<b data-so-far="pairs">{case.allowed}</b><span data-so-far="rest"></span>'
    entries = (
        ("Rows run", f'<b data-so-far="rows">{n}</b> of {n}', pads, None),
        ("Pairs allowed", pairs, "", case.allowed),
        ("n(n+1)/2 says", f"<b>{count(case.formula)}</b>", formula, case.formula),
        ("A dense kernel computes", f"<b>{count(case.dense)}</b>", dense, case.dense),
        ("Of these in vain", f"<b>{count(vain)}</b>", f"{100 * vain / case.dense:.0f}%", None),
    )
    return f'<table class="pd-ledger"><tbody>{"".join(_line(*each, most) for each in entries)}</tbody></table>'


def _line(title: str, value: str, how: str, size: int | None, most: int) -> str:
    bar = "" if size is None else f'<span class="pd-bar" style="--pd-v:{size / most:.3f}"></span>'
    return f'<tr><th scope="row">{title}</th><td>{value} <small>{how}</small>{bar}</td></tr>'
