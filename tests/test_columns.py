"""Widths of the columns of a table, from what stands in them."""

import pytest
from bs4 import BeautifulSoup
from prefill_decode_book import columns
from small_book import build_small

TABLE = """# A page

| Letter | Meaning |
| --- | --- |
| $n$ | `len` of a prompt, all of them, one after another |
| $d_{\\text{a long name}}$ | [](other.md) |

```{toctree}
other
```
"""


def test_a_column_has_room_for_its_longest_word():
    assert columns.weight_of(["a bb", "unbreakable"]) == columns.PADDING + len("unbreakable")


def test_long_texts_get_more_but_not_in_proportion():
    short, long = (columns.weight_of(["word " * n]) for n in (4, 40))
    assert short < long < 10 * short


@pytest.mark.parametrize("texts", [[["a"], ["b"]], [["a"] * 3, ["a longer text"] * 3, [""] * 3]])
def test_shares_are_of_a_whole(texts):
    assert sum(columns.shares_of(texts)) == pytest.approx(100, abs=1)


def test_a_table_is_written_with_widths_and_a_formula_counts_as_it_is_seen(tmp_path):
    out, warnings = build_small(
        tmp_path, {"index": TABLE, "other": "# The title of the other page\n\nWords.\n"}, columns
    )
    assert warnings == ""
    soup = BeautifulSoup((out / "index.html").read_text("utf-8"), "html.parser")
    shares = [float(column["style"].removeprefix("width: ").removesuffix("%")) for column in soup.select("col")]
    letters = ["Letter", "x", "x" * round(columns.width_of(r"d_{\text{a long name}}"))]
    meanings = [
        "Meaning",
        f"len{'x' * columns.BOX} of a prompt, all of them, one after another",
        "The title of the other page",
    ]
    assert shares == columns.shares_of([letters, meanings])
