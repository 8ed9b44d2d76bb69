"""transformers on the CPU as a worker: its own Llama classes, its default attention and cache."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import torch
import transformers
from serve import Decoder, serve
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

PROJECTIONS = {"output": "self_attn.o_proj", "down": "mlp.down_proj"}
NORMS = {"attention_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}


class Transformers(Decoder):
    """A ``LlamaForCausalLM`` whose configuration is built by hand and whose weights are handed over."""

    def __init__(self, folder: Path) -> None:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        torch.set_grad_enabled(False)
        told = json.loads((folder / "config.json").read_text("utf-8"))
        self._model = LlamaForCausalLM(_config(told)).eval()
        state = _state(np.load(folder / "weights.npz"), told)
        self._model.load_state_dict({name: torch.from_numpy(np.ascontiguousarray(w)) for name, w in state.items()})
        attention = self._model.config._attn_implementation
        self.name = f"transformers {transformers.__version__}, torch {torch.__version__}, {attention}"

    def prefill(self, ids: np.ndarray) -> np.ndarray:
        """Run a prompt into a new cache."""
        self._cache = DynamicCache()
        return self._run(torch.from_numpy(ids)[None])

    def keep(self, n: int) -> None:
        """Forget all but the first ``n`` entries."""
        self._cache.crop(n)

    def step(self, token: int) -> np.ndarray:
        """Run one more token."""
        return self._run(torch.tensor([[token]]))

    def _run(self, ids: torch.Tensor) -> np.ndarray:
        out = self._model(ids, past_key_values=self._cache, use_cache=True, logits_to_keep=1)
        return out.logits[0, -1].numpy()


def _config(told: dict) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=told["vocab_size"],
        hidden_size=told["d_model"],
        intermediate_size=told["d_ff"],
        num_hidden_layers=told["n_layers"],
        num_attention_heads=told["n_heads"],
        num_key_value_heads=told["n_kv_heads"],
        head_dim=told["d_head"],
        rope_theta=told["rope_theta"],
        rms_norm_eps=told["norm_eps"],
        max_position_embeddings=told["n_ctx"],
        tie_word_embeddings=True,
    )


def _state(w: dict[str, np.ndarray], told: dict) -> dict[str, np.ndarray]:
    """Return the weights by the names that the class has for them; gate and up, and q, k and v, are apart in it."""
    state = {
        "model.embed_tokens.weight": w["embedding"],
        "lm_head.weight": w["embedding"],
        "model.norm.weight": w["norm"],
    }
    queries, keys = told["d_head"] * told["n_heads"], told["d_head"] * told["n_kv_heads"]
    for i in range(told["n_layers"]):
        layer = {name: w[f"{i}.{ours}"] for ours, name in (PROJECTIONS | NORMS).items()}
        qkv = np.split(w[f"{i}.qkv"], [queries, queries + keys])
        layer |= {f"self_attn.{name}_proj": part for name, part in zip("qkv", qkv, strict=True)}
        gate_up = np.split(w[f"{i}.gate_up"], 2)
        layer |= {f"mlp.{name}_proj": part for name, part in zip(("gate", "up"), gate_up, strict=True)}
        state |= {f"model.layers.{i}.{name}.weight": part for name, part in layer.items()}
    return state


if __name__ == "__main__":
    serve(Transformers)
