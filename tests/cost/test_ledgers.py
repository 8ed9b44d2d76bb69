"""Formula, execution and a slow count by hand agree on every part of a pass."""

from dataclasses import astuple

import numpy as np
import pytest

from prefill_decode.cost import Shape, count_pass, known, ledger

# every size differs, so that a transposed or forgotten one shows
SHAPE = Shape(d_model=10, layers=3, heads=6, kv_heads=2, d_head=4, d_ff=14, vocab=22, vectors=70)


@pytest.mark.parametrize("logits", ["last", "all"])
@pytest.mark.parametrize(("n", "n_cached"), [(1, 0), (2, 0), (7, 0), (8, 7), (9, 4), (13, 12)])
def test_counted_equals_formula_on_the_toy(toy_model, n, n_cached, logits):
    counted = count_pass(toy_model, [i % 16 for i in range(n)], n_cached, logits=logits)
    assert counted == ledger(Shape.of(toy_model.config), n - n_cached, n, dtype="float64", logits=logits)


@pytest.mark.parametrize(("n", "n_cached"), [(1, 0), (5, 0), (70, 0), (71, 70), (130, 60)])
def test_counted_equals_formula_on_the_real_model(real_model, n, n_cached):
    counted = count_pass(real_model, np.arange(n) + 100, n_cached)
    assert counted == ledger(Shape.of(real_model.config), n - n_cached, n, dtype=np.float32)


def test_the_counters_see_each_product(toy_model, monkeypatch):
    """A decoder that skips a product is caught: the feed-forward part of one layer is left out."""
    from prefill_decode import model as decoder

    whole, first = decoder.feed_forward, toy_model.layers[0].down

    def lazy(model, layer, x):
        same = np.shares_memory(np.asarray(layer.down), first)
        return np.zeros_like(x) if same else whole(model, layer, x)

    monkeypatch.setattr(decoder, "feed_forward", lazy)
    counted, formula = count_pass(toy_model, [1, 2, 3]), ledger(Shape.of(toy_model.config), 3, 3, dtype="float64")
    assert counted.flops.ffn == formula.flops.ffn // 2
    assert counted.bytes.weights < formula.bytes.weights


def multiply_adds_by_hand(shape: Shape, n_queries: int, n_keys: int, head_rows: int) -> dict[str, int]:
    """Count one multiply-add after the other, as the definition of a matrix product has them."""
    count = dict.fromkeys("q k v o scores values ffn head".split(), 0)
    for _ in range(shape.layers):
        for row in range(n_keys - n_queries, n_keys):
            for part, outputs in (("q", shape.heads), ("k", shape.kv_heads), ("v", shape.kv_heads)):
                count[part] += outputs * shape.d_head * shape.d_model
            for _ in range(shape.heads):
                for _ in range(row + 1):  # keys that this row may read
                    count["scores"] += shape.d_head
                    count["values"] += shape.d_head
            count["o"] += shape.d_model * shape.heads * shape.d_head
            count["ffn"] += shape.mlp_matrices * shape.d_model * shape.d_ff
    count["head"] = head_rows * shape.vocab * shape.d_model
    return count


@pytest.mark.parametrize(("n_queries", "n_keys"), [(1, 1), (1, 9), (5, 5), (3, 8)])
@pytest.mark.parametrize("matrices", [2, 3])
def test_flops_are_two_for_each_multiply_add(n_queries, n_keys, matrices):
    shape = Shape(**{**vars(SHAPE), "mlp_matrices": matrices})
    by_hand = multiply_adds_by_hand(shape, n_queries, n_keys, head_rows=1)
    assert vars(ledger(shape, n_queries, n_keys).flops) == {part: 2 * count for part, count in by_hand.items()}


def test_pairs_of_a_prefill_and_of_the_row_after_it():
    prefill, decode = ledger(SHAPE, 4, 4), ledger(SHAPE, 1, 5)
    assert (prefill.pairs, prefill.dense_pairs) == (10, 16)
    assert (decode.pairs, decode.dense_pairs) == (5, 5)


def test_a_batch_shares_weights_and_nothing_else():
    one, four = ledger(SHAPE, 3, 7), ledger(SHAPE, 3, 7, batch=4)
    assert four.bytes.weights == one.bytes.weights
    assert four.pairs == one.pairs  # per sequence
    assert astuple(four.flops) == tuple(4 * part for part in astuple(one.flops))
    for part in ("kv_read", "kv_written", "activations"):
        assert getattr(four.bytes, part) == 4 * getattr(one.bytes, part)


def test_one_pass_over_two_rows_reads_the_weights_once_and_two_passes_twice():
    together, apart = ledger(SHAPE, 2, 6), [ledger(SHAPE, 1, 5), ledger(SHAPE, 1, 6)]
    assert together.flops.scores == sum(one.flops.scores for one in apart)
    assert 2 * together.bytes.weights == sum(one.bytes.weights for one in apart)


def test_where_prefill_of_llama_3_8b_crosses_the_ridge_of_an_h100():
    shape, machine = known.find_model("Llama-3-8B").shape, known.find_device("H100-SXM").machine()
    crossing = next(n for n in range(1, 1000) if ledger(shape, n, n).intensity >= machine.ridge)
    assert crossing == 317
    assert round(ledger(shape, 5, 5).intensity, 1) == 4.7


def test_decode_intensity_tends_to_the_flops_for_each_byte_of_the_cache():
    shape = known.find_model("Llama-3-8B").shape
    by_batch = [ledger(shape, 1, 8192, batch=b).intensity for b in (1, 64, 4096, 10**6)]
    assert by_batch == sorted(by_batch)
    one = ledger(shape, 1, 8192)
    assert by_batch[-1] == pytest.approx(one.flops.total / one.bytes.kv_read, rel=1e-3)
    assert round(one.flops.total / one.bytes.kv_read, 1) == 18.0


@pytest.mark.parametrize(
    ("name", "dtype", "tokens"), [("SmolLM2-135M", "float32", 11_677), ("Llama-3-8B", "float16", 114_517)]
)
def test_where_the_cache_outweighs_the_weights(name, dtype, tokens):
    shape = known.find_model(name).shape
    reads = [ledger(shape, 1, n, dtype=dtype).bytes for n in (tokens - 1, tokens)]
    assert [read.kv_read >= read.weights for read in reads] == [False, True]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_queries": 0}, "n_queries = 0: expected a whole number of at least 1"),
        ({"n_queries": 1.5}, "n_queries = 1.5: expected a whole number"),
        ({"n_queries": 2.0}, "n_queries = 2.0: expected a whole number"),
        ({"n_keys": float("nan")}, "n_keys = nan: expected a whole number"),
        ({"batch": True}, "batch = True: expected a whole number"),
        ({"batch": "3"}, "batch = 3: expected a whole number"),
        ({"n_keys": 2}, "3 queries for 2 keys: every query needs at least its own key"),
        ({"batch": -1}, "batch = -1: expected a whole number of at least 1"),
        ({"dtype": "int5"}, "unknown dtype 'int5': expected one of"),
        ({"logits": "none"}, "logits = 'none': expected"),
    ],
)
def test_a_pass_that_cannot_be_is_one_line(arguments, message):
    with pytest.raises(ValueError, match=message):
        ledger(SHAPE, **{**dict(n_queries=3, n_keys=5), **arguments})
