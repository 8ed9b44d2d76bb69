"""A small `TokenSampler`: made-up logits, so flat that filters reach beyond the 50 tokens shown, and odd tokens."""

import numpy as np

from prefill_decode.widgets import TokenSampler

V = 200
ODD = ["<b>&", "\n", "", " a token that is longer than a row", "\x00", "é"]


def logits_of(size: int = V, spread: float = 2.0, seed: int = 4) -> np.ndarray:
    """Return float32 logits, as a model does."""
    return np.random.default_rng(seed).normal(0, spread, size).astype(np.float32)


def tokens_of(size: int = V) -> list[str]:
    return [*ODD, *(f" t{i}" for i in range(len(ODD), size))][:size]


def token_sampler(logits: np.ndarray | None = None, **opened: object) -> TokenSampler:
    """Return a sampler over the logits."""
    logits = logits_of() if logits is None else logits
    return TokenSampler(logits, tokens_of(len(logits)), "once <i>upon", **opened)
