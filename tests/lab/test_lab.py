"""Every notebook in JupyterLab: its saved outputs, its run, and the grids live beside a kernel."""

import json
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from lab.conftest import SEEN, Lab, Notebook
from playwright.sync_api import Browser, Locator, expect

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
TOY = """from prefill_decode import toy
from prefill_decode.observe import observe
from prefill_decode.widgets import AttentionGrid
AttentionGrid(**vars(observe(*toy.load(), "the old cat", max_new_tokens=3)))"""
GRID = '[data-widget="attention-grid"]'
ROOM = {"width": 1280, "height": 900}
expect.set_options(timeout=SEEN)


@pytest.fixture
def opened(browser: Browser, lab: Lab, request: pytest.FixtureRequest) -> Iterator[Notebook]:
    """Open a notebook as it is saved; nothing runs."""
    notebook = Notebook(browser.new_context(viewport=ROOM).new_page(), lab, request.param)
    notebook.open()
    yield notebook
    notebook.close()
    notebook.check()


@pytest.fixture(scope="module")
def ran(browser: Browser, lab: Lab, request: pytest.FixtureRequest) -> Iterator[Notebook]:
    """Open a notebook and run all its cells, once for all tests."""
    notebook = Notebook(browser.new_context(viewport=ROOM).new_page(), lab, request.param)
    notebook.open()
    notebook.run_all()
    yield notebook
    notebook.close()
    notebook.check()


@pytest.fixture
def toy_grid(browser: Browser, lab: Lab) -> Iterator[tuple[Notebook, Locator]]:
    """Open a notebook with one small grid, which a test may spoil; return both."""
    cells = [nbformat.v4.new_code_cell(TOY), nbformat.v4.new_code_cell()]
    metadata = {"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), lab.folder / "toy.ipynb")
    notebook = Notebook(browser.new_context(viewport=ROOM).new_page(), lab, "toy.ipynb")
    notebook.open()
    notebook.run_all()
    grid = notebook.outputs(0).locator(f"{GRID}[data-live]")
    expect(grid).to_be_visible()
    yield notebook, grid
    notebook.close()
    notebook.check()


def saved_grids(name: str) -> dict[int, BeautifulSoup]:
    """Return the pictures that the repository's notebook holds, by the number of their cell."""
    cells = json.loads((ROOT / "notebooks" / name).read_text("utf-8"))["cells"]
    outputs = [(i, output.get("data", {})) for i, cell in enumerate(cells) for output in cell.get("outputs", [])]
    pages = [(i, BeautifulSoup("".join(data.get("text/html", "")), "html.parser")) for i, data in outputs]
    return {i: page for i, page in pages if page.select_one(GRID)}


def live(notebook: Notebook) -> dict[int, Locator]:
    """Return the live grids by the number of their cell; there must be one for each saved picture."""
    grids = {i: notebook.outputs(i).locator(f"{GRID}[data-live]") for i in saved_grids(notebook.name)}
    for grid in grids.values():
        expect(grid).to_be_visible()
    return grids


def name_of(notebook: Notebook, index: int) -> str:
    """Return how the kernel calls the grid that a cell returned, or that is a part of what it returned."""
    result = f"Out[{notebook.cells()[index]['execution_count']}]"
    return f"getattr({result}, 'grid', {result})"


def press(grid: Locator, name: str) -> None:
    """Press one of the grid's buttons."""
    grid.get_by_role("button", name=name).click()


def counts(grid: Locator) -> list[str]:
    """Return step, pairs and cache entries of a grid, as its root tells them."""
    return [grid.get_attribute(f"data-{name}") for name in ("step", "pairs", "cache")]


def expect_counts(grid: Locator, step: int, pairs: int, cache: int) -> None:
    """Expect step, pairs and cache entries."""
    for name, value in {"step": step, "pairs": pairs, "cache": cache}.items():
        expect(grid).to_have_attribute(f"data-{name}", str(value))


@pytest.mark.parametrize("opened", NOTEBOOKS, indirect=True)
def test_saved_outputs_show_the_finished_pictures(opened: Notebook):
    for i, saved in saved_grids(opened.name).items():
        table = opened.outputs(i).locator("table").first
        expect(table).to_be_visible()
        numbers = [cell.get_text() for cell in saved.select("td[data-k]")]
        assert len(numbers) == int(saved.select_one(GRID)["data-steps"]) ** 2
        assert table.locator("tbody td").all_text_contents() == numbers
    assert "rror displaying widget" not in opened.page.locator(".jp-Notebook").inner_text()


@pytest.mark.parametrize("ran", NOTEBOOKS, indirect=True)
def test_every_cell_runs(ran: Notebook):
    code = [cell for cell in ran.cells() if cell["cell_type"] == "code" and cell["source"]]
    assert [output for cell in code for output in cell["outputs"] if output["output_type"] == "error"] == []
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))


@pytest.mark.parametrize("ran", NOTEBOOKS, indirect=True)
def test_grids_are_live_and_leave_the_address_alone(ran: Notebook):
    address = ran.page.url
    for grid in live(ran).values():
        press(grid, "First step")
        expect_counts(grid, 0, 0, 0)
        press(grid, "Next step")
        expect_counts(grid, 1, 1, 1)
        grid.focus()
        ran.page.keyboard.press("ArrowRight")
        expect_counts(grid, 2, 3, 2)
        press(grid, "Last step")
        prompt, steps = int(grid.get_attribute("data-prompt-len")), int(grid.get_attribute("data-steps"))
        expect_counts(grid, steps, steps * (steps + 1) // 2, steps)
        grid.get_by_label("Without a cache").check()
        expect_counts(grid, steps, sum(t * (t + 1) // 2 for t in range(prompt, steps + 1)), 0)
        grid.get_by_label("Without a cache").uncheck()
    assert ran.page.url == address


@pytest.mark.parametrize("ran", NOTEBOOKS, indirect=True)
def test_stepping_a_grid_leaves_the_others(ran: Notebook):
    grids = live(ran)
    if not grids:
        return
    name = name_of(ran, min(grids))
    outputs = ran.run(f"from prefill_decode.widgets import AttentionGrid\nAttentionGrid.of_phrases([{name}])")
    one_more = outputs.locator(f"{GRID}[data-live]")
    expect(one_more).to_be_visible()
    everything = [*grids.values(), one_more]
    for i, grid in enumerate(everything):
        others = [counts(other) for other in everything[:i] + everything[i + 1 :]]
        press(grid, "First step")
        press(grid, "Next step")
        expect_counts(grid, 1, 1, 1)
        assert [counts(other) for other in everything[:i] + everything[i + 1 :]] == others
        press(grid, "Last step")


@pytest.mark.parametrize("ran", NOTEBOOKS, indirect=True)
def test_grid_shown_twice_steps_in_both_places(ran: Notebook):
    for i, grid in live(ran).items():
        again = ran.run(name_of(ran, i)).locator(f"{GRID}[data-live]")
        press(again, "First step")
        expect_counts(grid, 0, 0, 0)
        press(grid, "Next step")
        expect_counts(again, 1, 1, 1)


@pytest.mark.parametrize("ran", NOTEBOOKS, indirect=True)
def test_kernel_and_browser_follow_each_other(ran: Notebook):
    for i, grid in live(ran).items():
        name = name_of(ran, i)
        ran.run(f"{name}.step, {name}.without_cache = 3, False")
        expect_counts(grid, 3, 6, 3)
        press(grid, "Previous step")
        grid.get_by_label("Without a cache").check()
        expect(ran.run(f"print({name}.step, {name}.without_cache)")).to_have_text("2 True")
        ran.run(f"{name}.without_cache = False")
        expect_counts(grid, 2, 3, 2)


# From here on the kernel of `ran` is a new one, which knows of no grid.


@pytest.mark.parametrize("ran", NOTEBOOKS, indirect=True)
def test_grids_outlive_their_kernel(ran: Notebook):
    grids = live(ran)
    ran.save()
    ran.restart()
    for grid in grids.values():
        press(grid, "First step")
        press(grid, "Next step")
        expect_counts(grid, 1, 1, 1)


@pytest.mark.parametrize("ran", NOTEBOOKS, indirect=True)
def test_saved_notebook_shows_its_pictures_without_the_kernel_that_drew_them(ran: Notebook):
    pictures = saved_grids(ran.name)
    ran.save()
    ran.restart()
    ran.open()
    for i in pictures:
        expect(ran.outputs(i)).not_to_contain_text("Loading widget")
        expect(ran.outputs(i)).not_to_contain_text("model not found")
        expect(ran.outputs(i).locator("table").first).to_be_visible()


def test_keys_pressed_in_a_grid_are_not_shortcuts_of_the_notebook(toy_grid: tuple[Notebook, Locator]):
    """In JupyterLab the arrows choose a cell, b adds one and x cuts it, unless the grid keeps its keys."""
    notebook, grid = toy_grid
    before = [cell["source"] for cell in notebook.cells()]
    head = grid.get_by_label("Head", exact=True)
    head.focus()
    notebook.page.keyboard.press("ArrowDown")
    expect(head).to_have_value("1")
    for part in (head, grid.get_by_role("button", name="Next step"), grid.locator("td[data-q='2'][data-k='1']")):
        for key in "bx":
            part.focus()
            notebook.page.keyboard.press(key)
            assert [cell["source"] for cell in notebook.cells()] == before, f"{key} edited the notebook"
