"""The teachers' page: what a notebook needs comes from the record, the link for a hub from the repository."""

import dataclasses
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from prefill_decode_book import needs, repository
from reference import ROOT

from prefill_decode import recorded

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PAGE = (ROOT / "book" / "teachers.md").read_text("utf-8")


def test_every_notebook_has_its_measured_row():
    run, table = recorded.read("notebooks"), needs.as_markdown(ROOT / "notebooks")
    rows = re.findall(
        r"^\| \[\]\(/notebooks/(\S+)\.ipynb\) \| ([\d,]+) MB \| (\d+) s \| (yes|no) \|$", table, flags=re.M
    )
    assert [name for name, *_ in rows] == [path.stem for path in NOTEBOOKS], "run: make bench PARTS=notebooks"
    for name, peak, seconds, _ in rows:
        assert peak == f"{run.measures[f'{name}_peak_mb'].value:,.0f}"
        assert seconds == f"{run.measures[f'{name}_seconds'].value:.0f}"
    assert run.where in table


def test_a_notebook_without_weights_says_so_and_so_does_a_new_one(tmp_path, monkeypatch):
    measures = {
        f"a_{what}": recorded.Measure("a", 2.0, unit, 1) for what, unit in (("seconds", "s"), ("peak_mb", "MB"))
    }
    run = dataclasses.replace(recorded.read("build"), measures=measures)
    monkeypatch.setattr(recorded, "read", lambda part: run)
    (tmp_path / "a.ipynb").write_text('"toy.load()"')
    assert "| 2 MB | 2 s | no |" in needs.as_markdown(tmp_path)
    (tmp_path / "b.ipynb").write_text('"smollm2.load()"')
    assert "(/notebooks/b.ipynb) | not yet measured | not yet measured | yes |" in needs.as_markdown(tmp_path)


@pytest.mark.parametrize("address", ["https://github.com/someone/some-book", repository.UNKNOWN])
def test_the_link_for_a_hub_pulls_the_repository_and_opens_its_first_notebook(address):
    link = urlsplit(repository.pull_address(address, "main"))
    asked = {key: value for key, [value] in parse_qs(link.query, strict_parsing=True).items()}
    folder = address.rsplit("/", 1)[1]
    first = f"lab/tree/{folder}/notebooks/01_prefill.ipynb"
    assert asked == {"repo": address, "branch": "main", "urlpath": first}
    assert link.path == "/hub/user-redirect/git-pull"
    assert (ROOT / first.removeprefix(f"lab/tree/{folder}/")).exists()


def test_there_is_a_lesson_for_every_notebook():
    lessons = re.findall(r"^\*\*\[[^]]+\]\(\.\./notebooks/(\S+)\.ipynb\)\.\*\*", PAGE, flags=re.M)
    assert lessons == [path.stem for path in NOTEBOOKS], "a lesson a section: book/teachers.md"


def test_what_is_put_right_is_put_right_under_a_heading_that_exists():
    places = re.findall(r"\(\.\./notebooks/(\S+\.ipynb)\), “([^”]+)” \|$", PAGE, flags=re.M)
    assert len(places) >= 15
    for name, heading in places:
        assert re.search(rf'"#+ {re.escape(heading)}(\\n)?"', (ROOT / "notebooks" / name).read_text("utf-8")), heading
