"""`PassTimeline` in JupyterLab: steps by keyboard, and the kernel knows where it is."""

import pytest
from lab.conftest import SEEN, Notebook
from playwright.sync_api import Locator, expect

SOURCE = """from prefill_decode.cost import IDEAL, Machine, Request, Shape, simulate
from prefill_decode.widgets import PassTimeline
shape, machine = Shape(64, 4, 4, 2, 16, 128, 100), Machine(1e9, 1e8)
requests = [Request(0, 9, 40), Request(0.05, 200, 5)]
timeline = PassTimeline(
    ["the", " old", " cat", " sleeps", " here"], 3, 4, prefill_layer_ms=3, decode_layer_ms=2, choose_ms=1, slow_layer=1,
    stall=[simulate(shape, machine, IDEAL, requests, chunk=chunk) for chunk in (None, 20)],
    source="Round numbers", stall_source="Simulated",
)
timeline"""
SOURCES = (SOURCE,)
expect.set_options(timeout=SEEN)


@pytest.fixture
def root(notebook: Notebook) -> Locator:
    return notebook.outputs(0).locator('[data-widget="pass-timeline"][data-live="lab"]')


def test_it_steps_by_keyboard_and_the_kernel_knows(notebook, root):
    expect(root).to_have_attribute("data-step", "10")
    root.focus()
    for key, step in (("Home", 0), ("ArrowRight", 1), ("ArrowDown", 0), ("End", 10), ("ArrowLeft", 9)):
        root.page.keyboard.press(key)
        expect(root).to_have_attribute("data-step", str(step))
    root.get_by_role("radio", name="chunks of 20").check()
    root.get_by_label("Slow layer").check()
    expect(notebook.run("timeline.step, timeline.scenario, timeline.slow")).to_contain_text("(9, '20', True)")


def test_the_kernel_sets_its_state(notebook, root):
    notebook.run("timeline.step, timeline.scenario = 2, 'whole'")
    expect(root).to_have_attribute("data-step", "2")
    expect(root).to_have_attribute("data-scenario", "whole")
    expect(root.locator("[data-scene=schedule] [aria-live]")).to_contain_text("layer 1 of all 3 prompt tokens at once")
