"""Formulas keep their width from the start: MathJax writes them last, and the text around them must not move.

Matplotlib's mathtext sets a formula in the same letters, Computer Modern, so that it knows the width beforehand. A
formula that it does not read is left as it is.
"""

import html
import re
from functools import cache
from typing import Any

from docutils import nodes
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import MathTextParser
from sphinx.application import Sphinx

from .pages import count_formulas

PARSER = MathTextParser("path")
SIZE = 100
FONT = FontProperties(size=SIZE, math_fontfamily="cm")
X_HEIGHT = 0.442  # of MathJax's letters, in their em: it makes them as high as the letters around
INLINE = re.compile(r'<span class="math notranslate nohighlight">\\\((.*?)\\\)</span>', re.DOTALL)

# What TeX reads and mathtext does not: arguments without braces, short names of relations.
ARGUMENT = r"(?:\{[^{}]*\}|[^\s{}\\])"
FRACTION = re.compile(rf"\\frac\s*({ARGUMENT})\s*({ARGUMENT})")
ROOT = re.compile(r"\\sqrt\s*([^\s{}\\])")
NAMES = {r"\le ": r"\leq ", r"\ge ": r"\geq ", "{,}": ","}

# Raw TeX is wider than what it becomes, so it waits unseen. It is shown if MathJax does not come.
WAIT = (
    "(({classList}) => {"
    ' classList.add("pd-typesetting");'
    ' const shown = () => classList.remove("pd-typesetting");'
    ' addEventListener("load", () => (window.MathJax?.startup?.promise ?? Promise.resolve()).then(shown, shown));'
    " })(document.documentElement);"
)


def for_mathtext(tex: str) -> str:
    """Return a formula as mathtext reads it."""

    def braced(argument: str) -> str:
        return argument if argument.startswith("{") else f"{{{argument}}}"

    for name, other in NAMES.items():
        tex = tex.replace(name, other)
    tex = ROOT.sub(r"\\sqrt{\1}", tex)
    return FRACTION.sub(lambda match: rf"\frac{braced(match[1])}{braced(match[2])}", tex)


@cache
def width_of(tex: str) -> float | None:
    """Return the width of an inline formula in ex of the text around it, None if mathtext does not read it."""
    try:
        width = PARSER.parse(f"${for_mathtext(tex)}$", 72, FONT).width
    except ValueError:
        return None
    return round(width / SIZE / X_HEIGHT, 1)


def with_widths(body: str) -> str:
    """Return a page's HTML with the width of each inline formula told to the style sheet."""

    def told(match: re.Match) -> str:
        width = width_of(html.unescape(match[1]).strip())
        return match[0] if width is None else match[0].replace(">", f' style="--pd-width: {width}ex">', 1)

    return INLINE.sub(told, body)


def keep_widths(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document) -> None:
    """Tell the widths on pages with formulas, and let these wait unseen."""
    if count_formulas(doctree):
        context["body"] = with_widths(context["body"])
        app.add_js_file(None, body=WAIT, priority=300)


def setup(app: Sphinx) -> None:
    """Keep widths page by page."""
    app.connect("html-page-context", keep_widths)
