"""What a page loads: nothing from another host, nothing that it does not use."""

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from . import describe

HERE = Path(__file__).parent

# sphinx-thebe writes `const THEBE_JS_URL` twice, which throws; nothing on the pages is run by Thebe.
UNUSED = re.compile(r"thebe|THEBE_JS_URL|require(\.min)?\.js|html-manager|embed-amd|widget-state", re.IGNORECASE)
FOREIGN = re.compile(r"^(https?:)?//")

# The theme replaces every icon of its web font by an inline SVG: 542 kB gzipped for no visible difference.
ICON_SCRIPT = re.compile(r"\s*<script[^>]*scripts/fontawesome\.js[^>]*></script>")
# Jupyter Book loads mathematics everywhere; a page without formulas does not need 300 kB for them.
MATHEMATICS = re.compile(r"mathjax", re.IGNORECASE)
# Loaded everywhere for the cards, grids and tabs of sphinx-design.
DESIGN = re.compile(r"sphinx-design|design-tabs")
USES_DESIGN = re.compile(r'class="(?:[^"]* )?sd-')
# What the theme would search with while one types (search_as_you_type, off): 29 kB.
SEARCH_SCRIPT = re.compile(r'\s*<script src="[^"]*(?:searchtools|language_data|searchindex)\.js"></script>')
# Shipped by the theme, asked for by no page; and Sphinx's note for its next build, a hash of this machine's paths.
UNUSED_FILES = (
    ".buildinfo",
    "_static/scripts/fontawesome.js*",
    "_static/scripts/*.map",
    "_static/styles/*.map",
    "_static/scripts/*.LICENSE.txt",
    "_static/sphinx-thebe.*",
)

# The theme leaves its mode empty and then warns about it. Settled before the first paint, a dark page does not flash
# white; without scripts no mode is set and the style sheets follow the system. Paper is always light.
SETTLE_THEME = (
    "(({dataset}) => {"
    ' if (!["light", "dark"].includes(dataset.mode)) dataset.mode = "auto";'
    ' const system = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");'
    ' const settle = () => { dataset.theme = dataset.mode === "auto" ? system() : dataset.mode; };'
    ' addEventListener("beforeprint", () => { dataset.theme = "light"; });'
    ' addEventListener("afterprint", settle);'
    " settle();"
    " })(document.documentElement);"
)
# A search from the disk cannot fetch the pages it found, so it lists titles only instead of failing.
PLAIN_RESULTS = 'if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;'

ENTRANCE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<link rel="icon" href="_static/favicon.svg">{head}
<meta http-equiv="refresh" content="0; url={first}">
<a href="{first}">{title}</a>
</html>
"""


def is_wanted(asset: Any, *, has_formulas: bool, has_design: bool = False) -> bool:
    """Say whether a script or style sheet of Sphinx's list stays on a page."""
    name = str(getattr(asset, "filename", asset) or "")
    attributes = getattr(asset, "attributes", {})
    text = " ".join([name, attributes.get("body") or "", attributes.get("type") or ""])
    if FOREIGN.match(name) or UNUSED.search(text):
        return False
    return (has_formulas or not MATHEMATICS.search(text)) and (has_design or not DESIGN.search(text))


def count_formulas(doctree: nodes.document | None) -> int:
    """Count the formulas of a page; pages without a document, such as the search, have none."""
    if doctree is None:
        return 0
    return sum(1 for node in doctree.findall() if isinstance(node, nodes.math | nodes.math_block))


def prune_head(head: str) -> str:
    """Take the theme's icon script out of the head and settle the colour theme there."""
    pruned, count = ICON_SCRIPT.subn("", head)
    if count != 1:
        raise ValueError(f"{count} icon scripts in the theme's head, expected 1: adapt ICON_SCRIPT to this theme")
    return f"{pruned}\n  <script>{SETTLE_THEME}</script>"


def prune_search(head: str, pagename: str) -> str:
    """Take the scripts of the search out of the head of every page but its own."""
    pruned, count = SEARCH_SCRIPT.subn("", head)
    if count != (expected := 0 if pagename == "search" else 3):
        raise ValueError(f"{count} search scripts in the theme's head, expected {expected}: adapt SEARCH_SCRIPT")
    return pruned


def prune_page(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document) -> None:
    """Drop unused and foreign assets; in place, since later handlers add to the same lists."""
    has = {
        "has_formulas": count_formulas(doctree) > 0,
        "has_design": USES_DESIGN.search(context.get("body", "")) is not None,
    }
    for key in ("script_files", "css_files"):
        context[key][:] = [asset for asset in context[key] if is_wanted(asset, **has)]
    context.update(prune_head=prune_head, prune_search=prune_search)
    app.add_js_file(None, body=PLAIN_RESULTS, priority=900)


def add_templates(app: Sphinx, config: Config) -> None:
    """Let templates/ come before the theme's."""
    config.templates_path.insert(0, str(HERE / "templates"))


def write_entrance(app: Sphinx, error: Exception | None) -> None:
    """Write the page that leads from the root to the first page; Jupyter Book's has neither type nor icon."""
    if error is None:
        root, title = app.config.root_doc, app.config.html_title
        entrance = ENTRANCE.format(title=title, first=f"{root}.html", head=describe.head_of(app, root))
        (Path(app.outdir) / "index.html").write_text(entrance, "utf-8")


def drop_files(app: Sphinx, error: Exception | None) -> None:
    """Remove what no page asks for."""
    for pattern in UNUSED_FILES if error is None else ():
        for path in Path(app.outdir).glob(pattern):
            path.unlink()


def setup(app: Sphinx) -> None:
    """Prune every page after the other extensions have added their assets."""
    app.connect("config-inited", add_templates)
    app.connect("html-page-context", prune_page, priority=900)
    app.connect("build-finished", write_entrance)
    app.connect("build-finished", drop_files)
