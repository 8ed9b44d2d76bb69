"""Sixteen bits, emulated: float32 arithmetic whose every result is rounded to a 16-bit number.

An engine multiplies 16-bit numbers, adds the products in float32 and rounds what comes out; so does this. NumPy's own
float16 would not: it has no fast matrix product, and the squares inside RMSNorm overflow in it.
"""

from __future__ import annotations

import numpy as np


def exact(x: np.ndarray) -> np.ndarray:
    """Return x as it is: the arithmetic of its own dtype."""
    return x


def float16(x: np.ndarray) -> np.ndarray:
    """Round to the nearest number with 11 significant bits; what exceeds 65,504 becomes infinite."""
    return x.astype(np.float16).astype(np.float32)


def bfloat16(x: np.ndarray) -> np.ndarray:
    """Round to the nearest number with 8 significant bits, ties to even; the range is float32's."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    half = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return ((bits + half) & np.uint32(0xFFFF0000)).view(np.float32)
