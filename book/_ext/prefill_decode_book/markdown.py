"""A document as plain Markdown, for language models and for those who paste a page into one.

It takes the document as the page shows it: notebooks with their outputs, citations and links resolved.
"""

import re
from collections.abc import Callable
from typing import ClassVar

from docutils import nodes
from sphinx import addnodes

from . import terms
from .markdown_html import escape, from_html, table

LANGUAGES = {"ipython3": "python", "ipython": "python", "default": "", "none": "", "myst-ansi": "text"}


def as_markdown(document: nodes.document, page: str, downloads: str) -> str:
    """Return a document as Markdown.

    Parameters
    ----------
    document : nodes.document
        With its references resolved.
    page : str
        File name of the page, e.g. ``01_prefill.html``: links within the document lead there.
    downloads : str
        Folder of downloads, seen from the page.
    """
    return Writer(page, downloads).blocks(document) + "\n"


class Writer:
    """Writes nodes: `inline` returns part of a line, `blocks` lines with an empty one between two blocks."""

    def __init__(self, page: str, downloads: str) -> None:
        self.page, self.downloads, self.level = page, downloads, 0

    def inline(self, node: nodes.Node) -> str:
        """Return the text of a node within a line."""
        if isinstance(node, nodes.Text):
            return escape(node.astext()).replace("\n", " ")
        if isinstance(node, nodes.literal):
            text = node.astext()
            return f"`` {text} ``" if "`" in text else f"`{text}`"
        if isinstance(node, nodes.math):
            return f"${node.astext()}$"
        if isinstance(node, nodes.image):
            return f"![{node.get('alt', '')}]({node['uri']})"
        if isinstance(node, nodes.raw):
            return from_html(node.astext())
        text = "".join(self.inline(child) for child in node.children)
        for kind, mark in ((nodes.emphasis, "*"), (nodes.strong, "**")):
            if isinstance(node, kind):
                return f"{mark}{text}{mark}"
        address = self.address(node)
        return f"[{text}]({address})" if address else text

    def address(self, node: nodes.Node) -> str:
        """Return where a node leads, "" if it is no link, or one to a definition: programs read the glossary whole."""
        if isinstance(node, addnodes.download_reference) and "filename" in node:
            return f"{self.downloads}/{node['filename']}"
        if not isinstance(node, nodes.reference) or terms.FIRST_USE in node["classes"]:
            return ""
        address = node.get("refuri") or f"#{node.get('refid', '')}"
        return f"{self.page}{address}" if address.startswith("#") else address

    def blocks(self, node: nodes.Node) -> str:
        """Return the blocks of a node, an empty line between two."""
        return "\n\n".join(filter(None, map(self.block, node.children)))

    def block(self, node: nodes.Node) -> str:
        """Return one block; a kind that is not listed is written as what it holds."""
        for kind, write in self.KINDS.items():
            if isinstance(node, kind):
                return write(self, node)
        return self.inline(node).strip() if isinstance(node, nodes.TextElement) else self.blocks(node)

    def nothing(self, node: nodes.Node) -> str:
        """Leave out what a page does not show."""
        return ""

    def section(self, node: nodes.section) -> str:
        """Write what is in a section, its title one level deeper."""
        self.level += 1
        text = self.blocks(node)
        self.level -= 1
        return text

    def title(self, node: nodes.Node) -> str:
        """Write a heading, or the title of a box."""
        text = self.inline_children(node)
        return f"{'#' * self.level} {text}" if isinstance(node.parent, nodes.section) else f"**{text}**"

    def code(self, node: nodes.literal_block) -> str:
        """Write code, or what a cell printed."""
        text = node.astext().rstrip("\n")
        runs = [len(run) for run in re.findall(r"`{3,}", text)]
        fence = "`" * (max(runs, default=2) + 1)
        language = node.get("language", "")
        return f"{fence}{LANGUAGES.get(language, language)}\n{text}\n{fence}"

    def formula(self, node: nodes.math_block) -> str:
        """Write a formula that has lines of its own."""
        return f"$$\n{node.astext().strip()}\n$$"

    def items(self, node: nodes.Element) -> str:
        """Write a list; further lines of an item are indented below its mark."""
        numbered = isinstance(node, nodes.enumerated_list)
        first = node.get("start", 1)
        marks = [f"{first + i}. " if numbered else "- " for i in range(len(node.children))]
        return "\n".join(hang(mark, self.blocks(item)) for mark, item in zip(marks, node.children, strict=True))

    def definitions(self, node: nodes.definition_list) -> str:
        """Write terms with their definitions as a list."""
        return "\n".join(self.definition(item) for item in node.findall(nodes.definition_list_item))

    def definition(self, item: nodes.definition_list_item) -> str:
        """Write one term, or several that share a definition."""
        terms = ", ".join(f"**{self.inline_children(term)}**" for term in item.findall(nodes.term))
        meaning = "\n\n".join(self.blocks(part) for part in item.children if isinstance(part, nodes.definition))
        return hang("- ", f"{terms}: {meaning}")

    def box(self, node: nodes.Element) -> str:
        """Write a box or a quotation."""
        return hang("> ", self.blocks(node), indent=">")

    def table(self, node: nodes.table) -> str:
        """Write a table of the text."""
        rows = [[self.cell(entry) for entry in row.findall(nodes.entry)] for row in node.findall(nodes.row)]
        return table(rows)

    def cell(self, entry: nodes.entry) -> str:
        """Write what stands in one cell, in one line."""
        return " ".join(self.blocks(entry).split())

    def html(self, node: nodes.raw) -> str:
        """Write HTML that the page holds: a table, a figure or a widget."""
        return from_html(node.astext()) if "html" in node.get("format", "") else ""

    def picture(self, node: nodes.image) -> str:
        """Write a picture as its alternative text: the file is not beside the Markdown."""
        return f"*Figure: {node.get('alt', '')}*"

    def reference(self, node: nodes.Element) -> str:
        """Write one source of the bibliography without its label."""
        return hang("- ", "\n\n".join(self.block(child) for child in node.children[1:]))

    def inline_children(self, node: nodes.Node) -> str:
        """Return the text of a node that is a line."""
        return "".join(map(self.inline, node.children)).strip()

    KINDS: ClassVar[dict[type | tuple[type, ...], Callable[["Writer", nodes.Element], str]]] = {
        (nodes.comment, nodes.system_message, nodes.substitution_definition, nodes.target, addnodes.index): nothing,
        (addnodes.toctree, addnodes.tabular_col_spec, nodes.colspec, nodes.docinfo, nodes.meta): nothing,
        nodes.section: section,
        (nodes.title, nodes.rubric): title,
        nodes.literal_block: code,
        nodes.math_block: formula,
        (nodes.bullet_list, nodes.enumerated_list): items,
        nodes.definition_list: definitions,
        (nodes.Admonition, nodes.block_quote): box,
        nodes.table: table,
        nodes.raw: html,
        nodes.image: picture,
        nodes.citation: reference,
    }


def hang(mark: str, text: str, indent: str | None = None) -> str:
    """Put a mark before the first line of a text, and indent the others below it."""
    indent = " " * len(mark) if indent is None else indent
    first, *rest = text.split("\n")
    below = [f"{indent} {line}".rstrip() if indent.strip() else f"{indent}{line}".rstrip() for line in rest]
    return "\n".join([f"{mark}{first}", *below])
