"""What counts is a whole number: floats and truth values are named, and nothing is changed by them."""

import numpy as np
import pytest
from schedule_examples import TOY

from prefill_decode.cache import KVCache
from prefill_decode.config import is_number, is_whole, one_line
from prefill_decode.generate import generate
from prefill_decode.model import forward
from prefill_decode.schedules import (
    BlockPool,
    PagedKVCache,
    chunked_prefill,
    packed_batch,
    prefill_then_decode,
    prompt_lookup,
    speculative_generate,
)
from prefill_decode.schedules.masks import window_mask
from prefill_decode.tiled import Tiles, tiled_accesses

IDS = [1, 2, 3, 4]


def filled():
    cache = PagedKVCache(TOY.config, 2, 4)
    forward(TOY, IDS, cache)
    return cache


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: chunked_prefill(TOY, IDS, 2.0), "a chunk of 2.0 rows for 4 tokens: give 1 to 4"),
        (lambda: chunked_prefill(TOY, IDS, True), "a chunk of True rows"),
        (lambda: prefill_then_decode(TOY, IDS, 2.0), "split = 2.0 of 4 tokens"),
        (lambda: tiled_accesses(4, 2, Tiles(1.0, 1)), "a tile of 1.0 query rows of 4: give 1 to 4"),
        (lambda: Tiles.for_memory(64.0, 4, 4), "M = 64.0 numbers hold no tile"),
        (lambda: BlockPool(TOY.config, 2.0, 4), "4 blocks of 2.0 positions"),
        (lambda: filled().truncate(2.5), "cannot keep 2.5 of 4 entries: give 0 to 4"),
        (lambda: filled().fork(2.0), "cannot keep 2.0 of 4 entries"),
        (lambda: PagedKVCache.on(filled().pool, (0, 1), 3.5), "a sequence of 3.5 positions"),
        (lambda: KVCache(TOY.config, 2.5), "a cache of 2.5 entries"),
        (lambda: window_mask(3, 5, 2.5), "a window of 2.5 keys"),
        (lambda: generate(TOY, IDS, 4.0), "max_new_tokens = 4.0"),
        (lambda: speculative_generate(TOY, TOY, IDS, 4, 1.5), "k = 1.5 guesses a pass"),
        (lambda: speculative_generate(TOY, lambda ids, k: [1.7], IDS, 4, 1), "the draft guessed token 1.7"),
        (lambda: prompt_lookup(IDS, 2, 1.5), "n = 1.5 tokens to match"),
        (lambda: packed_batch(TOY, IDS), "prompt 0 is 1: expected a sequence of token ids for each prompt"),
    ],
)
def test_what_is_no_whole_number_is_named(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("value", [np.array(2), np.array([1, 2]), np.True_, 2.0, "2", None])
def test_arrays_and_text_count_nothing(value):
    assert not is_whole(value)
    assert is_number(value) == (value is not None and isinstance(value, float))


def test_an_error_line_has_one_line():
    assert one_line(np.ones((2, 2))) == "[[1. 1.] [1. 1.]]"
    assert one_line("a\nb") == r"'a\nb'"
    assert one_line("x" * 99) == "'" + "x" * 58 + "…"


def test_numpy_integers_count():
    one = np.int64(2)
    assert np.array_equal(chunked_prefill(TOY, IDS, one), chunked_prefill(TOY, IDS, 2))
    assert type(tiled_accesses(np.int64(4), np.int64(2), Tiles(one, one))) is int
    assert all(type(token) is int for token in prompt_lookup(np.array([1, 2, 1, 2]), 2))
    pool = BlockPool(TOY.config, 2, 4, order=np.arange(4))
    assert all(type(block) is int for block in pool.free)


def test_a_batch_may_come_one_prompt_after_another():
    assert len(packed_batch(TOY, iter([IDS, (1, 2)]))) == 2
