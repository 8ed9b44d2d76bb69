"""The prefix cache: what is found again, what is never, what is forgotten first."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from schedule_examples import REAL_SAME, SAME, TEXT, TOY, apart, oracle

from prefill_decode.generate import generate
from prefill_decode.model import forward
from prefill_decode.schedules import BlockPool, PagedKVCache, PrefixCache

TEXTS = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=9), min_size=1, max_size=6)  # many begin alike


def empty(size, n_blocks=80):
    return PrefixCache(BlockPool(TOY.config, size, n_blocks, np.float64))


def turn(prefix, ids):
    """Run a text, keep its blocks and return how many positions were found; the sequence itself is dropped."""
    cache = prefix.start(ids)
    found = len(cache)
    assert apart(forward(TOY, ids[found:], cache), oracle(ids)[found:]) < SAME
    prefix.keep(ids, cache)
    cache.truncate(0)
    return found


def known(prefix, *texts):
    """Return how many positions of each text are held, and leave the order of use as it is."""
    twin = copy.deepcopy(prefix)
    return [len(twin.start([*ids, 0])) for ids in texts]


def common(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


@given(TEXTS, st.integers(1, 4))
def test_whole_blocks_of_the_longest_common_beginning_are_found(texts, size):
    prefix = empty(size)
    for i, ids in enumerate(texts):
        longest = max((common(ids, past) // size * size for past in texts[:i]), default=0)
        assert turn(prefix, ids) == min(longest, (len(ids) - 1) // size * size)
    held = {tuple(ids[:end]) for ids in texts for end in range(size, len(ids) + 1, size)}
    assert len(prefix) == len(held)
    assert sum(prefix.pool.users) == len(held)
    prefix.forget()
    assert (len(prefix), sum(prefix.pool.users), len(prefix.pool.free)) == (0, 0, 80)


@given(TEXTS, st.integers(1, 3), st.data())
def test_what_is_held_can_be_found_whatever_is_forgotten(texts, size, data):
    """A block stands on all blocks before it: it has to be forgotten first."""
    prefix = empty(size)
    for ids in texts:
        turn(prefix, ids)
        prefix.start(data.draw(st.sampled_from(texts)))  # found, run and not kept
        before, n = len(prefix), data.draw(st.integers(0, 3))
        prefix.forget(n)
        assert len(prefix) == max(0, before - n)
        lengths = zip(texts, known(prefix, *texts), strict=True)
        assert len(prefix) == len({tuple(text[:end]) for text, n in lengths for end in range(size, n + 1, size)})


def test_the_second_turn_of_a_chat_runs_only_what_is_new():
    first = [1, 9, 3, 13, 8]
    prefix = empty(4)
    cache = prefix.start(first)
    forward(TOY, first, cache)
    answer = generate(TOY, first, 6)
    forward(TOY, answer.ids[5:-1], cache)  # as decode left it: the last token was not fed
    prefix.keep(answer.ids, cache)
    second = [*answer.ids, 2, 7]
    assert turn(prefix, second) == 8  # 10 positions are held, two blocks are full
    assert prefix.pool.users[cache.table[0]] == 2  # the first turn is still there


def test_another_first_token_finds_nothing():
    prefix = empty(2)
    turn(prefix, [1, 2, 3, 4, 5])
    assert known(prefix, [2, 2, 3, 4, 5], [1, 2, 4, 4]) == [0, 2]
    assert known(prefix, [3, 4, 5]) == [0]  # the ids of a later block, but not its beginning


def test_a_text_is_never_found_whole():
    prefix = empty(2)
    turn(prefix, [1, 2, 3, 4])
    assert len(prefix) == 2
    assert len(prefix.start([1, 2, 3, 4])) == 2  # the last row's logits come out of a pass
    assert len(prefix.start([1, 2])) == 0
    assert len(prefix.start([])) == 0


def test_the_least_recently_used_goes_first_and_what_it_stands_on_later():
    prefix = empty(2)
    for ids in ([1, 1, 2, 2], [1, 1, 3, 3], [4, 4, 5, 5], [1, 1, 2, 2, 0]):
        turn(prefix, ids)
    for held in ([4, 2, 4], [4, 2, 2], [4, 2, 0], [2, 2, 0], [0, 0, 0]):  # 3 3, then 5 5, 4 4, 2 2 and last 1 1
        prefix.forget(1)
        assert known(prefix, [1, 1, 2, 2], [1, 1, 3, 3], [4, 4, 5, 5]) == held


def test_to_be_found_is_to_be_used():
    prefix = empty(2)
    for ids in ([1, 1, 2, 2], [4, 4, 5, 5]):
        turn(prefix, ids)
    prefix.start([1, 1, 2, 2, 0])
    for left in ([4, 2], [4, 0], [2, 0]):
        prefix.forget(1)
        assert known(prefix, [1, 1, 2, 2], [4, 4, 5, 5]) == left


def test_what_a_new_block_stands_on_stays_as_long_as_it():
    prefix = empty(2)
    for ids in ([1, 1, 2, 2], [1, 1, 3, 3]):  # 3 3 is new, 1 1 was found
        turn(prefix, ids)
    prefix.forget(1)
    assert known(prefix, [1, 1, 2, 2], [1, 1, 3, 3]) == [2, 4]
    prefix.forget(1)
    assert known(prefix, [1, 1, 3, 3]) == [2]


def test_readers_keep_what_is_forgotten():
    prefix = empty(2, n_blocks=3)
    turn(prefix, [1, 2, 3, 4, 5])
    reader = prefix.start([1, 2, 3, 4, 9])
    prefix.forget()
    assert len(prefix.pool.free) == 1
    assert apart(forward(TOY, [9], reader), oracle([1, 2, 3, 4, 9])[4:]) < SAME
    assert len(prefix.start([1, 2, 3, 4, 9])) == 0


def test_the_real_model_reuses_a_beginning(real_model64, tokenizer):
    ids = tokenizer.encode(TEXT)[:8]
    prefix = PrefixCache(BlockPool(real_model64.config, 3, 6, np.float64))
    cache = prefix.start(ids)
    forward(real_model64, ids, cache)
    prefix.keep(ids, cache)
    other = [*ids[:7], ids[0], ids[1]]
    cache = prefix.start(other)
    assert len(cache) == 6
    assert apart(forward(real_model64, other[6:], cache), forward(real_model64, other)[6:]) < REAL_SAME


def held(prefix, ids):
    cache = prefix.start(ids)
    forward(TOY, ids[len(cache) :], cache)
    return cache


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: p.keep([1, 2], PagedKVCache(TOY.config, 2, 2, np.float64)), "in another pool: start it with this"),
        (lambda p: p.keep([1, 2], held(p, [1, 2, 3])), "holds 3 positions, the text has 2 ids: give them all"),
        (lambda p: p.keep([1, 3], held(p, [1, 2, 4]).fork(2)), "is known as the end of another text"),
    ],
)
def test_what_cannot_be_kept_is_named(call, message):
    prefix = empty(2)
    turn(prefix, [1, 2, 3])
    with pytest.raises(ValueError, match=message) as error:
        call(prefix)
    assert "\n" not in str(error.value)
    assert len(prefix) == 1


# broken on purpose: what the equalities above would show


def test_a_block_found_by_its_own_ids_alone_shows():
    """The keys of 3 4 after 1 2 are others than those of 3 4 at the beginning: position and context differ."""
    prefix = empty(2)
    cache = held(prefix, [1, 2, 3, 4])
    wrong = PagedKVCache.on(prefix.pool, cache.table[1:], 2)
    assert apart(forward(TOY, [5], wrong), oracle([3, 4, 5])[2:]) > 0.01


def test_a_beginning_that_ends_in_another_token_shows(monkeypatch):
    monkeypatch.setattr("prefill_decode.schedules.prefix.tuple", lambda ids: (*ids[:-1], 0), raising=False)
    prefix = empty(2)
    prefix.keep([1, 2, 3], held(prefix, [1, 2, 3]))
    wrong = prefix.start([1, 9, 3])  # 1 9 is taken for 1 2
    assert len(wrong) == 2
    assert apart(forward(TOY, [3], wrong), oracle([1, 9, 3])[2:]) > 0.01


def test_less_than_nothing_cannot_be_forgotten():
    with pytest.raises(ValueError, match="cannot forget -1 blocks: give 0 or more"):
        PrefixCache(BlockPool(TOY.config, 2, 4, TOY.dtype)).forget(-1)
