"""Grids of made-up numbers, and a page that mounts them as the book does: a classic script, a model read from JSON."""

from pathlib import Path

import numpy as np
from widget_page import classic_module

from prefill_decode.widgets import AttentionGrid
from prefill_decode.widgets.page_only import for_page

WIDGETS = Path(__file__).parents[2] / "src" / "prefill_decode" / "widgets"
TOKENS = ["The", " capital", " of", " France", " is", " Paris", ".", "\n", "\n", "The"]
MOUNT = """
window.grid = exported;
for (const el of document.querySelectorAll('[data-widget="attention-grid"]')) {
  const values = JSON.parse(el.querySelector('script[type="application/json"]').textContent);
  const set = (name, value) => { values[name] = value; };
  const model = { get: (name) => values[name], set, on() {}, save_changes() {} };
  (window.unmount ??= []).push(exported.default.render({ model, el }));
}
"""

# The state of each cell of a grid, and which rows are marked as the one being computed.
CELLS = "grid => [...grid.querySelectorAll('td[data-state]')].map(c => [+c.dataset.q, +c.dataset.k, c.dataset.state])"
CURRENT = "grid => [...grid.querySelectorAll('tr[aria-current]')].map(row => row.dataset.row)"


def cells_at(step: int, steps: int, prompt_len: int) -> list[list]:
    """Return what `CELLS` must find after `step` rows: query, key, state."""
    phase = ["prefill"] * prompt_len + ["decode"] * (steps - prompt_len)
    return [
        [q, k, "masked" if k > q else "future" if q >= step else phase[q]] for q in range(steps) for k in range(steps)
    ]


def causal_softmax(scores: np.ndarray) -> np.ndarray:
    """Return the softmax rows of scores [..., T, T] under the causal mask."""
    allowed = np.tril(np.ones(scores.shape[-2:], dtype=bool))
    powers = np.exp(np.where(allowed, scores, -np.inf))
    return powers / powers.sum(-1, keepdims=True)


def made_up_scores(*shape: int) -> np.ndarray:
    """Return scores of the shape [layers, heads, T, T]."""
    return np.random.default_rng(7).normal(0, 2, shape)


def grid_of(layers: int, heads: int, tokens: list[str], prompt_len: int, **options: object) -> AttentionGrid:
    """Return a grid of made-up weights with their scores."""
    scores = made_up_scores(layers, heads, len(tokens) - 1, len(tokens) - 1)
    return AttentionGrid(tokens, causal_softmax(scores), scores, prompt_len=prompt_len, **options)


def paris(**options: object) -> AttentionGrid:
    """Return a grid of the size of the landing page's, with everything a grid can show."""
    likely = [((token, 0.625), (" the", 0.094), (" a", 0.0405)) for token in TOKENS[1:]]
    options = {"names": {(23, 4): "“is” looks at “France”", (16, 0): "previous token"}, **options}
    return grid_of(30, 9, TOKENS, 5, next_tokens=likely, kv_bytes_per_token=46080, dtype_name="float32", **options)


def page_of(*grids: AttentionGrid, mount: bool = True, head: str = "") -> str:
    """Return a page that holds the `text/html` of the grids; unmounted, it is the page without its script."""
    styles = "".join((WIDGETS / name).read_text("utf-8") for name in ("theme.css", "attention_grid.css"))
    body = for_page("".join(grid._repr_mimebundle_()[0]["text/html"] for grid in grids))
    script = f'<script>"use strict"; {{ {classic_module("attention_grid")} {MOUNT} }}</script>' if mount else ""
    start = f'<!doctype html><html lang="en"><meta charset="utf-8"><style>{styles}</style>{head}'
    return f"{start}<body>{body}{script}</body></html>"
