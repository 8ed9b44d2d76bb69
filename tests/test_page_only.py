"""Controls are in a notebook's output for the page that has scripts, and for nothing else."""

from html.parser import HTMLParser

import numpy as np

from prefill_decode.widgets import AttentionGrid
from prefill_decode.widgets.page_only import for_page, page_only


class Sanitised(HTMLParser):
    """Read as a notebook viewer does: no script with what is in it, no attributes."""

    def __init__(self):
        super().__init__()
        self.tags, self.text, self.in_script = [], [], False

    def handle_starttag(self, tag, attrs):
        self.in_script = tag == "script"
        self.tags.append(tag)

    def handle_endtag(self, tag):
        self.in_script = False

    def handle_data(self, data):
        if not self.in_script:
            self.text.append(data)


def sanitised(markup):
    parser = Sanitised()
    parser.feed(markup)
    return parser


def grid():
    weights = np.tri(3) / np.arange(1, 4)[:, None]
    return AttentionGrid(
        ["the", " old", " cat", " sleeps"], weights[None, None], prompt_len=3, names={(0, 0): "only one"}
    )


def test_wrapping_comes_off_again():
    assert for_page("a" + page_only("<b>1</b>") + "c" + page_only("2")) == "a<b>1</b>c2"


def test_a_viewer_without_scripts_shows_table_and_words_and_no_control():
    markup = grid()._repr_mimebundle_()[0]["text/html"]
    seen = sanitised(markup)
    assert not {"button", "input", "select"} & set(seen.tags)
    assert "table" in seen.tags
    assert "the ·old ·cat ·sleeps" in " ".join("".join(seen.text).split())
    assert {"button", "input", "select"} <= set(sanitised(for_page(markup)).tags)
