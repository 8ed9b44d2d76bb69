"""Names as people write them: of models, devices, dtypes, and how many devices there are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

COUNTS = (  # "8xH100", "8 H100", "H100 x8", "H100 (TP=8)"; "80 GB" is no count
    re.compile(r"^(?P<n>\d{1,4})\s*[xX×*]\s*(?=\S)"),
    re.compile(r"^(?P<n>\d{1,3})\s+(?!gb)(?=[a-z])", re.IGNORECASE),
    re.compile(r"\s*[xX×*]\s*(?P<n>\d{1,3})$"),
    re.compile(r"\(?\bTP\s*=?\s*(?P<n>\d{1,3})\)?", re.IGNORECASE),
)
MOST_DEVICES = 1024
NOTE = re.compile(r"\(([^)]*)\)\s*$")
CORES = re.compile(r"\(?(?<![\w.])(\d{1,2})[ -]?(?:core[ -]?gpu|gpu(?:[ -]?cores?)?|cores?)\)?", re.IGNORECASE)
# Words that say nothing about which device it is.
MAKERS = {
    "nvidia",
    "amd",
    "google",
    "apple",
    "intel",
    "geforce",
    "gpu",
    "cpu",
    "instinct",
    "tensor",
    "core",
    "generation",
}
FORMS = {"gb", "sxm", "pcie", "hbm", "gddr"}
FORM_NUMBER = re.compile(r"(sxm|hbm|gddr)\d+[ex]?")
# Words that say how a model was trained on, not what shape it has.
TRAINING = {"instruct", "chat", "it", "hf", "base", "meta", "distill"}
EXPERTS = re.compile(r"\d+x\d+(?:\.\d+)?b\b|-a\d+(?:\.\d+)?b\b|moe|mixtral|gpt-oss|dbrx|\bgrok", re.IGNORECASE)

BITS = {
    "f32": 32, "fp32": 32, "float32": 32, "f16": 16, "fp16": 16, "float16": 16, "half": 16, "bf16": 16, "bfloat16": 16,
    "fp8": 8, "float8": 8, "e4m3": 8, "w8a8": 8, "w8a16": 8, "q8_0": 8.5, "q6_k": 6.56, "q5_k_m": 5.7, "q5_k_s": 5.5,
    "q4_k_m": 4.9, "q4_k_s": 4.6, "q4_0": 4.5, "q4_1": 5.0, "iq4_xs": 4.3, "q3_k_m": 3.9, "q2_k": 3.35, "w4a16": 4.25,
    "awq": 4.25, "gptq": 4.25, "int4g32": 5.0, "nf4": 4.5, "fp4": 4.5, "nvfp4": 4.5, "mxfp4": 4.25,
}  # fmt: skip
PATTERNS = (  # bits a weight, scales of its groups included, where no table can hold every spelling
    (re.compile(r"(\d+(?:\.\d+)?)bpw"), 0.0),
    (re.compile(r"^(?:awq|gptq)?-?(?:int|w|u)([2-8])(?:wo)?(?:-?g?\d+)*$"), 0.25),
    (re.compile(r"^(?:awq-?|gptq-?)?([2-8])[ -]?bits?$"), 0.25),
    (re.compile(r"^i?q([2-8])(?:f16)?(?:_\w+)?$"), 0.6),
    (re.compile(r"^(?:float|int|fp)([48])\w*$"), 0.0),
)


class Named(Protocol):
    """What has a name and other names."""

    name: str
    aliases: tuple[str, ...]


Entry = TypeVar("Entry", bound=Named)


def bits_of(word: str) -> float | None:
    """Return the bits that a weight takes in a format named by one word, or None if it names none."""
    word = word.strip("()[]").lower()
    if word in BITS:
        return BITS[word]
    for pattern, scales in PATTERNS:
        if found := pattern.search(word):
            return float(found[1]) + (scales if float(found[1]) < 8 else 0)
    return None


def split_model(text: str) -> tuple[str, str]:
    """Split "Llama-2-7B fp16" into the model and the word for its dtype; "Llama-2-7B-fp16" is understood too."""
    text = re.sub(r"\s+-\s+(?:small|medium|large)$", "", text.strip(), flags=re.IGNORECASE)  # "Q4_K - Medium"
    name, _, word = text.rpartition(" ")
    if name:
        return name.strip(), word
    for cut in (m.start() for m in re.finditer(r"[-_]", text)):
        if cut and bits_of(text[cut + 1 :]) is not None:
            return text[:cut], text[cut + 1 :]
    return text, ""


def read_hardware(text: str) -> tuple[int, str, str]:
    """Split ``[Nx]device[(note)]`` into the number of devices, the device and the note."""
    rest, count = text.strip(), 1
    for pattern in COUNTS:
        if found := pattern.search(rest):
            count = int(found["n"])
            rest = (rest[: found.start()] + rest[found.end() :]).strip()
            break
    if not 1 <= count <= MOST_DEVICES:
        raise ValueError(f"hardware {text!r}: expected 1 to {MOST_DEVICES:,} devices")
    note = NOTE.search(rest)
    return count, NOTE.sub("", rest).strip(), note[1] if note else ""


def read_cores(hardware: str) -> int | None:
    """Read the GPU cores of an Apple chip: "(10gpu)", "(40-core GPU)", "30 GPU cores"."""
    found = CORES.search(hardware)
    return int(found[1]) if found else None


def without_cores(hardware: str) -> str:
    """Return a name without the number of its cores."""
    return CORES.sub("", hardware).strip()


def is_mixture_of_experts(name: str) -> bool:
    """Say whether a name is that of a model whose passes read only some of its weights."""
    return bool(EXPERTS.search(name))


def find(name: str, known: Mapping[str, Entry], what: str) -> Entry:
    """Return the entry of a name in any spelling, with or without its publisher and the words of its training."""
    for spelling in (name, re.sub(r"^[\w-]+/", "", name), re.sub(r"[-_]v\d+(?:\.\d+)?$", "", name.split("/")[-1])):
        for ignored in (set(), TRAINING):
            wanted = _words(spelling) - ignored
            for entry in known.values():
                if any(_words(other) - ignored == wanted for other in (entry.name, *entry.aliases)):
                    return entry
    raise _unknown(name, known, what)


def find_close(name: str, known: Mapping[str, Entry]) -> Entry:
    """Return the device whose every word is in the name, if what else is there says only its make, form or memory."""
    wanted = _device_words(name)
    fitting = []
    for entry in known.values():
        says_nothing = FORMS | {str(round((entry.memory or 0) / 1e9))}
        for other in (entry.name, *entry.aliases):
            words = _device_words(other)
            if words and words <= wanted and wanted - words <= says_nothing:
                fitting.append((len(words), entry))
    if not fitting:
        raise _unknown(name, known, "device")
    return max(fitting, key=lambda pair: pair[0])[1]


def _words(name: str) -> frozenset[str]:
    """Return a name's runs of letters and numbers: "Llama-3.1-8B" and "llama 3.1 8b" have the same."""
    return frozenset(re.findall(r"[a-z]+|\d+(?:\.\d+)?", name.lower()))


def _device_words(name: str) -> frozenset[str]:
    """Return the words of a device without its maker and the generation of its socket or memory."""
    return _words(FORM_NUMBER.sub(r"\1", name.lower())) - MAKERS


def _unknown(name: str, known: Iterable[str], what: str) -> ValueError:
    return ValueError(f"unknown {what} {name!r}: expected one of {', '.join(known)}")
