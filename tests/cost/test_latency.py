"""Times by hand, on a machine with round numbers."""

import math

import pytest

from prefill_decode.cost import (
    IDEAL,
    Constants,
    Machine,
    Shape,
    fits,
    known,
    largest_batch,
    ledger,
    pass_time,
    request_time,
    work_of,
)
from prefill_decode.cost.latency import Work, limits_of

ROUND = Machine(peak=1000.0, bandwidth=10.0)  # ridge 100
HALF = Constants(compute=0.5, memory=0.25, overhead=3.0, prefill_overhead=7.0, sync=2.0)
SHAPE = Shape(d_model=10, layers=3, heads=6, kv_heads=2, d_head=4, d_ff=14, vocab=22)


def test_a_pass_takes_overhead_and_the_slower_of_the_two():
    by_memory = pass_time(Work(flops=500, bytes=100), ROUND, HALF, layers=2)
    assert (by_memory.arithmetic, by_memory.memory, by_memory.overhead) == (1.0, 40.0, 6.0)
    assert (by_memory.seconds, by_memory.regime) == (46.0, "memory")
    by_compute = pass_time(Work(flops=50_000, bytes=100), ROUND, HALF, layers=2, prefill=True)
    assert (by_compute.seconds, by_compute.regime) == (14 + 100.0, "compute")


def test_several_devices_wait_for_each_other():
    four = Machine(peak=4000.0, bandwidth=40.0, count=4)
    time = pass_time(Work(flops=500, bytes=100), four, HALF, layers=2)
    assert time.overhead == 2 * (3.0 + 2.0 * 3 / 4)
    assert time.memory == 10.0


def test_without_a_peak_cores_or_a_guess_stand_in_and_neither_bounds():
    apple = Machine(None, bandwidth=1e11, gpu_cores=10)
    assert pass_time(
        Work(2.7e12, 1.0), apple, Constants(1, 1, core_rate=0.27e12), layers=1
    ).arithmetic == pytest.approx(1)
    assert apple.ridge is None
    guessed = Machine(None, bandwidth=10.0, guessed_peak=1000.0)
    assert pass_time(Work(500, 1), guessed, HALF, layers=1).arithmetic == 1.0
    for machine in (apple, guessed):
        assert pass_time(Work(1e30, 1), limits_of(machine), IDEAL, layers=1).arithmetic == 0.0


def test_a_request_is_one_prefill_and_m_minus_1_decode_passes():
    request = request_time(SHAPE, ROUND, IDEAL, prompt_len=5, new_tokens=4, batch=2)
    passes = [pass_time(work_of(SHAPE, 1, 5 + i, batch=2), ROUND, IDEAL, SHAPE.layers).seconds for i in (1, 2, 3)]
    prefill = pass_time(work_of(SHAPE, 5, 5, batch=2), ROUND, IDEAL, SHAPE.layers).seconds
    assert request.ttft == prefill
    assert request.tpot == pytest.approx(sum(passes) / 3)
    assert request.seconds == pytest.approx(prefill + sum(passes))
    assert request.tokens_per_second == pytest.approx(2 * 4 / request.seconds)


def test_one_token_has_no_time_per_output_token():
    request = request_time(SHAPE, ROUND, IDEAL, prompt_len=5, new_tokens=1)
    assert request.tpot is None
    assert request.seconds == request.ttft


def test_work_is_what_the_ledger_counts_without_activations():
    told = ledger(SHAPE, 3, 7, batch=2)
    assert work_of(SHAPE, 3, 7, batch=2) == Work(
        told.flops.total, told.bytes.weights + told.bytes.kv_read + told.bytes.kv_written
    )
    assert work_of(SHAPE, 3, 7, weight_bytes=1).bytes == 1 + ledger(SHAPE, 3, 7).bytes.kv_read * 10 / 7


def test_a_short_prompt_is_bound_by_memory_and_its_ttft_is_about_one_tpot():
    shape, h100 = known.find_model("Llama-3-8B").shape, known.find_device("H100-SXM").machine()
    request = request_time(shape, h100, IDEAL, prompt_len=5, new_tokens=64)
    assert request.prefill.regime == "memory"
    assert request.ttft == pytest.approx(request.tpot, rel=0.01)


def test_what_fits_beside_the_weights():
    shape = known.find_model("Llama-3-8B").shape
    free = 80e9 - 2 * shape.params
    assert largest_batch(shape, entries=8192, dtype="float16", memory=80e9) == math.floor(free / 2**30)
    n = largest_batch(shape, entries=8192, dtype="float16", memory=80e9)
    assert fits(shape, entries=8192, batch=n, dtype="float16", memory=80e9)
    assert not fits(shape, entries=8192, batch=n + 1, dtype="float16", memory=80e9)
    assert largest_batch(shape, entries=8192, dtype="float16", memory=10e9) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constants(compute=0, memory=1), "compute = 0: an efficiency is above 0 and at most 1"),
        (lambda: Constants(compute=1, memory=1.1), "memory = 1.1: an efficiency is above 0 and at most 1"),
        (lambda: Constants(compute=1, memory=math.nan), "memory = nan: an efficiency"),
        (lambda: Constants(1, 1, overhead=-1), "overhead = -1: expected seconds, 0 or more"),
        (lambda: Constants(1, 1, sync=math.inf), "sync = inf: expected seconds, 0 or more"),
        (lambda: Machine(peak=-5, bandwidth=1), "peak = -5: expected a number above 0"),
        (lambda: Machine(peak=5, bandwidth=math.inf), "bandwidth = inf: expected a number above 0"),
        (lambda: request_time(SHAPE, ROUND, IDEAL, prompt_len=5, new_tokens=0), "new_tokens = 0: expected at least 1"),
        (
            lambda: request_time(SHAPE, ROUND, IDEAL, prompt_len=0, new_tokens=1),
            "n_queries = 0: expected a whole number",
        ),
    ],
)
def test_what_cannot_be_is_one_line(make, message):
    with pytest.raises(ValueError, match=message):
        make()
