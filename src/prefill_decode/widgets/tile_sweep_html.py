"""The picture of a `TileSweep` as HTML. It is the only renderer: the script changes attributes and texts of it."""

import html

from prefill_decode.widgets.attention_grid_panels import step_controls, token
from prefill_decode.widgets.elements import POLITE, UNSEEN, questions, room, root, select, text
from prefill_decode.widgets.page_only import page_only
from prefill_decode.widgets.quantities import count, percent
from prefill_decode.widgets.tile_sweep_data import ORDERS, memory_of

NOTE = (
    "× is exp(old m − new m): the old sum ℓ, and with it the weight of the old output, is scaled by it. "
    "✓ is final: all keys of the row were read."
)
TILE_RULE = "A tile: ⌈M/4d⌉ keys; as many query rows, but at most d, so that a tile of scores fits, too. Here d = {d}."
PHASES = ("read Q, K, write A", "read A, write W", "read W, V, write O")


def picture(data: dict, memory: int, order: str, *, with_data: bool) -> str:
    """Return the root element at the last step of one choice; with its data, it is a page's own model."""
    chosen = memory_of(data, memory)
    told = chosen["orders"][order]
    step = told["steps"]
    state = {"steps": step, "step": step, "memory": memory, "order": order}
    counts = {"reads": told["reads"][-1], "writes": told["writes"][-1], "accesses": told["total"]}
    counts |= {"standard": data["standard"], "skipped": told["skipped"][-1]}
    attributes = {name: str(value) for name, value in (state | counts).items()}
    traits = {"data": data, "memory": memory, "order": order, "step": step} if with_data else None
    body = (
        f'<p class="pd-heading"><b>One tile of scores at a time:</b> it is in fast memory, used and thrown away</p>'
        f'<div class="pd-scene"><div class="pd-main">{_grid(data, chosen, told)}{LEGEND}</div>'
        f'<div class="pd-side">{_rows(data, chosen, told)}<p class="pd-note">{NOTE}</p></div>'
        f'<div class="pd-now"><div class="pd-steps" hidden>{page_only(step_controls(told))}</div>'
        f'<p class="pd-sentence"{POLITE}{room(_sentences(data))}>{told["sentences"][-1]}</p>'
        f'<div class="pd-choices" hidden>{page_only(_choices(data, memory, order))}</div>'
        f'<div class="pd-questions" hidden>{page_only(_questions(data))}</div></div>'
        f"{_accesses(data, told, data['ends'][order])}</div>"
    )
    return root("tile-sweep", "Attention tile by tile", attributes, traits, body)


def _sentences(data: dict) -> list[str]:
    steps = [text for told in _choices_of(data) for text in told["sentences"]]
    return steps + [each["answer"] for each in data["questions"]]


def _choices_of(data: dict) -> list[dict]:
    return [told for memory in data["memories"] for told in memory["orders"].values()]


LEGEND = (
    '<p class="pd-legend"><span data-state="now">in fast memory, with its scores</span> '
    '<span data-state="done">done, scores gone</span> <span data-state="future">to come</span> '
    '<span data-state="skipped">skipped or masked: keys that come later</span></p>'
)


def edges(i: int, size: int, n: int, names: tuple[str, str]) -> list[str]:
    """Return which sides of row or column `i` are sides of its tile."""
    before, after = names
    return [before] * (i % size == 0) + [after] * (i % size == size - 1 or i == n - 1)


def _state(chosen: dict, told: dict, i: int, j: int) -> str:
    """Return the state of a cell's tile at the last step."""
    row, column = i // chosen["queries"], j // chosen["keys"]
    if column * chosen["keys"] >= min((row + 1) * chosen["queries"], len(chosen["known"])):
        return "skipped"
    return "now" if told["tiles"][-1] == [row, column] else "done"


def _grid(data: dict, chosen: dict, told: dict) -> str:
    n = data["n"]
    head = "".join(f'<th scope="col">{_label(data, j)} <span>{j}</span></th>' for j in range(n))
    rows = "".join(
        f'<tr><th scope="row"><span>{i}</span> {_label(data, i)}</th>'
        f"{''.join(_cell(data, chosen, told, i, j) for j in range(n))}</tr>"
        for i in range(n)
    )
    marks = " data-many" * (n > 12) + " data-numbered" * (data["labels"] is None)
    return (
        f'<table class="pd-grid"{marks}><caption>Scores: query (row) × key (column)</caption>'
        f'<thead><tr><td class="pd-corner"></td>{head}</tr></thead><tbody>{rows}</tbody></table>'
    )


def _label(data: dict, i: int) -> str:
    return "" if data["labels"] is None else token(data["labels"][i])


def _cell(data: dict, chosen: dict, told: dict, i: int, j: int) -> str:
    state, n = _state(chosen, told, i, j), data["n"]
    sides = " ".join(edges(i, chosen["queries"], n, ("top", "bottom")) + edges(j, chosen["keys"], n, ("left", "right")))
    score = data["scores"][i][j] if state == "now" and j <= i else ""
    return f'<td data-state="{state}" data-edges="{sides}"{" data-masked" * (j > i)}><span>{score}</span></td>'


def _rows(data: dict, chosen: dict, told: dict) -> str:
    columns = "".join(f'<th scope="col">{name}</th>' for name in ("row", "max m", "sum ℓ", "×"))
    body = "".join(_row(data, chosen, told, i) for i in range(data["n"]))
    return (
        f'<table class="pd-rows"><caption>What each row knows</caption><thead><tr>{columns}'
        f'<th scope="colgroup" colspan="{data["d"]}">output so far</th><th scope="col" aria-label="final">✓</th></tr>'
        f"</thead><tbody>{body}</tbody></table>"
    )


def _row(data: dict, chosen: dict, told: dict, i: int) -> str:
    maximum, total, output, factor = chosen["known"][i][-1]
    row, column = told["tiles"][-1]
    in_tile, reads = row == i // chosen["queries"], column * chosen["keys"] <= i
    shown = "" if not in_tile else (factor or "–") if reads else "1.00"
    cells = "".join(f"<td>{value}</td>" for value in (maximum, total, shown, *output, "✓"))
    state = "now" if in_tile and reads else "done"
    return f'<tr data-turn="{state}" data-final><th scope="row">{i}</th>{cells}</tr>'


def _accesses(data: dict, told: dict, ends: str) -> str:
    texts = {
        "accesses": count(told["total"]),
        "reads": count(told["reads"][-1]),
        "writes": count(told["writes"][-1]),
        "end": told["end"],
        "ends": ends,
    }
    return (
        '<div class="pd-accesses"><p class="pd-title">Slow-memory accesses, in numbers read or written</p>'
        f'<p class="pd-line"><b>tiled, so far: {text("span", "accesses", texts)}</b> ='
        f" {text('span', 'reads', texts)} reads + {text('span', 'writes', texts)} writes</p>{_tiled_bar(data, told)}"
        f'<p class="pd-line"><b>standard: {count(data["standard"])}</b> = {_phases(data)}</p>{_standard_bar(data)}'
        f"{text('p', 'end', texts, 'pd-end', room(each['end'] for each in _choices_of(data)))}"
        f"{text('p', 'ends', texts, 'pd-note', room(data['ends'].values()))}"
        f'<p class="pd-note">{TILE_RULE.format(d=data["d"])}</p></div>'
    )


def _phases(data: dict) -> str:
    return " + ".join(
        f"{count(number)} <span>({words})</span>" for number, words in zip(data["phases"], PHASES, strict=True)
    )


def _tiled_bar(data: dict, told: dict) -> str:
    longest = data["longest"]
    parts = "".join(
        f'<span data-part="{name}" style="width:{percent(told[name][-1] / longest)}"></span>'
        for name in ("reads", "writes")
    )
    mark = f'<span data-part="end" style="left:{percent(told["total"] / longest)}"></span>'
    return f'<div class="pd-bar"{UNSEEN}>{parts}{mark}</div>'


def _standard_bar(data: dict) -> str:
    parts = "".join(
        f'<span data-part="phase" style="width:{percent(number / data["longest"])}"></span>'
        for number in data["phases"]
    )
    return f'<div class="pd-bar"{UNSEEN}>{parts}</div>'


def _choices(data: dict, memory: int, order: str) -> str:
    sizes = {str(each["m"]): each["option"] for each in data["memories"]}
    return select("Fast memory", "memory", sizes, str(memory)) + select("Loop order", "order", ORDERS, order)


def _questions(data: dict) -> str:
    return questions({str(i): html.escape(each["ask"]) for i, each in enumerate(data["questions"])})
