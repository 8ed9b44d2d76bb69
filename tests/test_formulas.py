"""The width that is kept for a formula, before MathJax has written it."""

import pytest
from prefill_decode_book import formulas


@pytest.mark.parametrize(
    ("tex", "read"),
    [
        (r"\sqrt d", r"\sqrt{d}"),
        (r"\frac12", r"\frac{1}{2}"),
        (r"\frac{11}8", r"\frac{11}{8}"),
        (r"\frac1{16}", r"\frac{1}{16}"),
        (r"d \le M", r"d \leq M"),
        (r"nd = 65{,}536", r"nd = 65,536"),
        (r"\frac{n}{d}", r"\frac{n}{d}"),
    ],
)
def test_formulas_are_told_as_mathtext_reads_them(tex, read):
    assert formulas.for_mathtext(tex) == read


def test_a_longer_formula_is_wider():
    widths = [formulas.width_of(tex) for tex in ("n", "n + 1", "n + 1 = k", r"n + 1 = \frac{k + 2}{2}")]
    assert widths == sorted(widths)
    assert len(set(widths)) == 4


def test_widths_are_told_in_the_markup_and_a_formula_that_is_not_read_is_left():
    span = r'<span class="math notranslate nohighlight">\({}\)</span>'
    body = formulas.with_widths(f"<p>{span.format('a &lt; b')} and {span.format(chr(92) + 'nonsense{')}</p>")
    assert (
        rf'<span class="math notranslate nohighlight" style="--pd-width: {formulas.width_of("a < b")}ex">\(a &lt; b\)'
        in body
    )
    assert span.format(chr(92) + "nonsense{") in body
