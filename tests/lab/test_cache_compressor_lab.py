"""`CacheCompressor` in JupyterLab: choices by click and key, and the kernel knows which."""

from pathlib import Path

import pytest
from lab.conftest import SEEN, Notebook
from playwright.sync_api import Locator, expect

FIXTURE = Path(__file__).parents[1] / "compressor_fixture.py"
SOURCES = (FIXTURE.read_text("utf-8"), "ways = compressor()\nways")
expect.set_options(timeout=SEEN)


@pytest.fixture
def root(notebook: Notebook) -> Locator:
    return notebook.outputs(1).locator('[data-widget="cache-compressor"][data-live="lab"]')


def test_it_steps_by_keyboard_and_the_kernel_knows(notebook, root):
    expect(root).to_have_attribute("data-storage", "2 bits")
    root.focus()
    for key, name in (("Home", "exact"), ("ArrowRight", "float16"), ("ArrowDown", "8 bits"), ("ArrowUp", "float16")):
        root.page.keyboard.press(key)
        expect(root).to_have_attribute("data-storage", name)
    expect(notebook.run("ways.storage")).to_contain_text("'float16'")


def test_radio_buttons_take_the_arrow_keys(notebook, root):
    root.get_by_role("radio", name="4 bits", exact=True).check()
    root.page.keyboard.press("ArrowDown")
    expect(root).to_have_attribute("data-storage", "2 bits")
    expect(notebook.run("ways.storage")).to_contain_text("'2 bits'")


def test_the_kernel_sets_its_state(notebook, root):
    notebook.run("ways.storage = 'window of 64'")
    expect(root).to_have_attribute("data-storage", "window of 64")
    expect(root.get_by_role("radio", name="window of 64", exact=True)).to_be_checked()
    expect(root.locator(".pd-sentence")).to_contain_text("window of 64: 6,119 bytes a token")


def test_a_question_sets_its_row_and_the_kernel_knows(notebook, root):
    root.get_by_role("button", name="Why keep the first tokens?", exact=True).click()
    expect(root.locator(".pd-sentence")).to_contain_text("76.2 instead of 40.1")
    expect(notebook.run("ways.storage")).to_contain_text("'window without sinks'")
    expect(root.locator(".pd-sentence")).to_contain_text("76.2 instead of 40.1")
