"""Choosing a token: sets and shares worked out by hand, draws by their frequencies, orders held against each other."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefill_decode import sampling
from prefill_decode.generate import generate, greedy
from prefill_decode.sampling import ORDERS, Sampler, draw, min_p, repetition_penalty, softmax, temperature, top_k, top_p

HALVES = np.array([0.5, 0.25, 0.125, 0.0625, 0.0625])
LOGITS = np.log(HALVES)
LATE = ORDERS["llama.cpp"]  # heats after the filters
CLOSE = np.array([0.0, np.nextafter(0.0, 1)])  # not the same number; their shares are
logits = st.lists(st.floats(-30, 30), min_size=1, max_size=12).map(np.array)


def kept(p):
    return np.flatnonzero(p).tolist()


def test_softmax_gives_the_shares_back():
    np.testing.assert_allclose(softmax(LOGITS + 7), HALVES, rtol=0, atol=1e-15)
    np.testing.assert_allclose(softmax(np.array([1e4, 1e4 - np.log(3)])), [0.75, 0.25], rtol=0, atol=1e-9)


def test_temperature_by_hand():
    # p^(1/2): 4 : 2√2 : 2 : √2 : √2 of sixteenths
    roots = np.sqrt(HALVES)
    np.testing.assert_allclose(temperature(LOGITS, 2), roots / roots.sum(), rtol=0, atol=1e-15)
    squares = HALVES**2
    np.testing.assert_allclose(temperature(LOGITS, 0.5), squares / squares.sum(), rtol=0, atol=1e-15)
    np.testing.assert_allclose(temperature(LOGITS, 1), HALVES, rtol=0, atol=1e-15)


@pytest.mark.parametrize("tiny", [1e-3, 1e-300, 5e-324])
def test_a_tiny_temperature_is_as_good_as_greedy(tiny):
    assert temperature(LOGITS, tiny)[0] == 1
    assert Sampler(temperature=tiny)(LOGITS - 1e3) == 0


def test_temperature_0_is_greedy_and_a_tie_goes_to_the_lowest_id():
    assert temperature(np.array([1.0, 3, 3, 2]), 0).tolist() == [0, 1, 0, 0]
    # no two logits are the same number here, but their shares may be: the logits decide
    assert temperature(CLOSE, 0).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("k", "ids"), [(1, [0]), (2, [0, 1]), (4, [0, 1, 2, 3]), (5, [0, 1, 2, 3, 4]), (99, [0, 1, 2, 3, 4])]
)
def test_top_k(k, ids):
    p = top_k(LOGITS, k)
    assert kept(p) == ids  # tokens 3 and 4 are equally likely: the lower id first
    np.testing.assert_allclose(p[ids], HALVES[ids] / HALVES[ids].sum(), rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("value", "ids"),
    [
        (0.01, [0]),
        (0.49, [0]),
        (0.51, [0, 1]),
        (0.74, [0, 1]),
        (0.8, [0, 1, 2]),
        (0.9, [0, 1, 2, 3]),
        (1, [0, 1, 2, 3, 4]),
    ],
)
def test_the_nucleus_has_the_token_that_crosses(value, ids):
    p = top_p(LOGITS, value)
    assert kept(p) == ids
    np.testing.assert_allclose(p[ids], HALVES[ids] / HALVES[ids].sum(), rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("value", "ids"), [(0, [0, 1, 2, 3, 4]), (0.1, [0, 1, 2, 3, 4]), (0.2, [0, 1, 2]), (0.4, [0, 1]), (1, [0])]
)
def test_min_p(value, ids):
    assert kept(min_p(LOGITS, value)) == ids


def test_a_top_p_of_1_and_a_min_p_of_0_keep_everything():
    many = np.r_[20.0, np.zeros(50_000)]  # the sum of their shares reaches 1 before the last
    far = np.array([0.0, -800, -np.inf])  # no share of the second is a number
    for step, value in ((top_p, 1), (top_p, 1.0), (min_p, 0)):
        assert len(kept(step(many, value))) == 50_001
        assert kept(Sampler(**{step.__name__: value, "temperature": 100}, order=LATE).distribution(far)) == [0, 1]


def test_heat_brings_back_what_had_no_share():
    # e^-8 for each 800 logits; a softmax in between would make it 0 for good
    p = temperature(np.array([0.0, -800, -1600]), 100)
    np.testing.assert_allclose(p, softmax(np.array([0.0, -8, -16])), rtol=1e-12)
    late = Sampler(top_k=2, temperature=100, order=LATE).distribution(np.array([-1600.0, -800, 0]))
    np.testing.assert_allclose(late, softmax(np.array([-np.inf, -8, 0])), rtol=1e-12)


@pytest.mark.parametrize("order", list(itertools.permutations(sampling.STEPS)))
def test_the_logits_rank_tokens_whose_shares_are_equal(order):
    assert kept(top_k(CLOSE, 1)) == kept(top_p(CLOSE, 0.5)) == [1]
    for filters in (dict(top_k=1), dict(top_k=2), dict(top_p=0.5), dict(top_p=1), dict(min_p=1)):
        assert kept(Sampler(temperature=0, **filters, order=order).distribution(CLOSE)) == [1]


@given(logits, st.integers(1, 12), st.floats(0.01, 1), st.floats(0, 1), st.permutations(list(sampling.STEPS)))
def test_temperature_0_is_greedy_whatever_the_order(values, k, p, m, order):
    sampler = Sampler(temperature=0, top_k=k, top_p=p, min_p=m, order=order)
    assert kept(sampler.distribution(values)) == [greedy(values)]


def test_numbers_at_the_end_of_the_range():
    assert softmax(np.array([1e308, -1e308])).tolist() == [1, 0]
    assert temperature(np.array([1e308, -1e308]), 2).tolist() == [1, 0]
    low = repetition_penalty(np.array([-1e4, 1]), [0], 1e-305)
    np.testing.assert_allclose(low, softmax(np.array([0, 1])), rtol=1e-12)


def test_repetition_penalty_by_hand():
    p = repetition_penalty(np.array([2.0, -2, 1, 0]), [0, 1, 0], 2)
    np.testing.assert_allclose(p, softmax(np.array([1.0, -4, 1, 0])), rtol=0, atol=1e-15)
    np.testing.assert_allclose(repetition_penalty(LOGITS, [], 2), HALVES, rtol=0, atol=1e-15)


@given(logits, st.floats(0, 5), st.integers(1, 12), st.floats(0.01, 1), st.floats(0, 1), st.sampled_from(list(ORDERS)))
def test_every_step_gives_a_distribution_and_only_takes_away(values, t, k, p, m, engine):
    sampler = Sampler(temperature=t, top_k=k, top_p=p, min_p=m, order=ORDERS[engine], repetition_penalty=1.3, seen=[0])
    trail = sampler.trail(values)
    assert list(trail) == ["softmax", "repetition_penalty", *ORDERS[engine]]
    steps = list(trail.values())
    for before, after in itertools.pairwise(steps):
        assert after.min() >= 0
        assert abs(after.sum() - 1) < 1e-12
        assert set(kept(after)) <= set(kept(before))
    assert np.array_equal(steps[-1], sampler.distribution(values))


def test_the_order_decides_what_is_kept():
    settings = dict(temperature=2, top_p=0.8)
    first = Sampler(**settings, order=ORDERS["transformers"]).distribution(LOGITS)
    last = Sampler(**settings, order=ORDERS["llama.cpp"]).distribution(LOGITS)
    assert (kept(first), kept(last)) == ([0, 1, 2, 3], [0, 1, 2])
    # min-p before or after a nucleus
    settings = dict(top_p=0.9, min_p=0.2)
    late = Sampler(**settings, order=ORDERS["transformers"]).trail(LOGITS)
    early = Sampler(**settings, order=ORDERS["vllm"]).trail(LOGITS)
    assert kept(late["top_p"]) == [0, 1, 2, 3]
    assert kept(early["top_p"]) == kept(early["min_p"]) == [0, 1, 2]


@pytest.mark.parametrize(("u", "token"), [(0, 0), (0.4999, 0), (0.5, 1), (0.7499, 1), (0.75, 2), (0.9999999, 4)])
def test_one_uniform_number_decides(u, token):
    assert draw(HALVES, u) == token


def test_a_token_without_a_share_is_never_drawn():
    p = np.array([0, 0.5, 0, 0.5, 0])
    assert [draw(p, u) for u in (0, 0.49, 0.5, 0.99, np.nextafter(1, 0))] == [1, 1, 3, 3, 3]
    tenths = np.array([*[0.1] * 10, 0])  # their sum is a rounding below 1
    assert draw(tenths, np.nextafter(1, 0)) == 9


def test_frequencies_are_the_distribution():
    sampler = Sampler(temperature=1, top_k=3, seed=5)
    n = 20_000
    drawn = np.bincount([sampler(LOGITS) for _ in range(n)], minlength=5) / n
    expected = sampler.distribution(LOGITS)
    assert (drawn[3:] == 0).all()
    assert np.abs(drawn - expected).max() < 4 * np.sqrt(0.25 / n)  # four standard deviations of a fair coin


def test_one_uniform_number_a_token_whatever_the_steps():
    plain, filtered = Sampler(seed=3), Sampler(seed=3, top_k=1)
    for _ in range(5):
        plain(LOGITS)
        filtered(LOGITS)
    assert plain(LOGITS) == draw(HALVES, np.random.default_rng(3).random(6)[-1])


class TestGenerate:
    def test_temperature_0_is_the_greedy_text(self, toy_model):
        assert generate(toy_model, [1, 9], 8, sample=Sampler(temperature=0)).ids == generate(toy_model, [1, 9], 8).ids

    def test_a_seed_repeats_its_text_and_another_gives_another(self, toy_model):
        texts = [generate(toy_model, [1, 9], 12, sample=Sampler(temperature=1.5, seed=s)).ids for s in (1, 1, 2)]
        assert texts[0] == texts[1] != texts[2]

    def test_the_cache_does_not_change_what_is_drawn(self, toy_model):
        with_cache, without = (
            generate(toy_model, [1, 9], 12, sample=Sampler(temperature=1, seed=4), use_cache=on).ids
            for on in (True, False)
        )
        assert with_cache == without

    def test_what_was_chosen_is_seen(self, toy_model):
        sampler = Sampler(temperature=0, repetition_penalty=1e6, seen=[1, 9])
        ids = generate(toy_model, [1, 9], 6, sample=sampler).ids
        assert sampler.seen == ids
        assert len(set(ids)) == len(ids)  # a seen token with a positive logit is as good as gone


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: temperature(LOGITS, -0.1), "temperature = -0.1: expected 0"),
        (lambda: temperature(LOGITS, np.nan), "temperature = nan"),
        (lambda: top_p(LOGITS, 0), "top_p = 0: expected more than 0 and at most 1"),
        (lambda: top_p(LOGITS, 1.01), "top_p = 1.01"),
        (lambda: top_k(LOGITS, 0), "top_k = 0: expected a whole number of at least 1"),
        (lambda: top_k(LOGITS, 2.5), "top_k = 2.5"),
        (lambda: min_p(LOGITS, -0.1), "min_p = -0.1: expected 0 to 1"),
        (lambda: min_p(LOGITS, 1.1), "min_p = 1.1"),
        (lambda: repetition_penalty(LOGITS, [1], 0), "repetition_penalty = 0: expected more than 0"),
        (lambda: repetition_penalty(LOGITS, [99], 1.2), "token 99 was seen, the logits are those of 5 tokens"),
        (lambda: softmax(np.array([0, np.nan])), "the logits hold nan or inf"),
        (lambda: softmax(np.array([0, np.inf])), "the logits hold nan or inf"),
        (lambda: softmax(np.full(3, -np.inf)), "all tokens are filtered away"),
        (lambda: softmax(np.zeros((2, 3))), r"logits are \(2, 3\): expected one a token"),
        (lambda: draw(HALVES, 1), "u = 1: expected 0 or more and less than 1"),
        (lambda: Sampler(top_p=2), "top_p = 2"),
        (lambda: Sampler(temperature=-1), "temperature = -1"),
        (lambda: Sampler(repetition_penalty=-1), "repetition_penalty = -1"),
        (lambda: Sampler(order=["top_k", "top_p"]), "expected each of temperature, top_k, top_p, min_p once"),
        (lambda: Sampler()(np.array([0, np.nan])), "the logits hold nan or inf"),
        (lambda: repetition_penalty([1e4, 1], [0], 1e-305), "repetition_penalty = 1e-305 makes a logit infinite"),
        (lambda: repetition_penalty([-1e4, 1], [0], 1e305), "makes a logit infinite"),
        (lambda: temperature(LOGITS, "0.5"), "temperature = '0.5': expected 0"),
        (lambda: temperature(LOGITS, True), "temperature = True"),
        (lambda: temperature(LOGITS, None), "temperature = None"),
        (lambda: temperature(LOGITS, 10**400), "temperature = 1000"),
        (lambda: top_p(LOGITS, np.ones((2, 2))), r"top_p = \[\[1. 1.\] \[1. 1.\]\]: expected more than 0"),
        (lambda: min_p(LOGITS, [0.1]), r"min_p = \[0.1\]"),
        (lambda: min_p(LOGITS, np.True_), "min_p = True"),
        (lambda: top_k(LOGITS, np.array([1, 2])), r"top_k = \[1 2\]: expected a whole"),
        (lambda: top_k(LOGITS, True), "top_k = True"),
        (lambda: repetition_penalty(LOGITS, [1], "1"), "repetition_penalty = '1'"),
        (lambda: repetition_penalty(LOGITS, [1.7], 1.2), r"seen = \[1.7\]: expected ids of tokens"),
        (lambda: repetition_penalty(LOGITS, 3, 1.2), "seen = 3: expected ids"),
        (lambda: repetition_penalty(LOGITS, [10**30], 1.2), "was seen, the logits are those of 5 tokens"),
        (lambda: Sampler(temperature="1"), "temperature = '1'"),
        (lambda: Sampler(top_p=np.array([0.5, 0.6])), r"top_p = \[0.5 0.6\]"),
        (lambda: Sampler(repetition_penalty=True), "repetition_penalty = True"),
        (lambda: Sampler(seed=1.5), "seed = 1.5: expected a whole number of at least 0"),
        (lambda: Sampler(seed=-1), "seed = -1"),
        (lambda: Sampler(seed=None), "seed = None"),
        (lambda: Sampler(seen=3), "seen = 3: expected ids of tokens, whole numbers of at least 0"),
        (lambda: Sampler(seen=[1.7]), r"seen = \[1.7\]"),
        (lambda: Sampler(seen="12"), "seen = '12'"),
        (lambda: Sampler(seen=[-1]), r"seen = \[-1\]"),
        (lambda: Sampler(seen=np.ones((9, 9))), r"seen = \[\[1. 1. 1.*…: expected"),
        (lambda: Sampler(order=None), "order = None: expected each of temperature, top_k, top_p, min_p once"),
        (lambda: Sampler(order="top_k"), "order = 'top_k': expected each"),
        (lambda: Sampler(order=[1, "top_k"]), r"order = \[1, 'top_k'\]: expected each"),
        (lambda: Sampler(order=np.ones((4, 2))), "order = .*: expected each"),
        (lambda: softmax(["a", "b"]), r"logits are \(2,\): expected one a token .* as numbers \(dtype <U1\)"),
        (lambda: softmax([]), r"logits are \(0,\): expected one a token"),
        (lambda: draw(np.zeros(3), 0.5), "p adds up to 0, its least share is 0: expected 1, and at least 0"),
        (lambda: draw([], 0.5), r"p is float64 \(0,\): expected a distribution \[V\]"),
        (lambda: draw([np.nan, 1], 0.5), "p adds up to nan"),
        (lambda: draw([2, -1], 0.5), "its least share is -1"),
        (lambda: draw(np.eye(2), 0.5), r"p is float64 \(2, 2\)"),
        (lambda: draw("ab", 0.5), r"p is <U2 \(\)"),
        (lambda: draw(HALVES, "0.5"), "u = '0.5': expected 0 or more and less than 1"),
    ],
)
def test_what_cannot_be_chosen_is_named(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


def test_an_order_and_what_was_seen_may_come_one_after_another():
    sampler = Sampler(top_k=2, temperature=2, order=iter(LATE), seen=iter([np.int64(1)]), seed=np.int64(3))
    assert (list(sampler.trail(LOGITS)), sampler.seen) == (["softmax", "top_k", "temperature"], [1])


def test_settings_make_the_same_sampler():
    sampler = Sampler(temperature=2, min_p=0.05, order=LATE, repetition_penalty=1.2, seed=9)
    again = Sampler(**sampler.settings)
    assert again.settings == sampler.settings
    assert [sampler(LOGITS) for _ in range(20)] == [again(LOGITS) for _ in range(20)]


def test_greedy_is_the_sampler_at_temperature_0():
    assert greedy(LOGITS) == Sampler(temperature=0)(LOGITS) == 0


def test_orders_name_every_step_once():
    assert all(sorted(order) == sorted(sampling.STEPS) for order in ORDERS.values())
