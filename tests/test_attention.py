"""Attention against numbers worked out by hand, and against a loop that is too plain to be wrong."""

import numpy as np
import pytest

from prefill_decode.attention import QUERY_BLOCK, AttentionTrace, attention, causal_mask, causal_pairs

LN2 = np.log(2.0)


def by_hand():
    """Four tokens, d = 4, k the identity: scores are multiples of ln 2, weights binary fractions.

    The scores behind the mask (3 ln 2) are the largest: a mask that is off by one cannot go unseen.
    """
    q = 2 * LN2 * np.array([[[0.0, 3, 3, 3], [0, 0, 3, 3], [1, 0, 0, 3], [1, 2, 0, 0]]])  # [1, 4, 4]
    k = np.eye(4)[None]  # [1, 4, 4]
    v = 8 * np.eye(4)[None]  # [1, 4, 4]: the output is 8 times the weights
    return q, k, v


def plain(q, k, v, mask):
    """Compute one number after another."""
    out = np.zeros_like(q)
    group = len(q) // len(k)
    for head in range(q.shape[0]):
        for i in range(q.shape[1]):
            keys = np.flatnonzero(mask[i])
            if keys.size:
                s = np.array([q[head, i] @ k[head // group, j] / np.sqrt(q.shape[2]) for j in keys])
                w = np.exp(s) / np.exp(s).sum()
                out[head, i] = sum(a * v[head // group, j] for a, j in zip(w, keys, strict=True))
    return out


def random_case(h, h_kv, n_queries, n_keys, d, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(heads, n, d)) for heads, n in ((h, n_queries), (h_kv, n_keys), (h_kv, n_keys)))


def test_hand_computed_weights():
    trace = AttentionTrace()
    out = attention(*by_hand(), causal_mask(4, 4), trace)
    expected = np.array([[1, 0, 0, 0], [1 / 2, 1 / 2, 0, 0], [1 / 2, 1 / 4, 1 / 4, 0], [1 / 4, 1 / 2, 1 / 8, 1 / 8]])
    np.testing.assert_allclose(trace.weights[0][0], expected, atol=1e-15)
    np.testing.assert_allclose(out[0], 8 * expected, atol=1e-14)


@pytest.mark.parametrize(
    ("n_queries", "n_keys", "rows"),
    [
        (4, 4, ["1000", "1100", "1110", "1111"]),
        (2, 5, ["11110", "11111"]),  # the diagonal ends at the lower right corner
        (1, 5, ["11111"]),
        (0, 3, []),
    ],
)
def test_causal_mask(n_queries, n_keys, rows):
    expected = np.array([[c == "1" for c in row] for row in rows]).reshape(n_queries, n_keys)
    np.testing.assert_array_equal(causal_mask(n_queries, n_keys), expected)


def test_more_queries_than_keys_is_an_error():
    with pytest.raises(ValueError, match="3 queries for 2 keys"):
        causal_mask(3, 2)


def test_pairs_are_counted_from_the_mask():
    for n_keys in range(1, 20):
        for n_queries in range(n_keys + 1):
            assert causal_pairs(n_queries, n_keys) == causal_mask(n_queries, n_keys).sum()
    assert causal_pairs(4, 4) == 10
    assert causal_pairs(1, 5) == 5


@pytest.mark.parametrize("n_queries", [1, 5, QUERY_BLOCK - 1, QUERY_BLOCK, QUERY_BLOCK + 3, 2 * QUERY_BLOCK + 1])
def test_equals_the_plain_loop(n_queries):
    n_keys = n_queries + 7
    q, k, v = random_case(6, 2, n_queries, n_keys, 4)
    mask = causal_mask(n_queries, n_keys)
    np.testing.assert_allclose(attention(q, k, v, mask), plain(q, k, v, mask), atol=1e-13)


def test_any_mask_will_do():
    q, k, v = random_case(4, 2, 70, 75, 6)
    mask = np.random.default_rng(1).random((70, 75)) < 0.3
    np.testing.assert_allclose(attention(q, k, v, mask), plain(q, k, v, mask), atol=1e-13)


def test_a_fully_masked_row_gives_zero_and_leaves_the_others_alone():
    q, k, v = random_case(4, 2, 3, 5, 6)
    mask = causal_mask(3, 5)
    mask[1] = False
    with np.errstate(all="raise"):
        out = attention(q, k, v, mask)
    assert (out[:, 1] == 0).all()
    np.testing.assert_allclose(out, plain(q, k, v, mask), atol=1e-14)
    assert (attention(q, k, v, np.zeros((3, 5), bool)) == 0).all()


def test_large_scores_do_not_overflow():
    q, k, v = random_case(2, 1, 4, 4, 2)
    with np.errstate(over="raise", invalid="raise"):
        assert np.isfinite(attention(1e4 * q, k, v, causal_mask(4, 4))).all()


def test_the_trace_holds_every_score_and_weight():
    q, k, v = random_case(4, 2, 70, 72, 6)
    trace = AttentionTrace()
    out = attention(q, k, v, causal_mask(70, 72), trace)
    scores, weights = trace.scores[0], trace.weights[0]
    assert scores.shape == weights.shape == (4, 70, 72)
    assert np.isneginf(scores[:, ~causal_mask(70, 72)]).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-14)
    np.testing.assert_allclose(scores[3, 5, 2], q[3, 5] @ k[1, 2] / np.sqrt(6), atol=1e-14)
    np.testing.assert_allclose(out[3], weights[3] @ v[1], atol=1e-13)


def test_memory_stays_far_below_all_scores():
    import tracemalloc

    q, k, v = random_case(8, 2, 1024, 1024, 4)
    mask = causal_mask(1024, 1024)
    tracemalloc.start()
    attention(q, k, v, mask)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 1024 * 1024 * 8 / 4  # a quarter of one array of all scores


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(q=np.zeros((3, 2, 4))), "3 query heads cannot share 2 KV heads"),
        (dict(q=np.zeros((4, 2, 6))), "do not fit"),
        (dict(v=np.zeros((2, 4, 4))), "do not fit"),
        (dict(k=np.zeros((2, 5, 4), np.float32)), "expected one dtype"),
        (dict(mask=np.ones((2, 4), bool)), r"expected \[L, S\] = \(2, 5\)"),
        (dict(mask=np.ones((2, 5))), "expected bool"),
    ],
)
def test_what_does_not_fit_is_named(change, message):
    good = dict(q=np.zeros((4, 2, 4)), k=np.zeros((2, 5, 4)), v=np.zeros((2, 5, 4)), mask=causal_mask(2, 5))
    attention(**good)
    with pytest.raises(ValueError, match=message) as caught:
        attention(**good | change)
    assert "\n" not in str(caught.value)
