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


def table_of(table):
    return BeautifulSoup(table._repr_html_(), "html.parser").table


def test_html_is_a_real_table():
    table = table_of(Table(["case", "right"], [["a < b", 1234567], ["c", 8]], "Two cases."))
    assert table.caption.get_text() == "Two cases."
    assert [cell["scope"] for cell in table.find_all("th")] == ["col", "col", "row", "row"]
    assert [cell.get_text() for cell in table.find_all("td", class_="number")] == ["1,234,567", "8"]
    assert table.find("th", scope="row").get_text() == "a < b"


def test_neighbours_share_their_name():
    table = table_of(Table(["case", "what", "right"], [["a", "x", 1], ["a", "y", 2], ["b", "x", 3]], "Two cases."))
    assert [cell.get_text() for cell in table.thead.find_all("th")] == ["what", "right"]
    assert [body.th.get_text() for body in table.find_all("tbody")] == ["a", "b"]
    assert [body.th["colspan"] for body in table.find_all("tbody")] == ["2", "2"]
    assert [[cell.get_text() for cell in row.find_all(["th", "td"])] for row in table.find_all("tr")][2:4] == [
        ["x", "1"],
        ["y", "2"],
    ]


def test_what_scrolls_is_reached_and_named():
    outside = BeautifulSoup(TABLE._repr_html_(), "html.parser").div
    assert (outside["tabindex"], outside["aria-label"]) == ("0", "Two cases.")
