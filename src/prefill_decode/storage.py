"""What smaller storage costs: one text, its ids held fixed, run on caches that keep the past differently."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .cache import Cache, KVCache
from .generate import generate
from .model import Model, forward

# Written for this chapter.
TEXT = """The lighthouse keeper counted the ships each evening and wrote their names into a thick green book. Some of the \
names he knew by heart, because the same boats came home every week with fish, salt or timber. Others were new, and then he \
asked the harbour master where they came from. One night in autumn a storm took away the bridge, and no letter reached the \
island for eleven days. The keeper was not worried. He had bread, oil for the lamp and a box of old newspapers, and he read \
the same stories again until he could tell them to the gulls. On the twelfth day a small boat came through the fog. A girl \
stood at the bow and waved a red scarf. She had brought the letters in a bag of oilcloth, and she asked for one thing in \
return: that he would teach her how the lamp worked. So he showed her the glass, the wheel and the weight, and how a single \
flame can be seen from thirty miles away if the mirrors are clean. She came back every week after that. When the keeper was \
old and could no longer climb the stairs, she counted the ships each evening and wrote their names into the thick green book."""


@dataclass(frozen=True)
class Stored:
    """What one way of storing did to one text.

    Attributes
    ----------
    name : str
    bytes_per_token : float
        Of the cache at the end of the text.
    largest, mean : float
        Change of the logits against exact storage, over all positions and tokens.
    perplexity : float
        Of the text: exp of the mean surprise of each next token.
    common : int
        New tokens that a greedy continuation has in common with that of exact storage, from the first on.
    text : list of int
        The continuation.
    """

    name: str
    bytes_per_token: float
    largest: float
    mean: float
    perplexity: float
    common: int
    text: list[int]


def compare_storage(
    model: Model,
    ids: Sequence[int],
    caches: Mapping[str, Callable[[], Cache]],
    *,
    chunk: int,
    prompt_len: int,
    new_tokens: int,
) -> list[Stored]:
    """Run a text through caches, in chunks that read what the ones before stored, and continue its beginning.

    Parameters
    ----------
    model : Model
    ids : sequence of int
        The text; teacher-forced: what the model would choose is not fed.
    caches : mapping of str to callable
        Name, to a function that makes an empty cache.
    chunk : int
        Rows of a pass. One pass over the whole text would never read what it stored.
    prompt_len, new_tokens : int
        Of the greedy continuation: the first ``prompt_len`` ids, in the same chunks, then so many tokens.

    Returns
    -------
    list of Stored
        "exact" first, then in the order given.
    """
    every = {"exact": lambda: KVCache(model.config, len(ids), model.dtype), **caches}
    exact = np.concatenate(_logits(model, ids, every["exact"](), chunk))  # [n, V]
    rows: list[Stored] = []
    for name, make in every.items():
        cache, off, surprise = make(), [], []
        for start, logits in enumerate(_logits(model, ids, cache, chunk)):
            first = start * chunk
            off.append(np.abs(logits - exact[first : first + chunk]))
            surprise += _surprises(logits, ids[first + 1 : first + 1 + chunk])
        size, counted = cache.nbytes / len(ids), sum(part.size for part in off)
        mean = sum(part.sum() for part in off) / counted
        text = _continued(model, ids[:prompt_len], make(), chunk, new_tokens)
        common = _common(text, rows[0].text if rows else text)
        largest = max(float(part.max()) for part in off)
        rows.append(Stored(name, size, largest, float(mean), float(np.exp(np.mean(surprise))), common, text))
    return rows


def _logits(model: Model, ids: Sequence[int], cache: Cache, chunk: int) -> list[np.ndarray]:
    return [forward(model, ids[start : start + chunk], cache) for start in range(0, len(ids), chunk)]


def _surprises(logits: np.ndarray, following: Sequence[int]) -> list[float]:
    """Return -log p of each token that follows a row of logits; the last row of a text has none."""
    largest = logits.max(axis=1)
    totals = largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1))
    return [float(total - row[token]) for total, row, token in zip(totals, logits, following, strict=False)]


def _continued(model: Model, ids: Sequence[int], cache: Cache, chunk: int, new_tokens: int) -> list[int]:
    last = (len(ids) - 1) // chunk * chunk  # the last chunk is the prefill pass of the generation
    for start in range(0, last, chunk):
        forward(model, ids[start : start + chunk], cache, logits="last")
    return generate(model, ids, new_tokens, cache=cache).new_ids


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
