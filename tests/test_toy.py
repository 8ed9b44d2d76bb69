"""The toy: the same bits everywhere, and words it does not know."""

import numpy as np
import pytest

from prefill_decode import toy


def test_the_weights_are_the_same_on_every_machine(toy_model):
    assert toy_model.fingerprint() == toy.load()[0].fingerprint()
    assert toy_model.fingerprint()[:16] == "32a265ecd1941c9d"
    for array in toy_model.arrays():
        np.testing.assert_array_equal(array * 64, np.round(array * 64))


def test_words(toy_tokenizer):
    ids = toy_tokenizer.encode("the  old\ncat .")
    assert ids == [1, 9, 3, 15]
    assert toy_tokenizer.decode(ids) == "the old cat ."
    assert toy_tokenizer.tokens(ids) == ["the", "old", "cat", "."]
    assert len(toy.WORDS) == len(set(toy.WORDS)) == toy.CONFIG.vocab_size


def test_unknown_words_are_named_with_the_known_ones(toy_tokenizer):
    with pytest.raises(ValueError, match="the toy does not know 'zebra': its words are <stop> the a cat"):
        toy_tokenizer.encode("the zebra")


def test_no_chat(toy_tokenizer):
    with pytest.raises(ValueError, match="the toy has no chat template"):
        toy_tokenizer.chat("the cat")
