"""`PromptExplorer` in JupyterLab: a phrase that is typed comes back as a grid, whatever is wrong as one line."""

import re

import pytest
from lab.conftest import SEEN, Notebook
from playwright.sync_api import Locator, expect

GRID = '[data-widget="attention-grid"]'
# The toy waits at a gate, so that a run lasts as long as a test wants.
TOY = """import threading
from prefill_decode import smollm2, toy
from prefill_decode.widgets import PromptExplorer
gate = threading.Event()
gate.set()
class Waiting(toy.WordTokenizer):
    def encode(self, text):
        gate.wait()
        return super().encode(text)
small = PromptExplorer(lambda: (toy.load()[0], Waiting()), phrase="the old cat", max_new_tokens=3)
small"""
REAL = """real = PromptExplorer(smollm2.load)
real"""
SOURCES = (TOY, REAL)
expect.set_options(timeout=SEEN)


@pytest.fixture
def toy(notebook: Notebook) -> Locator:
    return notebook.outputs(0)


@pytest.fixture
def real(notebook: Notebook) -> Locator:
    return notebook.outputs(1)


def run(explorer: Locator, phrase: str, new: int | None = None) -> None:
    """Type a phrase, key by key, choose how many tokens, and press the button."""
    box = explorer.get_by_label("Your phrase")
    box.fill("")
    box.press_sequentially(phrase)
    if new is not None:
        explorer.get_by_label("New tokens").select_option(str(new))
    explorer.get_by_role("button", name="Run", exact=True).click()


def expect_status(explorer: Locator, line: str | re.Pattern) -> None:
    expect(explorer.get_by_role("status")).to_have_text(line)


def tokens(explorer: Locator) -> list[str]:
    return explorer.locator(f"{GRID}[data-live] [data-chip]").all_text_contents()


def test_opens_with_the_finished_grids(toy: Locator, real: Locator):
    expect_status(toy, "prompt tokens: 3, new tokens: 3, rows: 5, passes: 1 prefill + 2 decode")
    assert tokens(toy)[:3] == ["the", "old", "cat"]
    expect(real.locator(f"{GRID}[data-live]")).to_have_attribute("data-steps", "9")
    assert tokens(real)[5] == "·Paris"


def test_a_phrase_comes_back_as_a_grid_with_its_tokens(toy: Locator, real: Locator):
    before = tokens(toy)
    real.get_by_role("button", name="First step").click()
    run(real, "The largest planet is", 2)
    expect_status(real, "prompt tokens: 4, new tokens: 2, rows: 5, passes: 1 prefill + 1 decode")
    grid = real.locator(f"{GRID}[data-live]")
    for name, value in {"steps": 5, "step": 5, "pairs": 15, "cache": 5, "prompt-len": 4}.items():
        expect(grid).to_have_attribute(f"data-{name}", str(value))
    assert tokens(real)[:4] == ["The", "·largest", "·planet", "·is"]
    assert tokens(toy) == before


def test_sixty_four_rows_are_drawn(real: Locator):
    run(real, " a" * 60, 5)
    expect_status(real, "prompt tokens: 60, new tokens: 5, rows: 64, passes: 1 prefill + 4 decode")
    expect(real.locator(f"{GRID}[data-live] tr[data-row]")).to_have_count(64)


def test_enter_runs(toy: Locator):
    box = toy.get_by_label("Your phrase")
    box.fill("a dog sees")
    box.press("Enter")
    expect(toy.locator("[data-chip]").first).to_have_text("a")
    expect_status(toy, re.compile("^prompt tokens: 3"))


@pytest.mark.parametrize(
    ("phrase", "line"),
    [
        ("", "the phrase is empty: type a word or two"),
        ("   ", "the phrase gives no token: type a word or two"),
        ("<img src=x onerror=alert(1)>", re.compile("^the toy does not know '<img': its words are .* sings .$")),
        ("the " * 90, "the phrase has 90 tokens; with 5 new ones the context holds up to 28: shorten it"),
    ],
)
def test_bad_input_is_one_line_and_the_grid_stays(toy: Locator, phrase: str, line: str | re.Pattern):
    run(toy, "the small bird", 5)
    expect_status(toy, re.compile("^prompt tokens: 3, new tokens: 5"))
    before = tokens(toy)
    run(toy, phrase)
    expect_status(toy, line)
    assert tokens(toy) == before
    assert toy.locator("[role=status] *").count() == 0


def test_a_second_click_is_answered_and_starts_nothing(notebook: Notebook, toy: Locator):
    notebook.run("gate.clear()")
    run(toy, "a house", 2)
    expect_status(toy, "running …")
    expect(toy.get_by_role("progressbar")).to_be_visible()
    run(toy, "the cat sings", 4)
    expect_status(toy, re.compile("^still running: "))
    expect(notebook.run("print(len(small.grid.data['phrases'][0]['tokens']), gate.set())")).to_contain_text("None")
    expect_status(toy, "prompt tokens: 2, new tokens: 2, rows: 3, passes: 1 prefill + 1 decode")
    assert tokens(toy)[:2] == ["a", "house"]


def test_keys_pressed_in_the_controls_are_not_shortcuts_of_the_notebook(notebook: Notebook, toy: Locator):
    before = [(cell["cell_type"], cell["source"]) for cell in notebook.cells()]
    for control in (toy.get_by_label("New tokens"), toy.get_by_role("button", name="Run", exact=True)):
        for key in "b1x":
            control.focus()
            notebook.page.keyboard.press(key)
            assert [(cell["cell_type"], cell["source"]) for cell in notebook.cells()] == before, f"{key} edited it"


# From here on the kernel is a new one, which knows of no explorer.


def test_saved_notebook_shows_the_finished_picture_without_a_kernel(notebook: Notebook, toy: Locator, real: Locator):
    notebook.save()
    notebook.restart()
    notebook.open()
    for explorer, first in ((toy, "the"), (real, "The")):
        expect(explorer.locator("table").first).to_be_visible()
        expect(explorer).to_contain_text("make lab")
        expect(explorer.locator("thead th").first).to_have_text(first)
    for complaint in ("Loading widget", "model not found", "rror displaying widget"):
        expect(notebook.page.locator(".jp-Notebook")).not_to_contain_text(complaint)
