"""Rows spread over passes: every route gives the logits of one full pass."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from schedule_examples import REAL_SAME, SAME, TEXT, TOY, apart, oracle, prompts

from prefill_decode.attention import causal_mask
from prefill_decode.cache import KVCache
from prefill_decode.compression import WindowKVCache
from prefill_decode.model import Trace, forward
from prefill_decode.schedules import (
    BlockPool,
    PagedKVCache,
    chunked_prefill,
    last_layer_for_one_row,
    prefill_then_decode,
)

IDS = [1, 9, 3, 13, 8, 2]


@pytest.mark.parametrize("split", range(1, 7))
def test_prefill_then_decode(toy_model, split):
    assert np.abs(prefill_then_decode(toy_model, IDS, split) - forward(toy_model, IDS)).max() < 1e-12


def test_a_mask_is_used_row_by_row(toy_model):
    late = np.tri(6, k=-1, dtype=bool)
    rows = prefill_then_decode(toy_model, IDS, 4, late)
    assert np.abs(rows - forward(toy_model, IDS, mask=late)).max() < 1e-12
    assert np.abs(rows - forward(toy_model, IDS)).max() > 1


@pytest.mark.parametrize("split", range(1, 7))
def test_a_cache_of_its_own_kind_says_who_reads_whom(split):
    cache = WindowKVCache(TOY.config, 4, np.float64, sinks=1)
    band = np.tri(6, dtype=bool) & (~np.tri(6, k=-3, dtype=bool) | (np.arange(6) < 1))
    assert apart(prefill_then_decode(TOY, IDS, split, cache=cache), forward(TOY, IDS, mask=band)) < SAME


def test_a_mask_over_all_positions_does_not_fit_a_window():
    cache = WindowKVCache(TOY.config, 4, np.float64, sinks=1)
    with pytest.raises(ValueError, match="evicts entries, a mask over all positions does not fit it: leave one"):
        prefill_then_decode(TOY, IDS, 2, np.tri(6, dtype=bool), cache)
    assert cache.next_position == 0


@pytest.mark.parametrize("split", [0, 7])
def test_a_split_outside_the_prompt_is_named(toy_model, split):
    with pytest.raises(ValueError, match="give 1 to 6"):
        prefill_then_decode(toy_model, IDS, split)


def test_the_last_layer_needs_one_query(toy_model):
    trace = Trace()
    full = forward(toy_model, IDS, trace=trace)
    assert np.abs(last_layer_for_one_row(toy_model, trace.hidden[-2]) - full[-1]).max() < 1e-12


@given(prompts(12))
def test_every_chunk_gives_the_logits_of_one_pass(ids):
    for chunk in range(1, len(ids) + 1):
        assert apart(chunked_prefill(TOY, ids, chunk), oracle(ids)) < SAME


@given(prompts(12), st.data())
def test_chunks_into_a_paged_cache(ids, data):
    chunk, size = data.draw(st.integers(1, len(ids))), data.draw(st.integers(1, 5))
    order = data.draw(st.permutations(range(-(-len(ids) // size))))
    cache = PagedKVCache.on(BlockPool(TOY.config, size, len(order), np.float64, order))
    assert apart(chunked_prefill(TOY, ids, chunk, cache), oracle(ids)) < SAME
    assert len(cache) == len(ids)


def test_chunks_go_on_where_a_cache_ends():
    cache = KVCache(TOY.config, 6, np.float64)
    chunked_prefill(TOY, IDS[:3], 2, cache)
    assert apart(chunked_prefill(TOY, IDS[3:], 2, cache), oracle(IDS)[3:]) < SAME
    assert len(cache) == 6


def test_chunks_of_the_real_model(real_model64, tokenizer):
    ids = tokenizer.encode(TEXT)[:10]
    full = forward(real_model64, ids)
    for chunk in (3, 7):
        assert apart(chunked_prefill(real_model64, ids, chunk), full) < REAL_SAME


@pytest.mark.parametrize(
    ("ids", "chunk", "message"),
    [
        (IDS, 0, "a chunk of 0 rows for 6 tokens: give 1 to 6"),
        (IDS, 7, "a chunk of 7 rows for 6 tokens: give 1 to 6"),
        ([], 1, "there is no token to run"),
        ([1, 2, 16], 2, "token id 16 is outside the vocabulary"),
    ],
)
def test_what_cannot_be_cut_is_named_before_anything_runs(ids, chunk, message):
    cache = KVCache(TOY.config, 8, np.float64)
    with pytest.raises(ValueError, match=message):
        chunked_prefill(TOY, ids, chunk, cache)
    assert len(cache) == 0


# broken on purpose: what the equalities above would show


def test_positions_that_start_again_with_each_chunk_show(monkeypatch):
    monkeypatch.setattr(KVCache, "next_position", 0)
    for chunk in range(1, 6):
        assert apart(chunked_prefill(TOY, IDS, chunk), oracle(IDS)) > 0.01
    assert apart(chunked_prefill(TOY, IDS, 6), oracle(IDS)) == 0  # one chunk has nothing to restart


def test_a_mask_aligned_upper_left_shows(monkeypatch):
    monkeypatch.setattr(KVCache, "mask", lambda self, n: np.tri(n, len(self) + n, dtype=bool))
    for chunk in range(1, 6):
        assert apart(chunked_prefill(TOY, IDS, chunk), oracle(IDS)) > 0.01


def test_a_mask_without_causality_shows(monkeypatch):
    monkeypatch.setattr(KVCache, "mask", lambda self, n: np.ones_like(causal_mask(n, len(self) + n)))
    for chunk in range(2, 7):
        assert apart(chunked_prefill(TOY, IDS, chunk), oracle(IDS)) > 0.01
    assert apart(chunked_prefill(TOY, IDS, 1), oracle(IDS)) < SAME  # one row reads every key anyway
