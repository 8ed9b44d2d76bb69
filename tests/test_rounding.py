"""Sixteen bits, emulated: the right numbers, and the noise that engines show."""

import dataclasses

import numpy as np
import pytest

from prefill_decode import rounding
from prefill_decode.cache import KVCache
from prefill_decode.model import decode_step, forward


@pytest.mark.parametrize(
    ("number", "nearest"),
    [
        (1.0, 1.0),
        (1 + 2**-8, 1.0),  # halfway, to the even neighbour
        (1 + 3 * 2**-8, 1 + 2**-6),  # halfway, to the even neighbour above
        (1 + 2**-8 + 2**-20, 1 + 2**-7),
        (-3.14159, -3.140625),
    ],
)
def test_bfloat16_rounds_to_nearest_even(number, nearest):
    assert rounding.bfloat16(np.array([number], np.float32))[0] == pytest.approx(nearest, rel=1e-6)


def test_bfloat16_keeps_eight_bits_of_every_number():
    x = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    rounded = rounding.bfloat16(x)
    assert (rounded.view(np.uint32) & 0xFFFF == 0).all()
    assert (np.abs(rounded - x) <= np.abs(x) * 2**-8).all()


def test_float16_is_numpys_own_rounding():
    x = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    np.testing.assert_array_equal(rounding.float16(x), x.astype(np.float16))
    assert rounding.float16(x).dtype == np.float32


@pytest.mark.parametrize(("name", "least", "most"), [("float16", 1e-3, 0.2), ("bfloat16", 1e-2, 1.5)])
def test_cached_and_uncached_differ_by_the_noise_of_sixteen_bits(real_model, tokenizer, name, least, most):
    model = dataclasses.replace(real_model, rounded=getattr(rounding, name))
    ids = tokenizer.encode("The capital of France is Paris.")
    cache = KVCache(model.config, len(ids), model.dtype)
    rows = [forward(model, ids[:3], cache)] + [decode_step(model, token, cache)[None] for token in ids[3:]]
    assert least < np.abs(np.concatenate(rows) - forward(model, ids)).max() < most


def test_the_exact_arithmetic_is_the_default(toy_model):
    assert toy_model.rounded is rounding.exact
    coarse = dataclasses.replace(toy_model, rounded=lambda x: np.round(x, 2))
    assert np.abs(forward(coarse, [1, 9, 3]) - forward(toy_model, [1, 9, 3])).max() > 1e-3
