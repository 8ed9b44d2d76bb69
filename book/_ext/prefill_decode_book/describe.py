"""What a page says of itself to search engines and to those who share it: a title and a description of its own.

The description is the beginning of the page's first paragraph, or `description` in the front matter of a Markdown page.
"""

import html
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from . import card

LOGGER = logging.getLogger(__name__)

SHORTEST, LONGEST = 50, 160  # what a list of results shows of it
PARENTHESIS = re.compile(r"\s+\([^()]*\)(?=[\s,.;:?!])")
SENTENCE_END = re.compile(r"(?<=[.?!])\s+")


def shorten(paragraph: str) -> str:
    """Return the first sentences of a paragraph that fit, without what stands in parentheses after a word."""
    kept = ""
    for sentence in SENTENCE_END.split(PARENTHESIS.sub("", " ".join(paragraph.split()))):
        longer = f"{kept} {sentence}".strip()
        if kept and len(longer) > LONGEST:
            break
        kept = longer
    return kept


def first_paragraph(doctree: nodes.document) -> str:
    """Return the text of the first paragraph right below the page's title, "" if there is none."""
    sections = (node for node in doctree.children if isinstance(node, nodes.section))
    paragraphs = (node for section in sections for node in section.children if isinstance(node, nodes.paragraph))
    return next((node.astext() for node in paragraphs), "")


def keep_description(app: Sphinx, doctree: nodes.document) -> None:
    """Note a page's description where Sphinx keeps the front matter; one that does not fit stops the build."""
    docname = app.env.docname
    told = app.env.metadata[docname].setdefault("description", shorten(first_paragraph(doctree)))
    if not SHORTEST <= len(told) <= LONGEST:
        LOGGER.warning(
            "its description has %s characters, expected %s to %s: begin the first paragraph with such a sentence, "
            "or set 'description' in the front matter (of a .md file)",
            len(told),
            SHORTEST,
            LONGEST,
            location=docname,
        )


def head_of(app: Sphinx, docname: str) -> str:
    """Return the meta elements of a page; what needs the site's address is there when that is known."""
    title, described = app.env.titles[docname].astext(), app.env.metadata[docname]["description"]
    told = {
        "og:type": "website" if docname == app.config.root_doc else "article",
        "og:site_name": app.config.html_title,
        "og:title": title,
        "og:description": described,
    }
    if site := app.config.html_baseurl:
        told |= {
            "og:url": f"{site}{docname}.html",
            "og:image": f"{site}{card.FILE}",
            "og:image:width": str(card.WIDTH),
            "og:image:height": str(card.HEIGHT),
            "og:image:alt": card.ALT,
        }
    lines = [f'<meta name="description" content="{html.escape(described)}">']
    lines += [f'<meta property="{name}" content="{html.escape(value)}">' for name, value in told.items()]
    if site:
        lines.append('<meta name="twitter:card" content="summary_large_image">')
    return "".join(f"\n    {line}" for line in lines)


def add_head(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document) -> None:
    """Describe every page that is a document."""
    if doctree is not None:
        context["metatags"] += head_of(app, pagename)


def write_card(app: Sphinx, error: Exception | None) -> None:
    """Draw the picture of the site, if its address is known: without it no page can name the picture."""
    if error is None and app.config.html_baseurl and app.builder.format == "html":
        (Path(app.outdir) / card.FILE).write_bytes(card.draw(app.config.html_title))


def setup(app: Sphinx) -> None:
    """Register what reads descriptions, what shows them and what draws the card."""
    app.connect("doctree-read", keep_description, priority=900)  # after Sphinx has read the front matter
    app.connect("html-page-context", add_head)
    app.connect("build-finished", write_card)
