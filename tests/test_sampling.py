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
    close = np.array([0.0, np.nextafter(0.0, 1)])
    assert temperature(close, 0).tolist() == [0, 1]


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
    ],
)
def test_what_cannot_be_chosen_is_named(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


def test_greedy_is_the_sampler_at_temperature_0():
    assert greedy(LOGITS) == Sampler(temperature=0)(LOGITS) == 0


def test_orders_name_every_step_once():
    assert all(sorted(order) == sorted(sampling.STEPS) for order in ORDERS.values())
