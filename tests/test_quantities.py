"""Numbers as the widgets write them."""

import pytest

from prefill_decode.widgets.quantities import count, digits, duration, memory, percent, plain, short


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (count(1234567), "1,234,567"),
        (digits(0), "0"),
        (digits(5), "5.00"),
        (digits(4.7201), "4.72"),
        (digits(1.125), "1.13"),  # halves go up, as JavaScript's toPrecision does
        (digits(9.996), "10.0"),
        (digits(0.00448), "0.00448"),
        (digits(999.4), "999"),
        (digits(999.5), "1,000"),
        (digits(128281.9), "128,282"),
        (short(999, "B"), "999 B"),
        (short(999_499, "B"), "999 kB"),
        (short(999_500, "B"), "1.00 MB"),
        (short(15_009_849_344, "B"), "15.0 GB"),
        (short(29.7e12, "FLOP"), "29.7 TFLOP"),
        (duration(0.004481), "4.48 ms"),
        (duration(0.9999), "1,000 ms"),
        (duration(1), "1.00 s"),
        (duration(7200), "7,200 s"),
        (memory(2**30), "1.07 GB (1.00 GiB)"),
        (plain(4.7201448), "4.72014"),
        (plain(1234567.8), "1234570"),
        (plain(2.0), "2"),
        (percent(0.123456), "12.35%"),
    ],
)
def test_quantity(written, expected):
    assert written == expected
