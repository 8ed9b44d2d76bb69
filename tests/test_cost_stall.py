"""The stall simulation, by hand on a tiny machine and by its laws on a real shape."""

import itertools

import pytest

from prefill_decode.cost import IDEAL, Constants, Machine, Request, Shape, ledger, request_time, simulate

# 7 weights of 2 bytes, 4 bytes of keys and values a position; 12 FLOPs a row, 2 for its logits, 4 a pair.
TINY = Shape(1, 1, 1, 1, 1, 1, 1, mlp_matrices=2)
BYTES_ONLY = Machine(peak=1e30, bandwidth=1.0)  # a byte takes a second, arithmetic nothing
FLOPS_ONLY = Machine(peak=1.0, bandwidth=1e30)
LLAMA = Shape(4096, 32, 32, 8, 128, 14336, 128256, tied_head=False, vectors=65 * 4096)
H100 = Machine(989.4e12, 3.35e12)
REACHED = Constants(0.6, 0.7, overhead=20e-6, prefill_overhead=20e-6)
CROWD = [Request(0, 512, 90), Request(0.02, 1024, 90), Request(0.1, 8192, 20)]
LONG = 2


def crowd(chunk=None):
    return simulate(LLAMA, H100, REACHED, CROWD, chunk=chunk)


# --- by hand


def test_one_request_alone_pays_weights_once_a_pass():
    run = simulate(TINY, BYTES_ONLY, IDEAL, [Request(5, 3, 3)])
    # weights 14; 3 keys read and written, then 4 and 5 read and 1 written
    seconds = [14 + 12 + 12, 14 + 16 + 4, 14 + 20 + 4]
    assert [each.seconds for each in run.passes] == seconds
    assert [each.start for each in run.passes] == [5, 43, 77]
    assert run.tokens == ((0, 43), (0, 77), (0, 115))
    assert (run.ttft(0), run.tpot(0), run.largest_gap(0)) == (38, 36, 38)
    assert [run.gaps(0, since=since) for since in (0, 76, 77, 115)] == [(34, 38), (34, 38), (38,), ()]
    assert [(each.weight_bytes, each.kv_bytes) for each in run.passes] == [(14, 24), (14, 20), (14, 24)]


def test_flops_of_all_participants_are_added():
    run = simulate(TINY, FLOPS_ONLY, IDEAL, [Request(0, 1, 2), Request(1, 2, 1)])
    # first alone: 12 + 2 + 4; then its second token (2 pairs) with two prompt rows (3 pairs)
    assert [each.seconds for each in run.passes] == [18, (12 + 2 + 8) + (24 + 2 + 12)]
    assert [dict(each.rows) for each in run.passes] == [{0: 1}, {0: 1, 1: 2}]
    assert run.tokens == ((0, 18), (0, 78), (1, 78))
    assert run.ttft(1) == 77  # 17 of them wait for the pass that runs


def test_chunks_take_a_prompt_in_pieces_and_only_the_last_gives_a_token():
    run = simulate(TINY, BYTES_ONLY, IDEAL, [Request(0, 5, 1)], chunk=2)
    assert [each.rows[0] for each in run.passes] == [2, 2, 1]
    assert [each.seconds for each in run.passes] == [14 + 8 + 8, 14 + 16 + 8, 14 + 20 + 4]
    assert run.tokens == ((0, 106),)
    assert run.tpot(0) is None
    assert run.largest_gap(0) is None


def test_an_idle_engine_waits_for_the_next_request():
    run = simulate(TINY, BYTES_ONLY, IDEAL, [Request(500, 1, 1), Request(0, 1, 1)])
    assert [(each.start, dict(each.rows)) for each in run.passes] == [(0, {1: 1}), (500, {0: 1})]


def test_prompts_are_served_in_order_of_arrival_one_a_pass():
    run = simulate(TINY, BYTES_ONLY, IDEAL, [Request(2, 1, 2), Request(1, 1, 2), Request(0, 1, 1)])
    assert [dict(each.rows) for each in run.passes] == [{2: 1}, {1: 1}, {1: 1, 0: 1}, {0: 1}]


def test_nobody_joins_a_pass_that_runs():
    run = simulate(TINY, FLOPS_ONLY, IDEAL, [Request(0, 1, 4), Request(19, 1, 1)])
    assert [each.start for each in run.passes[:3]] == [0, 18, 40]
    assert [1 in each.rows for each in run.passes] == [False, False, True, False]


def test_overhead_is_paid_once_a_pass():
    slow = Constants(1, 1, overhead=7, prefill_overhead=100)
    run = simulate(TINY, BYTES_ONLY, slow, [Request(0, 3, 1), Request(0, 1, 1)])
    assert run.passes[0].seconds == 138


# --- laws


@pytest.mark.parametrize("chunk", [None, 1, 7, 512, 2048, 8192])
def test_every_token_comes_once_and_every_position_is_computed_once(chunk):
    requests = [Request(0, 40, 30), Request(0.001, 33, 25), Request(0.05, 300, 5)]
    run = simulate(LLAMA, H100, REACHED, requests, chunk=chunk)
    for i, request in enumerate(requests):
        assert len(run.times(i)) == request.new_tokens
        assert sum(each.rows.get(i, 0) for each in run.passes) == request.prompt_len + request.new_tokens - 1
    assert sorted(run.tokens, key=lambda token: token[1]) == list(run.tokens)
    assert all(before.end <= after.start for before, after in itertools.pairwise(run.passes))
    assert all(rows <= (chunk or rows) for each in run.passes for rows in each.rows.values())


def test_a_chunk_as_long_as_the_prompt_is_the_whole_prompt():
    whole, chunked = crowd(), crowd(chunk=8192)
    assert (whole.passes, whole.tokens) == (chunked.passes, chunked.tokens)


def test_a_request_alone_takes_what_the_latency_model_says():
    run = simulate(LLAMA, H100, REACHED, [Request(0, 700, 60)])
    told = request_time(LLAMA, H100, REACHED, prompt_len=700, new_tokens=60)
    assert run.ttft(0) == pytest.approx(told.ttft, rel=1e-12)
    assert run.tpot(0) == pytest.approx(told.tpot, rel=1e-12)


def test_whole_the_others_stall_for_the_long_prefill_chunked_for_about_a_chunk():
    alone = request_time(LLAMA, H100, REACHED, prompt_len=8192, new_tokens=1).ttft
    piece = request_time(LLAMA, H100, REACHED, prompt_len=512, new_tokens=1).ttft
    assert crowd().largest_gap(0, since=0.1) == pytest.approx(alone, rel=0.02)
    assert piece < crowd(512).largest_gap(0, since=0.1) < 1.5 * piece  # its last chunks read a long cache


def test_smaller_chunks_stall_less_and_bring_the_newcomer_its_token_later():
    runs = [crowd(chunk) for chunk in (None, 2048, 512, 128)]
    gaps, ttfts = [run.largest_gap(0, since=0.1) for run in runs], [run.ttft(LONG) for run in runs]
    assert gaps == sorted(gaps, reverse=True)
    assert ttfts == sorted(ttfts)
    assert ttfts[-1] > 2 * ttfts[0]


def test_each_chunk_reads_the_weights_again():
    weights = ledger(LLAMA, 1, 1).bytes.weights
    for chunk, count in ((None, 1), (2048, 4), (512, 16)):
        passes = crowd(chunk).prompt_passes(LONG)
        assert sum(each.weight_bytes for each in passes) == count * weights


def test_work_of_the_prompt_does_not_depend_on_chunks():
    whole, chunked = (simulate(LLAMA, H100, IDEAL, [Request(0, 1000, 1)], chunk=chunk) for chunk in (None, 250))
    extra_heads = 3 * 2 * LLAMA.matrices["head"]  # each piece computes the logits of its last row
    assert sum(each.flops for each in chunked.passes) == whole.passes[0].flops + extra_heads


# --- errors


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: simulate(TINY, BYTES_ONLY, IDEAL, []), "no requests: expected at least one"),
        (lambda: simulate(TINY, BYTES_ONLY, IDEAL, [Request(0, 1, 1)], chunk=0), "chunk = 0: expected a whole number"),
        (lambda: simulate(TINY, BYTES_ONLY, IDEAL, [Request(0, 1, 1)], chunk=2.5), "chunk = 2.5: expected a whole"),
        (lambda: simulate(TINY, BYTES_ONLY, IDEAL, [Request(0, 1, 1)], dtype="half"), "unknown dtype 'half'"),
        (lambda: Request(-1, 1, 1), "arrival = -1: expected seconds, 0 or more"),
        (lambda: Request(float("nan"), 1, 1), "arrival = nan: expected seconds"),
        (lambda: Request(0, 0, 1), "prompt_len = 0: expected a whole number of at least 1"),
        (lambda: Request(0, 1, float("inf")), "new_tokens = inf: expected a whole number"),
    ],
)
def test_errors_are_one_line(make, line):
    with pytest.raises(ValueError, match="expected") as error:
        make()
    assert str(error.value).startswith(line)
    assert "\n" not in str(error.value)
