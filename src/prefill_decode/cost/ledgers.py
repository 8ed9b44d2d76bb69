"""What one pass costs, counted exactly: pairs, FLOPs and bytes."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from prefill_decode.attention import causal_pairs

from .shape import Shape, bytes_of, dtype_of


@dataclass(frozen=True)
class Flops:
    """Floating-point operations of the matrix products: 2 for each multiply and add.

    ``scores`` and ``values`` count the pairs that the mask allows; norms, softmax and rotations are left out.
    """

    q: int
    k: int
    v: int
    o: int
    scores: int
    values: int
    ffn: int
    head: int

    @property
    def total(self) -> int:
        """Sum of all parts."""
        return sum(astuple(self))


@dataclass(frozen=True)
class Bytes:
    """Traffic if every operand crosses the memory's edge once: the least that a pass must move.

    Attributes
    ----------
    weights : int
        Matrices, norm gains and biases, once for the whole batch. The looked-up rows of an embedding are left out.
    kv_read, kv_written : int
        Keys and values of every sequence: all that its queries read, and the new ones.
    activations : int
        Inputs and outputs of the matrix products, each array once; keys and values are counted above. A fused
        kernel keeps many of them on the chip.
    """

    weights: int
    kv_read: int
    kv_written: int
    activations: int

    @property
    def total(self) -> int:
        """Sum of all parts."""
        return sum(astuple(self))


@dataclass(frozen=True)
class Ledger:
    """The four ledgers of one pass.

    Attributes
    ----------
    pairs : int
        Query-key pairs that the mask allows: per query head, per layer, per sequence.
    dense_pairs : int
        Pairs that a kernel computes which masks afterwards: every query with every key.
    flops : Flops
        Of the whole pass: all heads, layers and sequences.
    bytes : Bytes
        Of the whole pass.
    """

    pairs: int
    dense_pairs: int
    flops: Flops
    bytes: Bytes

    @property
    def intensity(self) -> float:
        """FLOPs for each byte of weights and K/V read: what has to come from memory, however well a kernel is fused."""
        return self.flops.total / (self.bytes.weights + self.bytes.kv_read)


def ledger(
    shape: Shape, n_queries: int, n_keys: int, *, batch: int = 1, dtype: object = "float16", logits: str = "last"
) -> Ledger:
    """Count one pass: prefill of n tokens is ``(n, n)``, a decode step after n cached ones ``(1, n + 1)``.

    Parameters
    ----------
    shape : Shape
    n_queries, n_keys : int
        New rows of each sequence, and the keys that the last of them reads, its own included.
    batch : int
        Sequences of this length in the same pass.
    dtype : str or numpy dtype
        One of ``DTYPES``.
    logits : {"last", "all"}
        Whether the head runs on one row of each sequence or on every row.

    Returns
    -------
    Ledger
        Exact integers.

    Raises
    ------
    ValueError
        For lengths or batches that are not positive, more queries than keys, an unknown dtype, or a latent cache.

    Notes
    -----
    Kaplan et al. 2020 (arXiv:2001.08361), table 1, counts the same products; a multiply-add is 2 FLOPs there too.
    """
    n_queries, n_keys, batch = _check(n_queries, n_keys, batch, logits)
    rows, head_rows = batch * n_queries, batch * (n_queries if logits == "all" else 1)
    pairs = causal_pairs(n_queries, n_keys)
    all_pairs = batch * shape.layers * shape.heads * pairs
    once = {part: 2 * count for part, count in shape.matrices.items()}  # FLOPs of one row: each weight is used once
    flops = Flops(
        **{part: (head_rows if part == "head" else rows) * count for part, count in once.items()},
        scores=2 * shape.d_head * all_pairs,
        values=2 * shape.d_head * all_pairs,
    )
    width = dtype_of(dtype)
    moved = Bytes(
        weights=bytes_of(shape.params_read, width.weight_bits),
        kv_read=bytes_of(batch * shape.kv_numbers * n_keys, width.value_bits),
        kv_written=bytes_of(batch * shape.kv_numbers * n_queries, width.value_bits),
        activations=bytes_of(_activations(shape, rows, head_rows, all_pairs), width.value_bits),
    )
    return Ledger(pairs, n_queries * n_keys, flops, moved)


def _activations(shape: Shape, rows: int, head_rows: int, all_pairs: int) -> int:
    """Count the numbers that matrix products take in and give out, besides weights, keys and values."""
    query = shape.heads * shape.d_head
    # input, q · mixed values, projected · input, (gate,) up, inner · down
    per_row = (
        shape.d_model + 2 * query + shape.d_model + shape.d_model + shape.mlp_matrices * shape.d_ff + shape.d_model
    )
    scores_and_weights = 2 * all_pairs
    return rows * shape.layers * per_row + scores_and_weights + head_rows * (shape.d_model + shape.vocab)


def _check(n_queries: int, n_keys: int, batch: int, logits: str) -> tuple[int, int, int]:
    counts = {"n_queries": n_queries, "n_keys": n_keys, "batch": batch}
    for name, value in counts.items():
        if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
            raise ValueError(f"{name} = {value}: expected a whole number of at least 1")
    if n_queries > n_keys:
        raise ValueError(f"{n_queries} queries for {n_keys} keys: every query needs at least its own key")
    if logits not in ("all", "last"):
        raise ValueError(f'logits = {logits!r}: expected "all" (every row) or "last" (one row)')
    return tuple(int(value) for value in counts.values())  # NumPy integers would overflow silently
