"""What a page loads, in bytes as a host sends them, and that its widgets keep their height when they come to life."""

import pytest
from playwright.sync_api import Browser, Page
from test_pages import LANDING, NOTEBOOKS, PAGES, open_page

from benchmarks.site import StaticHost
from benchmarks.weight import weigh

AT_MOST = 800_000
VIEWPORTS = [{"width": 1280, "height": 800}, {"width": 360, "height": 740}]
HEIGHTS = """() => [...document.querySelectorAll("[data-widget]")].map((root) =>
  [root.dataset.widget, Math.round(root.getBoundingClientRect().height)])"""


@pytest.fixture(scope="module")
def host(html) -> StaticHost:
    with StaticHost(html).serving() as host:
        yield host


@pytest.mark.parametrize("name", PAGES)
def test_page_loads_no_more_than_800_kilobytes(browser: Browser, host: StaticHost, name: str):
    sent = weigh(browser, host, name)
    assert sum(sent.values()) <= AT_MOST, f"the largest: {list(sent.items())[:5]}"


def heights(page: Page, address: str, *, mounted: bool) -> list:
    """Return the height of every widget of a page, with the script that mounts them or without it."""
    if not mounted:
        page.route("**/widgets.js*", lambda route: route.fulfill(body=""))
    return open_page(page, address, until="networkidle").evaluate(HEIGHTS)


@pytest.mark.parametrize("viewport", VIEWPORTS, ids=["wide", "phone"])
@pytest.mark.parametrize("name", [LANDING, *NOTEBOOKS])
def test_no_widget_changes_its_height_when_it_is_mounted(new_page, site: str, name: str, viewport: dict):
    """Also where nobody looks yet: what is above a reader who came by a link would push the text away."""
    pictures, widgets = (
        heights(new_page(viewport=viewport), f"{site}/{name}.html", mounted=mounted) for mounted in (False, True)
    )
    assert widgets == pictures
