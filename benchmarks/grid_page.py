"""A page with one large attention grid, put together by the book's own code."""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.environment import ROOT
from prefill_decode.widgets import AttentionGrid

sys.path.insert(0, str(ROOT / "book" / "_ext"))
from prefill_decode_book.widgets import bundle_script, bundle_styles

STEPS = 64  # T, the most rows a grid draws
PROMPT = 48
LAYERS, HEADS = 30, 9  # the map of heads is as large as the real model's
WIDGETS = ROOT / "src" / "prefill_decode" / "widgets"


def made_up_weights() -> np.ndarray:
    """Return softmax rows of random scores: [layers, heads, T, T]."""
    scores = np.random.default_rng(0).normal(0, 2, (LAYERS, HEADS, STEPS, STEPS))
    powers = np.tril(np.exp(scores))
    return powers / powers.sum(-1, keepdims=True)


def static_page(weights: np.ndarray) -> str:
    """Return the page as a reader without a server opens it: picture, styles and one classic script."""
    tokens = [f" t{i}" for i in range(STEPS + 1)]
    likely = [[(token, 0.1)] * 5 for token in tokens[1:]]
    grid = AttentionGrid(tokens, weights, prompt_len=PROMPT, next_tokens=likely, kv_bytes_per_token=46080)
    styles = (WIDGETS / "theme.css").read_text("utf-8") + bundle_styles(WIDGETS)
    return (
        f'<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8"><style>{styles}</style><body>'
        f"{grid._repr_mimebundle_()[0]['text/html']}<script>{bundle_script(WIDGETS)}</script></body></html>"
    )
