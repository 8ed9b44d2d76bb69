"""What the theme and Sphinx say wrongly to readers who listen to a page, put right in the HTML."""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

# A name of its own hides the text that a reader sees, and one who speaks to the computer says what is seen.
OWN_NAME = re.compile(r' (?:aria-label|title)="[^"]*"')
CORRECTIONS = {
    '<summary aria-label="Toggle hidden content">': "<summary>",
    # Deprecated in WAI-ARIA 1.3, which wants plain items in the list around them.
    'role="doc-biblioentry"': 'role="listitem"',
}


def named_by_its_text(button: str) -> str:
    """Take the second name from a button that shows one; see templates/search-button-field.html."""
    named, count = OWN_NAME.subn("", button)
    if count != 2:
        raise ValueError(f"{count} names on the theme's search button, expected 2: adapt OWN_NAME to this theme")
    return named


def correct_page(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document) -> None:
    """Correct the article, and give the templates what they correct the theme with."""
    context["named_by_its_text"] = named_by_its_text
    for wrong, right in CORRECTIONS.items():
        context["body"] = context.get("body", "").replace(wrong, right)


def setup(app: Sphinx) -> None:
    """Correct every page."""
    app.connect("html-page-context", correct_page)
