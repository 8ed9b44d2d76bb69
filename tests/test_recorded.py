"""The record that pages draw from: read by part, with the machine's name, and clear about what it does not have."""

import json
import os

import pytest
from reference import ROOT

from prefill_decode import recorded
from prefill_decode.recorded import Measure, Peer, Run

BOX = {"cpu": "Abacus", "cores": 3, "memory_gb": 1.5, "os": "o"}
STEP = Measure("a", 5.0, "ms", 5, "best", peer=Peer("b", 50.0, 4))
MEASURES = {"ms_1024": Measure("a", 9.0, "ms", 5), "ms_16": STEP, "ms_all": STEP, "rate_16": STEP, "a_ms_2": STEP}
RUN = Run("2001-02-03", BOX, {"python": "3", "numpy": "2.0"}, 0.1, MEASURES)


def test_a_part_is_read_with_its_measures():
    run = recorded.read("decode")
    measure = run.measures["decode_per_second"]
    assert measure.unit == "a second"
    assert measure.peer.what.startswith("one pass over the same matrices")
    assert measure.ratio == measure.value / measure.peer.value


def test_unknown_part_is_one_line_that_names_the_known_ones():
    with pytest.raises(ValueError, match=r"^nothing is recorded as 'speed': expected one of .*decode.*$"):
        recorded.read("speed")


def test_a_file_that_is_not_there_holds_nothing(tmp_path):
    assert recorded.read_all(tmp_path / "recorded.json") == {}


def test_everything_of_a_part_is_read(tmp_path):
    part = {
        "date": "2001-02-03", "machine": BOX, "versions": {"numpy": "2.0"}, "load_average": 0.1,
        "measures": {
            "x": {"what": "a", "value": 2.0, "unit": "s", "n": 5, "statistic": "best", "at_least": 2.0,
                  "peer": {"what": "b", "value": 4.0, "n": 3, "statistic": "largest"}},
            "y": {"what": "c", "value": 2.0, "unit": "MB", "n": 1, "statistic": "median", "at_most": 3.0},
        },
        "missing": {"z": "no compiler"},
    }  # fmt: skip
    path = tmp_path / "recorded.json"
    path.write_text(json.dumps({"some": part}), "utf-8")
    x = Measure("a", 2.0, "s", 5, "best", peer=Peer("b", 4.0, 3, "largest"), at_least=2.0)
    y = Measure("c", 2.0, "MB", 1, at_most=3.0)
    run = Run("2001-02-03", BOX, {"numpy": "2.0"}, 0.1, {"x": x, "y": y}, {"z": "no compiler"})
    assert recorded.read_all(path) == {"some": run}


def test_limits_and_wanted_ratios():
    assert STEP.ratio == 0.1
    assert STEP.met is None
    assert Measure("a", 5.0, "ms", 5, at_most=4.0).met is False
    assert Measure("a", 4.0, "ms", 5, at_most=4.0).met is True
    assert Measure("a", 5.0, "ms", 5, peer=Peer("b", 2.0, 5), at_least=2.5).met is True
    assert Measure("a", 5.0, "ms", 5, peer=Peer("b", 2.0, 5), at_least=2.6).met is False
    assert Measure("a", 5.0, "ms", 5).ratio is None


def test_the_machine_is_named_in_one_line():
    assert RUN.where == "Abacus, 3 cores, 1.5 GB, numpy 2.0, 2001-02-03"


def test_a_curve_is_sorted_by_its_numbers_and_holds_nothing_else():
    assert list(RUN.series("ms_").items()) == [(16, 5.0), (1024, 9.0)]
    assert RUN.peer_series("ms_") == {16: 50.0}


def test_a_curve_that_was_not_measured_is_one_line():
    with pytest.raises(ValueError, match=r"^no measure is called 'm' and a number: there are ms_1024, ms_16, ms_all"):
        RUN.series("m")


def test_curves_of_the_pages_are_there():
    decode = recorded.read("decode")
    assert list(decode.series("decode_ms_after_")) == [16, 64, 256, 1024, 2048, 4096]
    assert list(decode.peer_series("decode_ms_after_")) == [16, 64, 256, 1024]
    assert list(decode.series("prefill_tokens_per_second_")) == [16, 64, 256, 1024, 2048]


def test_benchmarks_write_where_pages_read():
    link = ROOT / "benchmarks" / "recorded.json"
    assert os.readlink(link) == "../src/prefill_decode/recorded.json"
    assert link.resolve() == recorded.RECORDED.resolve()
