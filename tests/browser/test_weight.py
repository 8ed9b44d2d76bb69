"""What a page loads, in bytes as a host sends them; when its widgets come to life, and that they keep their height."""

import threading
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from server import Answer, hosting
from test_pages import LANDING, NOTEBOOKS, PAGES, open_page

from benchmarks.site import StaticHost
from benchmarks.weight import SLOWER, weigh

AT_MOST = 800_000
WITH_FORMULAS = [*NOTEBOOKS, "book/notation", "book/references"]
VIEWPORTS = [{"width": 1280, "height": 800}, {"width": 360, "height": 740}]
SHIFTS = """window.shifted = 0;
new PerformanceObserver((list) => {
  for (const { value, hadRecentInput } of list.getEntries()) window.shifted += hadRecentInput ? 0 : value;
}).observe({ type: "layout-shift", buffered: true });"""
WIDTHS = """() => [...document.querySelectorAll("span.math[style]")].map((formula) => {
  const room = formula.parentElement.appendChild(document.createElement("span"));
  room.style = `display: inline-block; width: ${formula.style.getPropertyValue("--pd-width")}`;
  const [kept, taken] = [room, formula].map((element) => element.getBoundingClientRect().width);
  room.remove();
  return taken - kept;
})"""
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


@pytest.mark.parametrize("viewport", VIEWPORTS, ids=["wide", "phone"])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_moves_while_a_page_is_loaded(new_page, site: str, name: str, viewport: dict):
    """The sum of layout shifts, on a slow processor, so that what comes late is seen late; 0.1 would be called good."""
    page = new_page(viewport=viewport)
    page.add_init_script(SHIFTS)
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    open_page(page, f"{site}/{name}.html", until="networkidle")
    page.wait_for_function("!document.documentElement.classList.contains('pd-typesetting')")
    page.evaluate("() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))")
    assert page.evaluate("window.shifted") <= 0.02


@pytest.mark.parametrize("name", WITH_FORMULAS)
def test_a_formula_takes_about_the_room_that_was_kept_for_it(new_page, site: str, name: str):
    page = open_page(new_page(), f"{site}/{name}.html")
    page.wait_for_function("!document.documentElement.classList.contains('pd-typesetting')")
    differences = page.evaluate(WIDTHS)
    assert differences
    assert max(map(abs, differences)) <= 28  # pixels: a row of fractions comes out that much wider


def test_formulas_are_shown_as_they_were_written_if_mathjax_does_not_come(browser: Browser, site: str):
    page = browser.new_page()  # not watched: what fails says so on the console
    page.route("**/tex-chtml.js", lambda route: route.abort())
    formula = open_page(page, f"{site}/book/notation.html").locator("span.math").first
    expect(formula).to_be_visible()
    expect(formula).to_have_text(r"\(n\)")
    page.close()
