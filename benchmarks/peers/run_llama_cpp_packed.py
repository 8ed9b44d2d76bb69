"""llama.cpp on the weights as they were published: packed, and unpacked by its kernels on the way."""

from __future__ import annotations

from run_llama_cpp import LlamaCpp
from serve import serve


class PackedLlamaCpp(LlamaCpp):
    """The same engine on the packed file; its logits are other ones, since it rounds activations too."""

    name = f"{LlamaCpp.name}, packed weights"
    file = "packed.gguf"


if __name__ == "__main__":
    serve(PackedLlamaCpp)
