"""llama.cpp on the CPU as a worker: weights and cache in float32, the rest as it comes."""

from __future__ import annotations

import os
from pathlib import Path

import llama_cpp
import numpy as np
from serve import Decoder, serve


class LlamaCpp(Decoder):
    """A ``llama_cpp.Llama`` that reads the float32 GGUF file."""

    name = f"llama.cpp (llama-cpp-python {llama_cpp.__version__})"
    file = "weights.gguf"

    def __init__(self, folder: Path) -> None:
        threads = int(os.environ["OMP_NUM_THREADS"])
        self._llama = llama_cpp.Llama(
            str(folder / self.file),
            n_ctx=len(np.load(folder / "ids.npy")),
            n_batch=2048,  # llama.cpp's own default; its Python package has less
            n_threads=threads,
            n_threads_batch=threads,
            type_k=llama_cpp.GGML_TYPE_F32,
            type_v=llama_cpp.GGML_TYPE_F32,
            verbose=False,
        )

    def prefill(self, ids: np.ndarray) -> np.ndarray:
        """Run a prompt into an empty cache."""
        self.keep(0)
        return self._run(ids.tolist())

    def keep(self, n: int) -> None:
        """Forget all but the first ``n`` entries: the next pass overwrites them."""
        self._llama.n_tokens = n

    def step(self, token: int) -> np.ndarray:
        """Run one more token."""
        return self._run([token])

    def _run(self, ids: list[int]) -> np.ndarray:
        self._llama.eval(ids)
        logits = llama_cpp.llama_get_logits_ith(self._llama.ctx, -1)  # waits for them
        return np.ctypeslib.as_array(logits, shape=(self._llama.n_vocab(),)).copy()


if __name__ == "__main__":
    serve(LlamaCpp)
