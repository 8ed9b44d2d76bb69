"""What the settings of a sampler may be: each is refused in one line, before a token is chosen."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Sequence

from .config import is_number, is_whole, one_line

LARGEST = sys.float_info.max

# Name, to what is expected and what is so; ``u`` is the number that a draw uses.
RANGES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "temperature": ("0 (greedy) or more", lambda value: is_number(value) and 0 <= value <= LARGEST),
    "top_k": ("a whole number of at least 1", lambda value: is_whole(value) and value >= 1),
    "top_p": ("more than 0 and at most 1", lambda value: is_number(value) and 0 < value <= 1),
    "min_p": ("0 to 1", lambda value: is_number(value) and 0 <= value <= 1),
    "repetition_penalty": (
        "more than 0; 1 changes nothing",
        lambda value: is_number(value) and 0 < value <= LARGEST,
    ),
    "seed": ("a whole number of at least 0", lambda value: is_whole(value) and value >= 0),
    "u": ("0 or more and less than 1", lambda value: is_number(value) and 0 <= value < 1),
}


def check_setting(name: str, value: object) -> None:
    """Raise ValueError if a setting is out of its range or no number at all."""
    expected, fits = RANGES[name]
    if not fits(value):
        raise ValueError(f"{name} = {one_line(value)}: expected {expected}")


def checked_order(order: Sequence[str], names: Collection[str]) -> tuple[str, ...]:
    """Return the order of steps, or raise ValueError if it does not have each of the names once."""
    try:
        given = tuple(order)
        complete = sorted(given) == sorted(names)
    except (TypeError, ValueError):  # nothing to go through, or nothing to sort
        complete = False
    if not complete:
        raise ValueError(f"order = {one_line(order)}: expected each of {', '.join(names)} once")
    return given


def checked_ids(seen: Iterable[int]) -> list[int]:
    """Return ids of tokens as ints, or raise ValueError if something is none."""
    try:
        ids = list(seen)
    except TypeError:  # nothing to go through
        ids = [None]
    if not all(is_whole(token) and token >= 0 for token in ids):
        raise ValueError(f"seen = {one_line(seen)}: expected ids of tokens, whole numbers of at least 0")
    return [int(token) for token in ids]
