"""A server for the built pages and a browser that may ask nobody else."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import anywidget
import pytest
from playwright.sync_api import Browser, Page, Route
from widget_page import go_live, opener

from benchmarks.site import QuietHandler, address_of, serving

ROOT = Path(__file__).parents[2]
HTML = ROOT / "_build" / "html"


@pytest.fixture(scope="session")
def html() -> Path:
    """Return the folder of the built pages."""
    if not (HTML / "index.html").exists():
        pytest.fail("no built book in _build/html: run 'make build' first", pytrace=False)
    return HTML


@pytest.fixture(scope="session")
def site(html: Path) -> Iterator[str]:
    """Serve the built pages and return their address, without a slash at the end."""
    with serving(functools.partial(QuietHandler, directory=html)) as server:
        yield address_of(server)


class Watch:
    """What pages said and whom they asked; `check` wants neither."""

    def __init__(self, site: str) -> None:
        self.host = urlsplit(site).netloc
        self.foreign: list[str] = []
        self.messages: list[str] = []

    def follow(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.messages.append(f"uncaught: {error}"))
        page.on("console", self.note_message)
        page.context.route("**/*", self.let_through)

    def note_message(self, message) -> None:
        if message.type in ("warning", "error"):
            self.messages.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def let_through(self, route: Route) -> None:
        address = urlsplit(route.request.url)
        if address.scheme == "file" or address.netloc == self.host:
            route.continue_()
        else:
            self.foreign.append(route.request.url)
            route.abort()

    def check(self) -> None:
        assert self.foreign == [], "asked another host"
        assert self.messages == [], "the console is not empty"


@contextmanager
def watched(browser: Browser, site: str) -> Iterator[Callable[..., Page]]:
    """Yield a function that opens a page with context options (viewport, color_scheme, ...); all are watched."""
    watch, contexts = Watch(site), []

    def open_page(**options: object) -> Page:
        contexts.append(browser.new_context(**options))
        contexts[-1].set_default_timeout(10_000)
        page = contexts[-1].new_page()
        watch.follow(page)
        return page

    yield open_page
    for context in contexts:
        context.close()
    watch.check()


@pytest.fixture
def new_page(browser: Browser, site: str) -> Iterator[Callable[..., Page]]:
    """Return a function that opens watched pages of one test."""
    with watched(browser, site) as open_page:
        yield open_page


@pytest.fixture(scope="module")
def shared_new_page(browser: Browser, site: str) -> Iterator[Callable[..., Page]]:
    """Return a function that opens watched pages of a whole module: what takes seconds to load is loaded once."""
    with watched(browser, site) as open_page:
        yield open_page


@pytest.fixture
def page(new_page: Callable[..., Page]) -> Page:
    """Return a fresh page of 1280 by 800 pixels."""
    return new_page(viewport={"width": 1280, "height": 800})


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Return a function that opens a page of widgets from the disk; no other host, no word on the console."""
    with opener(browser, tmp_path) as opened:
        yield opened


@pytest.fixture
def live(open_page: Callable[..., Page], widget: anywidget.AnyWidget) -> Page:
    """Return a page on which a test module's ``widget`` runs as it does in JupyterLab."""
    return go_live(open_page(), widget)
