"""One phrase seen from inside: its tokens, the weights of every head, the likeliest next tokens of every row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .cache import KVCache
from .generate import Pass, generate
from .model import Model, Trace, forward


@dataclass(frozen=True)
class Observation:
    """What one phrase did in one model: arrays for figures and widgets.

    Attributes
    ----------
    tokens : list of str, P + m
        Prompt and new tokens for display. The last was chosen and has no row.
    weights, scores : ndarray, [layers, h, T, T]
        T = P + m - 1 rows; a masked score is ``-inf``.
    prompt_len : int
        P.
    next_tokens : list of T lists of (str, float)
        The five likeliest next tokens of each row, with their probabilities.
    kv_bytes_per_token : int
        What one entry of a float32 cache takes, all layers together.
    """

    tokens: list[str]
    weights: np.ndarray
    scores: np.ndarray
    prompt_len: int
    next_tokens: list[list[tuple[str, float]]]
    kv_bytes_per_token: int


def observe(
    model: Model,
    tokenizer,
    phrase: str,
    max_new_tokens: int,
    *,
    on_token: Callable[[int, Pass], None] | None = None,
) -> Observation:
    """Generate greedily, then look at all rows in one traced pass.

    The traced pass computes the same rows as prefill and decode did: the cache changes what is computed again,
    not what comes out.

    Parameters
    ----------
    model : Model
    tokenizer : tokenizer of the same weights
    phrase : str
    max_new_tokens : int
        m; stop tokens are not obeyed, so that m tokens come out.
    on_token : callable, optional
        Called with each new token and its pass, as ``generate`` does.

    Returns
    -------
    Observation
    """
    prompt = tokenizer.encode(phrase)
    ids = generate(model, prompt, max_new_tokens, on_token=on_token).ids
    trace = Trace()
    logits = forward(model, ids[:-1], trace=trace)  # [T, V]
    return Observation(
        tokens=tokenizer.tokens(ids),
        weights=np.stack(trace.weights),
        scores=np.stack(trace.scores),
        prompt_len=len(prompt),
        next_tokens=[likeliest(row, tokenizer) for row in logits],
        kv_bytes_per_token=KVCache(model.config, 1, np.float32).nbytes_allocated,
    )


def likeliest(logits: np.ndarray, tokenizer, n: int = 5) -> list[tuple[str, float]]:
    """Return the n likeliest tokens of one row of logits [V], with their softmax probabilities."""
    p = np.exp(logits - logits.max())
    top = np.argsort(-logits, kind="stable")[:n]
    return list(zip(tokenizer.tokens(top), (p[top] / p.sum()).tolist(), strict=True))


def head_measures(weights: np.ndarray) -> dict[str, np.ndarray]:
    """Measure every head in this phrase, each as a mean over rows 1 .. T - 1 (row 0 has no choice).

    Parameters
    ----------
    weights : ndarray, [layers, h, T, T]

    Returns
    -------
    dict of ndarray, [layers, h]
        ``first``, ``previous``, ``itself``: the share of weight on that key; ``entropy``: in bits, 0 when a row
        looks at one key only.
    """
    rows = np.arange(1, weights.shape[-1])
    safe = np.where(weights > 0, weights, 1)  # 0 · log 0 = 0
    return {
        "first": weights[:, :, rows, 0].mean(axis=-1),
        "previous": weights[:, :, rows, rows - 1].mean(axis=-1),
        "itself": weights[:, :, rows, rows].mean(axis=-1),
        "entropy": -(weights * np.log2(safe)).sum(axis=-1)[:, :, rows].mean(axis=-1),
    }


def notable_heads(weights: np.ndarray) -> dict[tuple[int, int], str]:
    """Name the head that leads each measure in this phrase; no claim about any other phrase.

    Returns
    -------
    dict
        (layer, head) to a short name with its measure.
    """
    names = {
        "previous": "previous token ({:.2f})",
        "itself": "itself ({:.2f})",
        "entropy": "broad ({:.2f} bits)",
        "first": "first-token sink ({:.2f})",
    }
    if weights.shape[-1] == 1:
        return {}  # one row has one key: every head does the same
    measures = head_measures(weights)
    found = {}
    for key, name in names.items():
        best = np.unravel_index(np.argmax(measures[key]), measures[key].shape)
        found[int(best[0]), int(best[1])] = name.format(measures[key][best])
    return found
