"""Which constants apply: those of a source that was seen, else those of its class of engine and device."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from functools import cache
from pathlib import Path

from .latency import Constants

FITTED = Path(__file__).parent / "constants.json"
COMPILED = "compiled engine"  # CUDA graphs, fused kernels: what serves in production, and gpt-fast
# Words of a source's name that tell the engine; the one that comes first counts.
ENGINES = {
    COMPILED: r"vllm|tensorrt|trt-llm|sglang|lmdeploy|turbomind|\btgi\b|text-generation-inference|gpt-fast|exllama|mlc"
    r"|fastertransformer|torchao|autoawq",
    "llama.cpp": r"llama\.?cpp|llama-bench|ggml|gguf|ollama|koboldcpp|lm studio|gpu-benchmarks-on-llm",
    "eager engine": r"transformers|hugging ?face|bitsandbytes|accelerate|eager|deepspeed-zero|optimum",
}
GGUF_WORD = re.compile(r"i?q\d_", re.IGNORECASE)
# Kinds of devices that are not in the data. What memory a GPU has tells more of what an engine reaches than its price.
KINDS = {
    "Apple silicon": r"\bapple|^m[1-9](?:$|[^a-z0-9]|pro|max|ultra)",
    "TPU": r"\btpu|^v[4-6][ep]?\b",
    "CPU": r"\bcpu|epyc|xeon|ryzen|graviton|threadripper|core[ -]i\d",
    "AMD GPU with HBM": r"\bmi\d{2,3}|instinct",
    "GPU with GDDR": r"rtx|gtx|radeon|\brx|geforce|titan|\barc|quadro|\bt4|\bl4|\ba(?:2|10|16|30|40)g?\b|\ba\d000",
}
HBM = "GPU with HBM"
ALL_ROWS = "all rows"


def engine_of(source: str, dtype_word: str) -> str:
    """Return the kind of engine that a source's name tells, or that spells its dtypes so."""
    found = {engine: re.search(words, source, re.IGNORECASE) for engine, words in ENGINES.items()}
    told = {match.start(): engine for engine, match in found.items() if match}
    if told:
        return told[min(told)]
    return "llama.cpp" if dtype_word == "F16" or GGUF_WORD.match(dtype_word) else COMPILED


def kind_of(device: str) -> str:
    """Return the kind of a device that is not in the data, from its name."""
    return next((kind for kind, words in KINDS.items() if re.search(words, device, re.IGNORECASE)), HBM)


def class_of(source: str, dtype_word: str, kind: str) -> str:
    """Return the class of engine and device, such as "llama.cpp on Apple silicon"."""
    return f"{engine_of(source, dtype_word)} on {kind}"


def constants_of(source: str, device_class: str) -> Constants:
    """Return what applies to a row, most specific first: its source, its class, its engine, its device, all rows."""
    told = fitted()
    if device_class in told["sources"].get(source, {}):
        return Constants(**told["sources"][source][device_class])
    return class_constants(device_class)


def class_constants(device_class: str) -> Constants:
    """Return the constants of a class, or of the nearest one that has any."""
    told = fitted()
    return Constants(**told["classes"].get(class_with_constants(device_class), told["all"]))


def class_with_constants(device_class: str) -> str:
    """Return the class whose constants apply to a class: itself, or the nearest one that has any, or "all rows"."""
    return nearest(device_class, fitted()["classes"])


def nearest(device_class: str, classes: Collection[str]) -> str:
    """Return the class itself if it is there, else one of its engine, else of its kind of device, else "all rows"."""
    engine, _, kind = device_class.partition(" on ")
    by_engine = [name for name in classes if name.startswith(f"{engine} on ")]
    by_kind = [name for name in classes if name.endswith(f" on {kind}")]
    names = [device_class, f"{engine} on {HBM}", *by_engine, *by_kind]
    return next((name for name in names if name in classes), ALL_ROWS)


@cache
def fitted() -> dict:
    """Return what ``fit`` wrote: constants by source and class, by class, and of all rows."""
    return json.loads(FITTED.read_text("utf-8"))
