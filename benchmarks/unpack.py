"""Packed weights in NumPy: to unpack the feed-forward matrices against keeping them in float32."""

from __future__ import annotations

from functools import partial

import numpy as np
from gguf import GGUFReader, ReaderTensor, dequantize

from benchmarks.measure import alternate
from prefill_decode import smollm2
from prefill_decode.recorded import Measure, Peer

RUNS = 5
NAMES = ("ffn_gate", "ffn_up", "ffn_down")


def measure() -> dict[str, Measure]:
    """Return the times for one row through the feed-forward matrices of all layers, and the bytes of either form."""
    tensors = [t for t in GGUFReader(smollm2.weights_path()).tensors if t.name.split(".")[-2] in NAMES]
    matrices = [dequantize(t.data, t.tensor_type) for t in tensors]  # [out, in] each
    rows = [np.random.default_rng(0).standard_normal(w.shape[1], np.float32) for w in matrices]
    actions = [
        partial(_unpack, tensors),
        partial(_multiply_packed, tensors, rows),
        partial(_multiply, matrices, rows),
    ]
    unpack, packed, plain = (1000 * min(times) for times in alternate(*actions, runs=RUNS, what="unpack"))
    kind = tensors[0].tensor_type.name
    row = f"one row through the {len(tensors)} feed-forward matrices, each unpacked from {kind} on the way"
    kept = Peer("the same matrices kept in float32", plain, RUNS, "best")
    size = sum(t.data.nbytes for t in tensors) / 1e6
    floats = Peer("in float32", sum(w.nbytes for w in matrices) / 1e6, 1, "counted")
    return {
        "packed_ms": Measure(row, packed, "ms", RUNS, "best", peer=kept),
        "unpack_ms": Measure(f"the unpacking alone, from {kind}", unpack, "ms", RUNS, "best"),
        "packed_mb": Measure(f"the matrices in {kind}", size, "MB", 1, "counted", peer=floats),
    }


def _unpack(tensors: list[ReaderTensor]) -> None:
    for tensor in tensors:
        dequantize(tensor.data, tensor.tensor_type)


def _multiply_packed(tensors: list[ReaderTensor], rows: list[np.ndarray]) -> None:
    for tensor, x in zip(tensors, rows, strict=True):
        dequantize(tensor.data, tensor.tensor_type) @ x  # [out, in] @ [in] -> [out]


def _multiply(matrices: list[np.ndarray], rows: list[np.ndarray]) -> None:
    for w, x in zip(matrices, rows, strict=True):
        w @ x  # [out, in] @ [in] -> [out]
