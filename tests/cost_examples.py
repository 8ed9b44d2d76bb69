"""A few models and devices by hand: what the widgets of the costs are tested with."""

from prefill_decode.cost import Constants, Shape

LLAMA = Shape(4096, 32, 32, 8, 128, 14336, 128256, tied_head=False, vectors=65 * 4096)
SMOLLM2 = Shape(576, 30, 9, 3, 64, 1536, 49152, vectors=61 * 576)
GPT2 = Shape(768, 12, 12, 12, 64, 3072, 50257, mlp_matrices=2, vectors=12 * 13 * 768, positions=1024)
SHAPES = {"Llama-3-8B": LLAMA, "SmolLM2-135M": SMOLLM2, "GPT-2": GPT2}
DEVICES = {
    "H100 SXM": {"peak": 989.4e12, "bandwidth": 3.35e12, "memory": 80e9},
    "A100": {"peak": 312e12, "bandwidth": 2.039e12, "memory": 80e9, "float32_peak": 19.5e12},
    "Slow memory": {"peak": 2e12, "bandwidth": 0.05e12, "memory": 4e9, "float32_peak": 1e12},
    "Slow chip": {"peak": 0.3e12, "bandwidth": 0.4e12, "memory": 16e9, "float32_peak": None},
}
CONSTANTS = Constants(0.6, 0.75, 40e-6, 90e-6)
EACH = {name: Constants(0.5 + i / 10, 0.9 - i / 10, i * 1e-5, i * 3e-5) for i, name in enumerate(DEVICES)}
COUNTED = {"SmolLM2, float32": (SMOLLM2, "float32"), "Llama-3-8B, 16 bits": (LLAMA, "float16")}
