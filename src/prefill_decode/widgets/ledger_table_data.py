"""What a `LedgerTable` sends to the page: every text and every place, for each model and each length.

Nothing is left to compute: JavaScript picks. A list holds one entry for each length, or a single one where they are
all the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from prefill_decode.cost import Ledger, Shape
from prefill_decode.widgets.ledger_table_answers import Counted, answers, cached, tokens
from prefill_decode.widgets.quantities import count, digits, percent, short

PHASES = ("prefill", "decode")
FLOPS = ("q", "k", "v", "o", "scores", "values", "ffn", "head", "total")
BYTES = ("weights", "kv_read", "kv_written", "memory", "activations", "total")
BARLESS = ("flops-total", "bytes-memory", "bytes-activations", "bytes-total")  # rows that are no share of a sum
HEADROOM = 1.2  # decades above the largest number, for a label
# The root's attributes, by the text whose digits they are.
ATTRIBUTES = {
    "prefill-pairs": "prefill-pairs",
    "decode-pairs": "decode-pairs",
    "prefill-flops": "prefill-flops-total",
    "decode-flops": "decode-flops-total",
    "weight-bytes": "decode-bytes-weights",
    "kv-read": "decode-bytes-kv_read",
}

Models = Mapping[str, tuple[Shape, str]]


def ledger_data(shapes: Models, lengths: Sequence[int]) -> dict:
    """Return plain JSON values.

    Raises
    ------
    ValueError
        Without models or lengths, for lengths that do not rise from at least 1, or a shape whose FLOPs are not counted.
    """
    lengths = tuple(lengths)
    if not shapes or not lengths:
        raise ValueError(f"got {len(shapes)} models and {len(lengths)} lengths: a table needs at least one of each")
    if any(not isinstance(n, int) or n < 1 for n in lengths) or list(lengths) != sorted(set(lengths)):
        raise ValueError(f"lengths = {lengths}: expected whole numbers of at least 1, each larger than the one before")
    models = {name: _counted(name, entry, lengths) for name, entry in shapes.items()}
    axes = _axes(models.values())
    return {
        "lengths": list(lengths),
        "axes": axes,
        "attributes": ATTRIBUTES,
        "models": {name: _model(model, axes) for name, model in models.items()},
    }


def _counted(name: str, entry: tuple[Shape, str], lengths: tuple[int, ...]) -> Counted:
    model = Counted(*entry, lengths)
    try:
        model.passes(1)
    except ValueError as error:
        raise ValueError(f"model {name!r}: {error}") from None
    return model


def _axes(models: Iterable[Counted]) -> dict:
    """Return the ends of the picture: lengths, and bytes in powers of ten that hold every model's weights and cache."""
    read = [
        moved
        for model in models
        for n in (model.lengths[0], model.lengths[-1])
        for moved in (model.passes(n)["decode"].bytes.weights, model.passes(n)["decode"].bytes.kv_read)
    ]
    return {"bytes": [math.floor(math.log10(min(read))), round(math.log10(max(read)) + HEADROOM, 3)]}


def _model(model: Counted, axes: dict) -> dict:
    columns: dict[str, dict] = {"texts": {}, "places": {}}
    for n in model.lengths:
        both = model.passes(n)
        for kind, entries in (("texts", _texts(n, both)), ("places", _places(n, both, model.lengths, axes))):
            for name, value in entries.items():
                columns[kind].setdefault(name, []).append(value)
    cross = model.first(lambda both: both["decode"].bytes.kv_read > both["decode"].bytes.weights)
    columns["texts"] |= {"cross-name": ["cache outweighs weights"], "cross-at": [f"from {cached(cross)} on"]}
    columns["places"] |= {name: [place] for name, place in _fixed_places(model, cross, axes).items()}
    shortened = {
        kind: {name: values[:1] if len(set(map(str, values))) == 1 else values for name, values in entries.items()}
        for kind, entries in columns.items()
    }
    return {**shortened, "answers": answers(model, cross)}


def numbers(counted: Ledger) -> dict[str, tuple[int, int, str]]:
    """Return each row's number, what its bar is a share of, and its unit."""
    flops = {**asdict(counted.flops), "total": counted.flops.total}
    moved = {**asdict(counted.bytes), "total": counted.bytes.total}
    moved["memory"] = moved["weights"] + moved["kv_read"] + moved["kv_written"]
    return {
        "pairs": (counted.pairs, counted.dense_pairs, ""),
        "dense": (counted.dense_pairs, counted.dense_pairs, ""),
        **{f"flops-{part}": (flops[part], flops["total"], "FLOP") for part in FLOPS},
        **{f"bytes-{part}": (moved[part], moved["memory"], "B") for part in BYTES},
    }


def _texts(n: int, both: dict[str, Ledger]) -> dict[str, str]:
    texts = {"prefill-head": f"prefill of {tokens(n)}", "prefill-size": f"{count(n)} queries × {count(n)} keys"}
    texts |= {"decode-head": "the decode pass after it", "decode-size": f"1 query × {count(n + 1)} keys"}
    for phase, counted in both.items():
        for row, (number, _, unit) in numbers(counted).items():
            texts[f"{phase}-{row}"] = count(number)
            texts[f"{phase}-{row}-short"] = count(number) if number < 1000 else short(number, unit).rstrip()
    decode = both["decode"].bytes
    texts["now"] = f"cache {short(decode.kv_read, 'B')}"
    texts["weights-name"] = f"weights {short(decode.weights, 'B')}"
    texts["sentence"] = _sentence(n, both)
    texts["n"] = tokens(n)
    return texts


def _sentence(n: int, both: dict[str, Ledger]) -> str:
    prefill, decode = both["prefill"], both["decode"]
    times = prefill.flops.total / decode.flops.total
    fewer = f"{digits(times)} times fewer" if n > 1 else "about as many"
    return (
        f"Prefill of {tokens(n)}: {pairs(prefill.pairs)}, {short(prefill.flops.total, 'FLOP')}; the decode pass"
        f" after it: {pairs(decode.pairs)}, {short(decode.flops.total, 'FLOP')}, {fewer}."
        f" Both read {short(decode.bytes.weights, 'B')} of weights; decode reads"
        f" {short(decode.bytes.kv_read, 'B')} of cache for a single token."
    )


def pairs(number: int) -> str:
    """Return a count of pairs in words."""
    return f"{count(number)} pair{'s' * (number != 1)}"


def _places(n: int, both: dict[str, Ledger], lengths: tuple[int, ...], axes: dict) -> dict[str, dict[str, str]]:
    """Return what moves with n: the bars, and the mark of n in the picture."""
    bars = {
        f"{phase}-{row}": {"style": f"--pd-v:{number / whole:.3f}"}
        for phase, counted in both.items()
        for row, (number, whole, _) in numbers(counted).items()
        if row not in BARLESS
    }
    x, decode = x_of(n, lengths), both["decode"].bytes
    cache, weights = y_of(decode.kv_read, axes), y_of(decode.weights, axes)
    return {
        **bars,
        "now-line": {"x1": percent(x), "x2": percent(x)},
        "now-cache": {"cx": percent(x), "cy": percent(cache)},
        "now-weights": {"x": percent(x), "y": percent(weights)},
        "now": {"x": percent(x), "dx": "6" if x < 0.5 else "-6", "text-anchor": "start" if x < 0.5 else "end"},
    }


def x_of(n: int, lengths: tuple[int, ...]) -> float:
    """Return where n is on the axis of lengths, from 0 to 1."""
    first, last = math.log2(lengths[0]), math.log2(lengths[-1])
    return (math.log2(n) - first) / (last - first or 1)


def y_of(number: float, axes: dict) -> float:
    """Return where so many bytes are, from 0 at the top to 1."""
    low, high = axes["bytes"]
    return (high - math.log10(number)) / (high - low)


def _fixed_places(model: Counted, cross: int, axes: dict) -> dict[str, dict[str, str]]:
    decode = [model.passes(n)["decode"].bytes for n in model.lengths]
    y = percent(y_of(decode[0].weights, axes))
    points = " ".join(
        f"{100 * x_of(n, model.lengths):.2f},{100 * y_of(moved.kv_read, axes):.2f}"
        for n, moved in zip(model.lengths, decode, strict=True)
    )
    seen = model.lengths[0] <= cross <= model.lengths[-1]
    x = x_of(cross, model.lengths) if seen else 0
    shown = {"visibility": "visible" if seen else "hidden"}
    side = {"dx": "14", "text-anchor": "end"} if x > 0.5 else {"dx": "0", "text-anchor": "start"}
    words = {"x": percent(x), "y": y, **side, **shown}
    return {
        "weights-line": {"y1": y, "y2": y},
        "weights-name": {"y": y},
        "cache-line": {"points": points},
        "cross": {"cx": percent(x), "cy": y, **shown},
        "cross-name": words,
        "cross-at": words,
    }
