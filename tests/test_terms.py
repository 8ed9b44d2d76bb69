"""Words of the glossary are linked where a page first uses them, and nowhere else."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag
from prefill_decode_book import terms
from small_book import build_small

LANDING = """# A token

**Key**

A word, `token`, $token$ and [a token](other.md), then two **tokens**, again tokens, one KV
cache with a cache of keys.

```{toctree}
other
book/glossary
```
"""
OTHER = "# Other\n\nOther tokens, kv cache, TOKEN.\n"
GLOSSARY = """# Glossary

Tokens are here.

:::{glossary}
KV cache
  Keys of the past {cite}`someone`, kept.

cache
  A store.

key
  What a query looks for. Another sentence.

token
  A unit.
:::
"""


@pytest.mark.parametrize(
    ("term", "text", "found"),
    [
        ("query", "Two queries", "queries"),
        ("pass", "passes", "passes"),
        ("key", "The keys", "keys"),
        ("fast memory", "in Fast\nmemory", "Fast\nmemory"),
        ("FLOP", "FLOPs", "FLOPs"),
        ("FLOP", "a flop", None),
        ("pass", "a bypass, a passage, one-pass and pass–fail", None),
    ],
)
def test_a_word_is_found_in_its_forms(term, text, found):
    assert [text[start:end] for start, end, _ in terms.Finder([term]).find(text)] == ([found] if found else [])


def test_the_longest_word_is_found():
    assert [term for *_, term in terms.Finder(["cache", "KV cache"]).find("a KV cache, a cache")] == [
        "KV cache",
        "cache",
    ]


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Path:
    """A book of a glossary and two pages that use its words."""
    pages = {"index": LANDING, "other": OTHER, "book/glossary": GLOSSARY.replace("{cite}`someone`", "")}
    pages = {name: text.replace("# ", "---\ndescription: Of a page.\n---\n\n# ", 1) for name, text in pages.items()}
    return build_small(tmp_path_factory.mktemp("terms"), pages, terms)[0]


def links(book: Path, name: str) -> list[Tag]:
    return BeautifulSoup((book / f"{name}.html").read_text("utf-8"), "html.parser").select("a.first-use")


def test_the_first_use_in_running_text_is_linked(book):
    assert [link.get_text() for link in links(book, "index")] == ["tokens", "KV\ncache", "cache", "keys"]
    assert links(book, "index")[0].parent.name == "strong"
    assert [link.get_text() for link in links(book, "other")] == ["tokens", "cache"]  # "KV" has capitals


def test_a_link_leads_to_the_definition_and_has_it_at_hand(book):
    key = links(book, "index")[-1]
    assert key["href"] == "book/glossary.html#term-key"
    assert key["title"] == "What a query looks for. Another sentence."


def test_the_glossary_defines_and_does_not_link(book):
    assert links(book, "book/glossary") == []


def test_a_book_without_a_glossary_is_built(tmp_path):
    out, _ = build_small(tmp_path, {"index": "# Other\n\nTokens.\n"}, terms)
    assert links(out, "index") == []
