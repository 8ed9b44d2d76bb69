"""The plain cache: what it stores, counts and refuses."""

import dataclasses

import numpy as np
import pytest

from prefill_decode import toy
from prefill_decode.cache import KVCache
from prefill_decode.model import decode_step, prefill

CONFIG = dataclasses.replace(toy.CONFIG, n_layers=3, n_kv_heads=2, d_head=6)


def rows(n, value, dtype=np.float64):
    return np.full((2, n, 6), value, dtype)


def filled(n, capacity=8):
    cache = KVCache(CONFIG, capacity, np.float64)
    for layer in range(3):
        cache.extend(layer, rows(n, layer), rows(n, 10 + layer))
    return cache


def test_entries_of_every_layer_are_kept_apart():
    cache = filled(4)
    for layer in range(3):
        k, v = cache.extend(layer, rows(1, 20 + layer), rows(1, 30 + layer))
        assert k.shape == v.shape == (2, 5, 6)
        assert (k == np.r_[[layer] * 4, 20 + layer][:, None]).all()
        assert (v == np.r_[[10 + layer] * 4, 30 + layer][:, None]).all()
    assert len(cache) == cache.next_position == 5


def test_mask_is_causal_over_old_and_new():
    assert filled(3).mask(2).astype(int).tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]


def test_bytes_used_and_allocated_are_told_apart():
    cache = filled(4, capacity=8)
    assert cache.nbytes == 2 * 3 * 2 * 6 * 8 * 4  # K and V, layers, KV heads, width, bytes, entries
    assert cache.nbytes_allocated == 2 * cache.nbytes
    assert cache.nbytes == sum(a.nbytes for layer in range(3) for a in cache.extend(layer, rows(0, 0), rows(0, 0)))


def test_truncate_forgets_the_end():
    cache = filled(4)
    cache.truncate(2)
    assert len(cache) == 2
    assert cache.extend(0, rows(1, 7), rows(1, 7))[0][0, :, 0].tolist() == [0, 0, 7]
    with pytest.raises(ValueError, match="cannot keep 3 of 2 entries"):
        cache.truncate(3)
    with pytest.raises(ValueError, match="cannot keep -1"):
        cache.truncate(-1)


def test_a_pass_that_breaks_off_leaves_the_cache_as_it_was():
    cache = filled(4)
    cache.extend(0, rows(1, 99), rows(1, 99))  # only one of three layers
    assert len(cache) == 4
    assert (cache.extend(0, rows(0, 0), rows(0, 0))[0] == 0).all()


def test_a_full_cache_says_so_and_loses_nothing(toy_model):
    cache, twin = (KVCache(toy_model.config, 3, np.float64) for _ in range(2))
    prefill(toy_model, [1, 2], cache)
    prefill(toy_model, [1, 2], twin)
    with pytest.raises(ValueError, match=r"the cache is full: 2 of 3 entries .* capacity 5 or truncate"):
        prefill(toy_model, [3, 4, 5], cache)
    assert len(cache) == 2
    np.testing.assert_array_equal(decode_step(toy_model, 3, cache), decode_step(toy_model, 3, twin))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.extend(3, rows(1, 0), rows(1, 0)), "layer 3 of a cache with 3 layers"),
        (lambda c: c.extend(0, np.zeros((1, 1, 6)), np.zeros((1, 1, 6))), r"expected \[2, L, 6\]"),
        (lambda c: c.extend(0, rows(1, 0), rows(2, 0)), r"expected \[2, L, 6\]"),
        (lambda c: c.extend(0, rows(1, 0, np.float32), rows(1, 0, np.float32)), "keys are float32"),
        (lambda c: KVCache(CONFIG, 0), "capacity of at least 1"),
    ],
)
def test_what_does_not_fit_is_named(call, message):
    cache = filled(2)
    with pytest.raises(ValueError, match=message):
        call(cache)
    assert len(cache) == 2


def test_a_cache_of_another_configuration_is_refused(toy_model):
    other = dataclasses.replace(toy_model.config, n_layers=1)
    with pytest.raises(ValueError, match="make one from model"):
        prefill(toy_model, [1], KVCache(other, 4, np.float64))
    with pytest.raises(ValueError, match="the cache is float32"):
        prefill(toy_model, [1], KVCache(toy_model.config, 4, np.float32))
