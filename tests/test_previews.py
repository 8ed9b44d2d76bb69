"""The moving picture at the top of a section: what it shows is counted, and where it leads."""

import re

import pytest
from bs4 import BeautifulSoup
from prefill_decode_book import previews
from small_book import build_small

from prefill_decode.widgets import modules

PATH = re.compile(r'class="pd-([\w -]+)" style="--at:(\d+)" d="([^"]*)"')
WIDGET = '<div data-widget="attention-grid" data-prompt-len="3" data-steps="5"></div>'
PAGE = """# A section

What is asked first?

## Before

Words.

## In motion

{widget}
"""


def parts_of(markup: str) -> list[tuple[str, int, int]]:
    """Return class, step and number of rectangles of each path of a picture."""
    widget = BeautifulSoup(markup, "html.parser").div
    return [(kind, int(at), path.count("M")) for kind, at, path in PATH.findall(previews.picture_of(widget))]


def test_a_grid_shows_prefill_at_once_and_then_a_row_a_step():
    assert parts_of(WIDGET) == [("prefill", 1, 6), ("decode", 2, 4), ("decode", 3, 5)]


def test_bars_are_as_long_as_the_ledgers_say():
    widget = BeautifulSoup(
        '<div data-widget="ledger-table" data-prefill-flops="400" data-decode-flops="100"></div>', "html.parser"
    ).div
    widths = [path.split("h")[1].split("v")[0] for *_, path in PATH.findall(previews.picture_of(widget))]
    assert widths == ["16.00", "4.00", "16.00", "16.00"]


def test_masks_pass_and_the_causal_one_stays():
    parts = parts_of('<div data-widget="mask-gallery" data-steps="6"></div>')
    assert [kind for kind, *_ in parts] == ["prefill pd-passing", "prefill pd-passing", "prefill"]
    assert [count for *_, count in parts] == [6 + 5, 6 + 6, 21]  # a window of two; two texts of three; all


def test_tiles_come_one_a_step():
    assert [(at, count) for _, at, count in parts_of('<div data-widget="tile-sweep"></div>')] == [
        (step, 1) for step in range(1, 11)
    ]


def test_one_candidate_changes_its_colour():
    assert parts_of('<div data-widget="token-sampler"></div>')[-1] == ("decode", 4, 1)


def test_every_drawing_is_of_a_widget_that_there_is():
    names = {path.stem.replace("_", "-") for path in modules.SHARED.parent.glob("*.js")}
    assert names >= set(previews.DRAWINGS)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return a section with a grid, one with a widget that has no drawing, one without a widget, and another page."""
    pages = {
        "notebooks/grid": PAGE.format(widget=WIDGET),
        "notebooks/unknown": PAGE.format(widget='<div data-widget="new"></div>'),
        "notebooks/none": PAGE.format(widget="None."),
        "index": PAGE.format(widget=WIDGET)
        + "\n```{toctree}\nnotebooks/grid\nnotebooks/unknown\nnotebooks/none\n```\n",
    }
    out, warnings = build_small(tmp_path_factory.mktemp("previews"), pages, previews)
    assert warnings == ""
    return {name: BeautifulSoup((out / f"{name}.html").read_text("utf-8"), "html.parser") for name in pages}


def test_it_stands_below_the_first_paragraph_and_leads_to_the_widget(built):
    link = built["notebooks/grid"].select_one("h1 + p + p > a.pd-preview")
    assert link["href"] == "#in-motion"
    assert link.get_text() == "See it move: In motion"
    assert link.svg["aria-hidden"] == "true"


def test_a_widget_without_a_drawing_has_the_link(built):
    link = built["notebooks/unknown"].select_one("a.pd-preview")
    assert link["href"] == "#in-motion"
    assert link.svg is None


@pytest.mark.parametrize("name", ["notebooks/none", "index"])
def test_pages_without_a_widget_and_pages_that_are_no_section_have_none(built, name):
    assert built[name].select_one(".pd-preview") is None
