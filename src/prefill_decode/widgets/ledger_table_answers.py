"""One model's ledgers, the lengths where one number passes another, and the answers to a `LedgerTable`'s questions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from prefill_decode.cost import Ledger, Shape, ledger
from prefill_decode.widgets.quantities import count, digits

LONGEST = 2**60  # tokens, beyond any crossing
TELLING = 4096  # tokens: where the questions look that have no length of their own


@dataclass(frozen=True)
class Counted:
    """One model's ledgers: of prefill and of the decode pass after it, for each length."""

    shape: Shape
    dtype: str
    lengths: tuple[int, ...]

    def passes(self, n: int) -> dict[str, Ledger]:
        """Return the ledgers of both passes."""
        return {
            "prefill": ledger(self.shape, n, n, dtype=self.dtype),
            "decode": ledger(self.shape, 1, n + 1, dtype=self.dtype),
        }

    def first(self, holds: Callable[[dict[str, Ledger]], bool]) -> int:
        """Return the smallest n whose ledgers are so; it must hold for every n after it."""
        return bisect_left(range(1, LONGEST), True, key=lambda n: holds(self.passes(n))) + 1


def tokens(n: int) -> str:
    """Return a count of tokens in words."""
    return f"{count(n)} token{'s' * (n != 1)}"


def answers(model: Counted, cross: int) -> dict[str, dict]:
    """Return, for each question, the length that shows the answer and the answer."""
    telling = _shown(TELLING, model.lengths)
    return {
        "attention": _attention_answer(model),
        "cache": _cache_answer(model, cross),
        "dense": {"n": telling, "text": _dense_answer(telling, model.passes(telling)["prefill"])},
        "double": {"n": telling, "text": _double_answer(telling, model.passes(telling), model.passes(2 * telling))},
    }


def cached(n: int) -> str:
    """Return how many tokens are in the cache before a decode pass, in words."""
    return f"{count(n)} cached token{'s' * (n != 1)}"


def _shown(n: int, lengths: tuple[int, ...]) -> int:
    """Return the place on the slider nearest to n: lengths are compared by their ratio, as the slider shows them."""
    return min(lengths, key=lambda length: max(length, n) / min(length, n))


def _stands(n: int, lengths: tuple[int, ...]) -> str:
    """Say where the slider stands, if that is not at n."""
    shown = _shown(n, lengths)
    return "" if shown == n else f" The slider stands at {count(shown)}, its nearest place."


def _attention_answer(model: Counted) -> dict:
    def passed(phase: str) -> int:
        def holds(both: dict[str, Ledger]) -> bool:
            flops = both[phase].flops
            return flops.scores + flops.values > flops.ffn

        return model.first(holds)

    prefill, decode = passed("prefill"), passed("decode")
    text = (
        f"In decode from n = {count(decode)} on: one token’s scores and values take more FLOPs than its feed-forward."
        f" In prefill from n = {count(prefill)} on: its rows see half as many keys on average."
        f"{_stands(decode, model.lengths)}"
    )
    return {"n": _shown(decode, model.lengths), "text": text}


def _cache_answer(model: Counted, cross: int) -> dict:
    moved = model.passes(cross)["decode"].bytes
    text = (
        f"From {cached(cross)} on: the decode pass adds its own and reads {count(cross + 1)}, {count(moved.kv_read)}"
        f" bytes of cache, and {count(moved.weights)} bytes of weights, for one sequence; for a batch sooner."
        f"{_stands(cross, model.lengths)}"
    )
    return {"n": _shown(cross, model.lengths), "text": text}


def _dense_answer(n: int, prefill: Ledger) -> str:
    vain = prefill.dense_pairs - prefill.pairs
    return (
        f"Prefill of {tokens(n)}: {count(prefill.dense_pairs)} pairs, of which the mask throws {count(vain)} away,"
        f" {digits(100 * vain / prefill.dense_pairs)} %: every key that comes after its query. In decode nothing: the"
        " one query may read every key."
    )


def _double_answer(n: int, once: dict[str, Ledger], twice: dict[str, Ledger]) -> str:
    def times(phase: str, number: Callable[[Ledger], int]) -> str:
        return f"× {number(twice[phase]) / number(once[phase]):.2f}"

    return (
        f"From {count(n)} to {count(2 * n)} tokens. Prefill: pairs {times('prefill', lambda c: c.pairs)}, FLOPs"
        f" {times('prefill', lambda c: c.flops.total)}. Decode: pairs {times('decode', lambda c: c.pairs)}, FLOPs"
        f" {times('decode', lambda c: c.flops.total)}, cache read {times('decode', lambda c: c.bytes.kv_read)}. Weights"
        " × 1.00 in both."
    )
