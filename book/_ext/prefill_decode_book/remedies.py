"""Warnings that say what to do, beside where: with -W each of them stops the build."""

import logging
import re

import nbformat
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging as sphinx_logging

LOGGER = sphinx_logging.getLogger(__name__)
# A message of Sphinx, MyST or the bibliography, and what mends its cause.
REMEDIES = {
    r"cross-reference target not found|undefined label|[uU]nknown (?:source )?document|local id not found": (
        "correct the link; the files of pages are listed in _toc.yml, a label is (name)= above a heading, "
        "and a place on a page is its heading in small letters with hyphens"
    ),
    r"image file not readable": "correct its path, seen from the page; pictures lie in book/assets",
    r"term not in glossary": "spell it as in book/glossary.md, or define it there",
    r"could not find bibtex key": "spell it as in book/references.bib, or add the source there",
}
# MyST-NB counts lines of a notebook as 10000 for each cell, and those of the cell after it.
IN_NOTEBOOK = re.compile(r"(\.ipynb):(\d+)(\d{4})$")
COLOUR = re.compile(r"\x1b\[[\d;]*m")


class SayWhatToDo(logging.Filter):
    """Complete the warnings that Sphinx shows; none is held back."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Name the cell instead of a made-up line, and add the remedy."""
        if place := getattr(record, "location", None):
            record.location = IN_NOTEBOOK.sub(_cell, place)
        for message, remedy in REMEDIES.items():
            if re.search(message, str(record.msg)):
                record.msg = f"{record.msg}; {remedy}"
        return True


def _cell(match: re.Match[str]) -> str:
    return f"{match[1]}, cell {int(match[2])}"


def name_failed_cells(app: Sphinx, env: BuildEnvironment) -> None:
    """Say which cell of a notebook failed and how: MyST-NB says only that one did."""
    for docname, told in env.nb_metadata.items():
        if traceback := told.get("exec_data", {}).get("traceback"):
            notebook = nbformat.read(env.doc2path(docname), as_version=4)
            name = failed_cell(notebook, traceback)
            error = COLOUR.sub("", traceback.strip().splitlines()[-1])
            LOGGER.warning("cell '%s' failed: %s; mend it, then run: make notebooks", name, error, location=docname)


def failed_cell(notebook: nbformat.NotebookNode, traceback: str) -> str:
    """Return the name of the cell whose source the traceback quotes first, between two rules."""
    quoted = re.split(r"^-{10,}$", traceback, maxsplit=2, flags=re.MULTILINE)[1].strip()
    return next((cell.id for cell in notebook.cells if cell.source.strip() == quoted), "?")


def add_filter(app: Sphinx) -> None:
    """Stand behind Sphinx's own filters: they have turned places into text by then."""
    for handler in logging.getLogger(sphinx_logging.NAMESPACE).handlers:
        handler.addFilter(SayWhatToDo())


def setup(app: Sphinx) -> None:
    """Complete warnings from the first document on."""
    app.connect("builder-inited", add_filter)
    app.connect("env-updated", name_failed_cells)
