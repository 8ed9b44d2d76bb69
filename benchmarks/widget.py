"""Step the attention grid in Chromium, and draw the same picture through a kernel in the same run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from playwright.sync_api import Page, sync_playwright
from tqdm import tqdm

from benchmarks.environment import chromium
from benchmarks.grid_page import STEPS, made_up_weights, static_page
from benchmarks.kernel import drawing_kernel, redraw_seconds
from benchmarks.measure import percentile
from prefill_decode.recorded import Measure, Peer

ROUNDS = 2
REDRAW_EVERY = 4  # the kernel draws every fourth step
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# From before the first listener hears a real key press until after the last one, layout included.
STOPWATCH = """() => {
  const root = document.querySelector("[data-widget]");
  let start;
  window.addEventListener("keydown", () => { start = performance.now(); }, { capture: true });
  window.addEventListener("keydown", () => {
    root.getBoundingClientRect();
    window.milliseconds = performance.now() - start;
  });
  root.focus();
}"""


def measure() -> dict[str, Measure]:
    """Return one step as page and kernel do it: 95th percentile against its limit, medians against each other."""
    weights = made_up_weights()
    with tempfile.TemporaryDirectory() as folder:
        address = Path(folder, "grid.html")
        address.write_text(static_page(weights), "utf-8")
        with drawing_kernel(weights[0, 0], Path(folder)) as kernel, open_page(address.as_uri()) as page:
            steps, redraws = _in_turn(page, lambda step: 1000 * redraw_seconds(kernel, step))
    peer = Peer("a kernel redraws it with Matplotlib, request to reply", median(redraws), len(redraws))
    what = "key press to finished layout"
    return {
        "step_p95_ms": Measure(what, percentile(steps, 95), "ms", len(steps), "95th percentile", at_most=8),
        "step_ms": Measure(what, median(steps), "ms", len(steps), peer=peer),
    }


@contextmanager
def open_page(address: str) -> Iterator[Page]:
    """Open a page in a new Chromium, with a stopwatch on its keys."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address)
        page.wait_for_selector("[data-widget][data-live]")
        page.evaluate(STOPWATCH)
        yield page
        browser.close()


def _in_turn(page: Page, redraw: Callable[[int], float]) -> tuple[list[float], list[float]]:
    """Return milliseconds of every step and of every redraw; an uncounted round comes first."""
    steps, redraws = [], []
    for i in tqdm(range((1 + ROUNDS) * STEPS), desc="widget", unit="step", leave=False, disable=None):
        step = i % STEPS + 1
        if step == 1:
            page.keyboard.press("Home")
        times = [press(page, "ArrowRight", step)], [redraw(step)] if step % REDRAW_EVERY == 0 else []
        if i >= STEPS:
            steps += times[0]
            redraws += times[1]
    return steps, redraws


def press(page: Page, key: str, expected_step: int) -> float:
    """Press a key, see that the grid went to the step, and return the milliseconds it took."""
    page.keyboard.press(key)
    milliseconds, step = page.evaluate("[milliseconds, Number(document.querySelector('[data-widget]').dataset.step)]")
    if step != expected_step:
        raise RuntimeError(f"the grid is at step {step} after {key}, expected {expected_step}: its keys changed")
    return milliseconds
