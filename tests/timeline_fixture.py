"""A small `PassTimeline` of round numbers, and the simulations it shows."""

from prefill_decode.cost import Constants, Machine, Request, Shape, Simulation, simulate
from prefill_decode.widgets import PassTimeline

LLAMA = Shape(4096, 32, 32, 8, 128, 14336, 128256, tied_head=False, vectors=65 * 4096)
H100 = Machine(989.4e12, 3.35e12)
REACHED = Constants(0.6, 0.7, overhead=20e-6, prefill_overhead=20e-6)
REQUESTS = (Request(0, 512, 110), Request(0.02, 1024, 110), Request(0.1, 8192, 20))
CHUNKS = (None, 2048, 512, 128)
TOKENS = ["The", " cat", " sat", " on", " a", " mat"]
PROMPT, LAYERS, STEPS = 3, 4, 3 * (4 + 1)


def runs(chunks=CHUNKS, requests=REQUESTS) -> list[Simulation]:
    """Simulate the same requests once a size of chunk."""
    return [simulate(LLAMA, H100, REACHED, requests, chunk=chunk) for chunk in chunks]


def timeline(**options: object) -> PassTimeline:
    """Return a timeline whose TTFT is 4 · 3 + 1 = 13 ms and whose TPOT is 4 · 2 + 1 = 9 ms."""
    given = dict(
        tokens=TOKENS,
        prompt_len=PROMPT,
        layers=LAYERS,
        prefill_layer_ms=3,
        decode_layer_ms=2,
        choose_ms=1,
        slow_layer=1,
        slow_factor=4,
        source="Round numbers",
        stall_source="Simulated: Llama-3-8B on one H100",
    )
    if "stall" not in options:
        given["stall"] = runs()
    return PassTimeline(**{**given, **options})
