"""Run the notebooks and write them back: the only way their outputs are made (`make notebooks`).

Running it twice gives the same bytes: no times, no widget state, fixed metadata, named cells, SVG instead of PNG.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
KEPT_MIMES = ("text/html", "image/svg+xml", "text/plain")


def main(paths: list[str]) -> None:
    """Execute each notebook in its own folder and write it."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a second thread that waits for a busy core costs far more
    for path in map(Path, paths):
        print(f"{path} … ", end="", flush=True)
        check_names(path, read_cells(path))  # before nbformat mends them with random ids
        notebook = nbformat.read(path, as_version=4)
        folder = {"metadata": {"path": str(path.parent)}}
        # A kernel may cut what a cell prints anywhere: the pieces are joined. Its remarks on its sockets are no news.
        quiet = ["--log-level=ERROR"]
        client = NotebookClient(notebook, timeout=600, coalesce_streams=True, resources=folder, extra_arguments=quiet)
        try:
            client.execute()
        except CellExecutionError as error:
            raise SystemExit(
                f"\n{error}\n{path}: cell '{failed_cell(notebook)}' failed, as told above; mend it"
            ) from None
        path.write_text(as_text(notebook), "utf-8")
        print("written")


def as_text(notebook: nbformat.NotebookNode) -> str:
    """Return the notebook as JSON with nothing in it that changes from run to run."""
    cells = [_clean(dict(cell)) for cell in notebook.cells]
    told = {"cells": cells, "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 5}
    nbformat.validate(nbformat.from_dict(told))
    return json.dumps(told, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def read_cells(path: Path) -> list[dict]:
    """Return the cells of a notebook as its file has them."""
    try:
        return json.loads(path.read_text("utf-8"))["cells"]
    except OSError as error:
        raise SystemExit(
            f"\n{path}: {error.strerror}; expected a notebook: NOTEBOOKS=notebooks/0N_name.ipynb"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"\n{path}: no notebook ({error}); take it as it was: git checkout -- {path}") from None


def check_names(path: Path, cells: list[dict]) -> None:
    """Refuse a notebook in which a cell has no name, or two have the same."""
    names = [cell.get("id", "") for cell in cells]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice or not all(names):
        wrong = f"twice {', '.join(twice)}" if twice else f"none in cell {names.index('') + 1}"
        raise SystemExit(f'\n{path}: every cell needs a name of its own, found {wrong}; write it into the file as "id"')


def failed_cell(notebook: nbformat.NotebookNode) -> str:
    """Return the name of the cell that ended a run."""
    codes = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return next(cell.id for cell in codes if any(output.output_type == "error" for output in cell.outputs))


def _clean(cell: dict) -> dict:
    cell["source"] = _lines(cell["source"].strip("\n"))
    cell["metadata"] = {k: v for k, v in cell["metadata"].items() if k in ("tags", "mystnb")}
    if cell["cell_type"] == "code":
        cell["outputs"] = [_clean_output(dict(output)) for output in cell["outputs"]]
    return cell


def _clean_output(output: dict) -> dict:
    if "data" in output:
        output["data"] = {mime: _lines(output["data"][mime]) for mime in KEPT_MIMES if mime in output["data"]}
        output["metadata"] = {}
    elif "text" in output:
        output["text"] = _lines(output["text"])
    return output


def _lines(text: str | list[str]) -> list[str]:
    return "".join(text).splitlines(keepends=True)


if __name__ == "__main__":
    main(sys.argv[1:])
