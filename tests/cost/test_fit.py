"""The constants are those of the odd rows, and the even rows never reach the fit."""

import json
import os
from dataclasses import replace

import pytest

from prefill_decode.cost import Constants, fit
from prefill_decode.cost.classes import (
    FITTED,
    class_constants,
    class_of,
    class_with_constants,
    constants_of,
    fitted,
)
from prefill_decode.cost.predictions import predict_measurement, value_of
from prefill_decode.cost.published import MEASURED, halves, published
from prefill_decode.cost.search import Times, search

ROWS = published()


def test_duplicates_are_merged_and_rows_sorted():
    keys = [(row.told.source, row.label, row.told.phase, row.told.unit) for row in ROWS]
    assert len(keys) == len(set(keys)) < len(MEASURED.read_text("utf-8").splitlines()) - 1
    assert [row.told.source for row in ROWS] == sorted(row.told.source for row in ROWS)
    assert sum(row.times for row in ROWS) == len(MEASURED.read_text("utf-8").splitlines()) - 1


def test_every_source_is_split_in_halves():
    to_fit, to_judge = halves(ROWS)
    assert len(to_fit) + len(to_judge) == len(ROWS)
    for source in {row.told.source for row in ROWS}:
        n_fit, n_judge = (sum(row.told.source == source for row in half) for half in (to_fit, to_judge))
        assert n_fit - n_judge in (0, 1)


def test_what_is_judged_does_not_reach_the_fit(monkeypatch):
    seen = []
    monkeypatch.setattr(fit, "published", lambda: ROWS)
    monkeypatch.setattr(fit, "fit", lambda rows: seen.extend(rows) or {"sources": {}, "classes": {}, "all": {}})
    monkeypatch.setattr(fit, "unseen", lambda rows: [])
    monkeypatch.setattr(fit, "errors", lambda rows, **_: {})
    monkeypatch.setattr(fit, "FITTED", type(FITTED)(os.devnull))
    fit.main()
    assert seen == halves(ROWS)[0]


def test_the_committed_constants_are_what_the_fit_finds_for_one_source():
    to_fit, _ = halves(ROWS)
    source = next(row.told.source for row in ROWS if row.told.source.startswith("FasterTransformer"))
    rows = [row for row in to_fit if row.told.source == source]
    ((device_class, told),) = fitted()["sources"][source].items()
    assert search(rows, Constants(**fitted()["classes"][device_class])) == Constants(**told)


def test_constants_that_made_the_rows_are_found_again():
    to_fit, _ = halves([row for row in ROWS if row.told.source.startswith("FasterTransformer")])
    truth = Constants(compute=0.61, memory=0.72, overhead=50e-6, prefill_overhead=0.0002)
    made = [replace(row, value=value_of(row.told.request(truth), row.told)) for row in to_fit]
    found = search(made, Constants(compute=0.5, memory=0.9, overhead=90e-6, prefill_overhead=0.0002))
    assert (found.compute, found.memory) == pytest.approx((0.61, 0.72), abs=0.015)  # a step of the grid
    assert found.overhead == pytest.approx(50e-6, abs=15e-6)


def test_the_search_times_rows_as_the_model_does():
    constants = Constants(0.3, 0.6, overhead=1e-4, prefill_overhead=3e-4, sync=2e-4, core_rate=2e11)
    times = Times([replace(row, value=value_of(row.told.request(constants), row.told)) for row in ROWS])
    assert times.seconds(constants) == pytest.approx(times.measured)


def test_errors_are_told_by_source_with_their_worst_row():
    _, to_judge = halves(ROWS)
    told = fit.errors(to_judge)
    assert sum(source.n for source in told.values()) == len(to_judge)
    for source in told.values():
        assert source.median <= source.largest == abs(source.worst.error)


def test_phases_account_for_every_judged_row():
    _, to_judge = halves(ROWS)
    told = fit.errors(to_judge, fit.by_phase)
    assert list(told) == [
        "one device, decode",
        "one device, prefill",
        "one device, whole request",
        "several devices",
    ]
    assert sum(phase.n for phase in told.values()) == len(to_judge)
    for name, phase in told.items():
        count, asked = phase.worst.told.machine.count, phase.worst.told.phase
        assert (count > 1) == (name == "several devices")
        assert count > 1 or name.endswith({"decode": "decode", "prefill": "prefill"}.get(asked, "whole request"))


def test_what_is_told_of_sources_left_out_is_of_all_rows():
    left_out = fitted()["unseen"]
    assert set(left_out["phases"]) == {fit.by_phase(row) for row in ROWS}
    assert {sum(told["n"] for told in left_out[by].values()) for by in ("sources", "classes", "phases")} == {len(ROWS)}


def test_a_source_left_out_is_predicted_from_the_others():
    torchao = [row for row in ROWS if row.told.source.startswith("torchao")]
    others = [row for row in ROWS if row.told.source.startswith("FasterTransformer")]
    left_out = fit.unseen([*torchao, *others])
    constants = fit.fit_classes(others)[1][torchao[0].told.device_class]
    expected = [predict_measurement(row.told, constants).value / row.value - 1 for row in torchao]
    assert [error for row, error in left_out if row in torchao] == expected


@pytest.mark.parametrize(
    ("source", "word", "kind", "expected"),
    [
        ("vLLM docs", "fp16", "GPU with HBM", "compiled engine on GPU with HBM"),
        ("a table", "Q4_K_M", "GPU with GDDR", "llama.cpp on GPU with GDDR"),
        ("a table of llama.cpp", "", "CPU", "llama.cpp on CPU"),
        ("HuggingFace transformers blog", "fp16", "GPU with HBM", "eager engine on GPU with HBM"),
        ("vLLM against llama.cpp", "Q4_0", "CPU", "compiled engine on CPU"),
        ("a table", "q4_0", "CPU", "llama.cpp on CPU"),
        ("a table", "BF16", "CPU", "compiled engine on CPU"),
    ],
)
def test_the_class_of_a_source_not_seen(source, word, kind, expected):
    assert class_of(source, word, kind) == expected


def test_a_class_without_rows_takes_the_nearest_one():
    assert constants_of("nobody", "llama.cpp on a kind not met") in [
        Constants(**told) for name, told in fitted()["classes"].items() if name.startswith("llama.cpp")
    ]
    assert constants_of("nobody", "an engine on nothing") == Constants(**fitted()["all"])


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("compiled engine on GPU with GDDR", "compiled engine on GPU with GDDR"),
        ("compiled engine on TPU", "compiled engine on GPU with HBM"),
        ("steam on CPU", "llama.cpp on CPU"),
        ("steam on nothing", "all rows"),
    ],
)
def test_the_class_that_lends_its_constants_has_a_name(asked, found):
    assert class_with_constants(asked) == found
    told = fitted()["classes"].get(found, fitted()["all"])
    assert class_constants(asked) == Constants(**told)


def test_the_file_of_constants_is_complete():
    told = json.loads(FITTED.read_text("utf-8"))
    assert set(told["sources"]) == {row.told.source for row in ROWS}
    assert {name for source in told["sources"].values() for name in source} == set(told["classes"])
