"""GitHub's view of a notebook, approximated: outputs without script, style, class and data attributes stay readable."""

import functools
import json
import re

import nh3
import pytest
from bs4 import BeautifulSoup
from reference import ROOT

NUMBER = re.compile(r"[−-]?\d[\d,]*(?:\.\d+)?")
CONTROLS = ["button", "input", "select", "textarea", "progress", "output"]
# GitHub removes what could run or reach over the rest of its page; what is said to readers by a class is lost.
ATTRIBUTES = {tag: names - {"class"} for tag, names in nh3.ALLOWED_ATTRIBUTES.items()}
WITHOUT_NUMBERS = {"01_prefill/your-phrase"}  # says that a built page or Python is needed


@functools.cache
def outputs() -> dict[str, str]:
    """Return every stored HTML output under the name of its notebook and cell."""
    return {
        f"{path.stem}/{cell['id']}": "".join(output["data"]["text/html"])
        for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
        for cell in json.loads(path.read_text("utf-8"))["cells"]
        for output in cell.get("outputs", ())
        if "text/html" in output.get("data", {})
    }


def view_of(html: str) -> BeautifulSoup:
    return BeautifulSoup(nh3.clean(html, attributes=ATTRIBUTES, link_rel=None), "html.parser")


def finished_picture(html: str) -> BeautifulSoup:
    """Return what a reader with styles sees before any script has run, but for drawings: GitHub drops those."""
    picture = BeautifulSoup(html, "html.parser")
    for element in picture.find_all(["script", "style", "svg"]):
        element.decompose()
    return picture


def words_of(picture: BeautifulSoup) -> list[str]:
    return picture.get_text(" ").split()


@pytest.mark.parametrize("name", outputs())
class TestView:
    def test_holds_every_word_and_number_of_the_finished_picture(self, name):
        view, picture = view_of(outputs()[name]), finished_picture(outputs()[name])
        assert words_of(view) == words_of(picture)
        assert NUMBER.findall(view.get_text(" ")) or name in WITHOUT_NUMBERS

    def test_keeps_tables_as_tables(self, name):
        view, picture = view_of(outputs()[name]), finished_picture(outputs()[name])
        cells, before = [[len(row(["td", "th"])) for row in soup("tr")] for soup in (view, picture)]
        assert cells == before
        assert all(table("th") for table in view("table"))

    def test_shows_no_control_and_no_data(self, name):
        view = view_of(outputs()[name])
        assert not finished_picture(outputs()[name])(CONTROLS)  # the sanitiser would leave their words behind
        assert not re.search(r'[{\[]\s*"|\}\s*[,}\]]|function|=>|var\(--', view.get_text(" "))

    def test_has_nothing_that_github_removes(self, name):
        view = view_of(outputs()[name])
        assert not view(["script", "style"])
        kept = {key for tag in view(True) for key in tag.attrs}
        assert not [key for key in kept if key in ("class", "style") or key.startswith("data-")]


def test_every_widget_and_table_is_looked_at():
    widgets = {name for html in outputs().values() for name in re.findall(r'data-widget="([\w-]+)"', html)}
    assert len(widgets) >= 9
    assert len(outputs()) >= 14
