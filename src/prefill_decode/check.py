"""What a page asserts: bounds on differences, and exercises that check themselves.

An exercise prints one line and never raises. It never prints the answer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

WAITING = "Not answered yet."


def below(a: np.ndarray, b: np.ndarray, bound: float) -> str:
    """Assert that two arrays differ by less than a power of ten, and say so.

    The measured difference itself changes with the CPU's order of sums; the bound does not.

    Parameters
    ----------
    a, b : ndarray of one shape
    bound : float
        A power of ten.

    Returns
    -------
    str
        For example "below 1e-12".
    """
    if np.shape(a) != np.shape(b):
        raise ValueError(f"shapes {np.shape(a)} and {np.shape(b)} cannot be compared: give two of one shape")
    difference = float(np.abs(np.asarray(a) - np.asarray(b)).max())
    if not difference < bound:
        raise AssertionError(f"the largest difference is {difference:.1e}, expected below {bound:.0e}")
    return f"below {bound:.0e}"


def exercise(is_right: Callable[[object], bool], why: str, hint: str) -> Callable[[object], None]:
    """Make a check of one exercise.

    Parameters
    ----------
    is_right : callable
        From an answer to whether it is right; it may raise for answers of a wrong kind.
    why : str
        Printed after a right answer.
    hint : str
        Printed after any other one.
    """

    def check(answer: object) -> None:
        if answer is ...:
            print(WAITING)
            return
        try:
            right = bool(is_right(answer))
        except (TypeError, ValueError, AttributeError, IndexError, KeyError):
            right = False
        print(f"Right. {why}" if right else f"Not yet. {hint}")

    return check


def _close(expected: object) -> Callable[[object], bool]:
    expected = np.asarray(expected, float)

    def is_right(answer: object) -> bool:
        given = np.asarray(answer, float)
        return given.shape == expected.shape and np.allclose(given, expected, rtol=0, atol=1e-6)

    return is_right


def _within(share: float, expected: float) -> Callable[[object], bool]:
    """Accept what rounding leaves of a number."""
    return lambda answer: abs(float(answer) - expected) <= share * expected


pairs_of_a_prompt = exercise(
    _close(100 * 101 // 2),
    "1 + 2 + ... + n: every row adds one more than the row above.",
    "Row 1 reads one key, row 2 two. Sum them for n = 100.",
)
weights_by_hand = exercise(
    _close([1 / 5, 2 / 5, 2 / 5]),
    "One step of ln 2 more doubles the share before all are divided by their sum.",
    "e^0 is 1 and e^(ln 2) is 2: write the three numbers, then divide each by their sum.",
)
rows_of_the_last_layer = exercise(
    _close(1),
    "The other rows of the last layer would only feed logits that nobody asks for; their keys and values are kept.",
    "Which logits choose the first new token, and which state do they come from?",
)
first_layer_that_changes = exercise(
    _close(1),
    "Layer 0 makes its keys and values from the embeddings alone; only its output mixes positions.",
    "What do the keys and values of layer 0 depend on, before any attention has happened?",
)
cache_of_a_model = exercise(
    _close(2 * 30 * 3 * 64 * 2 * 1000),
    "Two (keys and values) x layers x KV heads x head width x bytes x entries; the query heads do not appear.",
    "Count one entry first: keys and values, 30 layers, 3 KV heads, 64 numbers each, 2 bytes a number.",
)
bookkeeping = exercise(
    _close([4, 8]),
    "One prefill and m - 1 decode passes; the token chosen last was never fed back.",
    "The first new token comes out of prefill. Is the last one in the cache?",
)
pairs_with_and_without = exercise(
    _close([12 * 13 // 2, sum(t * (t + 1) // 2 for t in range(10, 13))]),
    "One triangle of T = 12 rows, against triangles of 10, 11 and 12 rows.",
    "T = P + m - 1. With a cache draw one triangle of T rows; without one, a triangle in each of the m passes.",
)
decode_mask = exercise(
    lambda answer: np.array_equal(np.asarray(answer, int), np.tri(3, 7, 4, dtype=int)),
    "The diagonal starts at S - L: the last query reads every key.",
    "Seven columns, three rows; the last row is the last position and may read everything.",
)
exact_zero = exercise(
    lambda answer: str(answer).strip().lower() == "c",
    "One order of sums for every shape gives the same bits; that says nothing about their quality.",
    "Ask how the sums are ordered, not how accurate they are.",
)
largest_square = exercise(
    lambda answer: 255 <= float(answer) < 256,
    "65,504 is the largest float16, and SmolLM2's hidden states go far beyond its square root.",
    "The largest float16 number is 65,504. What is the largest x whose square still fits?",
)
cache_in_gib = exercise(
    _close(2 * 32 * 32 * 128 * 2 * 4096 / 2**30),
    "2 x layers x KV heads x head width x bytes x entries is 2,147,483,648 bytes: 2 GiB, or 2.15 GB.",
    "Count the bytes of one entry first (keys and values, every layer); a GiB is 2**30 bytes.",
)
least_tpot = exercise(
    _within(0.01, 13.0 / 2039 * 1000),
    "All weights cross the memory's edge once a pass; no engine is faster than that.",
    "Every decode pass reads all weights: bytes divided by bytes a second, in milliseconds.",
)
rows_at_the_ridge = exercise(
    _within(0.02, 312e12 / 2039e9),
    "The ridge in FLOPs per byte is the number of rows: two bytes a weight, two FLOPs a weight and row.",
    "Ridge = peak / bandwidth. How many FLOPs does one row bring for each byte of 16-bit weights?",
)
requests_that_fit = exercise(
    _close(29),
    "(Memory - weights) / cache, rounded down; an engine's own buffers come on top.",
    "Take the weights off first; what is left is shared by the caches, and a started one does not fit.",
)
whole_request = exercise(
    _close(120 + 50 * 8),
    "One prefill and 50 decode passes: the first of the 51 tokens came with prefill.",
    "How many of the 51 tokens come out of a decode pass?",
)
least_ttft = exercise(
    _within(0.01, 2 * 7.2e9 * 2000 / 200e12 * 1000),
    "2 FLOPs for each parameter and row; 2,000 rows are far above the ridge, so arithmetic binds.",
    "How many FLOPs does one row take, how many do 2,000? Divide by FLOPs a second, in milliseconds.",
)
merged_partials = exercise(
    _close([3 / 2, 7]),
    "The first sum shrinks by e^(0 - ln 4) = 1/4 before the two are added.",
    "The larger maximum is ln 4. By how much does the sum that was taken at maximum 0 shrink?",
)
break_even = exercise(
    _within(0.01, 3),
    "12 n²d²/M = 4n² at M = 3 d²; the terms left out move it to between 3 and 4.",
    "Set 12 n²d²/M equal to 4n² and solve for M / d².",
)
tiles_of_a_memory = exercise(
    _close([64, 391]),
    "M / 4d = 390.6 keys, rounded up; as many query rows would make a tile of scores larger than all other tiles.",
    "Keys: M / 4d, rounded up. Query rows: as many, but at most d.",
)
repaired_mask = exercise(
    lambda answer: np.array_equal(np.asarray(answer, int), np.tri(2, 6, 4, dtype=int)),
    "The diagonal starts at S - L = 4, so the last row reads all six keys.",
    "How many keys may the last of six positions read? Give the rows as zeros and ones.",
)
page_table = exercise(
    _close([63, 8]),
    "62 full blocks hold 992 positions, the 63rd holds the last 8 and has room for 8 more.",
    "Divide by 16 and round up; what do so many blocks hold?",
)
batch_of_three = exercise(
    _close([1500, 1000, 100 * 101 // 2 + 400 * 401 // 2 + 500 * 501 // 2]),
    "Pads cost 500 rows; packed, three small triangles stand where one of 1,000 rows would have 500,500 pairs.",
    "With pads every line is as long as the longest; packed there is one triangle for each prompt.",
)
passes_of_a_perfect_draft = exercise(
    _close(5),
    "Prefill brings one token, each of four passes five.",
    "How many tokens are certain after a pass whose four guesses were all right?",
)
nucleus_by_hand = exercise(
    _close([0, 1, 2]),
    "0.4 + 0.3 is 0.7, short of 0.75; the third token crosses it and belongs to the nucleus.",
    "Add up the likeliest ones until they have 0.75 together. Does the one that crosses belong?",
)
bits_a_number = exercise(
    _close(3),
    "2 bits of code, and 32 bits of scale and zero point shared by 32 numbers.",
    "What do scale and zero point, 16 bits each, add when 32 numbers share them?",
)
what_a_small_cache_changes = exercise(
    lambda answer: str(answer).strip().lower() == "b",
    "The first token comes from prefill, which attends to exact keys and values; later ones read what was stored.",
    "Which pass chooses the first token, and what does that pass read?",
)
