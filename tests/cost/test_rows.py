"""Rows of published measurements: read, looked up, predicted, bounded."""

import csv
import math

import pytest

from prefill_decode.cost import known, predict
from prefill_decode.cost.published import MEASURED
from prefill_decode.cost.rows import COLUMNS, read_row

PUBLISHED = list(csv.DictReader(MEASURED.read_text("utf-8").splitlines()))
ROW = dict(
    source="a page not seen", model="Llama-3-8B fp16", params="", weight_bytes="", hardware="H100-SXM", peak_flops="",
    peak_bw="", phase="decode", batch="1", input_len="512", output_len="128", unit="ms/token",
)  # fmt: skip


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row['model']} {row['hardware']} {row['phase']}")
def test_no_measurement_is_beyond_the_bound(row):
    told, measured = predict(row), float(row["measured_value"])
    assert 0 < told.value < math.inf
    assert told.regime in ("memory", "compute")
    if told.bound is not None:
        slower = measured >= told.bound if row["unit"].startswith("ms") else measured <= told.bound
        assert slower, f"measured {measured}, bound {told.bound} {row['unit']}"


def test_the_measured_value_is_not_looked_at():
    row = PUBLISHED[0]
    assert predict({**row, "measured_value": "1"}) == predict({name: row[name] for name in COLUMNS})


def test_blank_numbers_are_looked_up():
    blank = predict(ROW)
    shape, device = known.find_model("Llama-3-8B").shape, known.find_device("H100-SXM")
    given = dict(params=shape.params, weight_bytes=2 * shape.params, peak_flops=device.peak, peak_bw=device.bandwidth)
    assert predict({**ROW, **{name: str(value) for name, value in given.items()}}) == blank


def test_the_bound_of_a_decode_pass_is_its_bytes_over_the_bandwidth():
    shape = known.find_model("Llama-3-8B").shape
    mean_keys = (513 + 639) / 2
    least = (2 * shape.params_read + shape.kv_bytes(1) * (mean_keys + 1)) / 3.35e12
    assert predict(ROW).bound == pytest.approx(1e3 * least)


def test_a_row_of_several_devices_is_looked_up_as_their_sum():
    assert read_row({**ROW, "hardware": "2xH100-SXM"}).machine.peak == 2 * 989.4e12


def test_the_rows_own_figures_win():
    faster = predict({**ROW, "peak_bw": "6.7e12"})
    assert faster.bound == pytest.approx(predict(ROW).bound / 2)


@pytest.mark.parametrize(
    ("phase", "unit", "factor"),
    [("decode", "s/token", 1e-3), ("e2e", "s", 1e-3), ("prefill", "s", 1e-3)],
)
def test_units_are_converted(phase, unit, factor):
    row = {**ROW, "phase": phase}
    in_ms = predict({**row, "unit": unit.replace("s", "ms", 1)}).value
    assert predict({**row, "unit": unit}).value == pytest.approx(in_ms * factor)


def test_rates_count_the_tokens_of_the_phase():
    row = {**ROW, "batch": "4"}
    ms = predict(row).value
    assert predict({**row, "unit": "tokens/s"}).value == pytest.approx(4 * 1000 / ms)
    prefill = predict({**row, "phase": "prefill", "unit": "ms"}).value
    assert predict({**row, "phase": "prefill", "unit": "tokens/s"}).value == pytest.approx(4 * 512 * 1000 / prefill)
    whole = predict({**row, "phase": "e2e", "unit": "ms"}).value
    assert whole == pytest.approx(prefill + 127 * ms)
    assert predict({**row, "phase": "e2e_throughput", "unit": "out tokens/s"}).value == pytest.approx(4 * 128e3 / whole)


def test_without_a_peak_there_is_a_bound_only_where_memory_surely_binds():
    apple = {**ROW, "hardware": "Apple-M2Max(38gpu)", "model": "Llama-3-8B Q4_0"}
    assert predict(apple).bound is not None
    assert predict({**apple, "phase": "prefill", "unit": "tokens/s", "output_len": "0"}).bound is None


def test_an_unknown_model_takes_the_nearest_known_shape_and_says_so():
    told = predict({**ROW, "model": "Somebody-9B fp16", "params": "9e9"})
    assert told.approximate
    assert not predict(ROW).approximate
    assert told.value == pytest.approx(predict(ROW).value * 9 / 8, rel=0.1)


def test_the_bound_of_an_unknown_model_does_not_lean_on_a_guessed_cache():
    row = {**ROW, "model": "Somebody-9B fp16", "params": "9e9", "input_len": "100000"}
    assert predict(row).bound == pytest.approx(1e3 * 0.8 * 18e9 / 3.35e12, rel=0.1)


def test_float8_on_a_device_without_it_is_multiplied_in_16_bits():
    a100 = {**ROW, "hardware": "A100-80GB-SXM", "phase": "prefill", "unit": "ms", "output_len": ""}
    assert predict({**a100, "model": "Llama-3-8B fp8"}).value == pytest.approx(predict(a100).value)


def test_a_source_not_seen_uses_its_class():
    llama_cpp = {
        **ROW,
        "model": "Llama-2-7B Q4_0",
        "hardware": "Apple-M2Max(30gpu)",
        "unit": "tokens/s",
        "input_len": "0",
    }
    seen = next(row for row in PUBLISHED if "llama.cpp" in row["source"])["source"]
    assert predict(llama_cpp).value == pytest.approx(predict({**llama_cpp, "source": seen}).value, rel=0.25)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model": "Nobody fp16"}, "unknown model 'Nobody': expected one of GPT-2"),
        ({"hardware": "B9000"}, "unknown device 'B9000': expected one of A100"),
        ({"hardware": "0xH100"}, "hardware '0xH100': expected 1 to 1,024 devices"),
        ({"model": "Llama-3-8B"}, "weight_bytes is blank and 'Llama-3-8B' ends in no dtype: expected one of f32"),
        ({"peak_bw": "3350"}, "peak_bw = '3350': expected bytes a second, a number from 1e.08"),
        ({"batch": "1e300"}, "batch = '1e300': expected sequences"),
        ({"batch": "1.5"}, "batch = '1.5': expected a whole number"),
        (
            {"model": "Mixtral-8x7B fp16", "params": "46.7e9"},
            "is a mixture of experts, whose passes",
        ),
        ({"phase": "train"}, "unknown phase 'train': expected one of prefill, decode, e2e, e2e_throughput"),
        ({"unit": "furlongs"}, "unit 'furlongs' does not fit phase decode: expected one of ms/token"),
        ({"batch": "0"}, "batch = '0': expected sequences, a number from 1"),
        ({"batch": "two"}, "batch = 'two': expected sequences, a number from 1"),
        ({"input_len": "-3"}, "input_len = '-3': expected tokens, a number from 0"),
        ({"output_len": "1"}, "a decode row needs output_len of at least 2"),
        ({"peak_bw": "nan"}, "peak_bw = 'nan': expected bytes a second"),
        ({"peak_flops": "0"}, "peak_flops = '0': expected FLOP/s"),
    ],
)
def test_what_can_neither_be_read_nor_looked_up_is_one_line(changed, message):
    with pytest.raises(ValueError, match=message):
        predict({**ROW, **changed})


def test_a_missing_column_is_named():
    with pytest.raises(ValueError, match="the row lacks batch, unit: expected the columns source, model"):
        predict({name: value for name, value in ROW.items() if name not in ("batch", "unit")})
