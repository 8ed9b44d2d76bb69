"""Speculation: the model's own greedy tokens whatever the draft; what each pass runs; nothing overshoots."""

import dataclasses

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from schedule_examples import OTHER, SAME, TOY, apart, prompts, tokens

from prefill_decode.attention import causal_pairs
from prefill_decode.cache import KVCache
from prefill_decode.compression import WindowKVCache
from prefill_decode.generate import Generation, Pass, generate
from prefill_decode.model import prefill
from prefill_decode.schedules import prompt_lookup, speculative_generate

PROMPT = [1, 9, 3]
SHORT = dataclasses.replace(OTHER, config=dataclasses.replace(OTHER.config, n_ctx=8))  # a draft of shorter context


def right(ids, k):
    """Guess what the model will say."""
    return generate(TOY, ids, k).new_ids


def wrong(ids, k):
    return [(token + 1) % 16 for token in right(ids, k)]


def noisy(seed):
    """Guess 0 to k tokens, most of them right: any number may be kept."""

    def draft(ids, k):
        rng = np.random.default_rng([seed, len(ids)])
        guesses = np.array(right(ids, k))[: rng.integers(0, k + 1)]
        return np.where(rng.random(len(guesses)) < 0.8, guesses, rng.integers(0, 16, len(guesses)))

    return draft


def blind(seed):
    return lambda ids, k: np.random.default_rng([seed, len(ids)]).integers(0, 16, k).tolist()


DRAFTS = st.one_of(
    st.sampled_from([TOY, OTHER, SHORT, prompt_lookup, right, wrong, lambda ids, k: []]),
    st.integers(0, 99).map(noisy),
    st.integers(0, 99).map(blind),
)


def assert_is_greedy(draft, ids, m, k, stop_ids=()):
    given_ids = list(ids)
    result = speculative_generate(TOY, draft, ids, m, k, stop_ids=stop_ids)
    plain = generate(TOY, ids, m, stop_ids=stop_ids)
    assert ids == given_ids
    for name in ("n_prompt", "ids", "new_ids", "stopped_by", "cache_len", "cache_bytes"):
        assert getattr(result, name) == getattr(plain, name), name
    assert_passes_fit(result, m, k)
    assert len(result.passes) <= len(plain.passes)
    return result, plain


def assert_passes_fit(result, m, k):
    first, *later = result.passes
    assert (first.phase, first.n_queries, first.n_keys) == ("prefill", result.n_prompt, result.n_prompt)
    for p in later:
        assert 1 <= p.n_queries <= k + 1
        assert p.phase == ("verify" if p.n_queries > 1 else "decode")
        assert p.n_keys <= min(result.n_prompt + m - 1, TOY.config.n_ctx)  # no row that nobody asked for
    assert all(p.pairs == causal_pairs(p.n_queries, p.n_keys) for p in result.passes)
    starts = [p.n_keys - p.n_queries for p in result.passes] + [result.cache_len]
    kept = np.diff(starts)  # rows of each pass that the next one reads
    assert starts[0] == 0
    assert sum(kept) == result.cache_len == len(result.ids) - 1
    assert all(1 <= rows <= p.n_queries for rows, p in zip(kept, result.passes, strict=True))


@given(DRAFTS, prompts(6), st.integers(1, 12), st.integers(1, 6), st.sets(tokens, max_size=2))
@example(wrong, PROMPT, 12, 6, set())
@example(OTHER, PROMPT, 12, 3, set())
@example(SHORT, PROMPT, 12, 3, set())  # its context ends on the way
@example(right, PROMPT, 12, 3, set(generate(TOY, PROMPT, 6).new_ids[3:4]))  # stops within a pass
def test_any_draft_gives_the_models_own_tokens(draft, ids, m, k, stop_ids):
    assert_is_greedy(draft, ids, m, k, stop_ids)


@given(DRAFTS, prompts(32, min_size=26), st.integers(1, 9), st.integers(1, 6))
@example(right, [1] * 32, 1, 3)
@example(right, [1] * 32, 2, 3)
def test_the_context_ends_it_where_it_ends_generate(draft, ids, m, k):
    assert_is_greedy(draft, ids, m, k)


@given(st.sampled_from([TOY, right]), prompts(6), st.integers(1, 14), st.integers(1, 6))
def test_a_perfect_draft_brings_k_plus_1_tokens_a_pass_and_wastes_no_pair(draft, ids, m, k):
    result, plain = assert_is_greedy(draft, ids, m, k)
    assert len(result.passes) == 1 + -(-(m - 1) // (k + 1))
    for count in ("pairs", "n_queries"):
        assert sum(getattr(p, count) for p in result.passes) == sum(getattr(p, count) for p in plain.passes)


@given(prompts(6), st.integers(3, 12), st.integers(1, 6))
def test_a_wrong_draft_saves_no_pass_and_wastes_pairs(ids, m, k):
    result, plain = assert_is_greedy(wrong, ids, m, k)
    assert len(result.passes) == len(plain.passes) == m
    assert sum(p.pairs for p in result.passes) > sum(p.pairs for p in plain.passes)


@given(prompts(6), st.integers(2, 14), st.integers(1, 6), st.integers(0, 9))
def test_a_draft_model_guesses_as_it_would_go_on(ids, m, k, seed):
    """Its own cache follows what was kept: the passes are those of a draft that starts afresh each time."""
    noise = np.random.default_rng(seed).normal(scale=0.15, size=TOY.embedding.shape)
    near = dataclasses.replace(TOY, embedding=TOY.embedding + noise)  # often right, not always
    result, afresh = (
        speculative_generate(TOY, draft, ids, m, k) for draft in (near, lambda ids, k: generate(near, ids, k).new_ids)
    )
    assert [(p.phase, p.n_keys) for p in result.passes] == [(p.phase, p.n_keys) for p in afresh.passes]


def test_the_real_model_checks_what_the_prompt_suggests(real_model64, tokenizer):
    ids = tokenizer.encode("one two three four one two three four one two")
    result, plain = speculative_generate(real_model64, prompt_lookup, ids, 4, 3), generate(real_model64, ids, 4)
    assert (result.ids, result.cache_len, result.stopped_by) == (plain.ids, plain.cache_len, plain.stopped_by)
    assert len(result.passes) < len(plain.passes)
    assert_passes_fit(result, 4, 3)


def test_the_cache_of_a_run_is_what_the_ids_give(monkeypatch):
    caches = []

    class Seen(KVCache):
        def __init__(self, *args):
            super().__init__(*args)
            caches.append(self)

    monkeypatch.setattr("prefill_decode.schedules.speculative.KVCache", Seen)
    result = speculative_generate(TOY, blind(3), PROMPT, 8, 4)
    fresh = KVCache(TOY.config, 16, np.float64)
    prefill(TOY, result.ids[:-1], fresh)
    for layer in range(2):
        assert apart(caches[0].entries(layer), fresh.entries(layer)) < SAME


def test_a_cache_that_evicts_is_refused_before_anything_runs():
    cache, asked = WindowKVCache(TOY.config, 20, np.float64), []
    with pytest.raises(ValueError, match=r"the cache evicts entries, .* give one that keeps all") as error:
        speculative_generate(TOY, lambda ids, k: asked.append(k) or [], PROMPT, 8, 3, cache=cache)
    assert "\n" not in str(error.value)
    assert (asked, cache.next_position) == ([], 0)


def test_times_are_told_a_token():
    passes = [Pass("prefill", 3, 3, 6, 0.5), Pass("verify", 3, 6, 15, 0.2), Pass("decode", 1, 7, 7, 0.1)]
    run = Generation(3, [1, 9, 3, 4, 5, 6, 7, 8], passes, 7, 0, "length")
    assert run.new_ids == [4, 5, 6, 7, 8]
    assert run.ttft == 0.5
    assert run.tpot == pytest.approx(0.3 / 4)  # four tokens came in two passes
    assert Generation(3, [1, 9, 3, 4], passes[:1], 3, 0, "length").tpot is None


@pytest.mark.parametrize(
    ("ids", "k", "n", "expected"),
    [
        ([1, 2, 3, 4, 1, 2], 2, 2, [3, 4]),
        ([1, 2, 3, 4, 1, 2], 9, 2, [3, 4, 1, 2]),
        ([1, 2, 3, 1, 2, 4, 1, 2], 1, 2, [4]),  # the latest place counts
        ([5, 5, 5], 2, 2, [5]),  # the places may overlap
        ([1, 2, 3], 2, 2, []),
        ([1, 2], 2, 2, []),
        ([1], 2, 2, []),
        ([3, 1, 3], 2, 1, [1, 3]),
        ((1, 2, 3, 1, 2), 1, 2, [3]),
    ],
)
def test_prompt_lookup(ids, k, n, expected):
    assert prompt_lookup(ids, k, n) == expected


FEWER = dataclasses.replace(TOY, config=dataclasses.replace(TOY.config, vocab_size=15), embedding=TOY.embedding[:15])


@pytest.mark.parametrize(
    ("draft", "ids", "m", "k", "message"),
    [
        (right, PROMPT, 4, 0, "k = 0 guesses a pass: expected at least 1"),
        (right, PROMPT, 4, -1, "k = -1 guesses a pass"),
        (FEWER, PROMPT, 4, 2, "the draft knows 15 tokens, the model 16: it needs the model's vocabulary"),
        (lambda ids, k: [16], PROMPT, 4, 2, "guessed token 16, the model knows 0 to 15: it needs the model's"),
        (lambda ids, k: [1, -1], PROMPT, 4, 2, "guessed token -1, the model knows 0 to 15"),
        (lambda ids, k: [1] * 3, PROMPT, 9, 2, "guessed 3 tokens where 2 were asked for: give at most 2"),
        (lambda ids, k: [1] * 2, PROMPT, 3, 2, "guessed 2 tokens where 1 were asked for: give at most 1"),
        (right, [], 4, 2, "there is no token to run"),
        (right, PROMPT, 0, 2, "max_new_tokens = 0: expected at least 1"),
        (right, [1] * 33, 1, 2, "the prompt has 33 tokens, the context holds 32"),
        (right, [16], 1, 2, "token id 16 is outside the vocabulary"),
    ],
)
def test_what_cannot_be_generated_is_named(draft, ids, m, k, message):
    before = list(ids)
    with pytest.raises(ValueError, match=message) as error:
        speculative_generate(TOY, draft, ids, m, k)
    assert "\n" not in str(error.value)
    assert ids == before


# broken on purpose: what the equalities above would show


def test_rejected_rows_that_stay_in_the_cache_show(monkeypatch):
    stop = generate(TOY, PROMPT, 2).new_ids[1]  # ends a run right after guesses were rejected
    monkeypatch.setattr(KVCache, "truncate", lambda self, n: None)
    result = speculative_generate(TOY, wrong, PROMPT, 9, 3, stop_ids=[stop])
    assert result.cache_len == len(result.ids) - 1 + 3
    with pytest.raises(ValueError, match="there is no token to run"):  # the newest one seems to be in the cache
        speculative_generate(TOY, wrong, PROMPT, 6, 1)


def test_no_token_to_look_up():
    with pytest.raises(ValueError, match="n = 0 tokens to match: expected at least 1"):
        prompt_lookup([1, 2, 1, 2], 3, n=0)


def test_a_text_that_repeats_one_token_is_guessed_on():
    assert prompt_lookup([9] * 10, 4) == [9] * 4
