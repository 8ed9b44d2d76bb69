"""The right counts, counted again: by loops over pairs, by running the decoder, by adding up what devices hold."""

from dataclasses import replace

import numpy as np
import pytest

from prefill_decode.cost import Shape, count_pass
from prefill_decode.cost.known import find_model
from prefill_decode.generate import generate
from prefill_decode.schedules import counts, prompt_lookup, speculative_generate

LENGTHS = [5, 3, 2]


def by_quantity(rows):
    return {row.quantity: (row.simple, row.right) for row in rows}


@pytest.fixture
def shape(toy_model):
    return Shape.of(toy_model.config)


def test_shared_heads_against_the_decoder_itself(toy_model, shape):
    told = by_quantity(counts.shared_heads("toy", shape, 6))
    counted = count_pass(toy_model, [1, 2, 3, 4, 5, 6])
    assert told["pairs per query head"] == (21, counted.pairs)
    assert told["FLOPs of K and V projections"] == (
        2 * (counted.flops.k + counted.flops.v),  # 4 query heads for 2 KV heads
        counted.flops.k + counted.flops.v,
    )
    assert told["bytes of cache"] == (2 * 2 * 4 * 4 * 2 * 6, 2 * 2 * 2 * 4 * 2 * 6)


def test_one_kv_head_keeps_a_share_of_the_cache(shape):
    told = by_quantity(counts.shared_heads("toy", replace(shape, kv_heads=1), 6))
    assert told["bytes of cache"][0] == 4 * told["bytes of cache"][1]
    assert told["pairs per query head"][0] == told["pairs per query head"][1]


def test_latent_attention():
    told = by_quantity(counts.latent_attention("DeepSeek-V2", find_model("DeepSeek-V2").shape, 512, 3))
    assert told["pairs per query head"] == (6, 6)
    assert told["bytes of cache"] == (3 * 2 * 128 * 128 * 60 * 2, 3 * (512 + 64) * 60 * 2)
    down, up = [(5120, 512 + 64)], [(512, 128 * 128), (512, 128 * 128)]
    flops = [sum(2 * 3 * 60 * a * b for a, b in m) for m in ([(5120, 128 * 128)] * 2, down + up)]
    assert told["FLOPs of K and V projections"] == tuple(flops)


def test_a_batch_against_a_loop_over_its_pairs():
    rows = counts.batch(LENGTHS)
    own = sum(1 for n in LENGTHS for q in range(n) for k in range(n) if k <= q)
    square = sum(1 for _ in LENGTHS for _ in range(max(LENGTHS)) for _ in range(max(LENGTHS)))
    whole = sum(1 for q in range(sum(LENGTHS)) for k in range(sum(LENGTHS)) if k <= q)
    assert [(row.case, row.quantity, row.simple, row.right) for row in rows] == [
        ("padding", "rows", 10, 15),
        ("padding", "pairs of a dense kernel", own, square),
        ("padding", "pairs that the mask allows", own, own),
        ("packing", "pairs that the mask allows", whole, own),
        ("packing", "pairs of a dense kernel", own, 100),
        ("packing", "rows", 10, 10),
    ]
    assert rows[0].why.startswith("5 rows are pads")


def test_a_dense_kernel_computes_the_square(shape):
    assert by_quantity(counts.dense_kernel(shape, 7)) == {"pairs computed": (28, 49)}


@pytest.mark.parametrize("chunk", [1, 3, 4, 10])
def test_chunks_against_a_loop_over_passes(shape, chunk):
    told = by_quantity(counts.chunked(shape, 10, chunk))
    pairs = keys = passes = 0
    for start in range(0, 10, chunk):
        end = min(start + chunk, 10)
        pairs += sum(q + 1 for q in range(start, end))
        keys, passes = keys + end, passes + 1
    weights = 2 * shape.params_read
    assert told["pairs"] == (55, pairs) == (55, 55)
    assert told["bytes of weights read"] == (weights, passes * weights)
    assert told["bytes of K/V read"] == (10 * 2 * shape.kv_numbers, keys * 2 * shape.kv_numbers)


def test_speculation_against_its_own_passes(toy_model):
    plain = generate(toy_model, [1, 9, 3], 12)
    run = speculative_generate(toy_model, prompt_lookup, [1, 9, 3], 12, 4)
    told = by_quantity(counts.speculation(plain, run))
    assert told["passes"] == (12, len(run.passes))
    assert told["rows"] == (14, sum(p.n_queries for p in run.passes))
    assert told["pairs"] == (14 * 15 // 2, sum(p.pairs for p in run.passes))
    with pytest.raises(ValueError, match="compare runs of one prompt"):
        counts.speculation(plain, generate(toy_model, [1, 9], 12))


@pytest.mark.parametrize("devices", [1, 2, 4, 8, 16])
def test_tensor_parallel_shares_add_up(devices):
    shape, n = find_model("Llama-3 70B").shape, 100
    told = by_quantity(counts.tensor_parallel(shape, n, devices))
    copies = max(1, devices // shape.kv_heads)  # of each KV head
    assert told["pairs per query head"][1] == n * (n + 1) // 2
    assert told["bytes of cache"][1] * devices == copies * shape.kv_bytes(n)
    matrices = shape.matrices
    copied = 2 * ((copies - 1) * (matrices["k"] + matrices["v"]) + (devices - 1) * shape.vectors)
    assert told["bytes of weights"][1] * devices == 2 * shape.params_read + copied
    assert told["numbers summed with the others"] == (0, 2 * 80 * n * 8192)


@pytest.mark.parametrize("devices", [0, 3, 5])
def test_heads_that_cannot_be_shared_out(devices):
    with pytest.raises(ValueError, match=f"over {devices} devices: give a divisor"):
        counts.tensor_parallel(find_model("Llama-3 70B").shape, 10, devices)


def test_kv_heads_that_do_not_divide():
    shape = Shape(12, 1, 12, 6, 4, 16, 8)
    held = by_quantity(counts.tensor_parallel(shape, 1, 4))["bytes of cache"]
    assert held == (2 * 2 * 6 * 4 // 4, 2 * 2 * 2 * 4)  # two of six KV heads: no device holds one and a half


@pytest.mark.parametrize("chunk", [0, -1, 11, 2.0])
def test_a_chunk_that_cannot_be_counted(shape, chunk):
    with pytest.raises(ValueError, match="give 1 to 10"):
        counts.chunked(shape, 10, chunk)


def test_the_busiest_stage_may_be_one_without_the_head():
    shape = Shape(64, 3, 2, 2, 8, 512, 4, vectors=7 * 64)
    layer = sum(shape.matrices[part] for part in ("q", "k", "v", "o", "ffn")) // 3 + 2 * 64  # and two norms
    told = by_quantity(counts.pipeline(shape, 1, 2))
    assert told["bytes of weights"][1] == 2 * 2 * layer  # two layers weigh more than one and the small head


def test_a_pipeline():
    shape = find_model("Llama-3 70B").shape
    told = by_quantity(counts.pipeline(shape, 10, 8))
    layer = sum(shape.matrices[part] for part in ("q", "k", "v", "o", "ffn")) // 80 + 2 * 8192  # and two norms
    assert told["bytes of weights"] == (2 * shape.params_read // 8, 2 * (10 * layer + shape.matrices["head"] + 8192))
    assert told["layers that a token waits for"] == (10, 80)
    assert told["numbers sent on"] == (0, 7 * 10 * 8192)
    for stages in (0, 81):
        with pytest.raises(ValueError, match="give 1 to 80"):
            counts.pipeline(shape, 10, stages)


def test_every_count_is_an_exact_integer(shape):
    rows = [*counts.shared_heads("toy", shape, 9), *counts.batch(LENGTHS), *counts.chunked(shape, 9, 2)]
    assert all(type(value) is int for row in rows for value in (row.simple, row.right))
    assert not np.isnan([row.right for row in rows]).any()
