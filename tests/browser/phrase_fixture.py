"""A model of 20 kB in a file of the same kind, so that what goes wrong with a file can be tried in no time."""

import hashlib
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFValueType, GGUFWriter, quantize
from widget_page import page_of

from prefill_decode import smollm2
from prefill_decode.widgets import YourPhrase

PLACE = f"/model/{smollm2.FILE}"  # on a host, as on the site
LAYERS, HEADS, KV_HEADS, D_HEAD, D_MODEL, D_FF = 2, 2, 1, 16, 32, 32
SHAPES = {
    "attn_q": (HEADS * D_HEAD, D_MODEL), "attn_k": (KV_HEADS * D_HEAD, D_MODEL), "attn_v": (KV_HEADS * D_HEAD, D_MODEL),
    "attn_output": (D_MODEL, HEADS * D_HEAD), "ffn_gate": (D_FF, D_MODEL), "ffn_up": (D_FF, D_MODEL),
    "ffn_down": (D_MODEL, D_FF), "attn_norm": (D_MODEL,), "ffn_norm": (D_MODEL,),
}  # fmt: skip


def written(path: Path, fields: dict, tensors: dict[str, tuple], alignment: int = 32) -> bytes:
    """Write a GGUF file of `fields` (value, type) and `tensors` (array, packing), and return its bytes."""
    writer = GGUFWriter(path, "llama")
    writer.add_custom_alignment(alignment)
    for name, (value, kind) in fields.items():
        writer.add_key_value(name, value, kind)
    for name, (array, packing) in tensors.items():
        writer.add_tensor(name, array, raw_dtype=packing)
    for write in (
        writer.write_header_to_file,
        writer.write_kv_data_to_file,
        writer.write_tensors_to_file,
        writer.close,
    ):
        write()
    return path.read_bytes()


def tiny_model(path: Path) -> bytes:
    """Return the file of a decoder of two small layers, whose vocabulary is the bytes, “ab” and one special token."""
    chance = np.random.default_rng(7)
    tokens = [*sorted(smollm2._byte_of_char()), "ab", "<|im_end|>"]
    sizes = {
        "block_count": LAYERS, "embedding_length": D_MODEL, "attention.head_count": HEADS,
        "attention.head_count_kv": KV_HEADS, "rope.dimension_count": D_HEAD, "feed_forward_length": D_FF,
        "vocab_size": len(tokens), "context_length": 128,
    }  # fmt: skip
    kind = GGUFValueType
    fields = {
        **{f"llama.{name}": (size, kind.UINT32) for name, size in sizes.items()},
        "llama.rope.freq_base": (1e4, kind.FLOAT32),
        "llama.attention.layer_norm_rms_epsilon": (1e-5, kind.FLOAT32),
        "tokenizer.ggml.tokens": (tokens, kind.ARRAY),
        "tokenizer.ggml.token_type": ([1] * 257 + [smollm2.CONTROL], kind.ARRAY),
        "tokenizer.ggml.merges": (["a b"], kind.ARRAY),
    }

    def tensor(shape: tuple[int, ...]) -> tuple:
        if len(shape) == 1:
            return np.ones(shape, np.float32), None
        packing = GGMLQuantizationType.Q8_0
        return quantize(chance.normal(size=shape).astype(np.float32), packing), packing

    names = {f"blk.{i}.{name}.weight": shape for i in range(LAYERS) for name, shape in SHAPES.items()}
    names |= {"token_embd.weight": (len(tokens), D_MODEL), "output_norm.weight": (D_MODEL,)}
    return written(path, fields, {name: tensor(shape) for name, shape in names.items()})


def for_file(page: str, file: bytes) -> str:
    """Return a page whose widget expects this file instead of the real one."""
    return changed(
        page, {smollm2.SHA256: hashlib.sha256(file).hexdigest(), f'"size":{smollm2.FILE_BYTES}': f'"size":{len(file)}'}
    )


def changed(page: str, changes: dict[str, str]) -> str:
    """Return a page with texts replaced, each of which must be there."""
    for old, new in changes.items():
        assert old in page, old
        page = page.replace(old, new)
    return page


def small_page(file: bytes, changes: dict[str, str] | None = None, *, model: str = PLACE) -> str:
    """Return a page that holds the widget alone, for this file."""
    page = page_of(YourPhrase("ab c", 3), head='<link rel="icon" href="data:,">')
    return changed(for_file(page, file), {'data-model=""': f'data-model="{model}"', **(changes or {})})
