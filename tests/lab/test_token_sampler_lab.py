"""`TokenSampler` in a live notebook: the page and the kernel hold one setting."""

import pytest
from lab.conftest import SEEN, Notebook
from playwright.sync_api import Locator, expect

SOURCE = """import numpy as np
from prefill_decode.widgets import TokenSampler
logits = np.random.default_rng(4).normal(0, 2, 200)
chooser = TokenSampler(logits, [f" t{i}" for i in range(200)], "once upon")
chooser"""
SOURCES = (SOURCE,)
expect.set_options(timeout=SEEN)


@pytest.fixture
def root(notebook: Notebook) -> Locator:
    return notebook.outputs(0).locator('[data-widget="token-sampler"][data-live="lab"]')


def test_a_slider_moves_by_keyboard_and_the_kernel_knows(notebook, root):
    expect(root).to_have_attribute("data-top-p", "0.90")
    root.get_by_label("Temperature", exact=True).press("ArrowRight")
    root.get_by_label("Top-p", exact=True).press("End")
    expect(root).to_have_attribute("data-kept", "200")
    expect(notebook.run("chooser.choice")).to_contain_text("temperature=1.1, top_k=None, top_p=None")


def test_the_kernel_sets_its_state_and_draws_the_same_token(notebook, root):
    notebook.run("chooser.temperature, chooser.draws = 1.5, 1")
    expect(root).to_have_attribute("data-temperature", "1.5")
    expect(root).to_have_attribute("data-draws", "1")
    token = root.get_attribute("data-token")
    expect(notebook.run("print('token', chooser.choice.sampler()(logits))")).to_contain_text(f"token {token}")


def test_a_question_sets_all_at_once(notebook, root):
    root.get_by_role("button", name="Does the order matter?", exact=True).click()
    expect(root.locator(".pd-sentence")).to_contain_text("llama.cpp filters first")
    expect(notebook.run("chooser.choice")).to_contain_text("temperature=2.0, top_k=None, top_p=0.8")
