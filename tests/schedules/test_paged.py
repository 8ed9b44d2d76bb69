"""The paged cache: stands in for the plain one, shares and copies blocks, refuses what does not fit."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from schedule_examples import REAL_SAME, SAME, TEXT, TOY, apart, oracle, prompts

from prefill_decode import toy
from prefill_decode.attention import attention
from prefill_decode.cache import KVCache
from prefill_decode.generate import generate
from prefill_decode.model import decode_step, forward, prefill
from prefill_decode.schedules import (
    BlockPool,
    PagedKVCache,
    chunked_prefill,
    prompt_lookup,
    speculative_generate,
)

CONFIG = dataclasses.replace(toy.CONFIG, n_layers=3, n_kv_heads=2, d_head=6)
DEEP = dataclasses.replace(TOY, config=dataclasses.replace(TOY.config, n_layers=3), layers=(*TOY.layers, TOY.layers[0]))
IDS = [1, 9, 3, 13, 8, 2, 7]


def shuffled(config, size, n_blocks):
    order = np.random.default_rng(n_blocks).permutation(n_blocks).tolist()
    return PagedKVCache.on(BlockPool(config, size, n_blocks, np.float64, order))


CACHES = {"plain": lambda config: KVCache(config, 9, np.float64)} | {
    f"{n} blocks of {size}": lambda config, size=size, n=n: shuffled(config, size, n)
    for size, n in ((1, 9), (2, 5), (3, 3), (4, 3), (9, 1), (20, 1))
}
each_cache = pytest.mark.parametrize("make", CACHES.values(), ids=CACHES)


def rows(n, value):
    return np.full((2, n, 6), value, np.float64)


def filled(make, n=4):
    cache = make(CONFIG)
    for layer in range(3):
        cache.extend(layer, rows(n, layer), rows(n, 10 + layer))
    return cache


# what test_cache.py asks of the plain cache, of both


@each_cache
def test_entries_of_every_layer_are_kept_apart(make):
    cache = filled(make)
    for layer in range(3):
        k, v = cache.extend(layer, rows(1, 20 + layer), rows(1, 30 + layer))
        assert k.shape == v.shape == (2, 5, 6)
        assert (k == np.r_[[layer] * 4, 20 + layer][:, None]).all()
        assert (v == np.r_[[10 + layer] * 4, 30 + layer][:, None]).all()
    assert len(cache) == cache.next_position == 5
    assert (cache.entries(2)[1] == np.r_[[12] * 4, 32][:, None]).all()


@each_cache
def test_the_mask_is_causal_over_old_and_new(make):
    assert filled(make, 3).mask(2).astype(int).tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]


@each_cache
def test_truncate_forgets_the_end(make):
    cache = filled(make)
    cache.truncate(2)
    assert len(cache) == 2
    assert cache.extend(0, rows(1, 7), rows(1, 7))[0][0, :, 0].tolist() == [0, 0, 7]
    for n in (3, -1):
        with pytest.raises(ValueError, match=f"cannot keep {n} of 2 entries: give 0 to 2"):
            cache.truncate(n)


@each_cache
def test_a_pass_of_no_rows_reads_what_is_there(make):
    for n in (0, 4):
        k, v = filled(make, n).extend(1, rows(0, 0), rows(0, 0))
        assert k.shape == v.shape == (2, n, 6)
        assert (k == 1).all()


@each_cache
@pytest.mark.parametrize("held", [0, 1, 4])
def test_a_pass_that_breaks_off_in_the_middle_layer_leaves_the_cache_usable(make, held):
    calls = []

    def breaks_off(*args):
        calls.append(args)
        if len(calls) == 2:  # layers 0 and 1 have stored their rows, layer 2 has not
            raise KeyboardInterrupt
        return attention(*args)

    cache = make(DEEP.config)
    if held:
        prefill(DEEP, IDS[:held], cache)
    before = [np.copy(cache.entries(layer)) for layer in range(3)]
    with pytest.raises(KeyboardInterrupt):
        forward(dataclasses.replace(DEEP, attend=breaks_off), [5] * 5, cache)
    assert len(cache) == cache.next_position == held
    assert all((cache.entries(layer) == before[layer]).all() for layer in range(3))
    assert apart(forward(DEEP, IDS[held:], cache), forward(DEEP, IDS)[held:]) < SAME


@each_cache
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.extend(3, rows(1, 0), rows(1, 0)), "layer 3 of a cache with 3 layers"),
        (lambda c: c.extend(0, np.zeros((1, 1, 6)), np.zeros((1, 1, 6))), r"expected \[2, L, 6\]"),
        (lambda c: c.extend(0, rows(1, 0), rows(2, 0)), r"expected \[2, L, 6\]"),
        (lambda c: c.extend(0, rows(1, 0).astype("f4"), rows(1, 0).astype("f4")), "keys are float32"),
    ],
)
def test_rows_that_do_not_fit_are_named(make, call, message):
    cache = filled(make, 2)
    with pytest.raises(ValueError, match=message):
        call(cache)
    assert len(cache) == 2


def test_a_cache_of_another_configuration_is_refused():
    other = dataclasses.replace(TOY.config, n_layers=1)
    with pytest.raises(ValueError, match="make one from model"):
        prefill(TOY, [1], PagedKVCache(other, 2, 2, np.float64))
    with pytest.raises(ValueError, match="the cache is float32"):
        prefill(TOY, [1], PagedKVCache(TOY.config, 2, 2, np.float32))


# blocks


@given(prompts(12, min_size=2), st.integers(1, 5), st.data())
def test_any_block_size_and_table_give_the_logits_of_one_pass(ids, size, data):
    order = data.draw(st.permutations(range(-(-len(ids) // size) + 2)))
    pool = BlockPool(TOY.config, size, len(order), np.float64, order)
    cache, split = PagedKVCache.on(pool), data.draw(st.integers(1, len(ids) - 1))
    got = [forward(TOY, ids[:split], cache), *(decode_step(TOY, token, cache)[None] for token in ids[split:])]
    assert apart(np.concatenate(got), oracle(ids)) < SAME
    assert cache.table == tuple(order[: pool.blocks_for(len(ids))])
    assert pool.free == order[len(cache.table) :]


@pytest.mark.parametrize("size", [1, 3, 4])
def test_bytes_used_are_the_plain_caches_and_blocks_round_up(size):
    paged, plain = PagedKVCache(CONFIG, size, 9, np.float64), KVCache(CONFIG, 9, np.float64)
    for n in (1, 3, 1):
        for layer in range(3):
            for cache in (paged, plain):
                cache.extend(layer, rows(n, 1), rows(n, 1))
        assert paged.nbytes == plain.nbytes == 2 * 3 * 2 * 6 * 8 * len(paged)
        assert paged.nbytes_allocated == -(-len(paged) // size) * size * 2 * 3 * 2 * 6 * 8
    paged.truncate(0)
    assert (paged.nbytes, paged.nbytes_allocated, len(paged.pool.free)) == (0, 0, 9)


def test_a_fork_costs_nothing_until_somebody_writes():
    pool = BlockPool(TOY.config, 4, 5, np.float64)
    first = PagedKVCache.on(pool)
    prefill(TOY, IDS[:6], first)
    second = first.fork()
    third = first.fork(3)
    assert (first.table, second.table, third.table) == ((0, 1), (0, 1), (0,))
    assert pool.users == [3, 2, 0, 0, 0]
    assert apart(decode_step(TOY, 5, second), oracle([*IDS[:6], 5])[-1]) < SAME
    assert (first.table, second.table) == ((0, 1), (0, 2))  # the last block was copied, the first one is still shared
    assert apart(decode_step(TOY, 9, first), oracle([*IDS[:6], 9])[-1]) < SAME
    assert first.table == (0, 1)  # nobody else reads it any more: no copy
    assert apart(decode_step(TOY, 8, third), oracle([*IDS[:3], 8])[-1]) < SAME
    assert third.table == (3,)
    assert pool.users == [2, 1, 1, 1, 0]
    assert apart(decode_step(TOY, 7, first), oracle([*IDS[:6], 9, 7])[-1]) < SAME


def test_freed_blocks_are_used_again_and_what_they_held_is_not_seen():
    pool = BlockPool(TOY.config, 2, 3, np.float64)
    old, new = PagedKVCache.on(pool), PagedKVCache.on(pool)
    prefill(TOY, IDS[:5], old)
    old.truncate(0)
    assert apart(prefill(TOY, IDS[:6], new), oracle(IDS[:6])[-1]) < SAME
    assert sorted(new.table) == [0, 1, 2]


def test_a_pass_that_does_not_fit_names_the_blocks_and_loses_nothing():
    pool = BlockPool(TOY.config, 2, 4, np.float64)
    cache = PagedKVCache.on(pool)
    prefill(TOY, IDS[:3], cache)
    twin = cache.fork()
    message = (
        "3 more blocks of 2 positions are needed, 2 of 4 are free: truncate a sequence, let a prefix cache forget, or "
        "make a pool of 5 blocks"
    )
    with pytest.raises(ValueError, match=message):
        prefill(TOY, [5] * 5, cache)  # two new ones, and a copy of the shared one
    assert (len(cache), cache.table, twin.table, pool.free, pool.users) == (3, (0, 1), (0, 1), [2, 3], [2, 2, 0, 0])
    assert apart(forward(TOY, IDS[3:6], cache), oracle(IDS[:6])[3:]) < SAME
    with pytest.raises(ValueError, match="4 more blocks of 2 positions are needed, 3 of 3 are free"):
        prefill(TOY, IDS, PagedKVCache(TOY.config, 2, 3, np.float64))


@pytest.mark.parametrize("size", [1, 4])
def test_it_decodes_what_generate_decodes(size):
    result = generate(TOY, IDS, 6)
    cache = shuffled(TOY.config, size, -(-12 // size))
    ids = [*IDS, int(np.argmax(prefill(TOY, IDS, cache)))]
    while len(ids) < len(result.ids):
        ids.append(int(np.argmax(decode_step(TOY, ids[-1], cache))))
    assert ids == result.ids
    assert cache.nbytes == result.cache_bytes


def test_the_real_model_on_a_shuffled_table(real_model64, tokenizer):
    ids = tokenizer.encode(TEXT)[:9]
    pool = BlockPool(real_model64.config, 4, 5, np.float64, order=[3, 0, 4, 1, 2])
    cache, full = PagedKVCache.on(pool), forward(real_model64, ids)
    got = [prefill(real_model64, ids[:6], cache), *(decode_step(real_model64, token, cache) for token in ids[6:])]
    assert apart(np.stack(got), full[5:]) < REAL_SAME
    assert cache.table == (3, 0, 4)


def in_use(n_blocks=4):
    """Return a pool whose blocks 0, 1 and 2 hold five positions."""
    pool = BlockPool(TOY.config, 2, n_blocks, np.float64)
    prefill(TOY, IDS[:5], PagedKVCache.on(pool))
    return pool


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PagedKVCache(TOY.config, 0, 4), "4 blocks of 0 positions hold nothing"),
        (lambda: PagedKVCache(TOY.config, 2, 0), "0 blocks of 2 positions hold nothing"),
        (lambda: BlockPool(TOY.config, 2, 3, order=[0, 1, 1]), "does not name each of 3 blocks once"),
        (lambda: BlockPool(TOY.config, 2, 3, order=[0, 1]), "does not name each of 3 blocks once"),
        (lambda: PagedKVCache.on(in_use(), [0, 1, 0], 5), "names block 0 twice: two stretches of a text need two"),
        (lambda: PagedKVCache.on(in_use(), [0, 3], 4), "names block 3, which holds nothing: give blocks in use"),
        (lambda: PagedKVCache.on(in_use(), [0, 4], 4), "names block 4, which holds nothing"),
        (lambda: PagedKVCache.on(in_use(), [0, -1], 4), "names block -1, which holds nothing"),
        (lambda: PagedKVCache.on(in_use(), [0, 1], 5), "5 positions in blocks of 2 need 3, the page table names 2"),
        (lambda: PagedKVCache.on(in_use(), [0, 1], 2), "2 positions in blocks of 2 need 1, the page table names 2"),
        (lambda: PagedKVCache.on(in_use(), [], -1), "a sequence of -1 positions: give 0 or more"),
        (lambda: PagedKVCache.on(in_use(), [0], 2).fork(3), "cannot keep 3 of 2 entries"),
        (lambda: PagedKVCache.on(in_use(), [0], 2).truncate(-1), "cannot keep -1 of 2 entries"),
    ],
)
def test_what_does_not_fit_is_named(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


# broken on purpose: what the equalities above would show


def with_table(pool, table, n=5):
    """Return the logits of token 4 after n positions that a page table names."""
    cache = PagedKVCache.on(pool, table, 5)
    cache.truncate(n)
    return decode_step(TOY, 4, cache)


@pytest.mark.parametrize("table", [[0, 2, 1], [2, 1, 0], [0, 3, 2], [0, 1, 3]])
def test_a_wrong_entry_of_the_page_table_shows(table):
    """A full block swapped with the one that is half empty, or a block of somebody else."""
    pool = in_use(8)
    prefill(TOY, [11, 2], PagedKVCache.on(pool))  # in block 3
    assert apart(with_table(pool, [0, 1, 2]), oracle([*IDS[:5], 4])[-1]) < SAME
    assert apart(with_table(pool, table), oracle([*IDS[:5], 4])[-1]) > 0.01


def test_full_blocks_swapped_show_only_when_the_end_is_cut_off():
    """A row that reads all keys cannot tell their order: each key carries its position since it was stored."""
    pool = in_use(8)
    assert apart(with_table(pool, [1, 0, 2]), oracle([*IDS[:5], 4])[-1]) < SAME
    assert apart(with_table(pool, [0, 1, 2], 3), oracle([*IDS[:3], 4])[-1]) < SAME
    assert apart(with_table(pool, [1, 0, 2], 3), oracle([*IDS[:3], 4])[-1]) > 0.01


def test_writing_into_a_shared_block_without_a_copy_shows(monkeypatch):
    monkeypatch.setattr(BlockPool, "share", lambda self, blocks: [self.users.__setitem__(b, 1) for b in blocks])
    cache = PagedKVCache(TOY.config, 4, 4, np.float64)
    prefill(TOY, IDS[:3], cache)
    twin = cache.fork(2)
    decode_step(TOY, 12, twin)
    assert apart(decode_step(TOY, IDS[3], cache), oracle(IDS[:4])[-1]) > 0.01


def test_the_dtype_is_that_of_the_first_keys():
    cache = PagedKVCache(TOY.config, 2, 4)
    assert (cache.dtype, cache.nbytes_allocated) == (None, 0)
    assert apart(forward(TOY, [1, 9, 3, 13, 8], cache), oracle([1, 9, 3, 13, 8])) < SAME
    assert cache.dtype == np.float64


def test_a_request_that_does_not_fit_is_named_before_it_runs():
    cache = PagedKVCache(TOY.config, 2, 3)
    with pytest.raises(
        ValueError, match=r"6 more blocks of 2 positions are needed, 3 of 3 are free.* a pool of 6 blocks"
    ):
        generate(TOY, [1, 2, 3], 10, cache=cache)
    with pytest.raises(ValueError, match="4 more blocks of 2 positions are needed"):
        chunked_prefill(TOY, [1, 9, 3, 13, 8, 2, 4, 5], 3, cache)
    with pytest.raises(ValueError, match="5 more blocks of 2 positions are needed"):
        speculative_generate(TOY, TOY, [1, 2, 3], 7, 2, cache=cache)
    assert (len(cache), len(cache.pool.free)) == (0, 3)


def test_a_pass_that_fails_gives_its_blocks_back():
    cache = PagedKVCache(TOY.config, 2, 4)
    with pytest.raises(ValueError, match="the mask is"):
        forward(TOY, [1] * 7, cache, mask=np.ones((1, 1), bool))
    assert (cache.table, len(cache.pool.free)) == ((), 4)


def test_speculation_on_pages():
    pool = BlockPool(TOY.config, 3, 8, order=[5, 2, 7, 0, 6, 1, 3, 4])
    run = speculative_generate(TOY, prompt_lookup, [1, 9, 3], 12, 4, cache=PagedKVCache.on(pool))
    plain = generate(TOY, [1, 9, 3], 12)
    assert (run.ids, run.cache_len) == (plain.ids, plain.cache_len)


def test_speculation_starts_with_an_empty_cache():
    cache = PagedKVCache(TOY.config, 2, 8)
    forward(TOY, [1, 2], cache)
    with pytest.raises(ValueError, match="the cache holds 2 positions: truncate it to 0"):
        speculative_generate(TOY, TOY, [1, 2, 3], 4, 2, cache=cache)
