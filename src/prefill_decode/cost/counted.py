"""The same ledgers by execution: the decoder runs on arrays that note every product they take part in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from prefill_decode.attention import AttentionTrace
from prefill_decode.cache import KVCache
from prefill_decode.model import Layer, Model, Trace, forward

from .ledgers import Bytes, Flops, Ledger


class Meter:
    """Add up what counting arrays see.

    Attributes
    ----------
    flops : Counter
        By part.
    inputs_and_outputs : int
        Of the products with a parameter, in numbers.
    seen : dict
        Bytes of every parameter array that was read, by its identity: an array read twice counts once.
    """

    def __init__(self) -> None:
        self.flops: Counter[str] = Counter()
        self.inputs_and_outputs = 0
        self.seen: dict[int, int] = {}


class CountedArray(np.ndarray):
    """A parameter that tells its meter of every operation; its products are plain arrays."""

    def __new__(cls, values: np.ndarray, meter: Meter, parts: tuple[tuple[str, int], ...]) -> CountedArray:
        """View ``values``; ``parts`` names the rows of a matrix, such as 64 of ``q`` and 32 of ``k``."""
        array = values.view(cls)
        array.meter, array.parts, array.key, array.stored = meter, parts, id(values), values.nbytes
        return array

    def __array_finalize__(self, source: object) -> None:
        for name in ("meter", "parts", "key", "stored"):
            setattr(self, name, getattr(source, name, None))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: np.ndarray, **kwargs: object) -> np.ndarray:
        plain = [x.view(np.ndarray) if isinstance(x, CountedArray) else x for x in inputs]
        result = getattr(ufunc, method)(*plain, **kwargs)
        self.meter.seen[self.key] = self.stored
        if ufunc is np.matmul:
            x = plain[1] if inputs[0] is self else plain[0]
            self._count(rows=x.size // self.shape[-1] if inputs[0] is self else x.size // self.shape[0])
        return result

    def _count(self, rows: int) -> None:
        width = self.size // sum(n for _, n in self.parts)  # of the input: the matrix may be seen transposed
        for part, outputs in self.parts:
            self.meter.flops[part] += 2 * rows * width * outputs
            kept_elsewhere = part in ("k", "v")  # counted as written to the cache
            self.meter.inputs_and_outputs += 0 if kept_elsewhere else rows * outputs
        self.meter.inputs_and_outputs += rows * width


class CountedCache(KVCache):
    """A cache that adds up what each layer writes and reads."""

    read = written = 0

    def extend(self, layer: int, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Store and return as ``KVCache`` does, and count both."""
        keys, values = super().extend(layer, k, v)
        self.written += k.nbytes + v.nbytes
        self.read += keys.nbytes + values.nbytes
        return keys, values


def count_pass(model: Model, ids: Sequence[int], n_cached: int = 0, *, logits: str = "last") -> Ledger:
    """Run one pass with counters: the last ``len(ids) - n_cached`` tokens against a cache of the earlier ones.

    Parameters
    ----------
    model : Model
    ids : sequence of int
        At most a few hundred: the scores of every layer are kept, since the finite ones among them are counted.
    n_cached : int
        Tokens that an earlier, uncounted pass has put into the cache.
    logits : {"last", "all"}

    Returns
    -------
    Ledger
        Of one sequence, in the dtypes that the arrays really have.
    """
    cache = CountedCache(model.config, len(ids), model.dtype)
    if n_cached:
        forward(model, ids[:n_cached], cache)
    cache.read = cache.written = 0
    meter, trace = Meter(), Trace()
    forward(counted(model, meter), ids[n_cached:], cache, logits=logits, trace=trace)
    return _as_ledger(model, meter, trace, cache)


def counted(model: Model, meter: Meter) -> Model:
    """Return the same model, its parameters seen as counting arrays; no number is copied."""
    c = model.config
    rows = {
        "qkv": (("q", c.n_heads * c.d_head), ("k", c.n_kv_heads * c.d_head), ("v", c.n_kv_heads * c.d_head)),
        "output": (("o", c.d_model),),
        "gate_up": (("ffn", 2 * c.d_ff),),
        "down": (("ffn", c.d_model),),
    }

    def seen(array: np.ndarray, parts: tuple = ()) -> CountedArray:
        return CountedArray(array, meter, parts)

    layers = tuple(
        Layer(**{field.name: seen(getattr(layer, field.name), rows.get(field.name, ())) for field in fields(Layer)})
        for layer in model.layers
    )
    head = seen(model.embedding, (("head", c.vocab_size),))
    return replace(model, embedding=head, layers=layers, norm=seen(model.norm))


def _as_ledger(model: Model, meter: Meter, trace: AttentionTrace, cache: CountedCache) -> Ledger:
    c, (_, n_queries, n_keys) = model.config, trace.scores[0].shape
    allowed = sum(int(np.isfinite(scores).sum()) for scores in trace.scores)  # of all heads and layers
    pairs, rest = divmod(allowed, c.n_layers * c.n_heads)
    if rest:
        raise AssertionError(f"{allowed} pairs do not spread evenly over {c.n_layers} layers of {c.n_heads} heads")
    attention = 2 * c.d_head * allowed
    numbers = meter.inputs_and_outputs + 2 * allowed  # of the two products of attention only scores and weights are new
    moved = Bytes(sum(meter.seen.values()), cache.read, cache.written, numbers * model.dtype.itemsize)
    return Ledger(pairs, n_queries * n_keys, Flops(scores=attention, values=attention, **meter.flops), moved)
