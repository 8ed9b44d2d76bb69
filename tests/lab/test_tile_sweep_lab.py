"""`TileSweep` in JupyterLab: steps by keyboard, and the kernel knows where it is."""

import pytest
from lab.conftest import SEEN, Notebook
from playwright.sync_api import Locator, expect

SOURCE = """import numpy as np
from prefill_decode.widgets import TileSweep
q, k, v = np.random.default_rng(3).normal(0, 1, (3, 1, 8, 4))
sweep = TileSweep(q, k, v, memories=(16, 32, 128), memory=32)
sweep"""
SOURCES = (SOURCE,)
expect.set_options(timeout=SEEN)


@pytest.fixture
def root(notebook: Notebook) -> Locator:
    return notebook.outputs(0).locator('[data-widget="tile-sweep"][data-live="lab"]')


def test_it_steps_by_keyboard_and_the_kernel_knows(notebook, root):
    expect(root).to_have_attribute("data-step", "10")
    root.focus()
    for key, step in (("Home", 0), ("ArrowRight", 1), ("ArrowDown", 0), ("End", 10), ("ArrowLeft", 9)):
        root.page.keyboard.press(key)
        expect(root).to_have_attribute("data-step", str(step))
    expect(notebook.run("sweep.memory, sweep.order, sweep.step")).to_contain_text("(32, 'keys', 9)")
    root.get_by_label("Fast memory").select_option("16")
    root.get_by_label("Loop order").select_option("queries")
    root.get_by_role("button", name="Previous step").click()
    expect(root).to_have_attribute("data-step", "35")
    expect(notebook.run("sweep.memory, sweep.order, sweep.step")).to_contain_text("(16, 'queries', 35)")


def test_the_kernel_sets_its_state(notebook, root):
    notebook.run("sweep.memory = 128; sweep.order = 'keys'; sweep.step = 1")
    for name, value in {"memory": "128", "order": "keys", "step": "1"}.items():
        expect(root).to_have_attribute(f"data-{name}", value)
    expect(root.locator("[aria-live]")).to_contain_text("queries 0–3 meet keys 0–7")
    rows = root.locator(".pd-rows tbody tr")
    expect(rows).to_have_count(8)
    assert rows.locator("td:last-child").all_inner_texts() == ["✓"] * 4 + [""] * 4
