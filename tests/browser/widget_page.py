"""A page of widgets, put together by the book's own code, and the module of one of them on its own."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anywidget
from playwright.sync_api import Browser, Page
from prefill_decode_book.widgets import bundle_script, bundle_styles

from prefill_decode.widgets import YourPhrase
from prefill_decode.widgets.modules import module
from prefill_decode.widgets.page_only import for_page

ROOT = Path(__file__).parents[2]
WIDGETS = ROOT / "src" / "prefill_decode" / "widgets"
PHONE = {"width": 360, "height": 740}
NO_SCRIPT = "<script>delete document.documentElement.dataset.mode</script>"  # the mark that scripts run


def html_of(widget: anywidget.AnyWidget | YourPhrase) -> str:
    """Return a widget's `text/html`, controls unwrapped as the build does."""
    own = getattr(widget, "_repr_html_", None)
    return for_page(own() if own else widget._repr_mimebundle_()[0]["text/html"])


def page_of(*widgets: anywidget.AnyWidget | YourPhrase, mount: bool = True, head: str = "") -> str:
    """Return a page as a reader opens it from the disk; unmounted, it is the page before its script ran."""
    styles = (WIDGETS / "theme.css").read_text("utf-8") + bundle_styles(WIDGETS)
    body = "".join(html_of(widget) for widget in widgets)
    script = f"<script>{bundle_script(WIDGETS)}</script>" if mount else ""
    start = f'<!doctype html><html lang="en" data-mode="auto"><meta charset="utf-8"><style>{styles}</style>{head}'
    return f"{start}<body>{body}{script}</body></html>"


@contextmanager
def opener(
    browser: Browser, folder: Path, made: Callable[..., str] = page_of, **usual: object
) -> Iterator[Callable[..., Page]]:
    """Yield a function that opens a page of widgets from the disk; no other host, no word on the console.

    `made` writes the page and has `usual` and the options `mount` and `head`; all others are the browser's.
    """
    contexts, said = [], []

    def open_page(*widgets: anywidget.AnyWidget, address: str = "", **options: object) -> Page:
        path = folder / f"{len(contexts)}.html"
        drawn = usual | {name: options.pop(name) for name in ("mount", "head") if name in options}
        path.write_text(made(*widgets, **drawn), encoding="utf-8")
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.route("**/*", lambda route: route.continue_() if route.request.url.startswith("file:") else route.abort())
        page.goto(path.as_uri() + address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []


def load_module(page: Page, name: str) -> None:
    """Put the exports of a widget's module, and those of the views that it builds on, into `window.module`."""
    page.add_script_tag(content=f"{{ {classic_module(name)}\nwindow.module = exported; }}")


def classic_module(name: str) -> str:
    """Return a widget's module as part of a classic script, its exports and those of the views in `exported`."""
    source = module(name)
    names = re.findall(r"^export (?:function|const|class) (\w+)", source, flags=re.M)
    plain = re.sub(r"^export (?=function|const|class)", "", source, flags=re.M)
    plain = re.sub(r"^export default", "const main =", plain, flags=re.M)
    return f"{plain}\nconst exported = {{ {', '.join([*names, 'default: main'])} }};\n"


# What is left out is the script's own.
PICTURE = """root => {
  const own = ["hidden", "selected", "value", "max", "tabindex", "data-live", "aria-valuetext", "data-mode"];
  const number = (text) => text.replace(/[0-9]+(\\.[0-9]+)?/g, Number);
  const attributes = (e) => [...e.attributes].filter(a => !own.includes(a.name))
    .map(a => `${a.name}=${number(a.value).replace(/[ ;]/g, "")}`).sort();
  const outline = (node) => node.nodeType === 3 ? node.data
    : [node.tagName, attributes(node), [...node.childNodes].filter(n => n.nodeName !== "SCRIPT").map(outline)];
  return outline(root);
}"""

# A notebook's model: what JavaScript sets is kept in `window.values`, what Python sets calls the view.
LIVE = """values => {
  const handlers = {};
  window.values = values;
  window.model = { get: n => values[n], on: (e, f) => { handlers[e] = f; }, off: (e) => { delete handlers[e]; },
    save_changes() {}, set: (n, v) => { values[n] = v; handlers["change:" + n]?.(); } };
  const el = document.body.appendChild(document.createElement("div"));
  window.unmount = window.module.default.render({ model: window.model, el });
}"""


def go_live(page: Page, widget: anywidget.AnyWidget) -> Page:
    """Run a widget's module on an empty page with its synced traits; `window.keys` has the keys that get out of it."""
    load_module(page, type(widget).__module__.rpartition(".")[2])
    of_every_widget = anywidget.AnyWidget.class_trait_names()
    own = [name for name in widget.trait_names(sync=True) if name not in of_every_widget and not name.startswith("_")]
    values = {name: getattr(widget, name) for name in own}
    page.evaluate(LIVE, json.loads(json.dumps(values)))
    page.evaluate(
        "() => { window.keys = []; document.addEventListener('keydown', event => window.keys.push(event.key)); }"
    )
    return page
