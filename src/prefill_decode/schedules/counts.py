"""What n(n + 1)/2 and its companions do not know: the simple count of a case, and the right one beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..attention import causal_pairs
from ..config import is_whole
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
        Count(
            name,
            "pairs per query head",
            simple.pairs,
            right.pairs,
            f"each of {shape.heads} query heads still meets every key",
        ),
        Count(
            name,
            "bytes of cache",
            own.kv_bytes(n),
            shape.kv_bytes(n),
            f"KV heads stored: {shape.kv_heads}, not {shape.heads}",
        ),
        Count(
            name,
            "FLOPs of K and V projections",
            simple.flops.k + simple.flops.v,
            right.flops.k + right.flops.v,
            f"both matrices have {shape.kv_heads / shape.heads:.0%} of the rows",
        ),
    ]


def latent_attention(name: str, shape: Shape, compressed: int, n: int) -> list[Count]:
    """Count attention whose cache is a latent vector (DeepSeek-V2, section 2.1) over n positions, 16 bits a number.

    Parameters
    ----------
    name : str
    shape : Shape
        With ``latent_kv``: what a layer keeps of a position.
    compressed : int
        The part of it that keys and values are computed from; the rest is a rotated key that all heads share.
    n : int
    """
    inner = shape.heads * shape.d_head
    own = replace(shape, latent_kv=2 * inner)  # as if each head kept its keys and values
    simple, down_and_up = 2 * shape.d_model * inner, shape.d_model * shape.latent_kv + 2 * compressed * inner
    pairs = causal_pairs(n, n)
    return [
        Count(name, "pairs per query head", pairs, pairs, f"each of {shape.heads} query heads still meets every key"),
        Count(
            name,
            "bytes of cache",
            own.kv_bytes(n),
            shape.kv_bytes(n),
            f"{shape.latent_kv} numbers a layer and token, not {2 * inner:,}",
        ),
        Count(
            name,
            "FLOPs of K and V projections",
            2 * n * shape.layers * simple,
            2 * n * shape.layers * down_and_up,
            f"down to {shape.latent_kv} numbers, then {compressed} of them up to all heads",
        ),
    ]


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
            f"{len(lengths)} squares of {longest} x {longest}, line by line",
        ),
        Count("padding", "pairs that the mask allows", own, int(padded.mask.sum()), "no real row reads a pad"),
        Count(
            "packing",
            "pairs that the mask allows",
            causal_pairs(total, total),
            int(packed.mask.sum()),
            "a small triangle for each prompt, nothing between them",
        ),
        Count("packing", "pairs of a dense kernel", own, total**2, "one square over all rows: more than with pads"),
        Count("packing", "rows", total, len(packed.prompt), "no pads"),
    ]


def dense_kernel(shape: Shape, n: int) -> list[Count]:
    """Count the pairs that a kernel computes which masks afterwards."""
    counted = ledger(shape, n, n)
    why = "the upper triangle is computed and thrown away"
    return [Count("dense kernel", "pairs computed", counted.pairs, counted.dense_pairs, why)]


def chunked(shape: Shape, n: int, chunk: int) -> list[Count]:
    """Count a prefill of n tokens in chunks, 16 bits a number."""
    if not is_whole(chunk) or not 1 <= chunk <= n:
        raise ValueError(f"a chunk of {chunk} rows for {n} tokens: give 1 to {n}")
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
            f"each of {len(parts)} passes reads all weights",
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
        if not is_whole(devices) or devices < 1 or size % devices:
            raise ValueError(f"{size} {what} cannot be shared out over {devices} devices: give a divisor")
    whole, held = ledger(shape, n, n), -(-shape.kv_heads // devices)  # a KV head cannot be cut
    split = sum(shape.matrices[part] for part in ("q", "o", "ffn", "head")) // devices
    keys_and_values = 2 * shape.layers * shape.d_model * held * shape.d_head
    name = f"tensor parallel, {devices} devices"
    return [
        Count(
            name,
            "pairs per query head",
            whole.pairs // devices,
            whole.pairs,
            f"{shape.heads // devices} of {shape.heads} heads each, none is cut",
        ),
        Count(
            name,
            "bytes of weights",
            whole.bytes.weights // devices,
            2 * (split + keys_and_values + shape.vectors),
            "every device has the norms and whole KV heads' matrices",
        ),
        Count(
            name,
            "bytes of cache",
            shape.kv_bytes(n) // devices,
            replace(shape, heads=held, kv_heads=held).kv_bytes(n),
            f"{shape.kv_heads} KV heads: no device holds less than one",
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
    if not is_whole(stages) or not 1 <= stages <= shape.layers:
        raise ValueError(f"{stages} stages for {shape.layers} layers: give 1 to {shape.layers}")
    weights, head = ledger(shape, n, n).bytes.weights, 2 * (shape.matrices["head"] + shape.d_model)  # and the last norm
    layer = (weights - head) // shape.layers
    most, last = -(-shape.layers // stages), shape.layers // stages  # the stage with the head has the fewest layers
    busiest = max(most * layer, last * layer + head)
    name = f"pipeline, {stages} stages"
    return [
        Count(name, "layers that a token waits for", most, shape.layers, "one stage after another"),
        Count(
            name,
            "bytes of weights",
            weights // stages,
            busiest,
            "the last stage has the head, too",
        ),
        Count(name, "numbers sent on", 0, (stages - 1) * n * shape.d_model, "hidden states, from stage to stage"),
    ]
