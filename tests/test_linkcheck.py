"""`make linkcheck`: what it says of broken links, and without a network."""

import linkcheck
import pytest

FOUND = [
    {"filename": "book/a.md", "lineno": 3, "status": "working", "uri": "https://example.org/", "info": ""},
    {"filename": "book/a.md", "lineno": 4, "status": "redirected", "uri": "https://example.org/b", "info": "c"},
    {"filename": "book/b.md", "lineno": 5, "status": "broken", "uri": "https://example.org/d", "info": "404"},
    {"filename": "book/b.md", "lineno": 6, "status": "unchecked", "uri": "#id1", "info": ""},
]


def run(monkeypatch, found):
    monkeypatch.setattr(linkcheck, "answers", lambda address: True)
    monkeypatch.setattr(linkcheck, "ask", lambda: found)
    with pytest.raises(SystemExit) as end:
        linkcheck.main()
    return end.value.code


def test_a_broken_link_is_named_with_its_place(monkeypatch, capsys):
    assert run(monkeypatch, FOUND) == 1
    said = capsys.readouterr().out
    assert "book/b.md:5: https://example.org/d: 404\n3 links, 1 of them lead nowhere" in said
    assert run(monkeypatch, FOUND[:2]) == 0


def test_without_a_network_it_says_so_and_asks_nothing(monkeypatch):
    monkeypatch.setattr(linkcheck, "answers", lambda address: False)
    monkeypatch.setattr(linkcheck, "ask", lambda: pytest.fail("the links were asked"))
    with pytest.raises(SystemExit, match=r"No network: none of .* No link was checked"):
        linkcheck.main()


def test_a_host_that_is_not_there_does_not_answer(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")  # a proxy would answer in its place
    assert not linkcheck.answers("http://127.0.0.1:1/")
