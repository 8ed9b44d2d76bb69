"""The generation loop: one prefill pass, then one decode pass a token, with a record of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from .attention import causal_mask
from .cache import Cache, KVCache
from .config import is_whole
from .model import Model, check_ids, forward


@dataclass(frozen=True)
class Pass:
    """Record one run through the model.

    Attributes
    ----------
    phase : {"prefill", "decode", "full", "chunk", "verify"}
    n_queries : int
        Rows that went through the layers.
    n_keys : int
        Keys that the last row read, its own included.
    pairs : int
        Allowed query-key pairs: per query head, per layer, per sequence.
    seconds : float
        Wall-clock time, the choice of the token included.
    """

    phase: str
    n_queries: int
    n_keys: int
    pairs: int
    seconds: float


@dataclass(frozen=True)
class Generation:
    """What a call of ``generate`` did.

    Attributes
    ----------
    n_prompt : int
        Tokens of the prompt.
    ids : list of int
        Prompt and new tokens. The last one was chosen and not fed back.
    passes : list of Pass
        As many as new tokens, or fewer if a pass brings several.
    cache_len, cache_bytes : int
        Entries in the cache at the end, and the bytes they use; 0 without a cache.
    stopped_by : {"length", "stop", "context"}
        Enough tokens, a stop token, or no position left in the context.
    """

    n_prompt: int
    ids: list[int]
    passes: list[Pass]
    cache_len: int
    cache_bytes: int
    stopped_by: str

    @property
    def new_ids(self) -> list[int]:
        """The tokens that were generated."""
        return self.ids[self.n_prompt :]

    @property
    def ttft(self) -> float:
        """Time to first token in seconds: the first pass alone. No decode pass is in it."""
        return self.passes[0].seconds

    @property
    def tpot(self) -> float | None:
        """Time per output token in seconds, the mean over the tokens after the first; None if there was only one."""
        later = len(self.new_ids) - 1
        return sum(p.seconds for p in self.passes[1:]) / later if later else None


def greedy(logits: np.ndarray) -> int:
    """Choose the likeliest token; of equal logits the lowest id.

    Parameters
    ----------
    logits : ndarray, [V]

    Raises
    ------
    ValueError
        If logits are no numbers in a row, one is NaN or +inf, or all are ``-inf``.
    """
    logits = np.asarray(logits)
    if logits.dtype.kind not in "fiu" or logits.ndim != 1 or not logits.size:
        expected = "expected one a token of the vocabulary, [V], as numbers"
        raise ValueError(f"logits are {logits.shape}: {expected} (dtype {logits.dtype})")
    token = int(np.argmax(logits))  # NumPy takes the first nan for the largest: this one logit tells of all
    if np.isneginf(logits[token]):
        raise ValueError("all tokens are filtered away: loosen the filters, one token at least must be left")
    if not np.isfinite(logits[token]):
        raise ValueError("the logits hold nan or inf: the model's output is broken, no token can be chosen")
    return token


def generate(
    model: Model,
    ids: Sequence[int],
    max_new_tokens: int,
    *,
    use_cache: bool = True,
    cache: Cache | None = None,
    sample: Callable[[np.ndarray], int] = greedy,
    stop_ids: Collection[int] = (),
    on_token: Callable[[int, Pass], None] | None = None,
) -> Generation:
    """Continue a prompt, one token a pass.

    Parameters
    ----------
    model : Model
    ids : sequence of int
        The prompt, at least one token.
    max_new_tokens : int
        At least 1. m tokens take m passes: one prefill and m - 1 decode passes.
    use_cache : bool
        False recomputes every position in every pass (phase "full").
    cache : Cache, optional
        Where to keep keys and values, filled further; what went through it must be the first ``next_position`` ids,
        which are then not run again. Default: a new ``KVCache``.
    sample : callable
        From logits [V] to a token id.
    stop_ids : collection of int
        A token of these ends the run; it is the last of ``ids``.
    on_token : callable, optional
        Called with each new token and its pass, as they come.

    Returns
    -------
    Generation

    Raises
    ------
    ValueError
        If the prompt is empty, does not fit the context or holds an unknown id, ``max_new_tokens`` < 1, or the cache
        leaves nothing of the prompt to run or has no room for all that may come. Nothing has run then.
    """
    ids = check_request(model, ids, max_new_tokens)
    n_prompt, n_ctx = len(ids), model.config.n_ctx
    if cache is not None:
        _check_held(cache.next_position, n_prompt, use_cache)
        cache.check_room(min(n_prompt + max_new_tokens - 1, n_ctx) - cache.next_position)
    elif use_cache:  # the last token is never fed back, so its key and value need no room
        cache = KVCache(model.config, min(n_prompt + max_new_tokens - 1, n_ctx), model.dtype)
    passes: list[Pass] = []
    stopped_by = "length"
    while len(passes) < max_new_tokens:
        if len(ids) > n_ctx:  # the newest token would need position n_ctx, the context ends before it
            stopped_by = "context"
            break
        token, record = _run_pass(model, ids, cache, first=not passes, sample=sample)
        ids.append(token)
        passes.append(record)
        if on_token is not None:
            on_token(token, record)
        if token in stop_ids:
            stopped_by = "stop"
            break
    return Generation(n_prompt, ids, passes, *((len(cache), cache.nbytes) if use_cache else (0, 0)), stopped_by)


def check_request(model: Model, ids: Sequence[int], max_new_tokens: int) -> list[int]:
    """Return the prompt as a list of ints, or raise ValueError saying what cannot be generated and why."""
    if not is_whole(max_new_tokens) or max_new_tokens < 1:
        raise ValueError(f"max_new_tokens = {max_new_tokens}: expected at least 1, the first comes out of prefill")
    ids = check_ids(model.config, ids).tolist()
    if len(ids) > model.config.n_ctx:
        raise ValueError(
            f"the prompt has {len(ids)} tokens, the context holds {model.config.n_ctx}: shorten the phrase"
        )
    return ids


def _check_held(held: int, n_prompt: int, use_cache: bool) -> None:
    if not use_cache:
        raise ValueError("use_cache = False together with a cache: leave one of them out")
    if held >= n_prompt:
        raise ValueError(
            f"the cache holds {held} positions of a prompt of {n_prompt}: one at least must run, truncate the cache"
        )


def _run_pass(
    model: Model, ids: list[int], cache: Cache | None, *, first: bool, sample: Callable[[np.ndarray], int]
) -> tuple[int, Pass]:
    start = time.perf_counter()
    if cache is None:  # every row again, for the last one's logits
        phase, new, mask = "full", ids, causal_mask(len(ids), len(ids))
    else:  # prefill phase: all rows of the prompt that have not gone through; decode phase: the newest token's row
        new = ids[cache.next_position :]
        phase, mask = "prefill" if first else "decode", cache.mask(len(new))  # [L, S]
    token = sample(forward(model, new, cache, mask=mask, logits="last"))
    seconds = time.perf_counter() - start
    return token, Pass(phase, len(new), int(mask[-1].sum()), int(mask.sum()), seconds)
