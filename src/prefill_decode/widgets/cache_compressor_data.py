"""What a `CacheCompressor` shows of each way of storing: texts, places of bars, the tokens of its continuation."""

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from prefill_decode.storage import Stored
from prefill_decode.widgets.cache_compressor_answers import answers
from prefill_decode.widgets.quantities import count

BARS = ("bytes", "mean", "perplexity")


def compressor_data(
    rows: Sequence[Stored],
    tokens: Callable[[Sequence[int]], Sequence[str]] | Mapping[str, Sequence[str]],
    sizes: Mapping[str, float],
) -> dict:
    """Return the data of the widget.

    Returns
    -------
    dict
        ``ways``, by name: the root's ``attributes``, ``texts``, ``places`` of the bars, ``tokens`` and how many of them
        are ``common`` with exact storage. ``marks``: where exact storage stands on each bar. ``questions``: what to
        ask, the storage it shows and the answer.
    """
    check_rows(rows, sizes)
    known = {row.name: sizes.get(row.name, row.bytes_per_token) for row in rows}
    written = {row.name: _tokens(row, tokens) for row in rows}
    values = {row.name: dict(zip(BARS, (known[row.name], row.mean, row.perplexity), strict=True)) for row in rows}
    largest = {bar: max(each[bar] for each in values.values()) for bar in BARS}
    shares = {name: {bar: _share(each[bar], largest[bar]) for bar in BARS} for name, each in values.items()}
    texts = {row.name: _texts(row, known[row.name], rows[0], known[rows[0].name]) for row in rows}
    return {
        "ways": {
            row.name: {
                "attributes": _attributes(row.name, texts[row.name]),
                "texts": texts[row.name],
                "places": {bar: {"style": f"--pd-v:{shares[row.name][bar]}"} for bar in BARS},
                "tokens": written[row.name],
                "common": row.common,
            }
            for row in rows
        },
        "marks": shares[rows[0].name],
        "questions": answers({row.name: row for row in rows}, texts, written),
    }


def check_rows(rows: Sequence[Stored], sizes: Mapping[str, float]) -> None:
    """Raise ValueError for rows that cannot be compared."""
    if not rows:
        raise ValueError("there are no rows: give those of compare_storage, exact storage first")
    names = [row.name for row in rows]
    if len(set(names)) < len(names):
        raise ValueError(f"rows are called {'; '.join(names)}: give each a name of its own")
    if rows[0].largest or rows[0].mean:
        raise ValueError(f"the first row, {names[0]!r}, has changed logits: put exact storage first")
    if unknown := [name for name in sizes if name not in names]:
        raise ValueError(f"sizes has {unknown[0]!r}: expected names of rows, {'; '.join(names)}")
    for row in rows:
        size = sizes.get(row.name, row.bytes_per_token)
        if not (0 < size < math.inf and all(map(math.isfinite, (row.largest, row.mean, row.perplexity)))):
            raise ValueError(
                f"{row.name!r} has {size} bytes a token, changes {row.largest} and {row.mean}, perplexity"
                f" {row.perplexity}: expected finite numbers and a size above 0"
            )


def opening(rows: Sequence[Stored]) -> str:
    """Return the first way of storing whose text is another one, or exact storage."""
    return next((row.name for row in rows if row.common < rows[0].common), rows[0].name)


def _tokens(row: Stored, tokens: Callable[[Sequence[int]], Sequence[str]] | Mapping[str, Sequence[str]]) -> list[str]:
    made = list(tokens(row.text) if callable(tokens) else tokens.get(row.name, ()))
    if len(made) != len(row.text):
        raise ValueError(f"tokens has {len(made)} strings for {row.name!r}: expected {len(row.text)}, one an id")
    return made


def _share(value: float, largest: float) -> str:
    return f"{value / largest if largest else 0:.3f}"


def _attributes(name: str, texts: Mapping[str, str]) -> dict[str, str]:
    told = {key: texts[key].replace(",", "") for key in ("bytes", "largest", "mean", "perplexity", "common")}
    return {"storage": name, **told}


def _texts(row: Stored, size: float, exact: Stored, exact_size: float) -> dict[str, str]:
    texts = {
        "name": row.name,
        "bytes": count(round(size)),
        "ratio": f"{size / exact_size:.2f}",
        "largest": change(row.largest, 2),
        "mean": change(row.mean, 3),
        "perplexity": f"{row.perplexity:.1f}",
        "common": str(row.common),
    }
    return texts | {"sentence": _sentence(row, texts, exact)}


def change(value: float, places: int) -> str:
    """Return a number with so many places; one that would be written as 0 and is not keeps its first digit."""
    written = f"{value:.{places}f}"
    return written if float(written) or not value else f"{Decimal(f'{value:.0e}'):f}"


def _sentence(row: Stored, texts: Mapping[str, str], exact: Stored) -> str:
    start = f"{row.name}: {texts['bytes']} bytes a token"
    if row is exact:
        new = f"{row.common} new token{'s' * (row.common != 1)}"
        return f"{start}, perplexity {texts['perplexity']}, {new}. All others are measured against it."
    return (
        f"{start}, {texts['ratio']} of {exact.name}; logits move by {texts['mean']} on average and by"
        f" {texts['largest']} at most; perplexity {texts['perplexity']} ({exact.name} {exact.perplexity:.1f});"
        f" {_alike(row, exact)}."
    )


def _alike(row: Stored, exact: Stored) -> str:
    if row.common == exact.common:
        return f"the first {row.common} tokens are those of {exact.name} storage"
    if row.common == 0:
        return "the first token is another one already"
    kept = "token is that" if row.common == 1 else f"{row.common} tokens are those"
    return f"the first {kept} of {exact.name} storage, then comes another text"
