"""What the pages weigh and how soon their first widget answers, in Chromium, from a host that packs texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from statistics import median

import yaml
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from tqdm import tqdm

from benchmarks.environment import ROOT, chromium
from benchmarks.measure import CannotMeasureError
from benchmarks.site import StaticHost
from benchmarks.widget import FLAGS
from prefill_decode.recorded import Measure, Peer

BOOK = ROOT / "_build" / "html"
RUNS = 3
SLOWER = 4  # times, as the developer tools slow a processor down
LARGEST = 5
VIEWPORT = {"width": 1280, "height": 800}
# What Jupyter Book sends for a page with a widget and mathematics when nothing is left out, as the issue states it.
DEFAULT = Peer("Jupyter Book as it comes", 2100, 1, "as stated")
FIRST_WIDGET = """new MutationObserver((changes, observer) => {
  window.firstWidget = performance.now();
  observer.disconnect();
}).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-live"] });"""
SETTLED = "() => window.MathJax?.startup?.promise"  # mathematics asks for its parts and fonts late
SCROLL = """async () => {
  for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight) {
    scrollTo(0, y);
    await new Promise(requestAnimationFrame);
  }
  await document.fonts.ready;
}"""


def measure() -> dict[str, Measure]:
    """Return what the heaviest page weighs and its largest parts; seconds to the first widget of the slowest page."""
    with _browser() as (browser, host):
        weights = {name: weigh(browser, host, name) for name in pages()}
        with_widget = [name for name in pages() if "data-widget=" in (BOOK / f"{name}.html").read_text("utf-8")]
        times = {name: _times(browser, host, name) for name in tqdm(with_widget, leave=False, disable=None)}
    slowest = [max(times, key=lambda name, visit=visit: times[name][visit]) for visit in (0, 1)]
    heaviest = max(weights, key=lambda name: sum(weights[name].values()))
    total = sum(weights[heaviest].values()) / 1e3
    what = f"`{heaviest}`, the heaviest page, all that it loads"
    return {
        "page_kb": Measure(what, total, "kB", 1, "exact", at_most=800),
        "default_kb": Measure(what, total, "kB", 1, "exact", peer=DEFAULT),
        **_parts(weights[heaviest]),
        **_seconds("cold", slowest[0], times[slowest[0]][0], at_most=1.5),
        **_seconds("warm", slowest[1], times[slowest[1]][1], at_most=1),
    }


def pages() -> list[str]:
    """Return the pages of the book, without their suffix."""
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    return [contents["root"], *(chapter["file"] for part in contents["parts"] for chapter in part["chapters"])]


def weigh(browser: Browser, host: StaticHost, name: str) -> dict[str, int]:
    """Open a page of the host as a new reader, scroll to its end, and return bytes a file, the largest first.

    Parameters
    ----------
    browser : Browser
    host : StaticHost
        Serving the book.
    name : str
        Of the page, without its suffix.
    """
    host.sent.clear()
    context = browser.new_context(viewport=VIEWPORT)
    page = context.new_page()
    page.goto(f"{host.address}/{name}.html")
    page.evaluate(SETTLED)
    page.evaluate(SCROLL)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(500)  # what scrolling asked for
    context.close()
    return dict(sorted(host.sent.items(), key=lambda item: -item[1]))


@contextmanager
def _browser() -> Iterator[tuple[Browser, StaticHost]]:
    if not (BOOK / "index.html").exists():
        raise CannotMeasureError("there is no built book: run make build")
    with StaticHost(BOOK).serving() as host, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser, host
        browser.close()


def _times(browser: Browser, host: StaticHost, name: str) -> list[float]:
    """Return the median seconds to the first widget of a page: with an empty cache, and visited once more."""
    runs = [_visits(browser, f"{host.address}/{name}.html") for _ in range(RUNS)]
    return [median(times) for times in zip(*runs, strict=True)]


def _visits(browser: Browser, address: str) -> tuple[float, float]:
    context = browser.new_context(viewport=VIEWPORT)
    seconds = _visit(context, address), _visit(context, address)
    context.close()
    return seconds


def _visit(context: BrowserContext, address: str) -> float:
    page: Page = context.new_page()
    page.add_init_script(FIRST_WIDGET)
    context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    page.goto(address)
    page.wait_for_function("window.firstWidget !== undefined")
    milliseconds = page.evaluate("window.firstWidget")
    page.wait_for_load_state("networkidle")  # the cache is complete before the next visit
    page.close()
    return milliseconds / 1e3


def _parts(weights: dict[str, int]) -> dict[str, Measure]:
    largest = list(weights.items())[:LARGEST]
    return {
        f"part_{rank}_kb": Measure(f"of it `{PurePosixPath(path).name}`", size / 1e3, "kB", 1, "exact")
        for rank, (path, size) in enumerate(largest, start=1)
    }


def _seconds(cache: str, name: str, seconds: float, at_most: float) -> dict[str, Measure]:
    what = f"first widget live, {cache} cache, processor slowed {SLOWER} times; `{name}`, the slowest page"
    return {f"first_widget_{cache}_seconds": Measure(what, seconds, "s", RUNS, at_most=at_most)}
