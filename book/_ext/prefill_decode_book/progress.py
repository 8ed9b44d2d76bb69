"""A line a document on stderr: running the notebooks takes a minute that should not be silent."""

import sys

from sphinx.application import Sphinx


def say_reading(app: Sphinx, docname: str, source: list[str]) -> None:
    """Name the document that is about to be read, and run if it is a notebook."""
    is_notebook = app.env.doc2path(docname).endswith(".ipynb")
    print(f"  {'running' if is_notebook else 'reading'} {docname}", file=sys.stderr, flush=True)


def say_writing(app: Sphinx, env: object) -> None:
    """Name the last step."""
    print("  writing the pages", file=sys.stderr, flush=True)


def setup(app: Sphinx) -> None:
    """Report while reading."""
    app.connect("source-read", say_reading)
    app.connect("env-updated", say_writing)
