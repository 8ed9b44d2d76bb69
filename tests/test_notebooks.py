"""Hygiene of the notebooks, so that comparing them means something."""

import ast
import json
import re
from pathlib import Path

import nbformat
import pytest
from myst_nb.core.execute import direct
from prefill_decode_book import kernel
from reference import ROOT

import notebooks as writer

PATHS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def load(path):
    return json.loads(path.read_text("utf-8"))


def code_cells(path):
    return [cell for cell in load(path)["cells"] if cell["cell_type"] == "code"]


def mimes(path):
    return {mime for cell in code_cells(path) for output in cell["outputs"] for mime in output.get("data", {})}


def test_there_are_notebooks_and_the_contents_list_them():
    contents = (ROOT / "_toc.yml").read_text("utf-8")
    names = [f"notebooks/{path.stem}" for path in PATHS]
    assert re.findall(r"file: (notebooks/\S+)", contents) == names, "list every notebook, and no other: _toc.yml"
    table = (ROOT / "book" / "index.md").read_text("utf-8")
    assert re.findall(r"^\| \[[^]]+\]\(\.\./(\S+)\.ipynb\) \|", table, flags=re.M) == names, "a row each: book/index.md"
    assert len(PATHS) >= 2


def test_the_contents_list_every_page():
    listed = re.findall(r"(?:root|file): (book/\S+)", (ROOT / "_toc.yml").read_text("utf-8"))
    assert sorted(listed) == [f"book/{path.stem}" for path in sorted(ROOT.glob("book/*.md"))], "list it in: _toc.yml"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
class TestNotebook:
    def test_every_cell_was_executed_in_order(self, path):
        counts = [cell["execution_count"] for cell in code_cells(path)]
        assert counts == list(range(1, len(counts) + 1))

    def test_outputs_can_be_compared(self, path):
        assert mimes(path) <= set(writer.KEPT_MIMES)
        text = json.dumps([cell["outputs"] for cell in code_cells(path)])
        assert not re.search(r"0x[0-9a-f]{6,}", text)
        assert not [o for cell in code_cells(path) for o in cell["outputs"] if o.get("name") == "stderr"]

    def test_nothing_is_skipped_or_hidden_from_comparison(self, path):
        for cell in code_cells(path):
            assert not [tag for tag in cell["metadata"].get("tags", []) if tag.startswith(("nbval", "raises"))]
            assert not "".join(cell["source"]).rstrip().endswith(";")

    def test_cells_import_and_define_nothing(self, path):
        for cell in code_cells(path):
            tree = ast.parse("".join(cell["source"]))
            assert not [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)]

    def test_every_import_is_used(self, path):
        source = "\n".join("".join(cell["source"]) for cell in code_cells(path))
        tree = ast.parse(source)
        imported = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert imported <= used

    def test_every_figure_has_its_alternative_text(self, path):
        for cell in code_cells(path):
            for output in cell["outputs"]:
                if "image/svg+xml" in output.get("data", {}):
                    alt = cell["metadata"]["mystnb"]["image"]["alt"]
                    assert "".join(output["data"]["text/plain"]) == f"Picture: {alt}"

    def test_it_leads_from_goals_to_what_to_take_home(self, path):
        texts = ["".join(cell["source"]) for cell in load(path)["cells"] if cell["cell_type"] == "markdown"]
        assert re.search(r"^\*\*You will\*\* .+^\*\*You need\*\* ", texts[0], flags=re.M | re.S)
        whole = "\n".join(texts)
        practice = r"^## Exercises$(.+)^## Self-test$(.+)^## Takeaway$\s+\S"
        exercises, questions = re.search(practice, whole, flags=re.M | re.S).groups()
        assert len(re.findall(r"^<summary>", exercises, flags=re.M)) >= 3  # folded solutions
        numbers = re.findall(r"^<summary>(\d+)\. ", questions, flags=re.M)  # folded answers
        assert numbers == [str(i + 1) for i in range(max(5, len(numbers)))]

    def test_the_file_is_as_the_writer_writes_it(self, path):
        assert path.read_text("utf-8") == writer.as_text(nbformat.read(path, as_version=4))


@pytest.mark.parametrize(
    ("ids", "found"), [(["twice", "twice"], "found twice twice"), (["one", ""], "found none in cell 2")]
)
def test_the_writer_refuses_cells_without_a_name_of_their_own(ids, found):
    with pytest.raises(SystemExit, match=rf"book\.ipynb: every cell needs a name of its own, {found}; write it"):
        writer.check_names(Path("book.ipynb"), [{"id": name} for name in ids])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (None, r"book\.ipynb: No such file or directory; expected a notebook"),
        ("<<<<<<< HEAD", r"book\.ipynb: no notebook .*; take it as it was: git checkout"),
        ("[]", r"book\.ipynb: no notebook "),
    ],
)
def test_what_is_no_notebook_is_named(tmp_path, text, line):
    path = tmp_path / "book.ipynb"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SystemExit, match=line):
        writer.main([str(path)])


def test_a_cell_that_fails_is_named_and_nothing_is_written(tmp_path):
    cells = [nbformat.v4.new_code_cell(source, id=name) for name, source in (("fine", "1"), ("broken", "1 / 0"))]
    path = tmp_path / "book.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    before = path.read_bytes()
    with pytest.raises(SystemExit, match=r"(?s)ZeroDivisionError.*book\.ipynb: cell 'broken' failed, as told above"):
        writer.main([str(path)])
    assert path.read_bytes() == before


def test_a_line_that_a_kernel_cuts_is_one_line_on_the_page_and_in_the_notebook(tmp_path, monkeypatch):
    # a flush is what the kernel's clock does between two writes of one print, now and then
    cut = nbformat.v4.new_code_cell('print("one ", end="", flush=True)\nprint("line")', id="cut")
    notebook = nbformat.v4.new_notebook(cells=[cut])
    monkeypatch.setattr(direct, "single_nb_execution", direct.single_nb_execution)  # put back afterwards
    kernel.join_streams(None)
    executed = direct.single_nb_execution(notebook, cwd=str(tmp_path), timeout=60, allow_errors=False).nb
    assert [output["text"] for output in executed.cells[0].outputs] == ["one line\n"]
    nbformat.write(notebook, tmp_path / "cut.ipynb")
    writer.main([str(tmp_path / "cut.ipynb")])
    assert [output["text"] for output in load(tmp_path / "cut.ipynb")["cells"][0]["outputs"]] == [["one line\n"]]
