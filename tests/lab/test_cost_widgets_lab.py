"""`Roofline` and `LedgerTable` live in JupyterLab: controls and kernel follow each other, keys stay in the widget."""

from lab.conftest import SEEN, Notebook
from playwright.sync_api import expect

MODELS = """from prefill_decode.cost import Constants, Shape
from prefill_decode.widgets import LedgerTable, Roofline
llama = Shape(4096, 32, 32, 8, 128, 14336, 128256, tied_head=False, vectors=65 * 4096)
h100 = {"peak": 989.4e12, "bandwidth": 3.35e12, "memory": 80e9}
roofline = Roofline({"Llama-3-8B": llama}, {"H100 SXM": h100}, Constants(0.6, 0.75))
roofline"""
TABLE = """table = LedgerTable({"Llama-3-8B": (llama, "float16")})
table"""
SOURCES = (MODELS, TABLE)
expect.set_options(timeout=SEEN)


def test_roofline_and_kernel_follow_each_other(notebook: Notebook):
    root = notebook.outputs(0).locator('[data-widget="roofline"][data-live]')
    expect(root).to_be_visible()
    root.get_by_role("button", name="A 5-token prompt: what binds?").click()
    expect(root).to_have_attribute("data-prefill-bound", "memory")
    expect(notebook.run("roofline.prompt_len")).to_contain_text("5")
    notebook.run("roofline.batch = 3")
    expect(root).to_have_attribute("data-batch", "3")


def test_ledger_table_and_kernel_follow_each_other(notebook: Notebook):
    root = notebook.outputs(1).locator('[data-widget="ledger-table"][data-live]')
    expect(root).to_be_visible()
    root.focus()
    notebook.page.keyboard.press("ArrowRight")
    expect(root).to_have_attribute("data-n", "8192")
    expect(root).to_be_focused()  # JupyterLab did not take the key and go to another cell
    expect(notebook.run("table.n")).to_contain_text("8192")
    notebook.run("table.n = 64")
    expect(root).to_have_attribute("data-n", "64")


def test_letters_do_not_cut_cells(notebook: Notebook):
    cells = len(notebook.cells())
    for selector in ('[data-widget="ledger-table"]', '[data-widget="roofline"] select >> nth=0'):
        notebook.page.locator(selector).focus()
        for key in ("x", "b", "d", "d"):
            notebook.page.keyboard.press(key)
    assert len(notebook.cells()) == cells
