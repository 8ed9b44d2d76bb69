"""A small book, built by Sphinx with some parts of this book's extension."""

import io
from pathlib import Path
from types import ModuleType

import pytest
from prefill_decode_book import repository
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

SETTINGS = {
    "extensions": ["myst_parser"],
    "myst_enable_extensions": ["colon_fence", "dollarmath"],
    "myst_heading_anchors": 2,
    "html_theme": "basic",
    "html_title": "The book",
    "root_doc": "index",
}


def build_small(folder: Path, pages: dict[str, str], *parts: ModuleType, address: str = "") -> tuple[Path, str]:
    """Build a small book with the parts under test and return where it is, and what the build complained about."""
    source, out = folder / "source", folder / "out"
    for name, text in pages.items():
        path = source / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    warnings = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, docutils_namespace(), patch_docutils(source):
        patch.setenv(repository.SITE_VARIABLE, address)
        app = Sphinx(source, None, out, folder / "trees", "html", SETTINGS, status=None, warning=warnings)
        for part in parts:
            part.setup(app)
        if repository in parts:
            repository.add_buttons(app, app.config)  # its event is over
        app.build()
    return out, warnings.getvalue()
