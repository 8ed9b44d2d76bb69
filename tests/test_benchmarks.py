"""The record of measurements can be read and says where it comes from; no time is asserted here."""

import datetime
import sys

import pytest

from benchmarks import __main__ as bench
from benchmarks import grid_page, loading, memory, record, results
from benchmarks.measure import alternate, in_fresh_process, percentile
from prefill_decode.recorded import Measure, Peer, Run, read_all

RECORDED = read_all()
UNDER = {"date": "2001-02-03", "machine": {"cpu": "c", "cores": 2, "memory_gb": 1.5, "os": "o"}, "load_average": 0.1}
RUN = {**UNDER, "versions": {"python": "3"}}


@pytest.fixture
def empty_record(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RECORDED", tmp_path / "recorded.json")
    monkeypatch.setattr(record, "RESULTS", tmp_path / "RESULTS.md")


def row_of(measure: Measure) -> str:
    return results.as_markdown({"decode": Run(**RUN, measures={"key": measure})}).splitlines()[-1]


def test_every_part_is_recorded():
    assert set(RECORDED) == set(bench.PARTS) == set(results.TITLES)


@pytest.mark.parametrize("part", bench.PARTS)
def test_part_says_when_where_and_with_what_it_was_measured(part):
    run = RECORDED[part]
    assert datetime.date.fromisoformat(run.date).year >= 2024
    assert run.machine["cpu"]
    assert run.machine["cores"] >= 1
    assert {"python", "numpy", "blas", "chromium"} <= set(run.versions)
    assert run.load_average >= 0
    assert run.machine["cpu"] in run.where


@pytest.mark.parametrize("part", bench.PARTS)
def test_every_number_has_a_unit_and_says_how_often_it_was_measured(part):
    for measure in RECORDED[part].measures.values():
        assert measure.value > 0
        assert measure.unit
        assert measure.n >= 1
        assert measure.peer is None or measure.peer.n >= 1


def test_the_page_is_what_the_record_renders_to():
    assert record.RESULTS.read_text("utf-8") == results.as_markdown(RECORDED)


def test_a_miss_is_told_and_so_is_a_hit():
    assert row_of(Measure("a", 9.0, "ms", 5, at_most=8)) == "| a | 9 ms (median of 5) | at most 8 ms | 1.12 | **no** |"
    assert row_of(Measure("a", 4.0, "ms", 5, at_most=8)).endswith("| 0.50 | yes |")
    peer = Peer("b", 10.0, 5)
    assert row_of(Measure("a", 7.0, "ms", 5, peer=peer, at_least=0.8)).endswith("ratio at least 0.80 | 0.70 | **no** |")
    assert row_of(Measure("a", 8.0, "ms", 5, peer=peer, at_least=0.8)).endswith("ratio at least 0.80 | 0.80 | yes |")
    assert row_of(Measure("a", 8.0, "ms", 1, peer=peer)) == "| a | 8 ms (once) | b: 10 ms (median of 5) | 0.80 |  |"


def test_parts_that_do_not_run_keep_their_numbers_and_their_date(empty_record):
    record.write("loading", {"load_seconds": Measure("a", 1.0, "s", 5)}, RUN)
    record.write("decode", {"steps": Measure("b", 2.0, "s", 5)}, {**RUN, "date": "2002-02-03"})
    assert [run.date for run in read_all(record.RECORDED).values()] == ["2001-02-03", "2002-02-03"]
    assert read_all(record.RECORDED)["loading"].measures["load_seconds"].value == 1.0
    assert record.RESULTS.read_text("utf-8") == results.as_markdown(read_all(record.RECORDED))


def test_numbers_are_recorded_with_four_digits_and_their_peer(empty_record):
    measure = Measure("a", 1.23456, "s", 5, peer=Peer("b", 2.34567, 5), at_least=0.5)
    record.write("decode", {"key": measure}, RUN)
    kept = Measure("a", 1.235, "s", 5, peer=Peer("b", 2.346, 5), at_least=0.5)
    assert read_all(record.RECORDED)["decode"].measures["key"] == kept


def test_a_counted_number_says_so():
    assert row_of(Measure("a", 9.0, "MB", 1, "counted")) == "| a | 9 MB (counted) |  |  |  |"


def test_actions_run_in_turn_and_the_first_rounds_do_not_count():
    calls = []
    seconds = alternate(lambda: calls.append("a"), lambda: calls.append("b"), runs=3, what="test")
    assert "".join(calls) == "ab" * 5
    assert [len(times) for times in seconds] == [3, 3]


def test_peak_memory_is_that_of_the_process_alone():
    ballast = b"x" * 400_000_000
    code = "import json, resource as r, sys; print(json.dumps([r.getrusage(r.RUSAGE_SELF).ru_maxrss, sys.platform]))"
    peak, system = in_fresh_process(code)
    assert peak * (1 if system == "darwin" else 1024) < len(ballast) / 4


def test_peak_memory_counts_the_prompt_and_what_came_after_it():
    without, with_it = (loading.PEAK.format(afterwards=memory.PREFILL + code) for code in ("", 'b"x" * 400_000_000'))
    assert in_fresh_process(with_it)["peak"] > in_fresh_process(without)["peak"] + 300e6


def test_a_process_that_fails_ends_the_run(capfd):
    with pytest.raises(SystemExit, match="the process that was to be measured failed"):
        in_fresh_process("raise SystemExit('why')")
    assert capfd.readouterr().err == "why\n"


def test_percentile_is_a_value_that_was_measured():
    assert percentile(range(1, 101), 95) == 95
    assert percentile([3.0, 1.0, 2.0], 50) == 2.0


def test_the_measured_grid_is_put_together_by_the_code_of_the_book():
    page = grid_page.static_page(grid_page.made_up_weights())
    assert f'data-steps="{grid_page.STEPS}"' in page
    assert 'load("attention-grid", () => {' in page


def test_unknown_part_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "speed"])
    with pytest.raises(SystemExit) as stopped:
        bench.main()
    assert stopped.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith("expected some of " + ", ".join(bench.PARTS))


def test_an_unknown_part_is_refused_before_anything_is_built(monkeypatch, capsys, empty_record):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--check", "decod"])
    with pytest.raises(SystemExit):
        bench.main()
    assert "unknown part decod: expected some of loading" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--check", "decode"])
    bench.main()
    assert not record.RESULTS.exists()
