"""What smaller storage costs: one text, its ids held fixed, run on caches that keep the past differently."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .cache import Cache, KVCache
from .generate import generate
from .model import Model, forward
from .sampling import softmax

# Written for this chapter.
TEXT = (
    "The lighthouse keeper counted the ships each evening and wrote their names into a thick green book. Some of "
    "the names he knew by heart, because the same boats came home every week with fish, salt or timber. Others "
    "were new, and then he asked the harbour master where they came from. One night in autumn a storm took away "
    "the bridge, and no letter reached the island for eleven days. The keeper was not worried. He had bread, oil "
    "for the lamp and a box of old newspapers, and he read the same stories again until he could tell them to the "
    "gulls. On the twelfth day a small boat came through the fog. A girl stood at the bow and waved a red scarf. "
    "She had brought the letters in a bag of oilcloth, and she asked for one thing in return: that he would teach "
    "her how the lamp worked. So he showed her the glass, the wheel and the weight, and how a single flame can be "
    "seen from thirty miles away if the mirrors are clean. She came back every week after that. When the keeper "
    "was old and could no longer climb the stairs, she counted the ships each evening and wrote their names into "
    "the thick green book."
)


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
    new_tokens: int,
) -> list[Stored]:
    """Run a text through caches, in chunks that read what the ones before stored, and continue it greedily.

    Parameters
    ----------
    model : Model
    ids : sequence of int
        The text; teacher-forced: what the model would choose is not fed.
    caches : mapping of str to callable
        Name, to a function that makes an empty cache.
    chunk : int
        Rows of a pass. One pass over the whole text would never read what it stored.
    new_tokens : int
        Of the continuation, which goes on with the same cache.

    Returns
    -------
    list of Stored
        "exact" first, then in the order given.
    """
    every = {"exact": lambda: KVCache(model.config, len(ids) + new_tokens, model.dtype), **caches}
    exact: list[np.ndarray] = []
    rows: list[Stored] = []
    for name, make in every.items():
        cache, surprise = make(), []
        largest = total = 0.0  # of the change of the logits
        for first in range(0, len(ids) - 1, chunk):  # the last id starts the continuation
            end = min(first + chunk, len(ids) - 1)
            logits = forward(model, ids[first:end], cache)  # [chunk, V]
            if not rows:
                exact.append(logits)
            off = np.abs(logits - exact[first // chunk])
            largest, total = max(largest, float(off.max())), total + float(off.sum())
            surprise += [
                -np.log(softmax(row)[token]) for row, token in zip(logits, ids[first + 1 : end + 1], strict=True)
            ]
        size = cache.nbytes / (len(ids) - 1)
        mean = total / ((len(ids) - 1) * model.config.vocab_size)
        text = generate(model, ids, new_tokens, cache=cache).new_ids
        common = _common(text, rows[0].text if rows else text)
        rows.append(Stored(name, size, largest, mean, float(np.exp(np.mean(surprise))), common, text))
    return rows


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
