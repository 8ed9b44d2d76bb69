"""Masks against plain double loops, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefill_decode.attention import attention, causal_mask
from prefill_decode.schedules.masks import PAD, packed_rows, padded_rows, paged_mask, window_mask

LENGTHS = st.lists(st.integers(1, 6), min_size=1, max_size=5)


def layout(lengths, side):
    """Say of each row which token of which prompt it is: (prompt, position), or None for a pad."""
    longest = max(lengths)
    lines = []
    for prompt, length in enumerate(lengths):
        own = [(prompt, position) for position in range(length)]
        pads = [None] * (0 if side is None else longest - length)
        lines += pads + own if side == "left" else own + pads
    return lines


def may_read(a, b):
    return a is not None and b is not None and a[0] == b[0] and b[1] <= a[1]


@given(LENGTHS, st.sampled_from(("left", "right", None)))
def test_rows_of_a_batch(lengths, side):
    expected = layout(lengths, side)
    rows = packed_rows(lengths) if side is None else padded_rows(lengths, side)
    assert rows.prompt.tolist() == [PAD if row is None else row[0] for row in expected]
    assert rows.positions.tolist() == [0 if row is None else row[1] for row in expected]
    assert rows.mask.dtype == bool
    assert rows.mask.tolist() == [[may_read(a, b) for b in expected] for a in expected]
    for prompt, length in enumerate(lengths):
        assert [expected[row] for row in rows.of(prompt)] == [(prompt, position) for position in range(length)]


def test_a_small_batch_by_hand():
    left = padded_rows([1, 2], "left")
    assert left.prompt.tolist() == [PAD, 0, 1, 1]
    assert left.mask.astype(int).tolist() == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]]
    assert padded_rows([1, 2], "right").prompt.tolist() == [0, PAD, 1, 1]
    assert packed_rows([1, 2]).mask.astype(int).tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 1]]


@given(st.integers(1, 9), st.integers(0, 9), st.integers(1, 20))
def test_window(n_queries, before, window):
    n_keys = n_queries + before
    expected = [[0 <= before + i - j < window for j in range(n_keys)] for i in range(n_queries)]
    assert window_mask(n_queries, n_keys, window).tolist() == expected


@given(st.integers(1, 12), st.integers(1, 5), st.data())
def test_paged_order_is_the_causal_mask_with_its_columns_moved(n_keys, size, data):
    n_queries = data.draw(st.integers(1, n_keys))
    need = -(-n_keys // size)
    n_blocks = need + data.draw(st.integers(0, 3))
    table = data.draw(st.permutations(range(n_blocks)))[:need]
    mask = paged_mask(n_queries, n_keys, table, size, n_blocks)
    expected = np.zeros((n_queries, n_blocks * size), bool)
    for i in range(n_queries):
        for j in range(n_keys - n_queries + i + 1):
            expected[i, table[j // size] * size + j % size] = True
    assert mask.tolist() == expected.tolist()

    rng = np.random.default_rng(0)
    q = rng.normal(size=(2, n_queries, 4))
    k, v, memory = (rng.normal(size=(2, n, 4)) for n in (n_keys, n_keys, 2 * n_blocks * size))
    slots = [table[j // size] * size + j % size for j in range(n_keys)]
    keys, values = memory[:, : n_blocks * size], memory[:, n_blocks * size :]  # what nobody wrote is not zero
    keys[:, slots], values[:, slots] = k, v
    difference = attention(q, keys, values, mask) - attention(q, k, v, causal_mask(n_queries, n_keys))
    assert np.abs(difference).max() < 1e-12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: packed_rows([]), "the batch is empty: give at least one prompt"),
        (lambda: padded_rows([], "left"), "the batch is empty: give at least one prompt"),
        (lambda: packed_rows([2, 0]), "prompt 1 has no tokens: leave it out or give it one"),
        (lambda: padded_rows([0, 2], "left"), "prompt 0 has no tokens: leave it out or give it one"),
        (lambda: padded_rows([1], "top"), 'side = \'top\': expected "left" or "right"'),
        (lambda: window_mask(2, 4, 0), "a window of 0 keys: every query needs its own, give at least 1"),
        (lambda: window_mask(4, 2, 1), "4 queries for 2 keys"),
        (lambda: paged_mask(4, 2, [0], 2, 1), "4 queries for 2 keys"),
        (
            lambda: paged_mask(1, 4, [0, 0], 2, 2),
            r"the page table \[0, 0\] of 4 positions: name 2 of blocks 0 to 1, each once",
        ),
        (lambda: paged_mask(1, 4, [0], 2, 2), r"the page table \[0\] of 4 positions: name 2 of"),
        (lambda: paged_mask(1, 4, [0, 2], 2, 2), r"the page table \[0, 2\] of 4 positions: name 2 of"),
        (lambda: paged_mask(1, 4, [-1, 0], 2, 2), r"the page table \[-1, 0\] of 4 positions: name 2 of"),
        (lambda: paged_mask(1, 4, [0], 0, 2), "blocks of 0 positions hold nothing: give at least 1"),
    ],
)
def test_what_does_not_fit_is_named(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)
