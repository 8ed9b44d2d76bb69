"""What notebook 06 measures on its text with SmolLM2, so that a test need not run the model."""

from prefill_decode.storage import Stored
from prefill_decode.widgets import CacheCompressor

EXACT = [" She", " said", " to", " the", " keeper", ":", ' "', "I", " have", " a"]
# Bytes a token, largest and mean change, perplexity, tokens in common; then the tokens that differ.
MEASURED = {
    "exact": (92160, 0.0, 0.0, 30.8, 10, []),
    "float16": (23040, 0.03, 0.002, 30.8, 10, []),
    "8 bits": (15009, 0.2, 0.008, 30.8, 10, []),
    "4 bits": (10421, 5.8, 0.165, 30.6, 10, []),
    "2 bits": (8126, 8.8, 0.652, 33.2, 2, [" that", " the", " same", " story", " could", " be", " told", " to"]),
    "2 bits, keys per token": (
        8126,
        14.3,
        1.199,
        41.2,
        1,
        [" had", " the", " girl", ",", " and", " she", " had", " the", " girl"],
    ),
    "window of 64": (
        24476,
        17.2,
        0.574,
        40.1,
        1,
        [" was", " a", " very", " good", " keeper", ",", " and", " she", " kept"],
    ),
    "window without sinks": (
        24476,
        43.2,
        3.021,
        76.2,
        1,
        [" could", " not", ".", " She", " could", " not", ".", " She", " could"],
    ),
}
SIZES = {"exact": 23040, "window of 64": 6119, "window without sinks": 6119}
TOKENS = {name: [*EXACT[:common], *rest] for name, (*_, common, rest) in MEASURED.items()}
WORDS = sorted({token for tokens in TOKENS.values() for token in tokens})


def rows(*names: str) -> list[Stored]:
    """Return the rows with these names, or all of them."""
    return [
        Stored(name, *MEASURED[name][:5], [WORDS.index(token) for token in TOKENS[name]]) for name in names or MEASURED
    ]


def tokens(ids: list[int]) -> list[str]:
    """Return one string an id, as a tokenizer does."""
    return [WORDS[i] for i in ids]


def compressor(**options: str) -> CacheCompressor:
    """Return the widget of notebook 06."""
    return CacheCompressor(rows(), tokens, sizes=SIZES, **options)
