"""Tiles against the oracle, merging, what crosses the edge of fast memory, and what is refused."""

import dataclasses
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from schedule_examples import SAME, TOY, apart, oracle

from prefill_decode.attention import attention, causal_mask
from prefill_decode.generate import generate
from prefill_decode.model import Trace, forward
from prefill_decode.rounding import bfloat16
from prefill_decode.schedules import chunked_prefill
from prefill_decode.tiled import (
    Partial,
    SlowMemory,
    Tiles,
    merge,
    partial_softmax,
    standard_accesses,
    standard_attention,
    sweep,
    tiled_accesses,
    tiled_attention,
    tiled_kernel,
)

ORDERS = ("keys", "queries")


def drawn(h_kv, group, n_queries, n_keys, d, seed):
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(h_kv * group, n_queries, d))
    return q, rng.normal(size=(h_kv, n_keys, d)), rng.normal(size=(h_kv, n_keys, d))


def scores_of(q, k):
    h_kv, _, d = k.shape
    return q.reshape(h_kv, -1, *q.shape[1:]) @ k[:, None].swapaxes(-1, -2) / d**0.5


def assert_is_attention(q, k, v, tiles, **plan):
    bound = 1e-12 * max(1, np.abs(scores_of(q, k)).max())
    expected = attention(q, k, v, causal_mask(q.shape[1], k.shape[1]))
    assert apart(tiled_attention(q, k, v, tiles, **plan), expected) < bound


@given(st.data())
def test_any_tiles_give_attention(data):
    n_keys = data.draw(st.integers(1, 24))
    n_queries = data.draw(st.integers(1, n_keys))
    shape = [data.draw(st.integers(1, most)) for most in (3, 3, 7)]  # KV heads, queries a KV head, width
    inputs = drawn(*shape[:2], n_queries, n_keys, shape[2], data.draw(st.integers(0, 99)))
    tiles = Tiles(data.draw(st.integers(1, n_queries)), data.draw(st.integers(1, n_keys)))
    plan = dict(outer=data.draw(st.sampled_from(ORDERS)), skip=data.draw(st.booleans()))
    assert_is_attention(*inputs, tiles, **plan)


def adversarial(kind):
    """Return q, k, v of 2 heads on 1 KV head, 11 positions, d = 4."""
    q, k, v = drawn(1, 2, 11, 11, 4, seed=5)
    if kind == "near ties of 1e4":
        q, k = q * 0 + 100, k * 1e-9 + 50  # every score is 4 * 5000 / 2, up to a few 1e-7
    elif kind == "equal scores":
        k = np.broadcast_to(k[:, :1], k.shape).copy()
    elif kind == "huge in the last tile":
        q[..., 0], k[:, -1, 0] = 100, 1e4
    elif kind == "huge in the first tile":
        q[..., 0], k[:, 0, 0] = 100, 1e4
    elif kind == "rising":  # every tile brings a new maximum
        q, k = np.abs(q) + 1, np.arange(1, 12)[:, None] * np.full_like(k, 100)
    return q, k, v


KINDS = ("near ties of 1e4", "equal scores", "huge in the last tile", "huge in the first tile", "rising")


@pytest.mark.parametrize("kind", KINDS)
def test_scores_that_are_hard_for_a_softmax_in_parts(kind):
    inputs = adversarial(kind)
    if kind != "equal scores":
        assert np.abs(scores_of(*inputs[:2])).max() > 4e3
    for rows in range(1, 12):
        for keys in range(1, 12):
            for outer in ORDERS:
                assert_is_attention(*inputs, Tiles(rows, keys), outer=outer)


def test_the_dtype_of_the_inputs_is_kept():
    inputs = [array.astype(np.float32) for array in drawn(2, 2, 5, 7, 4, seed=1)]
    for out in (tiled_attention(*inputs, Tiles(2, 3)), standard_attention(*inputs)):
        assert out.dtype == np.float32
        assert apart(out, attention(*inputs, causal_mask(5, 7))) < 1e-5


@given(st.integers(1, 12), st.integers(0, 11), st.integers(0, 9))
def test_standard_attention_gives_attention(n_queries, more, seed):
    q, k, v = drawn(2, 2, n_queries, n_queries + more, 3, seed)
    assert apart(standard_attention(q, k, v), attention(q, k, v, causal_mask(n_queries, n_queries + more))) < 1e-12


# merging


def close(a: Partial, b: Partial) -> bool:
    """Compare what is independent of the maximum chosen; of these partials it is the same anyway."""
    return all(
        np.allclose(x, y, rtol=1e-12, atol=1e-12) for x, y in zip(vars(a).values(), vars(b).values(), strict=True)
    )


def partials(sizes, seed, scale=3.0):
    """Return one partial for each number of keys, of 3 rows with d = 4; some keys are masked."""
    rng = np.random.default_rng(seed)
    parts = []
    for size in sizes:
        scores = np.where(rng.random((3, size)) < 0.8, rng.normal(scale=scale, size=(3, size)), -np.inf)
        parts.append(partial_softmax(scores, rng.normal(size=(size, 4))))
    return parts


@given(st.lists(st.integers(0, 5), min_size=3, max_size=3), st.integers(0, 999), st.sampled_from((3.0, 1e4)))
def test_partials_merge_in_any_order_and_grouping(sizes, seed, scale):
    a, b, c = partials(sizes, seed, scale)
    assert close(merge(a, b), merge(b, a))
    assert close(merge(merge(a, b), c), merge(a, merge(b, c)))


@given(st.integers(1, 20), st.data())
def test_a_decode_row_can_be_split_anywhere(n_keys, data):
    """Flash-Decoding: pieces of the cache in parallel, merged at the end."""
    q, k, v = drawn(2, 3, 1, n_keys, 4, seed=data.draw(st.integers(0, 99)))
    cuts = sorted(data.draw(st.lists(st.integers(0, n_keys), max_size=5)))
    pieces = [slice(a, b) for a, b in zip([0, *cuts], [*cuts, n_keys], strict=True)]  # some are empty
    known = Partial.empty((2, 3, 1, 4), q.dtype)
    for piece in data.draw(st.permutations(pieces)):
        known = merge(known, partial_softmax(scores_of(q, k)[..., piece], v[:, None, piece]))
    assert apart(known.output.reshape(6, 1, 4), attention(q, k, v, causal_mask(1, n_keys))) < 1e-12


def test_two_partials_by_hand():
    """Scores ln 1 and ln 3 with values 10 and 20: weights 1/4 and 3/4, 17.5; the sum is 4/3 of the largest."""
    one, three = (partial_softmax(np.log([[x]]), np.array([[v]])) for x, v in ((1.0, 10.0), (3.0, 20.0)))
    both = merge(one, three)
    assert both.maximum == pytest.approx(np.log(3))
    assert both.total == pytest.approx(4 / 3)
    assert both.output == pytest.approx(17.5)


def test_a_partial_without_keys_changes_nothing():
    (some,) = partials([4], seed=2)
    nothing = Partial.empty((3, 4), np.dtype(np.float64))
    for merged in (merge(some, nothing), merge(nothing, some)):
        assert all((x == y).all() for x, y in zip(vars(merged).values(), vars(some).values(), strict=True))
    masked = partial_softmax(np.full((3, 2), -np.inf), np.ones((2, 4)))
    for twice in (merge(nothing, nothing), merge(masked, nothing), merge(masked, masked), masked):
        assert (twice.maximum == -np.inf).all()
        assert (twice.total == 0).all()
        assert (twice.output == 0).all()


# what is counted


@pytest.mark.parametrize("n", [1, 2, 3, 7, 12, 24])
def test_accesses_counted_on_the_way_equal_the_formula(n):
    q, k, v = drawn(1, 1, n, n, 3, seed=0)
    for rows in range(1, n + 1):
        for keys in range(1, n + 1, 1 if n < 24 else 3):
            for outer in ORDERS:
                for skip in (True, False):
                    slow, tiles = SlowMemory(), Tiles(rows, keys)
                    tiled_attention(q, k, v, tiles, slow=slow, outer=outer, skip=skip)
                    assert slow.accesses == tiled_accesses(n, 3, tiles, outer=outer, skip=skip)


def by_definition(n, d, tiles, outer, skip):
    """Count pair of tiles by pair of tiles, in plain loops."""
    reads = writes = 0
    cut = lambda tile: [(a, min(a + tile, n)) for a in range(0, n, tile)]  # noqa: E731
    lines = dict(keys=cut(tiles.keys), queries=cut(tiles.queries))
    inner = "queries" if outer == "keys" else "keys"
    for a in lines[outer]:
        reads += (a[1] - a[0]) * (2 * d if outer == "keys" else d)
        for b in lines[inner]:
            keys, rows = (a, b) if outer == "keys" else (b, a)
            if skip and keys[0] > rows[1] - 1:
                continue
            reads += (b[1] - b[0]) * (2 * d + 2 if outer == "keys" else 2 * d)
            writes += (b[1] - b[0]) * (d + 2) if outer == "keys" else 0
        writes += (a[1] - a[0]) * d if outer == "queries" else 0
    return reads, writes


@given(st.integers(1, 24), st.data(), st.sampled_from(ORDERS), st.booleans())
def test_accesses_are_those_of_a_plain_double_loop(n, data, outer, skip):
    tiles = Tiles(data.draw(st.integers(1, n)), data.draw(st.integers(1, n)))
    slow = SlowMemory()
    tiled_attention(*drawn(1, 1, n, n, 3, seed=0), tiles, slow=slow, outer=outer, skip=skip)
    assert (slow.reads, slow.writes) == by_definition(n, 3, tiles, outer, skip)
    assert slow.accesses == tiled_accesses(n, 3, tiles, outer=outer, skip=skip)


def test_shared_keys_are_read_once_for_all_their_heads():
    slow = SlowMemory()
    tiled_attention(*drawn(2, 3, 8, 8, 4, seed=0), Tiles(4, 4), slow=slow, outer="keys", skip=False)
    keys_and_values, visits = 2 * 2 * 8 * 4, 2
    assert slow.accesses == keys_and_values + 6 * visits * 8 * (3 * 4 + 4)


@pytest.mark.parametrize(("n", "d"), [(1, 1), (5, 3), (24, 2)])
def test_standard_accesses(n, d):
    slow = SlowMemory()
    standard_attention(*drawn(1, 1, n, n, d, seed=0), slow=slow)
    assert slow.accesses == standard_accesses(n, d) == 4 * n * n + 4 * n * d
    assert (slow.reads, slow.writes) == (2 * n * n + 3 * n * d, 2 * n * n + n * d)


@pytest.mark.parametrize("outer", ORDERS)
def test_visits_are_told_one_by_one(outer):
    inputs = drawn(1, 2, 10, 10, 4, seed=3)
    visits = list(sweep(*inputs, Tiles(3, 4), outer=outer))
    assert len(visits) == 4 * 3
    for visit in visits:
        assert (visit.partial is None) == (visit.keys.start >= visit.rows.stop)
    assert [v.reads + v.writes for v in visits] == sorted(v.reads + v.writes for v in visits)
    slow = SlowMemory()
    tiled_attention(*inputs, Tiles(3, 4), outer=outer, slow=slow)
    assert (visits[-1].reads, visits[-1].writes) == (slow.reads, slow.writes)


def without_skipping(n, d, fast):
    """FlashAttention's algorithm 1 as its paper counts it: keys outer, no mask."""
    return tiled_accesses(n, d, Tiles.for_memory(fast, d, n), outer="keys", skip=False)


def test_tiling_loses_with_little_fast_memory_and_wins_with_much():
    n, d = 1024, 64
    standard = standard_accesses(n, d)
    assert without_skipping(n, d, d * d) / standard == pytest.approx(2.9, abs=0.05)
    assert without_skipping(n, d, 3 * d * d) > standard > without_skipping(n, d, 4 * d * d)
    assert standard / without_skipping(n, d, 100_000) == pytest.approx(6, abs=0.1)


@pytest.mark.parametrize("d", [16, 32, 64, 128])
@pytest.mark.parametrize("n", [1024, 2048, 8192])
def test_the_theorems_constant(n, d):
    """Where tiles divide N and neither d nor N rounds them, accesses are exactly (12 + 16/d + 2M/Nd) N²d²/M."""
    for keys in (2**i for i in range(14) if 2**i <= n // 4):  # 4 d <= M = 4 d * keys <= N d
        fast = 4 * d * keys
        tiles = Tiles.for_memory(fast, d, n)
        assert tiles == Tiles(min(keys, d), keys)
        ratio = without_skipping(n, d, fast) * fast / (n * d) ** 2
        assert ratio == 12 + 16 / d + 2 * fast / (n * d)
        assert 12 < ratio <= 15


@pytest.mark.parametrize("d", [16, 64, 128])
def test_the_constant_stays_within_bounds_where_tiles_do_not_divide(d):
    for n in (1000, 1024, 3001):
        for fast in range(d * d, n * d // 4, 977):
            assert 11 < without_skipping(n, d, fast) * fast / (n * d) ** 2 < 17


@given(st.integers(1, 64), st.integers(1, 5000), st.integers(1, 500))
def test_tiles_for_a_memory_fit_into_it(d, more, n):
    fast = 4 * d + more
    tiles = Tiles.for_memory(fast, d, n)
    assert 1 <= tiles.queries <= min(d, n)
    assert tiles.queries <= tiles.keys <= n
    assert 2 * d * (tiles.queries + tiles.keys) < fast + 4 * d  # the rounding is one row of each
    if tiles.keys < n:
        assert 4 * d * tiles.keys >= fast


def test_no_square_array_is_made():
    n, d, tile = 2048, 16, 64
    q, k, v = drawn(1, 1, n, n, d, seed=0)
    peaks = {}
    for name, run in dict(
        standard=lambda: standard_attention(q, k, v),
        keys=lambda: tiled_attention(q, k, v, Tiles(tile, tile), outer="keys"),
        queries=lambda: tiled_attention(q, k, v, Tiles(tile, tile), outer="queries"),
    ).items():
        tracemalloc.start()
        run()
        peaks[name] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peaks["standard"] > n * n * 8
    assert max(peaks["keys"], peaks["queries"]) < 5 * n * (d + tile) * 8 < n * n * 8 / 4


# in a model


@given(st.lists(st.integers(0, 15), min_size=1, max_size=12), st.integers(1, 12), st.integers(1, 12), st.data())
def test_a_model_runs_on_tiles(ids, rows, keys, data):
    tiled = dataclasses.replace(TOY, attend=tiled_kernel(Tiles(rows, keys), data.draw(st.sampled_from(ORDERS))))
    assert apart(forward(tiled, ids), oracle(ids)) < SAME
    assert apart(chunked_prefill(tiled, ids, data.draw(st.integers(1, len(ids)))), oracle(ids)) < SAME
    assert generate(tiled, ids, 3).ids == generate(TOY, ids, 3).ids


def test_the_real_model_runs_on_tiles(real_model64, tokenizer):
    ids = tokenizer.encode("The two phases are prefill and decode")
    tiled = dataclasses.replace(real_model64, attend=tiled_kernel(Tiles(3, 2)))
    assert apart(forward(tiled, ids), forward(real_model64, ids)) < 1e-10


def test_a_kernel_refuses_what_it_does_not_compute():
    tiled = dataclasses.replace(TOY, attend=tiled_kernel(Tiles(2, 2)))
    with pytest.raises(ValueError, match="causal attention only: run this mask with attention"):
        forward(tiled, [1, 2, 3], mask=np.eye(3, dtype=bool))
    with pytest.raises(ValueError, match="keeps no scores and rounds nothing: run this with attention"):
        forward(tiled, [1, 2, 3], trace=Trace())
    with pytest.raises(ValueError, match="keeps no scores and rounds nothing"):
        forward(dataclasses.replace(tiled, rounded=bfloat16), [1, 2, 3])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda q, k, v: tiled_attention(q, k, v, Tiles(0, 2)), "a tile of 0 query rows of 5: give 1 to 5"),
        (lambda q, k, v: tiled_attention(q, k, v, Tiles(6, 2)), "a tile of 6 query rows of 5: give 1 to 5"),
        (lambda q, k, v: tiled_attention(q, k, v, Tiles(2, 0)), "a tile of 0 keys of 7: give 1 to 7"),
        (lambda q, k, v: tiled_attention(q, k, v, Tiles(2, 8)), "a tile of 8 keys of 7: give 1 to 7"),
        (lambda q, k, v: tiled_attention(q, k, v, Tiles(2, -1)), "a tile of -1 keys of 7"),
        (lambda q, k, v: tiled_attention(q, k[:, :4], v[:, :4], Tiles(1, 1)), "5 queries for 4 keys"),
        (lambda q, k, v: standard_attention(q, k[:, :4], v[:, :4]), "5 queries for 4 keys"),
        (lambda q, k, v: tiled_attention(q, k, v[:, :4], Tiles(1, 1)), "do not fit: expected"),
        (lambda q, k, v: tiled_attention(q, k, v, Tiles(1, 1), outer="rows"), "outer = 'rows': expected"),
        (lambda q, k, v: tiled_accesses(4, 2, Tiles(5, 1)), "a tile of 5 query rows of 4"),
        (
            lambda q, k, v: Tiles.for_memory(255, 64, 9),
            "M = 255 numbers hold no tile of 9 positions of width 64",
        ),
    ],
)
def test_what_does_not_fit_is_named(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call(*drawn(2, 2, 5, 7, 4, seed=0))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("compute", [lambda *qkv: tiled_attention(*qkv, Tiles(1, 1)), standard_attention])
@pytest.mark.parametrize(
    ("q", "k"), [((3, 4, 2), (2, 4, 2)), ((2, 4, 2), (4, 2)), ((4, 2), (2, 4, 2)), ((2, 4, 2), (0, 4, 2))]
)
def test_shapes_that_do_not_fit_are_named(compute, q, k):
    with pytest.raises(ValueError, match=r"do not fit: expected|cannot share"):
        compute(np.zeros(q), np.zeros(k), np.zeros(k))


def test_no_queries_at_all():
    with pytest.raises(ValueError, match="a tile of 1 query rows of 0"):
        tiled_attention(np.zeros((2, 0, 2)), np.zeros((1, 4, 2)), np.zeros((1, 4, 2)), Tiles(1, 1))
