"""The model's file, copied from the installed package into the site, for readers who run a phrase of their own.

``make build MODEL=0`` leaves it out; the widget then says so.
"""

import os
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from prefill_decode import smollm2

FOLDER = "model"
OFFLINE = Path(__file__).parent / "offline.js"  # a service worker rules the folder it lies in: the whole site
PLACE = 'data-model=""'


def is_wanted() -> bool:
    """Say whether this build carries the model."""
    wanted = os.environ.get("MODEL", "1")
    if wanted not in ("0", "1"):
        raise ExtensionError(f"MODEL = {wanted!r}: expected 1 (the site carries the model, 98 MB) or 0 (it does not)")
    return wanted == "1"


def check_setting(app: Sphinx) -> None:
    """Stop a misspelt setting before any notebook runs."""
    is_wanted()


def name_file(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document) -> None:
    """Tell every your-phrase widget where the file lies, seen from its page."""
    if is_wanted() and PLACE in context.get("body", ""):
        address = context["pathto"](f"{FOLDER}/{smollm2.FILE}", 1)
        context["body"] = context["body"].replace(PLACE, f'data-model="{address}"')


def copy_files(app: Sphinx, error: Exception | None) -> None:
    """Copy the model beside the pages, and what opens them without a network."""
    if error is None and is_wanted():
        folder = Path(app.outdir) / FOLDER
        folder.mkdir(exist_ok=True)
        shutil.copyfile(smollm2.weights_path(), folder / smollm2.FILE)
        shutil.copyfile(OFFLINE, Path(app.outdir) / OFFLINE.name)


def setup(app: Sphinx) -> None:
    """Name the file on the pages and copy it when they are written."""
    app.connect("builder-inited", check_setting)
    app.connect("html-page-context", name_file)
    app.connect("build-finished", copy_files)
