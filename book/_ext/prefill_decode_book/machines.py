"""For readers that are programs: each page as Markdown beside it, llms.txt that lists them, and a sitemap.

llms.txt (https://llmstxt.org) names pages by their full addresses when the site's address is known. A sitemap must.
"""

import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from .markdown import as_markdown

LICENCES = "Text and figures: CC BY 4.0. Code: MIT."
SCRIPT = "copy_page.js"


def parts_of(env: BuildEnvironment) -> Iterator[tuple[str, list[str]]]:
    """Yield the parts of the contents: a caption and the pages under it."""
    for toctree in env.get_doctree(env.config.root_doc).findall(addnodes.toctree):
        yield toctree.get("caption") or "Pages", list(toctree["includefiles"])


def pages_of(env: BuildEnvironment) -> list[str]:
    """Return the pages in the order of the contents."""
    return [env.config.root_doc, *(page for _, pages in parts_of(env) for page in pages)]


def write_markdown(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document) -> None:
    """Write a page as Markdown beside it and tell the page of it."""
    if doctree is None:
        return
    name = posixpath.basename(pagename)
    text = as_markdown(doctree, f"{name}.html", app.builder.dlpath)
    path = Path(app.outdir) / f"{pagename}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n---\n\nFrom “{app.config.html_title}”. {LICENCES}\n", "utf-8")
    context["markdown_file"] = path.name
    app.add_js_file(SCRIPT, loading_method="defer")


def list_pages(env: BuildEnvironment, site: str) -> str:
    """Return the text of llms.txt: the book, what it is about, and each page with its description."""

    def line(page: str) -> str:
        return f"- [{env.titles[page].astext()}]({site}{page}.md): {env.metadata[page]['description']}"

    root = env.config.root_doc
    parts = [("Start here", [root]), *parts_of(env)]
    lists = ["\n".join([f"## {caption}", "", *map(line, pages)]) for caption, pages in parts]
    summary = f"> {env.metadata[root]['description']}"
    return "\n\n".join([f"# {env.config.html_title}", summary, LICENCES, *lists]) + "\n"


def map_site(env: BuildEnvironment, site: str) -> str:
    """Return the text of sitemap.xml; without dates, so that the same pages give the same bytes."""
    places = "".join(f"  <url><loc>{escape(f'{site}{page}.html')}</loc></url>\n" for page in pages_of(env))
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{space}">\n{places}</urlset>\n'


def write_lists(app: Sphinx, error: Exception | None) -> None:
    """Write llms.txt, and a sitemap if the site's address is known."""
    if error is not None or app.builder.format != "html":
        return
    site = app.config.html_baseurl
    (Path(app.outdir) / "llms.txt").write_text(list_pages(app.env, site), "utf-8")
    if site:
        (Path(app.outdir) / "sitemap.xml").write_text(map_site(app.env, site), "utf-8")


def setup(app: Sphinx) -> None:
    """Write the Markdown page by page, the lists at the end."""
    app.connect("html-page-context", write_markdown)
    app.connect("build-finished", write_lists)
