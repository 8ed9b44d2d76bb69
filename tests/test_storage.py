"""What smaller storage costs, on the toy: exact storage changes nothing, every number against a plain loop."""

import numpy as np
import pytest
from schedule_examples import TOY

from prefill_decode.cache import KVCache
from prefill_decode.compression import QuantizedKVCache, WindowKVCache
from prefill_decode.generate import generate
from prefill_decode.model import forward
from prefill_decode.sampling import softmax
from prefill_decode.storage import TEXT, compare_storage

IDS = [1, 9, 3, 13, 8, 2, 4, 5, 7, 7, 1, 3, 6, 2]
C = TOY.config


def two_bits():
    return QuantizedKVCache(C, np.float64, bits=2, group=4, residual=0)


@pytest.fixture(scope="module")
def rows():
    caches = {
        "same": lambda: KVCache(C, 32, np.float64),
        "2 bits": two_bits,
        "window": lambda: WindowKVCache(C, 6, np.float64),
    }
    return {row.name: row for row in compare_storage(TOY, IDS, caches, chunk=3, new_tokens=5)}


def test_exact_storage_comes_first_and_changes_nothing(rows):
    assert list(rows) == ["exact", "same", "2 bits", "window"]
    for name in ("exact", "same"):
        assert (rows[name].largest, rows[name].mean, rows[name].common) == (0, 0, 5)
    assert rows["exact"].text == generate(TOY, IDS, 5).new_ids
    assert rows["exact"].bytes_per_token == 2 * 2 * 2 * 4 * 8


def test_perplexity_by_a_plain_loop(rows):
    logits = forward(TOY, IDS)
    surprises = [-np.log(softmax(row)[token]) for row, token in zip(logits[:-1], IDS[1:], strict=True)]
    assert rows["exact"].perplexity == pytest.approx(np.exp(np.mean(surprises)), rel=1e-12)


def test_changes_by_a_plain_loop(rows):
    cache, off = two_bits(), []
    exact = forward(TOY, IDS[:-1])
    for start in range(0, 13, 3):
        end = min(start + 3, 13)
        off += [np.abs(forward(TOY, IDS[start:end], cache) - exact[start:end])]
    assert rows["2 bits"].largest == pytest.approx(max(part.max() for part in off), rel=1e-9)
    assert rows["2 bits"].mean == pytest.approx(np.concatenate(off).mean(), rel=1e-9)
    assert rows["2 bits"].bytes_per_token == cache.nbytes / 13
    assert rows["2 bits"].text == generate(TOY, IDS, 5, cache=cache).new_ids


def test_what_is_alike_is_a_common_beginning(rows):
    exact, window = rows["exact"].text, rows["window"].text
    common = rows["window"].common
    assert exact[:common] == window[:common]
    assert common == 5 or exact[common] != window[common]


def test_the_text_is_several_hundred_tokens(tokenizer):
    assert 200 < len(tokenizer.encode(TEXT)) < 400


def test_on_the_real_model_fewer_bits_change_more(real_model64, tokenizer):
    ids, config = tokenizer.encode(TEXT)[:50], real_model64.config
    caches = {
        f"{bits}, {keys_per}": lambda bits=bits, keys_per=keys_per: QuantizedKVCache(
            config, np.float64, bits=bits, group=16, residual=0, keys_per=keys_per
        )
        for bits, keys_per in ((8, "channel"), (2, "channel"), (2, "token"))
    }
    exact, eight, two, token = compare_storage(real_model64, ids, caches, chunk=16, new_tokens=1)
    assert exact.mean == 0 < eight.mean < two.mean < token.mean
    assert eight.common == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (dict(chunk=0), "chunk = 0: expected a whole number of at least 1"),
        (dict(chunk=-1), "chunk = -1"),
        (dict(chunk=1.5), "chunk = 1.5"),
        (dict(new_tokens=0), "max_new_tokens = 0"),
        (dict(ids=[]), "there is no token to run"),
        (dict(ids=[1]), "the text has 1 id: expected at least 2"),
        (dict(ids=[1, 16]), "token id 16 is outside the vocabulary"),
        (dict(caches={"exact": two_bits}), 'a cache is called "exact", as exact storage is: give it another name'),
    ],
)
def test_what_cannot_be_compared_is_named_before_anything_runs(changed, message, monkeypatch):
    monkeypatch.setattr("prefill_decode.storage.forward", lambda *_: pytest.fail("it ran"))
    given = dict(ids=IDS, caches={"2 bits": two_bits}, chunk=3, new_tokens=2) | changed
    with pytest.raises(ValueError, match=message) as error:
        compare_storage(TOY, given.pop("ids"), given.pop("caches"), **given)
    assert "\n" not in str(error.value)
