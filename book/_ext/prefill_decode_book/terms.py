"""Words of the glossary, linked where a page first uses them, with their definition at hand.

Notebooks stay free of markup that only Sphinx understands; where a page first uses a word is known when it is built.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

GLOSSARY = "book/glossary"
FIRST_USE = "first-use"
LEAVE_ALONE = (nodes.reference, nodes.literal, nodes.math, nodes.raw)
NO_TEXT = (addnodes.pending_xref, nodes.footnote_reference)  # citations of a definition


def pattern_of(term: str) -> str:
    """Return a regular expression for a word and its plural; a capital in the glossary is one in the text."""
    words = r"\s+".join(map(re.escape, term.split()))
    if re.search(r"[^aeiou]y$", term):
        words = f"{words[:-1]}(?:y|ies)"
    else:
        words += "(?:es)?" if re.search(r"(?:s|x|ch)$", term) else "s?"
    return words if term != term.lower() else f"(?i:{words})"


class Finder:
    """Finds words of a glossary in a text, the longest first.

    Parameters
    ----------
    terms : iterable of str
        The words as the glossary has them.
    """

    def __init__(self, terms: Iterable[str]) -> None:
        self.terms = sorted(terms, key=lambda term: (-len(term), term))
        groups = "|".join(f"({pattern_of(term)})" for term in self.terms)
        self.pattern = re.compile(rf"(?<![\w–-])(?:{groups})(?![\w–-])")

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield start, end and term of each word found; a part of a longer one is not found by itself."""
        for match in self.pattern.finditer(text):
            yield match.start(), match.end(), self.terms[match.lastindex - 1]


def plain(definition: nodes.Element) -> str:
    """Return a definition as one line, without its citations."""
    copy = definition.deepcopy()
    for node in list(copy.findall(lambda node: isinstance(node, NO_TEXT))):
        node.parent.remove(node)
    return re.sub(r"\s+(?=[.,])", "", " ".join(copy.astext().split()))


def glossary_of(env: BuildEnvironment) -> dict[str, tuple[str, str]]:
    """Return the anchor and the definition of each word, {} if the book has no glossary."""
    if GLOSSARY not in env.found_docs:
        return {}
    items = env.get_doctree(GLOSSARY).findall(nodes.definition_list_item)
    return {
        term.astext(): (term["ids"][0], plain(next(item.findall(nodes.definition))))
        for item in items
        for term in item.findall(nodes.term)
    }


def join_texts(paragraph: nodes.paragraph) -> None:
    """Make one text of those that touch: the parser cuts at line ends, and a word may stand on two lines."""
    for element in list(paragraph.findall(nodes.Element)):
        runs = groupby(list(element), key=lambda node: isinstance(node, nodes.Text))
        joined = [[nodes.Text("".join(run))] if is_text else list(run) for is_text, run in runs]
        element[:] = [node for run in joined for node in run]


def is_running_text(text: nodes.Text, paragraph: nodes.paragraph) -> bool:
    """Say whether words of a text are words of a sentence: no link, no code, no bold line that stands as a heading."""
    node = text.parent
    while node is not paragraph:
        is_heading = isinstance(node, nodes.strong) and node.astext() == paragraph.astext()
        if is_heading or isinstance(node, LEAVE_ALONE):
            return False
        node = node.parent
    return True


def texts_of(doctree: nodes.document) -> Iterator[nodes.Text]:
    """Yield the running text of a page, in its order."""
    for paragraph in doctree.findall(nodes.paragraph):
        join_texts(paragraph)
        yield from (text for text in list(paragraph.findall(nodes.Text)) if is_running_text(text, paragraph))


def split_at_new(text: str, finder: Finder, seen: set[str]) -> Iterator[tuple[str, str | None]]:
    """Yield the parts of a text in their order, each with the term that it is if no page part before was that one."""
    done = 0
    for start, end, term in finder.find(text):
        if term in seen:
            continue
        seen.add(term)
        yield text[done:start], None
        yield text[start:end], term
        done = end
    yield text[done:], None


def link_first_uses(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Link each word of the glossary where the page first uses it."""
    glossary = glossary_of(app.env)
    if not glossary or docname == GLOSSARY:
        return
    finder, seen = Finder(glossary), set()

    def as_node(part: str, term: str | None) -> nodes.Node:
        if term is None:
            return nodes.Text(part)
        anchor, definition = glossary[term]
        link = make_refnode(app.builder, docname, GLOSSARY, anchor, nodes.Text(part), definition)
        link["classes"].append(FIRST_USE)
        return link

    for text in texts_of(doctree):
        parts = [as_node(part, term) for part, term in split_at_new(text, finder, seen) if part]
        text.parent.replace(text, parts)


def setup(app: Sphinx) -> None:
    """Link words when references are resolved."""
    app.connect("doctree-resolved", link_first_uses, priority=900)  # after citations have become links
