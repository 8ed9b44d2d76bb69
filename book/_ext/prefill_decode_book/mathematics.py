"""Mathematics as MathJax sets it, without its menu: that is 110 kB of the 263 kB of its usual bundle.

What a reader who listens is told stays: MathML beside each formula (``assistive-mml``).
"""

from sphinx.application import Sphinx
from sphinx.config import Config

PARTS = ["core", "input/tex", "output/chtml", "output/chtml/fonts/tex", "a11y/assistive-mml"]


def choose_parts(app: Sphinx, config: Config) -> None:
    """Let MathJax start with these parts; their extension has chosen the bundle by now."""
    config.mathjax_path = "mathjax/startup.js"
    config.mathjax3_config = {**(config.mathjax3_config or {}), "loader": {"load": PARTS}}


def setup(app: Sphinx) -> None:
    """Choose once all extensions are set up."""
    app.connect("config-inited", choose_parts, priority=900)
