"""Checks that a page shows: a bound on a difference, asserted where it is printed."""

from __future__ import annotations

import numpy as np


def below(a: np.ndarray, b: np.ndarray, bound: float) -> str:
    """Assert that two arrays differ by less than a power of ten, and say so.

    The measured difference itself changes with the CPU's order of sums; the bound does not.

    Parameters
    ----------
    a, b : ndarray of one shape
    bound : float
        A power of ten.

    Returns
    -------
    str
        For example "below 1e-12".
    """
    if np.shape(a) != np.shape(b):
        raise ValueError(f"shapes {np.shape(a)} and {np.shape(b)} cannot be compared: give two of one shape")
    difference = float(np.abs(np.asarray(a) - np.asarray(b)).max())
    if not difference < bound:
        raise AssertionError(f"the largest difference is {difference:.1e}, expected below {bound:.0e}")
    return f"below {bound:.0e}"
