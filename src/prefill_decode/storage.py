"""What smaller storage costs: one text, its ids held fixed, run on caches that keep the past differently."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .cache import Cache, KVCache
from .config import is_whole, one_line
from .generate import check_request, generate
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

    Raises
    ------
    ValueError
        If the text has fewer than 2 ids or one that is no token, the chunk or the number of new tokens is no whole
        number of at least 1, or a cache is called "exact". Nothing has run then.
    """
    ids = check_request(model, ids, new_tokens)
    if len(ids) < 2:
        raise ValueError(f"the text has {len(ids)} id: expected at least 2, one to run and one to be foretold")
    if not is_whole(chunk) or chunk < 1:
        raise ValueError(f"chunk = {one_line(chunk)}: expected a whole number of at least 1")
    if "exact" in caches:
        raise ValueError('a cache is called "exact", as exact storage is: give it another name')
    every = {"exact": lambda: KVCache(model.config, len(ids) + new_tokens, model.dtype), **caches}
    exact: list[np.ndarray] = []  # logits of each pass, [chunk, V]
    rows: list[Stored] = []
    for name, make in every.items():
        cache = make()
        passes = _passes(model, ids[:-1], cache, chunk)  # the last id starts the continuation
        if not rows:
            passes = exact = list(passes)
        compared = _compared(passes, exact, ids[1:])
        size = cache.nbytes / (len(ids) - 1)
        text = generate(model, ids, new_tokens, cache=cache).new_ids
        common = _common(text, rows[0].text if rows else text)
        rows.append(Stored(name, size, *compared, common, text))
    return rows


def _passes(model: Model, ids: Sequence[int], cache: Cache, chunk: int) -> Iterator[np.ndarray]:
    """Run the ids into a cache; yield the logits [chunk, V] of each pass."""
    for first in range(0, len(ids), chunk):
        yield forward(model, ids[first : first + chunk], cache)


def _compared(
    passes: Iterable[np.ndarray], exact: Sequence[np.ndarray], nexts: Sequence[int]
) -> tuple[float, float, float]:
    """Return the largest and the mean change of logits [chunk, V] against exact ones, and ``nexts``' perplexity."""
    largest = total = 0.0
    surprise: list[float] = []
    for logits, right in zip(passes, exact, strict=True):
        off = np.abs(logits - right)
        largest, total = max(largest, float(off.max())), total + float(off.sum())
        surprise += [-np.log(softmax(row)[nexts[len(surprise) + i]]) for i, row in enumerate(logits)]
    mean = total / (len(nexts) * exact[0].shape[1])
    return largest, mean, float(np.exp(np.mean(surprise)))


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
