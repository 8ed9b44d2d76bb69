"""`MaskGallery` in JupyterLab: masks and rows by click and key, and the kernel knows which."""

import pytest
from lab.conftest import SEEN, Notebook
from playwright.sync_api import Locator, expect

SOURCE = """from prefill_decode.widgets.mask_gallery_examples import gallery
masks = gallery()
masks"""
SOURCES = (SOURCE,)
expect.set_options(timeout=SEEN)


@pytest.fixture
def root(notebook: Notebook) -> Locator:
    return notebook.outputs(0).locator('[data-widget="mask-gallery"][data-live="lab"]')


def test_it_steps_by_keyboard_and_the_kernel_knows(notebook, root):
    expect(root).to_have_attribute("data-step", "8")
    root.get_by_role("button", name="Packed", exact=True).click()
    expect(root).to_have_attribute("data-step", "10")
    root.focus()
    for key, step in (("Home", 0), ("ArrowRight", 1), ("ArrowDown", 0), ("End", 10), ("ArrowLeft", 9)):
        root.page.keyboard.press(key)
        expect(root).to_have_attribute("data-step", str(step))
    expect(notebook.run("masks.case, masks.step")).to_contain_text("('packed', 9)")


def test_the_kernel_sets_its_state(notebook, root):
    notebook.run("masks.step = 10")
    notebook.run("masks.case = 'left-padded'")
    expect(root).to_have_attribute("data-case", "left-padded")
    expect(root).to_have_attribute("data-step", "15")
    notebook.run("masks.step = 6")
    expect(root.locator(".pd-sentence")).to_contain_text("row 5 is a pad")


def test_a_question_sets_both_at_once(notebook, root):
    root.get_by_role("button", name="Do chunks compute other pairs?", exact=True).click()
    expect(notebook.run("masks.case, masks.step")).to_contain_text("('chunks', 8)")


def test_a_cell_says_why(root):
    root.locator('section[data-chosen] td[data-q="3"][data-k="5"]').hover()
    expect(root.locator(".pd-cell-line")).to_have_text("row a3 may not read key a5: comes later")
