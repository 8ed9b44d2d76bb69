"""All schedules against one oracle, the full pass: how far their logits are off, and what each one runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..model import Model, forward
from ..tiled import Tiles, tiled_kernel
from .batches import packed_batch, padded_batch
from .paged import PagedKVCache
from .passes import chunked_prefill, prefill_then_decode
from .pool import BlockPool
from .prefix import PrefixCache
from .speculative import prompt_lookup, speculative_generate

# ids, the position of the first row, and logits [rows, V] that should be the oracle's for these positions
Piece = tuple[Sequence[int], int, np.ndarray]


@dataclass
class Work:
    """What went through a model, counted where attention meets it.

    Attributes
    ----------
    rows : list of int
        Query rows of each pass.
    pairs : list of int
        Pairs that the mask of each pass allowed: per query head, per layer.
    """

    rows: list[int] = field(default_factory=list)
    pairs: list[int] = field(default_factory=list)

    @property
    def passes(self) -> int:
        """Passes: each reads all weights once."""
        return len(self.rows)


class CountingKernel:
    """Attention that notes rows and pairs before another kernel computes; a model runs with it as ``attend``.

    Parameters
    ----------
    kernel : callable
        As ``attention.attention``.
    n_layers : int
        Calls of one pass: the first layer stands for all.
    work : Work
        Where it notes.
    """

    def __init__(self, kernel: Callable[..., np.ndarray], n_layers: int, work: Work) -> None:
        self._kernel, self._n_layers, self._calls = kernel, n_layers, 0
        self.work = work

    def __call__(self, q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray, *rest: object) -> np.ndarray:
        """Note the first layer's rows and pairs, then compute."""
        if self._calls % self._n_layers == 0:
            self.work.rows.append(q.shape[1])
            self.work.pairs.append(int(mask.sum()))
        self._calls += 1
        return self._kernel(q, k, v, mask, *rest)

    def over(self, kernel: Callable[..., np.ndarray]) -> CountingKernel:
        """Return the same for another kernel, noting in the same place."""
        return CountingKernel(kernel, self._n_layers, self.work)


@dataclass(frozen=True)
class Route:
    """One schedule, in all the sizes in which it is tried.

    Attributes
    ----------
    name : str
    sizes : sequence
        The first one's work is shown.
    run : callable
        From a model and a size to pieces.
    """

    name: str
    sizes: Sequence
    run: Callable[[Model, object], Iterable[Piece]]


@dataclass(frozen=True)
class Comparison:
    """How a schedule compares with full passes.

    Attributes
    ----------
    schedule : str
    tried : int
        Sizes.
    difference : float
        The largest, over all sizes, positions and logits.
    work : Work
        Of the first size.
    """

    schedule: str
    tried: int
    difference: float
    work: Work


def compare(model: Model, routes: Sequence[Route]) -> list[Comparison]:
    """Run every route in every size and hold each logit against a full pass over the same ids."""
    oracle: dict[tuple[int, ...], np.ndarray] = {}
    rows = []
    for route in routes:
        differences, first = [], None
        for size in route.sizes:
            kernel = CountingKernel(model.attend, model.config.n_layers, Work())
            counted, first = replace(model, attend=kernel), first or kernel.work
            for ids, start, logits in route.run(counted, size):
                if tuple(ids) not in oracle:
                    oracle[tuple(ids)] = forward(model, ids)
                expected = oracle[tuple(ids)][start : start + len(logits)]  # [rows, V]
                differences.append(np.abs(logits - expected).max())
        rows.append(Comparison(route.name, len(route.sizes), float(max(differences)), first))
    return rows


def all_routes(prompts: Sequence[Sequence[int]], *, every_size: bool, new_tokens: int = 6) -> list[Route]:
    """Return all schedules of the chapter for a batch of prompts; those of one prompt run the first.

    Parameters
    ----------
    prompts : sequence of sequences of int
        The first one the longest, at least 5 tokens.
    every_size : bool
        Try each cut, chunk, block and tile size there is; otherwise 4 alone.
    new_tokens : int
        For speculation.
    """
    text = list(prompts[0])
    n = len(text)
    sizes = [4, *(size for size in range(1, n + 1) if every_size and size != 4)]

    def whole(run: Callable[[Model, list[int], int], np.ndarray]) -> Callable[[Model, int], list[Piece]]:
        return lambda model, size: [(text, 0, run(model, text, size))]

    def batch(run: Callable[..., list[np.ndarray]]) -> Callable[[Model, object], list[Piece]]:
        return lambda model, side: [(ids, 0, rows) for ids, rows in zip(prompts, run(model, side), strict=True)]

    return [
        Route("full pass (the oracle)", ["n"], whole(lambda model, text, _: forward(model, text))),
        Route("prefill of 4, then decode", sizes, whole(prefill_then_decode)),
        Route("prefill in chunks of 4", sizes, whole(chunked_prefill)),
        Route("square tiles of 4", sizes, whole(_in_tiles)),
        Route("paged, blocks of 4, shuffled", sizes, whole(_paged)),
        Route("padded on the left", ["left"], batch(lambda model, side: padded_batch(model, prompts, side))),
        Route("padded on the right", ["right"], batch(lambda model, side: padded_batch(model, prompts, side))),
        Route("packed", ["end to end"], batch(lambda model, _: packed_batch(model, prompts))),
        Route(
            f"prefix cache: {n - 3}, then all {n} tokens", sizes, lambda model, size: _second_turn(model, text, size)
        ),
        Route(
            f"speculation: {new_tokens} more tokens", sizes, lambda model, k: _speculation(model, text, new_tokens, k)
        ),
    ]


def _shuffled(model: Model, n: int, block_size: int) -> BlockPool:
    n_blocks = -(-n // block_size) + 2
    order = np.random.default_rng(block_size).permutation(n_blocks).tolist()
    return BlockPool(model.config, block_size, n_blocks, model.dtype, order)


def _paged(model: Model, text: list[int], block_size: int) -> np.ndarray:
    cache = PagedKVCache.on(_shuffled(model, len(text), block_size))
    return prefill_then_decode(model, text, len(text) // 2, cache=cache)


def _second_turn(model: Model, text: list[int], block_size: int) -> list[Piece]:
    """Run all but three tokens of a text, then the whole text on what was kept of the first run."""
    pool = _shuffled(model, 2 * len(text), block_size)
    known, first = PrefixCache(pool), text[:-3]
    cache = known.start(first)
    before = forward(model, first, cache)
    known.keep(first, cache)
    cache = known.start(text)
    reused = len(cache)
    return [(first, 0, before), (text, reused, forward(model, text[reused:], cache))]


def _in_tiles(model: Model, text: list[int], size: int) -> np.ndarray:
    return forward(replace(model, attend=model.attend.over(tiled_kernel(Tiles(size, size)))), text)


def _speculation(model: Model, text: list[int], new_tokens: int, k: int) -> list[Piece]:
    kept: list[np.ndarray] = []
    result = speculative_generate(model, prompt_lookup, text, new_tokens, k, on_logits=kept.append)
    return [(result.ids[:-1], len(text) - 1, np.concatenate(kept))]
