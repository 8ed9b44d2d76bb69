"""Sphinx extension of this book: pages that need no kernel, no network and no server.

One module a concern:

``pages``       what a page loads, and what it no longer loads
``widgets``     widgets/*.js and *.css as one script and one style sheet
``excerpts``    a widget of an executed notebook, shown on a page that is not run
``model``       the weights, copied into the site for readers who run a phrase of their own
``figures``     SVG outputs inlined, in the colours of the reader's theme
``repository``  links to the repository and to Binder, if there is a repository
``kernel``      notebooks run without the reader's own IPython profile
``progress``    a line a document while the book is being read
"""

from sphinx.application import Sphinx

from . import excerpts, figures, kernel, model, pages, progress, repository, widgets


def setup(app: Sphinx) -> dict[str, bool]:
    """Register every part with Sphinx."""
    for part in (pages, widgets, model, excerpts, figures, repository, kernel, progress):
        part.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
