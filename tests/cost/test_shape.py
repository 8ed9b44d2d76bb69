"""The sizes of a model, and what they say about its memory."""

import numpy as np
import pytest

from prefill_decode.cost import Shape, known

LLAMA_3_8B = Shape(4096, 32, 32, 8, 128, 14336, 128256, tied_head=False, vectors=65 * 4096)


def test_parameters_of_both_decoders_are_counted_exactly(toy_model, real_model):
    for model in (toy_model, real_model):
        assert Shape.of(model.config).params == model.n_params


def test_a_head_of_its_own_adds_one_matrix_that_no_pass_reads():
    assert LLAMA_3_8B.params == 8_030_261_248  # litgpt's count
    assert LLAMA_3_8B.params - LLAMA_3_8B.params_read == 128256 * 4096


def test_cache_of_llama_3_8b_at_8192_tokens_is_one_gib():
    assert LLAMA_3_8B.kv_bytes(8192, "float16") == 2**30


def test_cache_of_64_heads_without_grouping_at_32k_tokens_is_85_9_gb():
    whole = Shape(8192, 80, 64, 64, 128, 28672, 32000)
    assert whole.kv_bytes(32 * 1024) == 2 * 80 * 64 * 128 * 2 * 32768
    assert round(whole.kv_bytes(32 * 1024) / 1e9, 1) == 85.9


@pytest.mark.parametrize(
    ("dtype", "weights", "cache"), [("float32", 4, 4), ("float16", 2, 2), ("int8", 1, 2), ("int4", 0.5, 2)]
)
def test_integer_formats_pack_weights_only(dtype, weights, cache):
    assert LLAMA_3_8B.weight_bytes(dtype) == weights * LLAMA_3_8B.params
    assert LLAMA_3_8B.kv_bytes(3, dtype) == cache * 3 * 2 * 32 * 8 * 128


def test_a_numpy_dtype_means_the_same_as_its_name():
    for dtype in (np.float32, np.dtype("float32"), "float32"):
        assert LLAMA_3_8B.kv_bytes(5, dtype) == LLAMA_3_8B.kv_bytes(5, "float32")


def test_latent_cache_of_deepseek_v2():
    shape = known.find_model("DeepSeek-V2").shape
    assert shape.kv_bytes(1) == 576 * 60 * 2 == 69_120
    with pytest.raises(ValueError, match="for its cache alone"):
        shape.weight_bytes()


def test_a_started_byte_counts_whole():
    assert Shape(3, 1, 1, 1, 1, 1, 1).weight_bytes("int4") == -(-Shape(3, 1, 1, 1, 1, 1, 1).params // 2)


def test_a_scaled_shape_has_about_the_parameters_asked_for():
    for params in (2e9, 3e10, 4e11):
        assert LLAMA_3_8B.scaled(params).params == pytest.approx(params, rel=0.1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"layers": 0}, "layers = 0: expected at least 1"),
        ({"kv_heads": 3}, "4 query heads cannot share 3 KV heads: give a multiple"),
        ({"mlp_matrices": 4}, r"mlp_matrices = 4: expected 2 \(up, down\) or 3"),
    ],
)
def test_a_shape_that_cannot_be_is_one_line(changed, message):
    with pytest.raises(ValueError, match=message):
        Shape(**{**dict(d_model=8, layers=2, heads=4, kv_heads=2, d_head=2, d_ff=16, vocab=10), **changed})


def test_unknown_dtype_lists_the_known_ones():
    with pytest.raises(ValueError, match="unknown dtype 'float17': expected one of float64, float32, float16"):
        LLAMA_3_8B.kv_bytes(1, "float17")


def test_the_real_model_is_known_by_name_too(real_model):
    assert known.find_model("SmolLM2-135M").shape == Shape.of(real_model.config)
