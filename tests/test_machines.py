"""What the book says to programs: Markdown beside each page, descriptions, a card, llms.txt, a sitemap, its address."""

import struct
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from prefill_decode_book import card, describe, machines, markdown_html, repository
from small_book import build_small
from sphinx.errors import ExtensionError

SITE = "https://example.org/book/"
SENTENCE = "A page of the book with a first sentence that is long enough to describe it."
LANDING = f"""# The book

{SENTENCE}

```{{toctree}}
:caption: The chapter

other
```
"""
OTHER = """---
description: What the front matter says goes before the first paragraph, whatever that may say.
---

# One < two

Short. With **bold**, *slanted*, `code`, $n^2$, [a link](index.md#the-book), [a place](#below) and 2 * 3.

## Below

1. first

   more of it
2. second

> quoted

### Deeper

## Again

| n | pairs |
| --- | --- |
| 4 | a\\|b |

```python
print("```")
```

$$ x = 1 $$

:::{note}
A box.
:::

<div data-widget="roofline" aria-label="Roofline"><script type="application/json">{"data": 1}</script>
<p class="pd-heading"><b>Who waits</b></p><p class="pd-sentence">Memory binds</p><button>Next</button></div>

<div class="pd-figure"><svg aria-label="Two bars."><text>1</text></svg></div>

<div class="pd-table"><table><caption>Costs</caption><thead><tr><th>n</th><th>FLOP</th></tr></thead>
<tbody><tr><th colspan="2">small</th></tr><tr><th>1</th><td>2|3</td></tr></tbody></table></div>
"""
AS_MARKDOWN = """# One < two

Short. With **bold**, *slanted*, `code`, $n^2$, [a link](index.html#the-book), [a place](other.html#below) and 2 \\* 3.

## Below

1. first

   more of it
2. second

> quoted

### Deeper

## Again

| n | pairs |
| --- | --- |
| 4 | a\\|b |

````python
print("```")
````

$$
x = 1
$$

> **Note**
>
> A box.

*Widget: Roofline. Who waits. Memory binds. On the page it can be stepped or changed.*

*Figure: Two bars.*

| n | FLOP |
| --- | --- |
| small |  |
| 1 | 2\\|3 |

*Costs*

---

From “The book”. Text and figures: CC BY 4.0. Code: MIT.
"""


def build(folder: Path, pages: dict[str, str], address: str = "") -> tuple[Path, str]:
    return build_small(folder, pages, describe, machines, repository, address=address)


@pytest.fixture(scope="module")
def unknown(tmp_path_factory) -> Path:
    """A book that does not know its address."""
    out, complaints = build(tmp_path_factory.mktemp("unknown"), {"index": LANDING, "other": OTHER})
    assert complaints == ""
    return out


@pytest.fixture(scope="module")
def known(tmp_path_factory) -> Path:
    """The same book, its address known."""
    return build(tmp_path_factory.mktemp("known"), {"index": LANDING, "other": OTHER}, SITE)[0]


def metas(out: Path, name: str) -> dict[str, str]:
    page = BeautifulSoup((out / f"{name}.html").read_text("utf-8"), "html.parser")
    return {meta.get("name") or meta.get("property"): meta.get("content") for meta in page("meta")}


def test_a_page_is_markdown_beside_it(unknown):
    assert (unknown / "other.md").read_text("utf-8") == AS_MARKDOWN


def test_llms_txt_lists_each_page_with_its_description(unknown, known):
    text = (unknown / "llms.txt").read_text("utf-8")
    assert text.startswith(f"# The book\n\n> {SENTENCE}\n")
    assert "## The chapter\n\n- [One < two](other.md): What the front matter says" in text
    assert f"({SITE}other.md)" in (known / "llms.txt").read_text("utf-8")


def test_what_needs_an_address_is_there_only_when_it_is_known(unknown, known):
    assert [name for name in ("sitemap.xml", card.FILE) if (unknown / name).exists()] == []
    assert not {"og:image", "og:url", "twitter:card"} & set(metas(unknown, "other"))
    told = metas(known, "other")
    assert (told["og:image"], told["og:url"]) == (f"{SITE}{card.FILE}", f"{SITE}other.html")
    assert (known / card.FILE).read_bytes() == card.draw("The book")


def test_the_sitemap_names_every_page(known):
    places = [place.text for place in ET.parse(known / "sitemap.xml").iter() if place.tag.endswith("loc")]
    assert places == [f"{SITE}index.html", f"{SITE}other.html"]


def test_a_page_describes_itself(unknown):
    told = metas(unknown, "index")
    assert told["description"] == told["og:description"] == SENTENCE
    assert (told["og:type"], metas(unknown, "other")["og:type"]) == ("website", "article")
    assert metas(unknown, "other")["description"].startswith("What the front matter says")
    assert "description" not in metas(unknown, "search")


def test_a_description_that_does_not_fit_is_named_with_the_remedy(tmp_path):
    complaints = build(tmp_path, {"index": "# The book\n\nToo short.\n"})[1]
    assert "index" in complaints
    assert "10 characters, expected 50 to 160" in complaints
    assert "front matter" in complaints


def test_a_description_is_whole_sentences_without_asides():
    first, second = "How long (TTFT, time to first token) is the wait?", "x" * 140 + "."
    assert describe.shorten(f"{first}\nAnd f(n)? {second}") == "How long is the wait? And f(n)?"


def test_the_card_has_the_size_that_is_promised_and_the_same_bytes_each_time():
    drawn = card.draw("The book")
    assert struct.unpack(">II", drawn[16:24]) == (card.WIDTH, card.HEIGHT) == (1200, 630)
    assert drawn == card.draw("The book")


@pytest.mark.parametrize(
    ("remote", "expected"),
    [
        ("https://github.com/Owner/name", "https://owner.github.io/name/"),
        ("https://github.com/owner/Owner.github.io", "https://owner.github.io/"),
        ("https://gitlab.com/owner/name", ""),  # where its Pages are is a setting there
        ("", ""),
    ],
)
def test_the_site_is_where_pages_puts_it(monkeypatch, remote, expected):
    monkeypatch.delenv(repository.SITE_VARIABLE, raising=False)
    assert repository.find_site(remote) == expected


def test_the_environment_names_another_address(monkeypatch):
    monkeypatch.setenv(repository.SITE_VARIABLE, SITE.rstrip("/"))
    assert repository.find_site("https://github.com/owner/name") == SITE
    monkeypatch.setenv(repository.SITE_VARIABLE, "example.org")
    with pytest.raises(ExtensionError, match=r"expected an address such as https://"):
        repository.find_site("")


def test_errors_are_reported_where_the_repository_is():
    on_github = repository.report_address("https://github.com/o/n", "A & B", "book/x")
    assert (
        on_github
        == "https://github.com/o/n/issues/new?title=Error%20on%20%E2%80%9CA%20%26%20B%E2%80%9D%20%28book%2Fx%29"
    )
    on_gitlab = repository.report_address("https://gitlab.com/o/n", "A", "x")
    assert on_gitlab.startswith("https://gitlab.com/o/n/-/issues/new?issue%5Btitle%5D=Error")


def test_html_of_any_kind_is_text():
    assert markdown_html.from_html("<details><summary>1. Why?</summary></details>") == "1. Why?"
    assert markdown_html.from_html("<style>p {}</style><p>a\n b</p>") == "a b"
