"""What n(n + 1)/2 and its companions do not know: the simple count of a case, and the right one beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..attention import causal_pairs
from ..cost import Shape, ledger
from ..generate import Generation
from .masks import PAD, packed_rows, padded_rows


@dataclass(frozen=True)
class Count:
    """One quantity, counted twice.

    Attributes
    ----------
    case, quantity : str
    simple : int
        By the formula for one sequence, all heads alike, one device, one token a pass.
    right : int
    why : str
    """

    case: str
    quantity: str
    simple: int
    right: int
    why: str


def shared_heads(name: str, shape: Shape, n: int) -> list[Count]:
    """Count grouped-query or multi-query attention over n positions, 16 bits a number."""
    own = replace(shape, kv_heads=shape.heads)  # as if every query head had its own keys and values
    simple, right = ledger(own, n, n), ledger(shape, n, n)
    return [
        Count(name, "pairs per query head", simple.pairs, right.pairs, "each query head still meets every key"),
        Count(name, "bytes of cache", own.kv_bytes(n), shape.kv_bytes(n), "KV heads are stored, not query heads"),
        Count(
            name,
            "FLOPs of K and V projections",
            simple.flops.k + simple.flops.v,
            right.flops.k + right.flops.v,
            "fewer rows in both matrices",
        ),
    ]


def latent_cache(name: str, shape: Shape, n: int) -> list[Count]:
    """Count a latent cache over n positions, 16 bits a number."""
    own = replace(shape, latent_kv=2 * shape.heads * shape.d_head)  # as if each head kept its keys and values
    why = "one latent vector stands for the keys and values of all heads"
    return [Count(name, "bytes of cache", own.kv_bytes(n), shape.kv_bytes(n), why)]


def batch(lengths: Sequence[int]) -> list[Count]:
    """Count prompts of these lengths in one pass, padded and packed; pairs are per query head and layer."""
    own = sum(causal_pairs(n, n) for n in lengths)
    padded, packed = padded_rows(lengths, "left"), packed_rows(lengths)
    longest, total = max(lengths), sum(lengths)
    pads = int((padded.prompt == PAD).sum())
    return [
        Count("padding", "rows", total, len(padded.prompt), f"{pads} rows are pads, computed for nobody"),
        Count(
            "padding",
            "pairs of a dense kernel",
            own,
            len(lengths) * longest**2,
            "pads are rows and columns, and the square is whole",
        ),
        Count("padding", "pairs that the mask allows", own, int(padded.mask.sum()), "no real row reads a pad"),
        Count(
            "packing",
            "pairs that the mask allows",
            causal_pairs(total, total),
            int(packed.mask.sum()),
            "a small triangle for each prompt, nothing between them",
        ),
        Count("packing", "rows", total, len(packed.prompt), "no pads"),
    ]


def dense_kernel(shape: Shape, n: int) -> list[Count]:
    """Count the pairs that a kernel computes which masks afterwards."""
    counted = ledger(shape, n, n)
    why = "the upper triangle is computed and thrown away"
    return [Count("dense kernel", "pairs computed", counted.pairs, counted.dense_pairs, why)]


def chunked(shape: Shape, n: int, chunk: int) -> list[Count]:
    """Count a prefill of n tokens in chunks, 16 bits a number."""
    whole = ledger(shape, n, n)
    ends = [min(start + chunk, n) for start in range(0, n, chunk)]
    parts = [ledger(shape, end - start, end) for start, end in zip(range(0, n, chunk), ends, strict=True)]
    name = f"chunks of {chunk}"
    return [
        Count(name, "pairs", whole.pairs, sum(p.pairs for p in parts), "the same triangle, cut into bands"),
        Count(
            name,
            "bytes of weights read",
            whole.bytes.weights,
            sum(p.bytes.weights for p in parts),
            "each of the passes reads all weights",
        ),
        Count(
            name,
            "bytes of K/V read",
            whole.bytes.kv_read,
            sum(p.bytes.kv_read for p in parts),
            "a chunk reads the keys of all before it again",
        ),
    ]


def speculation(plain: Generation, run: Generation) -> list[Count]:
    """Count a run of speculative decoding against the run with one token a pass, both of the same tokens."""
    if plain.ids != run.ids:
        raise ValueError("the two runs chose other tokens: compare runs of one prompt and one length")
    rows, simple_rows = (sum(p.n_queries for p in each.passes) for each in (run, plain))
    pairs, simple_pairs = (sum(p.pairs for p in each.passes) for each in (run, plain))
    return [
        Count("speculation", "passes", len(plain.passes), len(run.passes), "right guesses come several a pass"),
        Count("speculation", "rows", simple_rows, rows, "rows of wrong guesses are computed and cut"),
        Count("speculation", "pairs", simple_pairs, pairs, "wrong guesses attended, too"),
    ]


def tensor_parallel(shape: Shape, n: int, devices: int) -> list[Count]:
    """Count one device's share of a pass of n rows, every matrix split over devices, 16 bits a number.

    The simple count divides everything by the devices.

    Raises
    ------
    ValueError
        If query heads, feed-forward columns or the vocabulary cannot be shared out evenly.
    """
    for what, size in (("query heads", shape.heads), ("columns", shape.d_ff), ("tokens", shape.vocab)):
        if devices < 1 or size % devices:
            raise ValueError(f"{size} {what} cannot be shared out over {devices} devices: give a divisor")
    whole, held = ledger(shape, n, n), max(1, shape.kv_heads // devices)
    split = sum(shape.matrices[part] for part in ("q", "o", "ffn", "head")) // devices
    keys_and_values = 2 * shape.layers * shape.d_model * held * shape.d_head
    name = f"tensor parallel, {devices} devices"
    return [
        Count(name, "pairs per query head", whole.pairs // devices, whole.pairs, "heads are shared out, none is cut"),
        Count(
            name,
            "bytes of weights",
            whole.bytes.weights // devices,
            2 * (split + keys_and_values + shape.vectors),
            "norms and, with few KV heads, K and V matrices are copied",
        ),
        Count(
            name,
            "bytes of cache",
            shape.kv_bytes(n) // devices,
            replace(shape, heads=held, kv_heads=held).kv_bytes(n),
            "no device holds less than one KV head",
        ),
        Count(
            name,
            "numbers summed with the others",
            0,
            2 * shape.layers * n * shape.d_model,
            "after attention and after feed-forward, in every layer",
        ),
    ]


def pipeline(shape: Shape, n: int, stages: int) -> list[Count]:
    """Count the busiest device's share of a pass of n rows, whole layers shared out over stages, 16 bits a number.

    The simple count divides everything by the stages.
    """
    if not 1 <= stages <= shape.layers:
        raise ValueError(f"{stages} stages for {shape.layers} layers: give 1 to {shape.layers}")
    weights, head = ledger(shape, n, n).bytes.weights, 2 * (shape.matrices["head"] + shape.d_model)  # and the last norm
    layers = -(-shape.layers // stages)
    name = f"pipeline, {stages} stages"
    return [
        Count(name, "layers that a token waits for", layers, shape.layers, "one stage after another"),
        Count(
            name,
            "bytes of weights",
            weights // stages,
            layers * ((weights - head) // shape.layers) + head,
            "the last stage has the head, too",
        ),
        Count(name, "numbers sent on", 0, (stages - 1) * n * shape.d_model, "hidden states, from stage to stage"),
    ]
