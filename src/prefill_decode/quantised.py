"""Numbers in few bits: codes from 0 to 2^bits - 1, and for each group of numbers a scale and a zero point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BITS = (8, 4, 2)
LARGEST = float(np.finfo(np.float16).max)


@dataclass(frozen=True)
class Codes:
    """An array in few bits, asymmetric: value = code · scale + zero.

    Scale and zero point are float16, which limits the numbers: they lie within ±65,504, and a zero point that rounds
    moves its group's codes (after 2049, rounded to 2048, with a scale of 0.1 the smallest number has code 10) or is off
    by one part in 2,048. What spans less than float16 can tell, or lies below the zero point, is stored as zero point.

    Attributes
    ----------
    packed : ndarray of uint8
        Codes, 8 / bits in a byte, along the last axis.
    scale, zero : ndarray of float16
        One a group, the scale at least 0; where they are exact, the smallest number of a group has code 0 and the
        largest the largest code.
    shape : tuple of int
        Of the array.
    bits, axis : int
        Groups lie along this axis.
    """

    packed: np.ndarray
    scale: np.ndarray
    zero: np.ndarray
    shape: tuple[int, ...]
    bits: int
    axis: int

    @classmethod
    def of(cls, x: np.ndarray, bits: int, group: int, axis: int) -> Codes:
        """Quantise an array in groups of ``group`` numbers along an axis that they divide.

        Scale and zero point are rounded to float16 first, so that codes and values use the same ones.

        Raises
        ------
        ValueError
            If a number is not finite or beyond ±65,504.
        """
        if not (most := np.abs(x).max(initial=0)) <= LARGEST:  # nan is not, either
            raise ValueError(f"numbers up to {most:g}: expected finite ones within ±{LARGEST:,.0f}, float16's range")
        split = _split(x, group, axis)  # [..., groups, group, ...]
        zero = split.min(axis=axis + 1, keepdims=True).astype(np.float16)
        span = np.maximum(split.max(axis=axis + 1, keepdims=True) - zero.astype(x.dtype), 0)  # zero may round above all
        scale = (span / (2**bits - 1)).astype(np.float16)
        step = np.where(scale > 0, scale, 1).astype(x.dtype)  # a group of equal numbers has no span
        codes = np.clip(np.rint((split - zero.astype(x.dtype)) / step), 0, 2**bits - 1).astype(np.uint8)
        return cls(_pack(codes.reshape(x.shape), bits), scale, zero, x.shape, bits, axis)

    def values(self, dtype: np.dtype) -> np.ndarray:
        """Return the numbers that the codes stand for."""
        codes = _unpack(self.packed, self.bits).reshape(self.shape)
        group = self.shape[self.axis] // self.scale.shape[self.axis]
        split = _split(codes, group, self.axis).astype(dtype)
        return (split * self.scale.astype(dtype) + self.zero.astype(dtype)).reshape(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of codes, scales and zero points."""
        return self.packed.nbytes + self.scale.nbytes + self.zero.nbytes


def _split(x: np.ndarray, group: int, axis: int) -> np.ndarray:
    """Return the array with an axis cut into groups: [..., n, ...] -> [..., n / group, group, ...]."""
    return x.reshape(*x.shape[:axis], -1, group, *x.shape[axis + 1 :])


def _pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """Put 8 / bits codes into a byte, the first one lowest: [..., n] -> [..., n · bits / 8]."""
    per_byte = 8 // bits
    lanes = codes.reshape(*codes.shape[:-1], -1, per_byte) << (bits * np.arange(per_byte, dtype=np.uint8))
    return np.bitwise_or.reduce(lanes, axis=-1).astype(np.uint8)


def _unpack(packed: np.ndarray, bits: int) -> np.ndarray:
    """Return the codes of each byte: [..., n · bits / 8] -> [..., n]."""
    per_byte = 8 // bits
    lanes = packed[..., None] >> (bits * np.arange(per_byte, dtype=np.uint8)) & (2**bits - 1)
    return lanes.reshape(*packed.shape[:-1], -1).astype(np.uint8)
