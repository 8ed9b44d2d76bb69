"""The JavaScript of a widget: what views share (`views.js`), then the widget's own module."""

from pathlib import Path

HERE = Path(__file__).parent
SHARED = HERE / "views.js"


def module(name: str) -> str:
    """Return the ES module of a widget whose view builds on the shared ones; modules themselves import nothing."""
    return SHARED.read_text("utf-8") + (HERE / f"{name}.js").read_text("utf-8")
