"""What an `AttentionGrid` sends to the page: checked arrays, as bytes, in a dictionary that becomes JSON."""

import base64
import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np

from prefill_decode.widgets.attention_grid_measures import packed_measures, sinks
from prefill_decode.widgets.attention_grid_questions import GridQuestion, question_data

MAX_ROWS = 64
UNKNOWN_SCORE = -32768
BIDI_CONTROLS = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
GLYPHS = {"\n": "↵", "\t": "⇥"}


def shown(token: str) -> str:
    """Return a token as the page shows it: spaces, line ends and invisible characters become marks.

    Parameters
    ----------
    token : str
        Raw text of one token. Lone surrogates and control characters are allowed.
    """
    body = token.lstrip(" ")
    marks = "·" * (len(token) - len(body))
    if body and all(unicodedata.category(c) in ("Cf", "Mn", "Zs") for c in body) and body[0] not in BIDI_CONTROLS:
        return marks + "".join(f"⟨U+{ord(c):04X}⟩" for c in body)
    if body and unicodedata.category(body[0]).startswith("M"):
        marks += "◌"  # a combining mark needs a base, or it climbs onto the neighbour
    return (marks + "".join(map(_shown_character, body))) or "⟨empty⟩"


def _shown_character(character: str) -> str:
    if character in GLYPHS:
        return GLYPHS[character]
    code, category = ord(character), unicodedata.category(character)
    if category == "Cc":
        return chr(0x2400 + code) if code < 32 else f"⟨U+{code:04X}⟩"
    return f"⟨U+{code:04X}⟩" if category in ("Cs", "Zl", "Zp") or character in BIDI_CONTROLS else character


def phrase_data(
    tokens: Sequence[str],
    weights: np.ndarray,
    scores: np.ndarray | None = None,
    *,
    prompt_len: int,
    layers: Sequence | None = None,
    heads: Sequence | None = None,
    next_tokens: Sequence | None = None,
    kv_bytes_per_token: int | None = None,
    names: Mapping | None = None,
    label: str | None = None,
    dtype_name: str | None = None,
    questions: Sequence[GridQuestion] = (),
) -> dict:
    """Check the arrays of one phrase and pack them; the parameters are those of `AttentionGrid`.

    Returns
    -------
    dict
        JSON-ready and equal for equal input. Weights are bytes (1 = 1/255), lower triangle only, in the order
        layer, head, row, key; scores are little-endian int16 in the stated step, -32768 where unknown. Measures of
        heads are bytes too (255 is the stated `max`), in the order layer, head.

    Raises
    ------
    ValueError
        For shapes, labels or values that do not fit together.
    """
    weights = _checked_weights(weights, len(tokens), prompt_len)
    layer_labels = _labels("layers", layers, weights.shape[0])
    head_labels = _labels("heads", heads, weights.shape[1])
    named = _named(names or {}, layer_labels, head_labels)
    rows = min(weights.shape[2], MAX_ROWS)
    phrase = {
        "label": None if label is None else shown(label),
        "tokens": [shown(token) for token in tokens[: rows + 1]],
        "promptLen": int(prompt_len),
        "steps": rows,
        "positions": weights.shape[2],
        "layers": layer_labels,
        "heads": head_labels,
        "names": named,
        "open": named[0][:2] if named else [0, 0],
        "weights": _base64(_triangle(np.rint(weights * 255), rows).astype(np.uint8)),
        "weightStep": "1/255",
        "scores": None if scores is None else _packed_scores(scores, weights.shape, named, rows),
        "measures": packed_measures(weights),
        "sinks": sinks(weights),
        "next": None if next_tokens is None else _next(next_tokens, weights.shape[2], rows),
        "kvBytes": None if kv_bytes_per_token is None else int(kv_bytes_per_token),
        "dtype": dtype_name,
    }
    return {**phrase, "questions": question_data(questions, phrase)}


def _checked_weights(weights: np.ndarray, n_tokens: int, prompt_len: int) -> np.ndarray:
    weights = np.asarray(weights, dtype=np.float64)
    rows = n_tokens - 1
    if rows < 1 or weights.ndim != 4 or weights.shape[2:] != (rows, rows) or 0 in weights.shape:
        raise ValueError(
            f"weights have the shape {weights.shape}, expected (layers, heads, {rows}, {rows}) for {n_tokens} tokens:"
            " one row a token except the last, which is chosen and never fed back"
        )
    if not 1 <= prompt_len <= rows:
        raise ValueError(f"prompt_len is {prompt_len}, expected 1 to {rows}: give the number of prompt tokens")
    if not np.isfinite(weights).all() or weights.min() < 0:
        raise ValueError("weights contain negative, infinite or NaN values, expected softmax rows: check the mask")
    lower = np.tril(weights)
    if not np.allclose(lower.sum(-1), 1, atol=1e-3):
        raise ValueError(
            "weights of row i do not sum to 1 over the keys 0..i, expected causal softmax rows: check the mask"
        )
    return lower


def _labels(what: str, labels: Sequence | None, size: int) -> list[str]:
    labels = [shown(str(label)) for label in (range(size) if labels is None else labels)]
    if len(labels) != size or len(set(labels)) != size:
        raise ValueError(f"{what} names {len(labels)} entries, expected {size} different ones: one for each of {what}")
    return labels


def _named(names: Mapping, layers: list[str], heads: list[str]) -> list[list]:
    named = []
    for key, text in names.items():
        layer, head = (shown(str(part)) for part in key)
        if layer not in layers or head not in heads:
            raise ValueError(f"names has the key {key}, expected (layer, head) out of the labels of both axes")
        named.append([layers.index(layer), heads.index(head), shown(str(text))])
    return named


def _triangle(values: np.ndarray, rows: int) -> np.ndarray:
    return values[..., *np.tril_indices(rows)]  # [..., T, T] -> [..., T (T + 1) / 2]


def _base64(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


def _packed_scores(scores: np.ndarray, shape: tuple, named: list, rows: int) -> dict:
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != shape:
        raise ValueError(f"scores have the shape {scores.shape}, expected {shape}: the shape of the weights")
    pairs = [entry[:2] for entry in named] or [list(index) for index in np.ndindex(shape[:2])]
    chosen = _triangle(np.stack([scores[layer, head] for layer, head in pairs]), rows)
    known = np.isfinite(chosen)
    largest = np.abs(chosen[known]).max(initial=0)
    decimals = max((d for d in (2, 1, 0) if largest * 10**d < -UNKNOWN_SCORE), default=None)
    if decimals is None:
        raise ValueError(f"scores reach {largest:.3g}, expected less than 32768: give them after the 1/√d scaling")
    packed = np.where(known, np.rint(np.where(known, chosen, 0) * 10**decimals), UNKNOWN_SCORE)
    return {"heads": pairs, "decimals": decimals, "step": 10.0**-decimals, "data": _base64(packed.astype("<i2"))}


def _next(next_tokens: Sequence, positions: int, rows: int) -> list:
    """Probabilities travel as whole per mille: both languages then print the same digits."""
    if len(next_tokens) != positions:
        raise ValueError(f"next_tokens has {len(next_tokens)} rows, expected {positions}: one for each row of weights")
    return [[[shown(token), round(1000 * float(p))] for token, p in (row or ())[:5]] for row in next_tokens[:rows]]
