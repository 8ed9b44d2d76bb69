"""Caches that store less: round trips by hand, bytes by count, what a pass reads and what the next one reads."""

import copy
import itertools
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from schedule_examples import SAME, TOY, apart, oracle

from prefill_decode.attention import causal_mask
from prefill_decode.cache import KVCache
from prefill_decode.compression import QuantizedKVCache, RoundedKVCache, WindowKVCache
from prefill_decode.generate import generate
from prefill_decode.model import forward
from prefill_decode.quantised import Codes
from prefill_decode.schedules import PagedKVCache

IDS = [1, 9, 3, 13, 8, 2, 4, 5, 7, 7, 1, 3]
C = TOY.config
PER_ENTRY = C.n_layers * 2 * C.n_kv_heads * C.d_head  # numbers


def feed(cache, chunk=1, ids=IDS):
    return np.concatenate([forward(TOY, ids[i : i + chunk], cache) for i in range(0, len(ids), chunk)])


# codes


@pytest.mark.parametrize(
    ("bits", "numbers", "scale", "zero", "values"),
    [
        (2, [-1, 0, 1, 2], 1, -1, [-1, 0, 1, 2]),  # four codes for four numbers
        (2, [0, 0.4, 2.6, 3], 1, 0, [0, 0, 3, 3]),
        (4, [-3, 12, 0.4, 5], 1, -3, [-3, 12, 0, 5]),
        (8, [0, 255, 7.4, 100], 1, 0, [0, 255, 7, 100]),
        (8, [2, 2, 2, 2], 0, 2, [2, 2, 2, 2]),  # no span
    ],
)
def test_round_trips_by_hand(bits, numbers, scale, zero, values):
    codes = Codes.of(np.array([numbers], float), bits, 4, 1)
    assert (codes.scale.item(), codes.zero.item()) == (scale, zero)
    assert codes.values(np.float64).tolist() == [values]
    assert codes.nbytes == 4 * bits // 8 + 2 + 2


def test_codes_lie_in_a_byte_first_one_lowest():
    assert Codes.of(np.array([[0.0, 1, 2, 3]]), 2, 4, 1).packed.tolist() == [[0b11_10_01_00]]
    assert Codes.of(np.array([[0.0, 15]]), 4, 2, 1).packed.tolist() == [[0xF0]]


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from((8, 4, 2)),
    st.sampled_from((1, 2)),
    st.integers(1, 3),
    st.sampled_from((4, 8)),
)
def test_no_number_is_off_by_more_than_half_a_step(seed, bits, axis, groups, group):
    shape = [3, 8, 8]
    shape[axis] = groups * group
    x = np.random.default_rng(seed).normal(0, 3, shape)
    codes = Codes.of(x, bits, group, axis)
    back = codes.values(np.float64)
    split = np.moveaxis(x, axis, -1).reshape(-1, group)
    step = (split.max(axis=1) - split.min(axis=1)) / (2**bits - 1)
    off = np.abs(np.moveaxis(back - x, axis, -1).reshape(-1, group)).max(axis=1)
    # scale and zero point are float16: they are off by one part in 2,048
    assert (off <= step / 2 + 2**-10 * (np.abs(split).max(axis=1) + step * 2**bits)).all()


def test_a_scale_is_never_negative():
    codes = Codes.of(np.array([[2049.1, 2049.3, 2049.5, 2049.9]]), 4, 4, 1)  # the smallest is rounded up, above all
    assert (codes.zero.item(), codes.scale.item()) == (2050, 0)
    assert not np.signbit(codes.scale).any()
    assert codes.values(np.float64).tolist() == [[2050] * 4]


def test_where_the_zero_point_rounds_down_the_smallest_number_has_another_code():
    codes = Codes.of(np.array([[2049.0, 2049.5]]), 4, 2, 1)
    assert codes.zero.item() == 2048
    assert codes.packed.item() & 15 == 10  # as the docstring of Codes says


@pytest.mark.parametrize(
    ("number", "message"),
    [(65_600, "65600"), (-1e6, "1e"), (np.inf, "inf"), (-np.inf, "inf"), (np.nan, "nan")],
)
def test_what_scale_and_zero_point_cannot_hold_is_named(number, message):
    with pytest.raises(ValueError, match=rf"numbers up to {message}.*: expected finite ones within ±65,504") as error:
        Codes.of(np.array([[0, number, 0, 0]]), 4, 4, 1)
    assert "\n" not in str(error.value)
    most = Codes.of(np.array([[-65_504, 65_504, 0, 0]]), 2, 4, 1).values(np.float64)
    assert np.isfinite(most).all()


# 16 bits


@pytest.mark.parametrize(("format", "least", "most"), [("float16", 1e-4, 0.1), ("bfloat16", 1e-3, 1)])
def test_sixteen_bits(format, least, most):
    cache = RoundedKVCache(C, 12, np.float64, format=format)
    assert least < apart(feed(cache), oracle(IDS)) < most
    assert cache.nbytes == cache.nbytes_allocated == 12 * PER_ENTRY * 2
    keys, _ = cache.entries(0)
    if format == "float16":
        assert np.array_equal(keys, keys.astype(np.float16))


# few bits


def test_a_single_pass_reads_exact_keys_and_stores_afterwards():
    cache = QuantizedKVCache(C, np.float64, bits=2, group=4, residual=0)
    assert apart(feed(cache, 12), oracle(IDS)) < SAME
    exact = KVCache(C, 12, np.float64)
    forward(TOY, IDS, exact)
    assert np.abs(cache.entries(0)[0] - exact.entries(0)[0]).max() > 0.1


@pytest.mark.parametrize("chunk", [1, 3, 5])
def test_fewer_bits_change_more(chunk):
    off = [
        apart(feed(QuantizedKVCache(C, np.float64, bits=b, group=4, residual=0), chunk), oracle(IDS)) for b in (8, 4, 2)
    ]
    assert 1e-4 < off[0] < off[1] < off[2]


def test_what_a_pass_reads_is_what_is_stored():
    cache = QuantizedKVCache(C, np.float64, bits=4, group=4, residual=2)
    feed(cache)
    assert len(cache._old[0]) == 2  # 12 entries: 8 in two groups, 4 exact
    exact = KVCache(C, 12, np.float64)
    feed(exact)
    keys, values = cache.entries(0)  # the first layer's keys do not depend on the cache
    k, v = exact.entries(0)
    assert np.array_equal(keys[:, 8:], k[:, 8:])
    for start in (0, 4):
        rows = slice(start, start + 4)
        assert np.array_equal(keys[:, rows], Codes.of(k[:, rows], 4, 4, 1).values(np.float64))
        assert np.array_equal(values[:, rows], Codes.of(v[:, rows], 4, 4, 2).values(np.float64))


@pytest.mark.parametrize("bits", [8, 4, 2])
def test_bytes_tell_scales_and_zero_points(bits):
    cache = QuantizedKVCache(C, np.float64, bits=bits, group=4, residual=3)
    feed(cache)  # 12 entries: 8 quantised, 4 exact in float64
    numbers = 8 * PER_ENTRY
    assert cache.nbytes == numbers * bits // 8 + numbers // 4 * (2 + 2) + 4 * PER_ENTRY * 8
    assert cache.nbytes_allocated == cache.nbytes


def test_recent_entries_in_16_bits():
    cache = QuantizedKVCache(C, np.float64, bits=4, group=4, residual=3, recent=np.float16)
    feed(cache)
    numbers = 8 * PER_ENTRY
    assert cache.nbytes == numbers // 2 + numbers // 4 * (2 + 2) + 4 * PER_ENTRY * 2
    keys, _ = cache.entries(0)
    assert keys.dtype == np.float64
    assert np.array_equal(keys[:, 8:], keys[:, 8:].astype(np.float16))


def test_a_large_channel_spoils_keys_per_token_only():
    rng = np.random.default_rng(1)
    k = rng.normal(size=(C.n_kv_heads, 8, C.d_head))
    k[:, :, 0] += 100
    off = {}
    for keys_per in ("channel", "token"):
        cache = QuantizedKVCache(C, np.float64, bits=2, group=4, residual=0, keys_per=keys_per)
        for layer in range(C.n_layers):
            cache.extend(layer, k, k)
        off[keys_per] = np.abs(cache.entries(0)[0] - k)[:, :, 1:].max()
    assert off["token"] > 3 * off["channel"]


@pytest.mark.parametrize("n", range(13))
def test_truncated_it_goes_on(n):
    cache = QuantizedKVCache(C, np.float64, bits=8, group=4, residual=2)
    feed(cache)
    before = [part[:, :n].copy() for part in cache.entries(1)]
    cache.truncate(n)
    assert len(cache) == cache.next_position == n
    assert all(np.array_equal(a, b) for a, b in zip(before, cache.entries(1), strict=True))
    if n < len(IDS):
        assert apart(feed(cache, ids=IDS[n:]), oracle(IDS)[n:]) < 0.5


def test_a_failed_pass_leaves_it_as_it_was():
    cache = QuantizedKVCache(C, np.float64, bits=4, group=4, residual=0)
    feed(cache, ids=IDS[:6])
    before = cache.entries(0), cache.nbytes
    with pytest.raises(ValueError, match="the mask is"):
        forward(TOY, [1, 2], cache, mask=np.ones((1, 1), bool))
    assert np.array_equal(cache.entries(0), before[0])
    assert (len(cache), cache.nbytes) == (6, before[1])


# a pass is stored as a whole


def layers_of(cache):
    return len(cache), cache.next_position, [np.stack(cache.entries(layer)).tolist() for layer in range(C.n_layers)]


def store(cache, rows):
    for layer in range(C.n_layers):
        cache.extend(layer, *rows[layer])


def interrupted(stop, call, *args):
    """Say whether a call was interrupted, at the line of the package that is the ``stop``-th to run."""
    lines = itertools.count()

    def trace(frame, event, _):
        if event == "line" and next(lines) == stop:
            raise KeyboardInterrupt
        return trace if "prefill_decode" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call(*args)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


ROWS = np.random.default_rng(2).normal(size=(2, C.n_layers, 2, C.n_kv_heads, 7, C.d_head))


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (lambda: QuantizedKVCache(C, np.float64, bits=4, group=4, residual=1), lambda cache: store(cache, ROWS[1])),
        (lambda: QuantizedKVCache(C, np.float64, bits=4, group=4, residual=1), lambda cache: cache.truncate(2)),
        (lambda: WindowKVCache(C, 6, np.float64, sinks=1), lambda cache: store(cache, ROWS[1])),
        (lambda: WindowKVCache(C, 6, np.float64, sinks=1), lambda cache: cache.truncate(0)),
    ],
)
def test_an_interrupt_leaves_all_layers_before_or_all_after(make, change):
    cache = make()
    store(cache, ROWS[0])
    changed = copy.deepcopy(cache)
    change(changed)
    before, after = layers_of(cache), layers_of(changed)
    ends = []
    for stop in itertools.count():
        twin = copy.deepcopy(cache)
        if not interrupted(stop, change, twin):
            break
        ends.append([before, after].index(layers_of(twin)))  # one of the two
        twin.truncate(len(twin))
        if not ends[-1]:
            change(twin)
            assert layers_of(twin) == after  # it goes on as if nothing had been
    assert ends == sorted(ends)
    assert len(ends) > 5


def test_numbers_that_cannot_be_quantised_leave_all_layers_as_they_were():
    cache = QuantizedKVCache(C, np.float64, bits=4, group=4, residual=0)
    rows = np.ones((C.n_layers, 2, C.n_kv_heads, 5, C.d_head))
    store(cache, rows)
    before = layers_of(cache)
    rows[-1, 0, 0, 0, 0] = 1e6
    with pytest.raises(ValueError, match=r"numbers up to 1e\+06"):
        store(cache, rows)
    assert layers_of(cache) == before


# windows


def evicted():
    cache = WindowKVCache(C, 5, np.float64, sinks=1)
    feed(cache)
    return cache


def test_a_window_cut_to_nothing_is_a_fresh_one():
    cache = evicted()
    cache.truncate(0)
    assert (len(cache), cache.next_position, cache.nbytes) == (0, 0, 0)
    assert apart(feed(cache), feed(WindowKVCache(C, 5, np.float64, sinks=1))) == 0


def test_a_window_that_keeps_all_it_has_does_not_change():
    cache, twin = evicted(), evicted()
    cache.truncate(5)
    assert layers_of(cache) == layers_of(twin)
    assert apart(feed(cache, ids=[3, 1]), feed(twin, ids=[3, 1])) == 0


@pytest.mark.parametrize("n", range(1, 5))
def test_a_window_is_not_cut_after_an_eviction(n):
    cache = evicted()
    before = layers_of(cache)
    with pytest.raises(ValueError, match=rf"cannot keep {n} of 5 entries: 7 older ones were evicted .*give 5 .*or 0"):
        cache.truncate(n)
    assert layers_of(cache) == before


@pytest.mark.parametrize("n", range(6))
def test_before_an_eviction_a_window_is_cut_as_any_cache(n):
    cache = WindowKVCache(C, 5, np.float64, sinks=1)
    feed(cache, ids=IDS[:5])
    cache.truncate(n)
    assert (len(cache), cache.next_position) == (n, n)
    assert apart(feed(cache, ids=IDS[n:]), feed(WindowKVCache(C, 5, np.float64, sinks=1))[n:]) < SAME


def test_who_evicts_says_so():
    caches = [KVCache(C, 4), RoundedKVCache(C, 4), QuantizedKVCache(C, group=4), PagedKVCache(C, 2, 2)]
    assert not any(cache.evicts for cache in caches)
    assert WindowKVCache(C, 5).evicts


@given(st.integers(0, 3), st.integers(1, 12), st.integers(1, 12), st.lists(st.integers(0, 15), min_size=1, max_size=16))
def test_a_window_reads_the_same_in_any_chunks(sinks, more, chunk, ids):
    window = sinks + more
    cache = WindowKVCache(C, window, np.float64, sinks=sinks)
    got = feed(cache, chunk, ids)
    n = len(ids)
    mask = np.array([[k <= q and (k < sinks or k > q - more) for k in range(n)] for q in range(n)])
    assert apart(got, forward(TOY, ids, mask=mask)) < SAME
    assert len(cache) == min(window, n)
    assert cache.next_position == n
    assert cache.nbytes == len(cache) * PER_ENTRY * 8


def test_a_wide_window_changes_nothing_and_a_narrow_one_much():
    assert apart(feed(WindowKVCache(C, 12, np.float64)), oracle(IDS)) < SAME
    assert apart(feed(WindowKVCache(C, 5, np.float64, sinks=1)), oracle(IDS)) > 1


def test_evicting_after_a_full_prefill_is_something_else():
    banded = WindowKVCache(C, 5, np.float64, sinks=1)
    full = WindowKVCache(C, 5, np.float64, sinks=1)
    forward(TOY, IDS[:-1], banded)
    forward(TOY, IDS[:-1], full, mask=causal_mask(11, 11))
    last = [forward(TOY, IDS[-1:], cache) for cache in (banded, full)]
    assert apart(*last) > 0.1


def test_generation_counts_what_it_reads():
    run = generate(TOY, IDS, 4, cache=WindowKVCache(C, 5, np.float64, sinks=1))
    assert [(p.n_queries, p.n_keys, p.pairs) for p in run.passes] == [(12, 5, 15 + 7 * 5), *[(1, 5, 5)] * 3]
    assert run.cache_len == 5


@pytest.mark.parametrize(
    "make",
    [
        lambda: RoundedKVCache(C, 20, np.float64),
        lambda: QuantizedKVCache(C, np.float64, bits=8, group=4, residual=4),
        lambda: WindowKVCache(C, 20, np.float64),
    ],
)
def test_they_stand_in_for_a_kv_cache(make):
    run, plain = generate(TOY, IDS[:6], 6, cache=make()), generate(TOY, IDS[:6], 6)
    assert (run.ids, run.cache_len) == (plain.ids, plain.cache_len)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: QuantizedKVCache(C, bits=3), "bits = 3: expected one of 8, 4, 2"),
        (lambda: QuantizedKVCache(C, group=3), "group = 3: expected a divisor of d_head = 4"),
        (lambda: QuantizedKVCache(C, group=1, bits=2), "fills whole bytes"),
        (lambda: QuantizedKVCache(C, group=4, residual=-1), "residual = -1: expected a whole number of at least 0"),
        (lambda: QuantizedKVCache(C, group=4, keys_per="head"), "keys_per = 'head': expected"),
        (lambda: RoundedKVCache(C, 4, format="float8"), "format = 'float8': expected one of float16, bfloat16"),
        (lambda: WindowKVCache(C, 4, sinks=4), "a window of 4 keys with 4 sinks: it must be larger than its sinks"),
        (lambda: WindowKVCache(C, 4, sinks=-1), "with -1 sinks"),
        (lambda: WindowKVCache(C, 2.5), "a window of 2.5 keys"),
        (lambda: WindowKVCache(C, np.ones((2, 2), int)), r"a window of \[\[1 1\] \[1 1\]\] keys"),
        (lambda: QuantizedKVCache(C, bits=4.0), "bits = 4.0: expected one of 8, 4, 2"),
        (lambda: QuantizedKVCache(C, bits="4"), "bits = '4'"),
        (
            lambda: QuantizedKVCache(C, group=4, recent=int),
            "recent entries in <class 'int'>: expected a floating dtype",
        ),
        (lambda: QuantizedKVCache(C, group=4, recent="half-ish"), "recent entries in 'half-ish': expected a floating"),
        (lambda: RoundedKVCache(C, 4, format=[]), r"format = \[\]: expected one of float16, bfloat16"),
    ],
)
def test_what_cannot_be_stored_is_named(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)
