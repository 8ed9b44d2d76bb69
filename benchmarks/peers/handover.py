"""Weights and token ids as files, in the forms that the peers read: all of them compute with the same numbers."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
from gguf import GGUFWriter, LlamaFileType

from prefill_decode import smollm2
from prefill_decode.config import Config
from prefill_decode.model import Model


def hand_over(model: Model, ids: np.ndarray, folder: Path) -> None:
    """Write ``config.json``, ``ids.npy``, ``weights.npz`` (named as in ``Model``), ``weights`` and ``packed.gguf``."""
    (folder / "config.json").write_text(json.dumps(asdict(model.config)), "utf-8")
    np.save(folder / "ids.npy", ids)
    layers = {f"{i}.{name}": w for i, layer in enumerate(model.layers) for name, w in vars(layer).items()}
    np.savez(folder / "weights.npz", embedding=model.embedding, norm=model.norm, **layers)
    _write_gguf(model, folder / "weights.gguf")
    (folder / "packed.gguf").symlink_to(smollm2.weights_path())


def _write_gguf(model: Model, path: Path) -> None:
    c = model.config
    writer = GGUFWriter(path, "llama")
    writer.add_file_type(LlamaFileType.ALL_F32)
    writer.add_vocab_size(c.vocab_size)
    writer.add_tokenizer_model("no_vocab")  # it is given ids
    writer.add_context_length(c.n_ctx)
    writer.add_embedding_length(c.d_model)
    writer.add_block_count(c.n_layers)
    writer.add_feed_forward_length(c.d_ff)
    writer.add_head_count(c.n_heads)
    writer.add_head_count_kv(c.n_kv_heads)
    writer.add_rope_dimension_count(c.d_head)
    writer.add_rope_freq_base(c.rope_theta)
    writer.add_layer_norm_rms_eps(c.norm_eps)
    for name, w in _named_as_in_gguf(model).items():
        writer.add_tensor(f"{name}.weight", np.ascontiguousarray(w, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _named_as_in_gguf(model: Model) -> dict[str, np.ndarray]:
    named = {"token_embd": model.embedding, "output_norm": model.norm}
    for i, layer in enumerate(model.layers):
        q, k, v = split_qkv(layer.qkv, model.config)
        gate, up = np.split(layer.gate_up, 2)
        parts = {
            "attn_norm": layer.attention_norm,
            "attn_q": _join_pairs(q, model.config.n_heads),
            "attn_k": _join_pairs(k, model.config.n_kv_heads),
            "attn_v": v,
            "attn_output": layer.output,
            "ffn_norm": layer.ffn_norm,
            "ffn_gate": gate,
            "ffn_up": up,
            "ffn_down": layer.down,
        }
        named |= {f"blk.{i}.{name}": w for name, w in parts.items()}
    return named


def split_qkv(qkv: np.ndarray, config: Config) -> list[np.ndarray]:
    """Return the rows of queries, keys and values: [(h + 2 h_kv) d, D] -> [h d, D], [h_kv d, D], [h_kv d, D]."""
    rows = config.d_head * np.array([config.n_heads, config.n_heads + config.n_kv_heads])
    return np.split(qkv, rows)


def _join_pairs(w: np.ndarray, n_heads: int) -> np.ndarray:
    """Bring Q and K rows into GGUF's order: x_0, x_1, ..., x_{d/2}, ... of each head become x_0, x_{d/2}, x_1, ..."""
    halves = w.reshape(n_heads, 2, -1, w.shape[1])  # [heads, 2, d/2, D]
    return halves.swapaxes(1, 2).reshape(w.shape)  # [heads, d/2, 2, D] -> [heads d, D]
