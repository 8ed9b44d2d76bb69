"""What a page loads, in bytes as a host sends them; when its widgets come to life, and that they keep their height."""

import threading
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from server import Answer, hosting
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


@pytest.mark.parametrize("name", [LANDING, *NOTEBOOKS])
def test_first_widget_does_not_wait_for_the_end_of_the_page(browser: Browser, html: Path, name: str):
    content = (html / f"{name}.html").read_text("utf-8")
    first = content.index("data-widget=")
    middle = content.find("data-widget=", first + 1)
    cut = content.rindex("<div", first, middle) if middle >= 0 else len(content) - 100
    gate = threading.Event()
    with hosting(html) as host:
        host.answers = {f"/{name}.html": Answer(content[:cut].encode(), then=content[cut:].encode(), gate=gate)}
        page = browser.new_page()
        page.goto(f"{host.address}/{name}.html", wait_until="commit")
        try:
            expect(page.locator("[data-widget][data-live]")).to_have_count(1)
            assert page.evaluate("document.readyState") == "loading"
        finally:
            gate.set()
        expect(page.locator("[data-widget]:not([data-live])")).to_have_count(0)
        page.close()
