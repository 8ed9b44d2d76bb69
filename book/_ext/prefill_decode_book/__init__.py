"""Sphinx extension of this book: pages that need no kernel, no network and no server.

One module a concern:

``pages``       what a page loads, and what it no longer loads
``icons``       of the theme's icons, those that the pages show
``access``      what the theme says wrongly to readers who listen, put right
``widgets``     widgets/*.js and *.css as one script and one style sheet
``previews``    a moving picture at the top of a section, which leads to its first widget
``excerpts``    a widget of an executed notebook, shown on a page that is not run
``model``       the weights, copied into the site for readers who run a phrase of their own
``columns``     widths of the columns of tables
``formulas``    room for formulas until MathJax has written them
``figures``     SVG outputs inlined, in the colours of the reader's theme
``terms``       words of the glossary, linked where a page first uses them
``describe``    a page's title, description and card, for search engines and those who share it
``card``        the picture of the site
``machines``    pages as Markdown, llms.txt, the sitemap
``markdown``    a document as Markdown; ``markdown_html`` does the same for what is HTML in it
``repository``  links to the repository, to Binder, for a JupyterHub and to the site, if there is a repository
``needs``       what each notebook needs, from the record of measurements
``kernel``      notebooks run without the reader's own IPython profile
``progress``    a line a document while the book is being read
``remedies``    warnings that say what to do; which cell of a notebook failed
``syntax``      scripts that do not parse stop the build
"""

from sphinx.application import Sphinx

from . import (
    access,
    columns,
    describe,
    excerpts,
    figures,
    formulas,
    icons,
    kernel,
    machines,
    model,
    needs,
    pages,
    previews,
    progress,
    remedies,
    repository,
    terms,
    widgets,
)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register every part with Sphinx."""
    parts = (
        *(pages, access, terms, previews, describe, machines, widgets, model, excerpts),
        *(columns, figures, formulas, icons),
        *(repository, needs, kernel, progress, remedies),
    )
    for part in parts:
        part.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
