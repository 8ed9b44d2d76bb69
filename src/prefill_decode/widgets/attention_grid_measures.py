"""What the map of heads of an `AttentionGrid` shows: plain measures of every head in one phrase, as bytes."""

import base64
import math

import numpy as np

from prefill_decode.observe import head_measures

SINK = 0.95
# A measure's name, what follows its value, what it means.
ROWS = "in this phrase, without the first row"
MEASURES = {
    "first": ("Share on the first token", "on the first token", f"Mean weight on the first token {ROWS}."),
    "previous": (
        "Share on the previous token",
        "on the previous token",
        f"Mean weight on the token just before {ROWS}.",
    ),
    "itself": ("Share on itself", "on itself", f"Mean weight on the query itself {ROWS}."),
    "entropy": ("Entropy (in bits)", "bits of entropy", f"Mean spread of the weight {ROWS}; 0 is one key only."),
}


def sinks(weights: np.ndarray) -> list[int]:
    """Return which heads never look far beyond the first token, as layer * heads + head; row 0 has no choice."""
    least = weights[:, :, 1:, 0].min(-1, initial=1)  # [layers, heads, T - 1] -> [layers, heads]
    return np.flatnonzero(least >= SINK).tolist() if weights.shape[2] > 1 else []


def packed_measures(weights: np.ndarray) -> list[dict]:
    """Return each measure of all heads as bytes; none of a single row, which has no choice."""
    positions = weights.shape[2]
    if positions == 1:
        return []
    most_bits = round(math.log2(positions), 4)  # rounded: the page's bytes are the same on every machine
    bits = {"max": most_bits, "top": f"{most_bits:.1f} bits", "decimals": 1}
    share = {"max": 1, "top": "1", "decimals": 2}
    packed = []
    for key, values in head_measures(weights).items():
        name, says, meaning = MEASURES[key]
        scale = bits if key == "entropy" else share
        data = np.rint(values / scale["max"] * 255).astype(np.uint8).tobytes()  # [layers, h] -> layers · h
        text = base64.b64encode(data).decode("ascii")
        packed.append({"name": name, "says": says, "meaning": meaning, **scale, "data": text})
    return packed
