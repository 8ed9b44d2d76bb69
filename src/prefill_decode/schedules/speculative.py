"""Several tokens a pass: a draft guesses, the model checks all guesses in one small prefill (Leviathan et al. 2023)."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

import numpy as np

from ..attention import causal_pairs
from ..cache import Cache, KVCache
from ..config import is_whole
from ..generate import Generation, Pass, check_request, greedy
from ..model import Model, forward

Draft = Callable[[Sequence[int], int], Sequence[int]]


def speculative_generate(
    model: Model,
    draft: Model | Draft,
    ids: Sequence[int],
    max_new_tokens: int,
    k: int,
    *,
    cache: Cache | None = None,
    stop_ids: Collection[int] = (),
    on_logits: Callable[[np.ndarray], None] | None = None,
) -> Generation:
    """Continue a prompt with the model's own greedy tokens, several a pass where the draft guesses well.

    A pass of phase "verify" runs the newest token and up to k guesses: k + 1 rows, each with its own logits. Guesses
    are kept as long as they are what the row before them chooses; the row of the last one kept gives one token more.
    Rejected rows are cut from the cache.

    Parameters
    ----------
    model : Model
    draft : Model or callable
        Another model with the same vocabulary, continued greedily; or a function ``ids, k -> at most k ids``.
        A bad draft costs time; it changes no token.
    ids : sequence of int
        The prompt, at least one token.
    max_new_tokens : int
        At least 1.
    k : int
        Guesses a pass, at least 1; fewer where the end is nearer, so that nothing overshoots.
    cache : Cache, optional
        Empty, and one that keeps all entries; default: a ``KVCache``. On a ``QuantizedKVCache`` tokens may differ from
        those of ``generate``: a verify pass reads its own rows exactly, a decode pass reads the ones before as stored.
    stop_ids : collection of int
        A token of these ends the run; it is the last of ``ids``.
    on_logits : callable, optional
        Called with the logits [rows, V] of the rows that each pass keeps: all in all, those that chose a token.

    Returns
    -------
    Generation
        With fewer passes than new tokens if guesses were right.

    Raises
    ------
    ValueError
        If the request does not fit the model, k < 1, the cache evicts entries or is not empty, the draft has another
        vocabulary or guesses too many ids.
    """
    ids = check_request(model, ids, max_new_tokens)
    if not is_whole(k) or k < 1:
        raise ValueError(f"k = {k} guesses a pass: expected at least 1")
    n_prompt, n_ctx, end = len(ids), model.config.n_ctx, len(ids) + max_new_tokens
    guess = _ModelDraft(model, draft, end) if isinstance(draft, Model) else draft
    cache = _empty(model, cache, min(end - 1, n_ctx))
    passes: list[Pass] = []
    stopped_by = ""
    while not stopped_by:
        room = min(k, end - len(ids) - 1, n_ctx - len(ids)) if passes else 0
        start = time.perf_counter()
        guesses = _checked(guess(tuple(ids), room), room, model) if room > 0 else []
        rows, record = _verify(model, ids, guesses, cache, start)
        chosen, stopped = _up_to_stop([greedy(row) for row in rows], stop_ids)
        if on_logits is not None:
            on_logits(rows[: len(chosen)])
        ids += chosen
        passes.append(record)
        cache.truncate(min(len(cache), len(ids) - 1))  # rows of rejected guesses; the newest token was not fed yet
        full = "length" if len(ids) == end else "context" if len(ids) > n_ctx else ""
        stopped_by = "stop" if stopped else full
    return Generation(n_prompt, ids, passes, len(cache), cache.nbytes, stopped_by)


def _empty(model: Model, cache: Cache | None, entries: int) -> Cache:
    if cache is None:
        return KVCache(model.config, entries, model.dtype)
    if cache.evicts:
        raise ValueError(
            "the cache evicts entries, which rejected guesses would have pushed out for good: give one that keeps all"
        )
    if cache.next_position:
        raise ValueError(f"the cache holds {cache.next_position} positions: truncate it to 0, the whole prompt is run")
    cache.check_room(entries)
    return cache


def _up_to_stop(chosen: list[int], stop_ids: Collection[int]) -> tuple[list[int], bool]:
    """Cut what comes after a stop token, and say whether there was one."""
    stop = next((i for i, token in enumerate(chosen) if token in stop_ids), None)
    return (chosen, False) if stop is None else (chosen[: stop + 1], True)


def _verify(model: Model, ids: list[int], guesses: list[int], cache: Cache, start: float) -> tuple[np.ndarray, Pass]:
    """Run what the cache does not hold and the guesses; return the logits [rows, V] that are certain, at least one row.

    The newest token's row is certain. The row of a guess is, if the row before it chooses that guess.
    """
    held = cache.next_position
    new = ids[held:]  # the prompt in the first pass, then the newest token
    phase = "verify" if guesses else "decode" if held else "prefill"
    n_queries, n_keys = len(new) + len(guesses), len(ids) + len(guesses)
    logits = forward(model, new + guesses, cache, logits="all" if guesses else "last")  # [n_queries, V], or [V]
    rows = np.atleast_2d(logits)
    wrong = (i for i, guess in enumerate(guesses) if greedy(rows[i]) != guess)
    certain = rows[: next(wrong, len(guesses)) + 1]
    return certain, Pass(phase, n_queries, n_keys, causal_pairs(n_queries, n_keys), time.perf_counter() - start)


def _checked(guesses: Sequence[int], k: int, model: Model) -> list[int]:
    guesses = list(guesses)
    if len(guesses) > k:
        raise ValueError(f"the draft guessed {len(guesses)} tokens where {k} were asked for: give at most {k}")
    known = range(model.config.vocab_size)
    outside = next((token for token in guesses if not is_whole(token) or token not in known), None)
    if outside is not None:
        raise ValueError(
            f"the draft guessed token {outside!r}, the model knows 0 to {len(known) - 1}: "
            "it needs the model's vocabulary"
        )
    return [int(token) for token in guesses]


class _ModelDraft:
    """Guess as another model would go on; its own cache follows what was kept and what was rejected."""

    def __init__(self, model: Model, draft: Model, end: int) -> None:
        if draft.config.vocab_size != model.config.vocab_size:
            raise ValueError(
                f"the draft knows {draft.config.vocab_size} tokens, the model {model.config.vocab_size}: "
                "it needs the model's vocabulary"
            )
        self._model = draft
        self._cache = KVCache(draft.config, min(end, draft.config.n_ctx), draft.dtype)

    def __call__(self, ids: Sequence[int], k: int) -> list[int]:
        k = min(k, self._model.config.n_ctx - len(ids))  # a draft may have a shorter context
        if k < 1:
            return []
        # all but the newest id was the draft's own guess or known before, so what is kept of it is a beginning
        self._cache.truncate(min(len(self._cache), len(ids) - 1))
        known = list(ids)
        for _ in range(k):
            known.append(greedy(forward(self._model, known[self._cache.next_position :], self._cache, logits="last")))
        return known[len(ids) :]


def prompt_lookup(ids: Sequence[int], k: int, n: int = 2) -> list[int]:
    """Guess that the text repeats itself: what followed the last n tokens when they stood there before.

    Needs no second model; good where an answer quotes its prompt, useless elsewhere.

    Parameters
    ----------
    ids : sequence of int
    k : int
        Guesses at most.
    n : int
        Tokens that must match.

    Returns
    -------
    list of int
        Up to k ids; of several places the latest that k tokens follow, or the one that most follow. None if the n
        tokens are new.

    Raises
    ------
    ValueError
        If n < 1.
    """
    if not is_whole(n) or n < 1:
        raise ValueError(f"n = {n} tokens to match: expected at least 1")
    ids = [int(token) for token in ids]
    best: list[int] = []
    for start in range(len(ids) - n - 1, -1, -1):
        if ids[start : start + n] == ids[-n:]:
            best = max(best, ids[start + n : start + n + k], key=len)
        if len(best) == k:
            break
    return best
