"""Load the model and run phrases in Chromium, as a reader of the plain page does; with the kernel and without it."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from playwright.sync_api import Browser, Page, sync_playwright
from tqdm import tqdm

from benchmarks.environment import ROOT, chromium
from benchmarks.measure import CannotMeasureError, in_turn
from benchmarks.site import QuietHandler, address_of, serving
from benchmarks.widget import FLAGS
from prefill_decode import smollm2, twin
from prefill_decode.recorded import Measure, Peer

RUNS = 5
SIXTEEN = "The lighthouse keeper counted the ships each evening and wrote their names into a green book"
FORTY_EIGHT = f"{SIXTEEN}. {SIXTEEN}. {SIXTEEN.removesuffix(' green book')}"
WIDGET = "[data-widget=your-phrase]"
BOOK = ROOT / "_build" / "html"
PAGE = "/book/index.html"
LONG_TASKS = """() => { window.tasks = [0];
  new PerformanceObserver(list => window.tasks.push(...list.getEntries().map(entry => entry.duration)))
    .observe({ type: "longtask" }); }"""


def measure() -> dict[str, Measure]:
    """Return how long a reader waits for the model, for the first token and for each later one."""
    with _served() as site, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        loads = [_load_seconds(browser, site) for _ in tqdm(range(RUNS), desc="loading", leave=False, disable=None)]
        fast, plain = (_ready(browser, f"{site}{folder}{PAGE}") for folder in ("", "/plain"))
        times = in_turn(lambda: _run(fast), lambda: _run(plain), runs=RUNS, what="phrases")
        first = [_run(fast, SIXTEEN, 1, "ttftMs") for _ in range(RUNS)]
        longest_task = _longest_task(fast)
        browser.close()
    decode = [1000 / median(each) for each in times]
    return {
        "ready_seconds": Measure("model ready, over the network", median(x for x, _ in loads), "s", RUNS, at_most=5),
        "stored_seconds": Measure("model ready, kept before", median(x for _, x in loads), "s", RUNS, at_most=2),
        "prefill_16_ms": Measure("prefill of 16 tokens", median(first), "ms", RUNS, at_most=3000),
        "token_ms": Measure("one token after another", median(times[0]), "ms", RUNS, at_most=250),
        "kernel_ratio": Measure(
            "decode, products in WebAssembly with SIMD",
            decode[0],
            "tokens/s",
            RUNS,
            peer=Peer("plain JavaScript", decode[1], RUNS),
            at_least=2,
        ),
        "longest_task_ms": Measure(
            "longest task of the main thread, 48 tokens and 16 new ones (50 ms and less count as 50)",
            max(50, longest_task),
            "ms",
            1,
            "longest",
            at_most=50,
        ),
    }


@contextmanager
def _served() -> Iterator[str]:
    """Serve the built book, and below /plain once more, with a twin that has no kernel."""
    if not (BOOK / "model" / smollm2.FILE).exists():
        raise CannotMeasureError("there is no built book with the model: run make build")
    with serving(functools.partial(_Handler, directory=BOOK)) as server:
        yield address_of(server)


class _Handler(QuietHandler):
    def do_GET(self) -> None:  # noqa: N802  http.server calls it so
        plain = self.path.startswith("/plain/")
        self.path = self.path.removeprefix("/plain")
        if not (plain and "/widgets.js" in self.path):
            return super().do_GET()
        script = (BOOK / "_static" / "widgets.js").read_text("utf-8").replace(twin.kernel(), "").encode("utf-8")
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript; charset=utf-8")
        self.send_header("Content-Length", str(len(script)))
        self.end_headers()
        return self.wfile.write(script)


def _load_seconds(browser: Browser, site: str) -> tuple[float, float]:
    """Return seconds to a ready model, over the network and once more from the browser's store."""
    context = browser.new_context()
    page, seconds = context.new_page(), []
    for _ in range(2):
        page.goto(f"{site}{PAGE}")
        start = time.perf_counter()
        _load(page)
        seconds.append(time.perf_counter() - start)
    context.close()
    return tuple(seconds)


def _ready(browser: Browser, address: str) -> Page:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(address)
    _load(page)
    return page


def _load(page: Page) -> None:
    page.get_by_role("button", name="Load the model").click()
    page.wait_for_selector(f"{WIDGET}[data-state=ready]", timeout=60_000)


def _run(page: Page, phrase: str = SIXTEEN, new_tokens: int = 6, value: str = "tpotMs") -> float:
    """Run a phrase and return a time that the widget shows, in milliseconds."""
    page.get_by_role("textbox", name="Your phrase").fill(phrase)
    page.get_by_role("spinbutton", name="New tokens").fill(str(new_tokens))
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_selector(f"{WIDGET}[data-state=done]", timeout=120_000)
    return float(page.locator(WIDGET).evaluate(f"root => root.dataset.{value}"))


def _longest_task(page: Page) -> float:
    page.evaluate(LONG_TASKS)
    _run(page, FORTY_EIGHT, 16)
    return page.evaluate("Math.max(...window.tasks)")
