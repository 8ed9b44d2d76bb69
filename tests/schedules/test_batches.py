"""Several prompts in one pass: each gets the logits of its own pass; pads and neighbours are not there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_examples import REAL_SAME, SAME, TOY, apart, oracle, prompts

from prefill_decode.model import forward
from prefill_decode.schedules import packed_batch, padded_batch
from prefill_decode.schedules.masks import Rows, packed_rows, padded_rows

BATCHES = st.lists(prompts(8), min_size=1, max_size=5)
PROMPTS = [[1, 9, 3], [4, 13], [2, 7, 5, 6, 14], [8]]
ROUTES = {
    "left": lambda batch: padded_batch(TOY, batch, "left"),
    "right": lambda batch: padded_batch(TOY, batch, "right"),
    "packed": lambda batch: packed_batch(TOY, batch),
}
each_route = pytest.mark.parametrize("route", ROUTES)


def worst(route, batch=PROMPTS):
    """Return the largest difference of a batch's logits to those of each prompt alone."""
    return max(apart(got, oracle(ids)) for got, ids in zip(ROUTES[route](batch), batch, strict=True))


@each_route
@given(BATCHES)
def test_every_prompt_gets_its_own_logits(route, batch):
    assert worst(route, batch) < SAME


@each_route
@settings(max_examples=20)
@given(prompts(8), BATCHES, st.data())
def test_neighbours_do_not_matter(route, ids, others, data):
    place = data.draw(st.integers(0, len(others)))
    batch = [*others[:place], ids, *others[place:]]
    assert apart(ROUTES[route](batch)[place], oracle(ids)) < SAME


@pytest.mark.parametrize("side", ["left", "right"])
@given(st.lists(st.integers(1, 8), min_size=2, max_size=5), st.integers(0, 15))
def test_pads_are_finite_and_what_stands_in_them_does_not_matter(side, lengths, pad):
    rows = padded_rows(lengths, side)
    ids = np.where(rows.prompt < 0, pad, 1 + rows.positions)
    logits = forward(TOY, ids, positions=rows.positions, mask=rows.mask)
    assert np.isfinite(logits).all()
    for i, length in enumerate(lengths):
        assert apart(logits[rows.of(i)], oracle(range(1, 1 + length))) < SAME


def test_a_batch_of_the_real_model(real_model64, tokenizer):
    batch = [tokenizer.encode(text) for text in ("Prefill", "The keys are cached", "One token more")]
    assert len({len(ids) for ids in batch}) > 1
    alone = [forward(real_model64, ids) for ids in batch]
    for together in (*(padded_batch(real_model64, batch, side) for side in ("left", "right")),
                     packed_batch(real_model64, batch)):  # fmt: skip
        assert max(map(apart, together, alone)) < REAL_SAME


@each_route
@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ([], "the batch is empty: give at least one prompt"),
        ([[1], []], "prompt 1 has no tokens: leave it out or give it one"),
        ([[1], [16]], "token id 16 is outside the vocabulary"),
        ([[1], [0.5]], "token ids are float64: expected integers"),
    ],
)
def test_what_is_no_batch_is_named(route, batch, message):
    with pytest.raises(ValueError, match=message) as error:
        ROUTES[route](batch)
    assert "\n" not in str(error.value)


def test_an_unknown_side_is_named():
    with pytest.raises(ValueError, match="side = 'top': expected"):
        padded_batch(TOY, PROMPTS, "top")


# broken on purpose: what the equalities above would show


def change_mask(monkeypatch, change):
    monkeypatch.setattr(Rows, "mask", property(change))


def causal(rows):
    return np.tri(len(rows.prompt), dtype=bool)


@each_route
def test_a_mask_without_blocks_shows(monkeypatch, route):
    change_mask(monkeypatch, lambda rows: causal(rows) & (rows.prompt >= 0))
    assert worst(route) > 0.01


def test_pads_that_are_read_show(monkeypatch):
    def lines_only(rows):
        line = np.arange(len(rows.prompt)) // 5  # five tokens are the longest prompt
        return causal(rows) & (line[:, None] == line)

    change_mask(monkeypatch, lines_only)
    assert worst("left") > 0.01
    assert worst("right") < SAME  # its pads stand after the prompt: causality hides them in prefill


@each_route
def test_a_mask_without_causality_shows(monkeypatch, route):
    change_mask(monkeypatch, lambda rows: (rows.prompt[:, None] == rows.prompt) & (rows.prompt >= 0))
    assert worst(route) > 0.01


def change_positions(monkeypatch, change):
    """Let each row's position be changed where rows are laid out: ``change(rows) -> positions``."""
    for name, lay_out in dict(packed_rows=packed_rows, padded_rows=padded_rows).items():

        def changed(*args, lay_out=lay_out):
            rows = lay_out(*args)
            return Rows(rows.prompt, change(rows))

        monkeypatch.setattr(f"prefill_decode.schedules.batches.{name}", changed)


@each_route
def test_positions_moved_within_a_prompt_show(monkeypatch, route):
    change_positions(monkeypatch, lambda rows: rows.positions + 3 * (rows.positions >= 2))
    assert worst(route) > 0.01


@each_route
def test_a_shift_of_a_whole_prompt_is_invisible(monkeypatch, route):
    """Rotary positions enter as differences only; a prompt alone in its block may start anywhere."""
    change_positions(monkeypatch, lambda rows: rows.positions + 7 * (rows.prompt + 1))
    assert worst(route) < SAME
    change_positions(monkeypatch, lambda rows: np.arange(len(rows.prompt)))  # counted on through the array
    assert worst(route) < SAME
