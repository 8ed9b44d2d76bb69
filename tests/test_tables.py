"""Tables: the same cells on a page and in text, numbers aligned, nothing taken for markup."""

from bs4 import BeautifulSoup

from prefill_decode.tables import Table

TABLE = Table(["case", "right"], [["a < b", 1234567], ["c", 8], ["c", 9]], "Two cases.")


def test_text_is_aligned():
    assert repr(TABLE).splitlines() == [
        "Two cases.",
        "case       right",
        "a < b  1,234,567",
        "c              8",
        "c              9",
    ]


def test_html_is_a_real_table():
    table = BeautifulSoup(TABLE._repr_html_(), "html.parser").table
    assert table.caption.get_text() == "Two cases."
    assert [cell["scope"] for cell in table.find_all("th")] == ["col", "col", "row", "rowgroup"]
    assert [cell.get_text() for cell in table.find_all("td", class_="number")] == ["1,234,567", "8", "9"]
    assert table.find("th", scope="row").get_text() == "a < b"
    assert table.find("th", scope="rowgroup")["rowspan"] == "2"


def test_what_scrolls_is_reached_and_named():
    outside = BeautifulSoup(TABLE._repr_html_(), "html.parser").div
    assert (outside["tabindex"], outside["aria-label"]) == ("0", "Two cases.")
