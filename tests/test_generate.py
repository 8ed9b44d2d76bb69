"""The generation loop: who is counted, when it stops, what it refuses."""

import dataclasses

import numpy as np
import pytest

from prefill_decode.attention import causal_mask
from prefill_decode.cache import KVCache
from prefill_decode.generate import generate, greedy
from prefill_decode.model import forward
from prefill_decode.sampling import Sampler

PROMPT = [1, 9, 3]  # "the old cat"


@pytest.mark.parametrize("m", [1, 2, 5])
def test_m_tokens_take_one_prefill_and_m_minus_1_decode_passes(toy_model, m):
    result = generate(toy_model, PROMPT, m)
    assert [p.phase for p in result.passes] == ["prefill"] + ["decode"] * (m - 1)
    assert [p.n_queries for p in result.passes] == [3] + [1] * (m - 1)
    assert [p.n_keys for p in result.passes] == list(range(3, 3 + m))
    assert len(result.new_ids) == m
    assert result.ids[:3] == PROMPT
    assert result.cache_len == 3 + m - 1  # the last token was chosen and not fed back
    assert result.stopped_by == "length"


def test_one_triangle_with_a_cache_many_without(toy_model):
    prompt_len, m = 3, 6
    total = prompt_len + m - 1
    with_cache = generate(toy_model, PROMPT, m)
    without = generate(toy_model, PROMPT, m, use_cache=False)
    assert sum(p.pairs for p in with_cache.passes) == total * (total + 1) // 2
    assert sum(p.pairs for p in without.passes) == sum(t * (t + 1) // 2 for t in range(prompt_len, total + 1))
    assert sum(p.n_queries for p in with_cache.passes) == total
    assert sum(p.n_queries for p in without.passes) == sum(range(prompt_len, total + 1))
    assert with_cache.ids == without.ids
    assert {p.phase for p in without.passes} == {"full"}
    assert all(p.n_queries == p.n_keys for p in without.passes)
    assert (without.cache_len, without.cache_bytes) == (0, 0)


def test_pairs_are_those_of_the_masks(toy_model):
    for p in generate(toy_model, PROMPT, 4).passes:
        assert p.pairs == causal_mask(p.n_queries, p.n_keys).sum()


def test_times_are_of_the_right_passes(toy_model):
    result = generate(toy_model, PROMPT, 4)
    seconds = [p.seconds for p in result.passes]
    assert result.ttft == seconds[0] > 0
    assert result.tpot == pytest.approx(sum(seconds[1:]) / 3)
    assert generate(toy_model, PROMPT, 1).tpot is None


def test_a_stop_token_ends_the_run_and_is_kept(toy_model):
    free = generate(toy_model, PROMPT, 6)
    stop = free.new_ids[2]
    result = generate(toy_model, PROMPT, 6, stop_ids=(stop,))
    assert result.new_ids == free.new_ids[:3]
    assert result.stopped_by == "stop"
    assert result.cache_len == 3 + 3 - 1


@pytest.mark.parametrize("use_cache", [True, False])
def test_a_full_context_ends_the_run(toy_model, use_cache):
    prompt = (PROMPT * 10)[:30]
    result = generate(toy_model, prompt, 10, use_cache=use_cache)
    # positions 30 and 31 are still free: tokens 2 and 3 can be computed, the third one cannot be fed back
    assert len(result.new_ids) == 3
    assert result.stopped_by == "context"
    assert result.cache_len == (32 if use_cache else 0)
    assert len(generate(toy_model, (PROMPT * 11)[:32], 1, use_cache=use_cache).new_ids) == 1


def test_tokens_are_reported_as_they_come(toy_model):
    seen = []
    result = generate(toy_model, PROMPT, 3, on_token=lambda token, record: seen.append((token, record)))
    assert seen == list(zip(result.new_ids, result.passes, strict=True))


def test_the_choice_is_the_callers(toy_model):
    assert generate(toy_model, PROMPT, 3, sample=lambda logits: int(np.argmin(logits))).new_ids != (
        generate(toy_model, PROMPT, 3).new_ids
    )


def test_greedy_takes_the_lowest_id_of_equals():
    assert greedy(np.array([0.0, 2, 1, 2])) == 1


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        ([0, np.nan, 1], "the logits hold nan or inf: the model's output is broken, no token can be chosen"),
        ([np.nan] * 3, "the logits hold nan or inf"),
        ([0, np.inf, 1], "the logits hold nan or inf"),
        ([-np.inf] * 3, "all tokens are filtered away"),
        (np.zeros((2, 2)), r"logits are \(2, 2\): expected one a token"),
        ([], r"logits are \(0,\)"),
        (["a"], r"logits are \(1,\): .* as numbers"),
    ],
)
def test_greedy_says_what_the_sampler_says(logits, message):
    for choose in (greedy, Sampler()):
        with pytest.raises(ValueError, match=f"^{message}") as error:
            choose(logits)
        assert "\n" not in str(error.value)


def test_greedy_finds_nan_wherever_it_is_and_may_meet_minus_infinity():
    for place in range(40):
        logits = np.r_[np.arange(20.0), np.inf, np.arange(19.0)]
        logits[place] = np.nan
        with pytest.raises(ValueError, match="nan or inf"):
            greedy(logits.astype(np.float32))
    assert greedy(np.array([-np.inf, -3, -np.inf])) == 1


def test_a_broken_model_is_named(toy_model):
    broken = dataclasses.replace(toy_model, norm=np.full_like(toy_model.norm, np.nan))
    with pytest.raises(ValueError, match="the model's output is broken"):
        generate(broken, PROMPT, 3)


@pytest.mark.parametrize(
    ("ids", "m", "message"),
    [
        ([], 1, "there is no token to run"),
        (PROMPT, 0, "max_new_tokens = 0: expected at least 1"),
        ([1] * 33, 1, "the prompt has 33 tokens, the context holds 32: shorten"),
        ([99], 1, "token id 99 is outside the vocabulary"),
    ],
)
def test_what_cannot_be_generated_is_named(toy_model, ids, m, message):
    with pytest.raises(ValueError, match=message):
        generate(toy_model, ids, m)


def test_a_cache_that_holds_a_beginning_is_gone_on_with(toy_model):
    cache = KVCache(toy_model.config, 20, toy_model.dtype)
    forward(toy_model, PROMPT[:2], cache)
    result = generate(toy_model, PROMPT, 5, cache=cache)
    whole = generate(toy_model, PROMPT, 5)
    assert (result.ids, result.cache_len) == (whole.ids, whole.cache_len)
    assert result.passes[0].n_queries == len(PROMPT) - 2
    assert result.passes[0].pairs == whole.passes[0].pairs - 3
    assert len(cache) == len(result.ids) - 1


def test_a_cache_that_leaves_nothing_to_run(toy_model):
    cache = KVCache(toy_model.config, 20, toy_model.dtype)
    forward(toy_model, PROMPT, cache)
    with pytest.raises(ValueError, match="one at least must run, truncate the cache"):
        generate(toy_model, PROMPT, 5, cache=cache)
    with pytest.raises(ValueError, match="leave one of them out"):
        generate(toy_model, PROMPT, 5, cache=cache, use_cache=False)
