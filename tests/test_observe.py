"""What is shown of a phrase is what the model computed for it."""

import numpy as np
import pytest

from prefill_decode.generate import generate
from prefill_decode.model import forward
from prefill_decode.observe import head_measures, likeliest, notable_heads, observe


def test_rows_tokens_and_probabilities(toy_model, toy_tokenizer):
    seen = observe(toy_model, toy_tokenizer, "the old cat", 4)
    ids = generate(toy_model, [1, 9, 3], 4).ids
    assert seen.tokens == toy_tokenizer.tokens(ids)
    assert seen.prompt_len == 3
    assert seen.weights.shape == seen.scores.shape == (2, 4, 6, 6)
    assert (seen.weights[..., ~np.tri(6, dtype=bool)] == 0).all()
    np.testing.assert_allclose(seen.weights.sum(axis=-1), 1, atol=1e-14)
    np.testing.assert_allclose(np.exp(seen.scores) / np.exp(seen.scores).sum(-1, keepdims=True), seen.weights)
    assert len(seen.next_tokens) == 6
    assert [row[0][0] for row in seen.next_tokens[2:]] == seen.tokens[3:]
    assert seen.kv_bytes_per_token == 2 * 2 * 2 * 4 * 4
    logits = forward(toy_model, ids[:-1])
    p = np.exp(logits[-1]) / np.exp(logits[-1]).sum()
    assert seen.next_tokens[-1][0][1] == pytest.approx(p.max())


def test_likeliest_are_sorted(toy_tokenizer):
    told = likeliest(np.log(np.array([1, 2, 3, 4] + [0.5] * 12)), toy_tokenizer, 3)
    assert [name for name, _ in told] == ["cat", "a", "the"]
    assert [p for _, p in told] == pytest.approx([4 / 16, 3 / 16, 2 / 16])


def test_measures_of_heads_that_are_known():
    weights = np.zeros((1, 4, 3, 3))
    weights[0, :, 0, 0] = 1
    weights[0, 0, 1:, 0] = 1  # all on the first
    weights[0, 1, [1, 2], [1, 2]] = 1  # all on itself
    weights[0, 2, [1, 2], [0, 1]] = 1  # all on the one before
    weights[0, 3, 1, :2] = 1 / 2
    weights[0, 3, 2, :2] = [1 / 4, 3 / 4]
    measures = head_measures(weights)
    assert measures["first"][0].tolist() == [1, 0, 0.5, 0.375]
    assert measures["itself"][0].tolist() == [0, 1, 0, 0.25]
    assert measures["previous"][0].tolist() == [0.5, 0, 1, 0.625]
    assert measures["entropy"][0, :3].tolist() == [0, 0, 0]
    assert measures["entropy"][0, 3] == pytest.approx((1 + 0.811278) / 2, abs=1e-6)
    assert notable_heads(weights) == {
        (0, 2): "previous token (1.00)",
        (0, 1): "itself (1.00)",
        (0, 3): "broad (0.91 bits)",
        (0, 0): "first-token sink (1.00)",
    }


def test_the_heads_that_the_chapter_names(real_model64, tokenizer):
    seen = observe(real_model64, tokenizer, "The capital of France is", 5)
    measures = head_measures(seen.weights)
    assert seen.tokens[5:] == [" Paris", ".", "\n", "\n", "The"]
    assert round(measures["previous"][16, 0], 2) == 0.80
    assert round(seen.weights[23, 4, 4, 3], 2) == 0.90
    assert round(measures["first"].mean(), 2) == 0.69
    assert {(16, 0), (11, 6), (18, 8)} <= set(notable_heads(seen.weights))
