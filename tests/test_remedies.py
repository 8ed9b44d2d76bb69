"""What stops a build says where it is and what to do: tried on a book of two pages."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from prefill_decode_book import remedies, syntax, widgets
from reference import ROOT

CONF = """
extensions = ["myst_nb", "sphinxcontrib.bibtex", "prefill_decode_book.remedies"]
bibtex_bibfiles = ["some.bib"]
nb_execution_mode = "force"
"""
PAGE = """# A page

[nowhere](nowhere.md), [no place](book.ipynb#no-place), ![](no.png),
{ref}`no-label`, {term}`no term`, {cite:p}`nobody2000`

```{toctree}
book
```
"""


def as_cell(kind: str, name: str, source: str) -> dict:
    outputs = {"outputs": [], "execution_count": None} if kind == "code" else {}
    return {"cell_type": kind, "id": name, "metadata": {}, "source": source, **outputs}


def write_book(folder: Path, page: str, *cells: dict) -> None:
    python = {"kernelspec": {"name": "python3", "display_name": "", "language": "python"}}
    notebook = {"cells": cells, "metadata": python, "nbformat": 4, "nbformat_minor": 5}
    for name, text in {"conf.py": CONF, "some.bib": "", "index.md": page, "book.ipynb": json.dumps(notebook)}.items():
        (folder / name).write_text(text, "utf-8")


def warnings_of(folder: Path) -> list[str]:
    """Build a book of one page and one notebook and return what the build complained of; it must fail."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-n", "--keep-going", "--no-color", ".", "out"]
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT / "book/_ext"), str(ROOT / "src")]), "IPYTHONDIR": str(folder)}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, **paths}, check=False)
    assert done.returncode == 1
    return [line.removeprefix(f"{folder}/") for line in done.stderr.splitlines()]


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("book")
    cells = [
        as_cell("markdown", "title", "# A notebook"),
        as_cell("code", "fine", "x = 1"),
        as_cell("markdown", "typo", "and {cite:p}`nobody2001`"),
        as_cell("code", "broken", "x += 1\nassert x == 3, 'x is 2'"),
    ]
    write_book(folder, PAGE, *cells)
    return "\n".join(warnings_of(folder))


@pytest.mark.parametrize(
    "line",
    [
        r"index\.md:3: WARNING: .*cross-reference target not found: 'nowhere\.md' .*; correct the link; .*_toc\.yml",
        r"index\.md:3: WARNING: local id not found in doc 'book': 'no-place' .*; correct the link; .* heading in small",
        r"index\.md:\d*: WARNING: image file not readable: no\.png.*; correct its path",
        r"index\.md:\d: WARNING: undefined label: 'no-label'; correct the link",
        r"index\.md:\d: WARNING: term not in glossary: 'no term'; spell it as in book/glossary\.md, or define it there",
        r"index\.md:\d: WARNING: could not find bibtex key .nobody2000.; spell it as in book/references\.bib, or add",
        r"book\.ipynb, cell 3: WARNING: could not find bibtex key .nobody2001.; spell it",
        r"book\.ipynb: WARNING: cell 'broken' failed: AssertionError: x is 2; mend it, then run: make notebooks",
    ],
)
def test_a_warning_says_where_and_what_to_do(said, line):
    assert re.search(f"^{line}", said, flags=re.MULTILINE), said


def test_a_script_that_does_not_parse_is_named_with_its_line(tmp_path):
    (tmp_path / "good.js").write_text("export const a = 1;\nexport default a;\n")
    (tmp_path / "bad.js").write_text("const a = 1;\nconst = 2;\n")
    good, bad = tmp_path / "good.js", tmp_path / "bad.js"
    assert syntax.find_fault(tmp_path, [good]) == ""
    assert syntax.find_fault(tmp_path, [good, bad]) == "bad.js:2: SyntaxError: Unexpected token '='"


def test_a_script_of_the_pages_that_does_not_parse_stops_the_build(tmp_path):
    folder = tmp_path / widgets.SOURCE
    folder.mkdir(parents=True)
    (folder / "bad.js").write_text("let let = 1\n")
    app = type("App", (), {"srcdir": str(tmp_path)})
    with pytest.raises(SystemExit, match=r"^src/prefill_decode/widgets/bad\.js:1: SyntaxError: .*; mend it"):
        widgets.check_scripts(app)


@pytest.mark.parametrize("line", ['import { x } from "./other.js";', "export { x as default };"])
def test_a_widget_that_imports_or_exports_otherwise_is_named_with_its_line(line):
    place = widgets.SOURCE / "bad.js"
    with pytest.raises(SystemExit, match=rf"^{place}:2: '{re.escape(line)}' cannot be part of .* import nothing$"):
        widgets.as_block(place, f"const x = 1;\n{line}\n")


def test_the_cell_is_found_by_its_source():
    notebook = remedies.nbformat.from_dict({"cells": [as_cell("code", "a", "x = 1\n"), as_cell("code", "b", "y")]})
    rule = "-" * 18
    traceback = "An error occurred while executing the following cell:\n{0}\ny\n{0}\n\n{0}\nNameError: y"
    assert remedies.failed_cell(notebook, traceback.format(rule)) == "b"
    assert remedies.failed_cell(notebook, traceback.format(rule).replace("\ny\n", "\nz\n")) == "?"
