"""Numbers as the widgets write them: three significant digits, commas, units; JavaScript writes the same texts."""

from decimal import ROUND_HALF_UP, Context, Decimal

PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z")
THREE, SIX = (Context(prec=digits, rounding=ROUND_HALF_UP) for digits in (3, 6))  # halves go up, as toPrecision does
GIB = 2**30


def count(number: int) -> str:
    """Return a whole number with commas."""
    return f"{number:,}"


def digits(number: float) -> str:
    """Return three significant digits, and whole numbers with commas from 1,000 on."""
    rounded = THREE.create_decimal(Decimal(number))
    if rounded == 0:
        return "0"
    if rounded < 1000:
        return f"{_padded(rounded):f}"
    return f"{int(Decimal(number).to_integral_value(ROUND_HALF_UP)):,}"


def short(number: float, unit: str) -> str:
    """Return a number with a decimal prefix, such as 15.0 GFLOP."""
    value, prefix = float(number), 0
    while THREE.create_decimal(Decimal(value)) >= 1000 and prefix < len(PREFIXES) - 1:
        value, prefix = value / 1000, prefix + 1
    return f"{digits(value)} {PREFIXES[prefix]}{unit}"


def duration(seconds: float) -> str:
    """Return milliseconds, or seconds from one on."""
    milliseconds = seconds * 1000
    return f"{digits(milliseconds)} ms" if milliseconds < 1000 else f"{digits(seconds)} s"


def memory(number: int) -> str:
    """Return bytes in both units, each named: GB is 10⁹, GiB 2³⁰."""
    return f"{digits(number / 1e9)} GB ({digits(number / GIB)} GiB)"


def plain(number: float) -> str:
    """Return six significant digits for programs: no comma, no exponent, no zeros at the end."""
    return f"{SIX.create_decimal(Decimal(number)).normalize():f}"


def percent(share: float) -> str:
    """Return a place in a picture as a share of its width or height."""
    return f"{100 * share:.2f}%"


def _padded(rounded: Decimal) -> Decimal:
    """Keep three digits where the number has fewer: 5 is written 5.00."""
    return rounded.quantize(Decimal(1).scaleb(rounded.adjusted() - 2))
