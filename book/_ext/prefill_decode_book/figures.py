"""Figures of executed notebooks as part of the page, so that they follow its colour theme.

An <img> knows nothing of the page's custom properties. Inlined, a figure drawn in the light colours of theme.css takes
the properties instead of the values, and the dark theme recolours it like everything else.
"""

import html
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from .widgets import SOURCE

LOGGER = logging.getLogger(__name__)

PROPERTY = re.compile(r"--(pd-[\w-]+):\s*(#[0-9a-f]{6})\s*;", re.IGNORECASE)
COLOUR = re.compile(r"#[0-9a-f]{6}\b", re.IGNORECASE)
PREAMBLE = re.compile(r"^.*?(?=<svg\b)|<metadata>.*?</metadata>|<style\b.*?</style>|<!--.*?-->", re.DOTALL)
FONT = re.compile(r"font-family:[^;\"]*")
IDENTIFIER = re.compile(r'(\bid="|href="#|url\(#)')
# Matplotlib draws the figure's background first, then that of each set of axes.
BACKGROUND = re.compile(r'(<g id="patch_1">\s*<path\b[^>]*?fill:\s*)#[0-9a-f]{6}', re.IGNORECASE)
AXES_BACKGROUND = re.compile(
    r'(<g id="axes_\d+">\s*<g id="patch_\d+">\s*<path\b[^>]*?fill:\s*)#[0-9a-f]{6}', re.IGNORECASE
)


def read_palette(theme: str) -> dict[str, str]:
    """Map the light colours of a style sheet to the properties that hold them.

    Parameters
    ----------
    theme : str
        Text of theme.css. The first value given to a property is its light one, and of two properties with one value
        the first is taken.

    Returns
    -------
    dict of str to str
        ``{"#1f5fa8": "var(--pd-prefill)", ...}``, colours in lower case.
    """
    light: dict[str, str] = {}
    for name, colour in PROPERTY.findall(theme):
        light.setdefault(name, colour.lower())
    palette: dict[str, str] = {}
    for name, colour in light.items():
        palette.setdefault(colour, f"var(--{name})")
    return palette


def inline_svg(svg: str, *, alt: str, prefix: str, palette: dict[str, str]) -> str:
    """Return an SVG file's text as an element of a page.

    Its ids begin with `prefix`, its background is transparent, its colours and its font are the theme's.
    """
    svg = PREAMBLE.sub("", svg)
    svg = AXES_BACKGROUND.sub(r"\1none", BACKGROUND.sub(r"\1none", svg))
    svg = COLOUR.sub(lambda match: palette.get(match.group().lower(), match.group()), svg)
    svg = FONT.sub("font-family: var(--pd-font)", svg)
    svg = IDENTIFIER.sub(lambda match: match.group() + prefix, svg)
    # Matplotlib's own <style> would reach every element of the page; these two are what it says.
    opening = f'<svg role="img" aria-label="{html.escape(alt)}" stroke-linejoin="round" stroke-linecap="butt"'
    # a narrow screen scrolls it sideways, and the keyboard must reach what scrolls
    frame = '<div class="pd-figure" tabindex="0" role="group" aria-label="Figure">'
    return f"{frame}{svg.replace('<svg', opening, 1).strip()}</div>"


class InlineFigures(SphinxPostTransform):
    """Replace every SVG output of a notebook by its own markup."""

    default_priority = 5  # after myst-nb has chosen among the formats of an output
    formats = ("html",)

    def run(self, **_: object) -> None:
        """Inline the document's figures, numbered in order."""
        palette = read_palette((Path(self.app.srcdir) / SOURCE / "theme.css").read_text("utf-8"))
        outputs = [image for image in self.document.findall(nodes.image) if "jupyter_execute" in image["uri"]]
        for number, image in enumerate(outputs, start=1):
            alt = image.get("alt", "")
            if not alt:
                LOGGER.warning(
                    "figure %s has no text for those who cannot see it: set mystnb.image.alt in the "
                    "metadata of its cell",
                    number,
                    location=image,
                )
            if image["uri"].endswith(".svg"):
                svg = (Path(self.app.srcdir) / image["uri"]).read_text("utf-8")
                markup = inline_svg(svg, alt=alt, prefix=f"figure-{number}-", palette=palette)
                image.replace_self(nodes.raw("", markup, format="html"))


def setup(app: Sphinx) -> None:
    """Register the transform."""
    app.add_post_transform(InlineFigures)
