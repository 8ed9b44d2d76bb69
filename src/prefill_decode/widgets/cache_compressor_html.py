"""The markup of a `CacheCompressor`: ways of storing, three bars, two continuations and a table of all rows."""

import html
from collections.abc import Mapping, Sequence

from prefill_decode.widgets.elements import POLITE, place, questions, room, root, text
from prefill_decode.widgets.page_only import for_page, page_only

LABEL = "Ways of storing the cache"
BARS = {"bytes": "Bytes a token", "mean": "Change of the logits, mean", "perplexity": "Perplexity of the text"}
COLUMNS = {
    "bytes": "bytes a token",
    "ratio": "of exact",
    "largest": "largest change",
    "mean": "mean change",
    "perplexity": "perplex\u00adity",
    "common": "same start",
}
OTHER = "from here on another text"


def picture(data: dict, storage: str, *, with_data: bool) -> str:
    """Return the root with one way of storing chosen; `with_data` for a page, where controls wait in their wrapping."""
    ways = data["ways"]
    shown = ways[storage]
    asked = {str(i): html.escape(each["ask"]) for i, each in enumerate(data["questions"])}
    tried = f'<div class="pd-questions" hidden>{page_only(questions(asked))}</div>' if asked else ""
    said = [way["texts"]["sentence"] for way in ways.values()] + [each["answer"] for each in data["questions"]]
    bars = "".join(_bar(name, title, shown, data["marks"][name]) for name, title in BARS.items())
    body = (
        f'<div class="pd-main"><form class="pd-ways" hidden>{page_only(_choices(ways, storage))}</form>'
        f'<div class="pd-bars"><p class="pd-title">{text("b", "name", shown["texts"], more=room(ways))}</p>{bars}'
        '<p class="pd-note"><i class="pd-key"></i> exact storage; a full track is the largest of all rows</p>'
        f"</div></div>{tried}{text('p', 'sentence', shown['texts'], 'pd-sentence', POLITE + room(said))}"
        f"{_continuations(ways, storage)}{_table(ways, storage)}"
    )
    traits = {"data": data, "storage": storage} if with_data else None
    markup = root("cache-compressor", LABEL, shown["attributes"], traits, body)
    return markup if with_data else for_page(markup)


def _choices(ways: Mapping[str, dict], storage: str) -> str:
    """Return a radio button for each way; the form around them makes them a group of their own on a page of many."""

    def choice(name: str) -> str:
        mark = " checked" if name == storage else ""
        value = html.escape(name)
        return f'<label><input type="radio" name="storage" value="{value}" autocomplete="off"{mark}>{value}</label>'

    return f"<fieldset><legend>Store the past as</legend>{''.join(map(choice, ways))}</fieldset>"


def _bar(name: str, title: str, shown: dict, mark: str) -> str:
    texts = shown["texts"]
    ratio = f" <small>{text('span', 'ratio', texts)} of exact</small>" if name == "bytes" else ""
    tick = f'<i class="pd-tick" style="--pd-v:{mark}"></i>'
    bar = place("i", name, shown["places"], "pd-bar")
    return (
        f'<div class="pd-measure"><p><span>{title}</span> {text("b", name, texts)}{ratio}</p>'
        f'<div class="pd-track" aria-hidden="true">{bar}{tick}</div></div>'
    )


def _continuations(ways: Mapping[str, dict], storage: str) -> str:
    """Return the text of exact storage and below it that of each way; the others are there with scripts only."""
    exact = next(iter(ways))
    first = _chips(exact, ways[exact]["tokens"], ways[exact]["common"])
    lines = "".join(
        _line(name, way, chosen=True) if name == storage else page_only(_line(name, way, chosen=False))
        for name, way in ways.items()
    )
    return (
        f'<div class="pd-texts"><p class="pd-title">The text goes on</p><p class="pd-chips">{first}</p>'
        f'<div class="pd-stage">{lines}</div></div>'
    )


def _line(name: str, way: dict, *, chosen: bool) -> str:
    mark = ' data-chosen=""' if chosen else ""
    inner = _chips(name, way["tokens"], way["common"])
    return f'<p class="pd-chips" data-text-of="{html.escape(name)}"{mark}>{inner}</p>'


def _chips(name: str, tokens: Sequence[str], common: int) -> str:
    chips = [f"<span>{_chip(token)}</span>" for token in tokens[:common]]
    if common < len(tokens):
        chips += [f"<em>{OTHER}</em>", *(f"<u>{_chip(token)}</u>" for token in tokens[common:])]
    return f"<b>{html.escape(name, quote=False)}:</b> {' '.join(chips)}"


def _chip(token: str) -> str:
    return html.escape(token.replace("\n", "↵"), quote=False)


def _table(ways: Mapping[str, dict], storage: str) -> str:
    heads = "".join(f'<th scope="col" class="pd-{key}">{title}</th>' for key, title in COLUMNS.items())
    rows = "".join(_row(name, way["texts"], chosen=name == storage) for name, way in ways.items())
    caption = "<caption>All ways of storing; changes are those of the logits</caption>"
    return f'<table>{caption}<thead><tr><th scope="col">storage</th>{heads}</tr></thead><tbody>{rows}</tbody></table>'


def _row(name: str, texts: Mapping[str, str], *, chosen: bool) -> str:
    mark = ' aria-current="true"' if chosen else ""
    cells = "".join(f'<td class="pd-{key}">{texts[key]}</td>' for key in COLUMNS)
    shown = html.escape(name)
    return f'<tr data-row="{shown}"{mark}><th scope="row">{shown}</th>{cells}</tr>'
