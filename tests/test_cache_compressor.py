"""What a `CacheCompressor` counts, says, asks and refuses; the browser tests see to the rest."""

import gzip
import re
from dataclasses import replace

import pytest
from bs4 import BeautifulSoup
from compressor_fixture import EXACT, MEASURED, SIZES, TOKENS, compressor, rows, tokens
from traitlets import TraitError

from prefill_decode import toy
from prefill_decode.compression import WindowKVCache
from prefill_decode.storage import Stored, compare_storage
from prefill_decode.widgets import CacheCompressor
from prefill_decode.widgets.cache_compressor_data import change
from prefill_decode.widgets.page_only import for_page

NAMES = list(MEASURED)
ASKED = {
    "What is free?": "8 bits",
    "Where does the text break?": "2 bits",
    "Same bytes, worse text?": "2 bits, keys per token",
    "Why keep the first tokens?": "window without sinks",
    "Is a smaller logit change always a better text?": "4 bits",
}


@pytest.fixture(scope="module")
def widget() -> CacheCompressor:
    return compressor()


@pytest.fixture(scope="module")
def soup(widget) -> BeautifulSoup:
    return BeautifulSoup(for_page(widget._repr_mimebundle_()[0]["text/html"]), "html.parser")


def answers_of(some: list[Stored]) -> dict[str, str]:
    """Return what can be asked of these rows, with the answers."""
    asked = CacheCompressor(some, tokens, sizes={row.name: SIZES[row.name] for row in some if row.name in SIZES})
    return {each["ask"]: each["answer"] for each in asked.data["questions"]}


def changed(name: str, **values: float) -> list[Stored]:
    """Return all rows, one of them with other values."""
    return [replace(row, **values) if row.name == name else row for row in rows()]


# --- numbers


def test_the_table_has_every_row_with_its_numbers(soup):
    table = soup.find("table")
    shown = [[cell.get_text() for cell in row.find_all(["th", "td"])] for row in table.select("tbody tr")]
    assert shown == [
        ["exact", "23,040", "1.00", "0.00", "0.000", "30.8", "10"],
        ["float16", "23,040", "1.00", "0.03", "0.002", "30.8", "10"],
        ["8 bits", "15,009", "0.65", "0.20", "0.008", "30.8", "10"],
        ["4 bits", "10,421", "0.45", "5.80", "0.165", "30.6", "10"],
        ["2 bits", "8,126", "0.35", "8.80", "0.652", "33.2", "2"],
        ["2 bits, keys per token", "8,126", "0.35", "14.30", "1.199", "41.2", "1"],
        ["window of 64", "6,119", "0.27", "17.20", "0.574", "40.1", "1"],
        ["window without sinks", "6,119", "0.27", "43.20", "3.021", "76.2", "1"],
    ]
    assert [row["data-row"] for row in table.select("[aria-current]")] == ["2 bits"]
    assert not table.select("th:not([scope])")


@pytest.mark.parametrize("name", NAMES)
def test_bars_are_shares_of_the_largest_row(widget, name):
    size = SIZES.get(name, MEASURED[name][0])
    _, _, mean, perplexity, *_ = MEASURED[name]
    shares = {"bytes": size / 23040, "mean": mean / 3.021, "perplexity": perplexity / 76.2}
    for bar, share in shares.items():
        style = widget.data["ways"][name]["places"][bar]["style"]
        assert float(style.removeprefix("--pd-v:")) == pytest.approx(share, abs=5e-4)


def test_exact_storage_is_marked_on_every_bar(soup):
    marks = [tick["style"] for tick in soup.select(".pd-tick")]
    assert marks == ["--pd-v:1.000", "--pd-v:0.000", f"--pd-v:{30.8 / 76.2:.3f}"]


def test_without_sizes_a_row_has_its_own_bytes():
    ways = CacheCompressor(rows(), tokens).data["ways"]
    assert (ways["exact"]["texts"]["bytes"], ways["window of 64"]["texts"]["bytes"]) == ("92,160", "24,476")
    assert ways["2 bits"]["texts"]["ratio"] == "0.09"


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        (0.0, 1, "0.0"),
        (0.03, 1, "0.03"),
        (0.06, 1, "0.1"),
        (5.79, 1, "5.8"),
        (2e-7, 3, "0.0000002"),
        (0.165, 3, "0.165"),
    ],
)
def test_a_change_is_not_written_as_none(value, places, text):
    assert change(value, places) == text


# --- words


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("exact", "exact: 23,040 bytes a token, perplexity 30.8, 10 new tokens. All others are measured against it."),
        (
            "4 bits",
            "4 bits: 10,421 bytes a token, 0.45 of exact; logits move by 0.165 on average and by 5.80 at most;"
            " perplexity 30.6 (exact 30.8); the first 10 tokens are those of exact storage.",
        ),
        (
            "2 bits",
            "2 bits: 8,126 bytes a token, 0.35 of exact; logits move by 0.652 on average and by 8.80 at most;"
            " perplexity 33.2 (exact 30.8); the first 2 tokens are those of exact storage, then comes another text.",
        ),
        (
            "window of 64",
            "window of 64: 6,119 bytes a token, 0.27 of exact; logits move by 0.574 on average and by 17.20 at most;"
            " perplexity 40.1 (exact 30.8); the first token is that of exact storage, then comes another text.",
        ),
    ],
)
def test_a_sentence_has_the_numbers_of_its_row(widget, name, sentence):
    assert widget.data["ways"][name]["texts"]["sentence"] == sentence


def test_a_text_that_differs_from_the_start():
    widget = CacheCompressor(changed("2 bits", common=0), tokens)
    assert widget.data["ways"]["2 bits"]["texts"]["sentence"].endswith("; the first token is another one already.")


@pytest.mark.parametrize("name", NAMES)
def test_tokens_are_marked_from_the_first_different_one_on(soup, name):
    line = soup.select_one(f'.pd-stage [data-text-of="{name}"]')
    common = MEASURED[name][4]
    assert [chip.get_text() for chip in line.find_all("span")] == TOKENS[name][:common] == EXACT[:common]
    assert [chip.get_text() for chip in line.find_all("u")] == TOKENS[name][common:]
    labels = [mark.get_text() for mark in line.find_all("em")]
    assert labels == ["from here on another text"] * (common < 10)
    if labels:
        assert line.em.find_next_sibling().name == "u"
        assert line.em.find_previous_sibling().name == "span"


def test_the_text_of_exact_storage_stands_above(soup):
    above = soup.select_one(".pd-texts > .pd-chips")
    assert [chip.get_text() for chip in above.find_all("span")] == EXACT
    assert above.b.get_text() == "exact:"


def test_tokens_by_name_are_the_same_as_those_of_a_tokenizer(widget):
    assert CacheCompressor(rows(), TOKENS, sizes=SIZES).markup == widget.markup


# --- questions


def test_questions_show_their_row_and_answer_with_its_numbers(widget):
    questions = widget.data["questions"]
    assert {each["ask"]: each["storage"] for each in questions} == ASKED
    free, broken, same, sinks, smaller = (each["answer"] for each in questions)
    assert free == (
        "8 bits, on this text: 35 % fewer bytes and the same 10 tokens. Logits move by 0.008 on average; perplexity is"
        " 30.8 (exact 30.8)."
    )
    assert broken.startswith("At 2 bits, with token 3: “that” instead of “to”")
    assert broken.endswith("4 bits still had the same 10.")
    assert same.startswith("Both take 8,126 bytes a token.")
    assert "by 1.199 instead of 0.652, perplexity is 41.2 instead of 33.2" in same
    assert "Both windows take 6,119 bytes" in sinks
    assert "3.021 instead of 0.574, and perplexity is 76.2 instead of 40.1" in sinks
    assert smaller.startswith("No. 4 bits move single logits by up to 5.80, and yet the 10 tokens are the same")
    assert "0.574 against 0.652, but its perplexity is worse: 40.1 against 33.2" in smaller


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        (["exact"], []),
        (["exact", "8 bits"], ["What is free?"]),
        (["exact", "2 bits"], ["Where does the text break?"]),
        (["exact", "2 bits, keys per token"], []),
        (["exact", "window without sinks"], []),
        (["exact", "window of 64", "window without sinks"], ["Why keep the first tokens?"]),
        (["exact", "4 bits"], ["Is a smaller logit change always a better text?"]),
    ],
)
def test_a_question_whose_row_is_missing_is_left_out(names, asked):
    assert list(answers_of(rows(*names))) == asked


@pytest.mark.parametrize(
    ("question", "name", "values"),
    [
        ("What is free?", "8 bits", {"common": 9}),
        ("What is free?", "8 bits", {"bytes_per_token": 23040}),
        ("Where does the text break?", "2 bits", {"common": 10}),
        ("Same bytes, worse text?", "2 bits, keys per token", {"bytes_per_token": 9000}),
        ("Same bytes, worse text?", "2 bits, keys per token", {"perplexity": 33.1}),
        ("Why keep the first tokens?", "window without sinks", {"perplexity": 40.0}),
        ("Is a smaller logit change always a better text?", "4 bits", {"common": 3}),
        ("Is a smaller logit change always a better text?", "4 bits", {"largest": 0.5}),
    ],
)
def test_a_question_whose_answer_would_be_wrong_is_left_out(question, name, values):
    assert list(answers_of(changed(name, **values))) == [ask for ask in ASKED if ask != question]


def test_a_comparison_that_does_not_hold_is_not_made():
    assert "still had" not in answers_of(changed("4 bits", common=3))["Where does the text break?"]
    assert "And the window" not in answers_of(changed("window of 64", mean=0.7))[list(ASKED)[-1]]


# --- the widget


def test_it_opens_on_the_first_other_text(soup, widget):
    root = soup.find(attrs={"data-widget": True})
    assert {name: value for name, value in root.attrs.items() if name.startswith("data-")} == {
        "data-widget": "cache-compressor",
        "data-storage": "2 bits",
        "data-bytes": "8126",
        "data-largest": "8.80",
        "data-mean": "0.652",
        "data-perplexity": "33.2",
        "data-common": "2",
    }
    assert repr(widget) == "CacheCompressor(8 ways of storing, shows 2 bits)"
    assert CacheCompressor(rows("exact", "float16"), tokens).storage == "exact"
    assert compressor(storage="4 bits").storage == "4 bits"


def test_a_way_of_storing_that_is_not_there_is_refused():
    widget = compressor()
    with pytest.raises(TraitError, match=r"^storage = '3 bits': expected one of exact; float16; 8 bits;"):
        widget.storage = "3 bits"
    assert widget.storage == "2 bits"


def test_a_viewer_without_scripts_shows_the_finished_picture_and_no_control(widget):
    markup = re.sub(r"<script.*?</script>", "", widget._repr_mimebundle_()[0]["text/html"], flags=re.S)
    seen = BeautifulSoup(markup, "html.parser")
    assert not seen.select("button, input")
    assert [line["data-text-of"] for line in seen.select("[data-text-of]")] == ["2 bits"]
    assert len(seen.select("tbody tr")) == 8


def test_it_is_printed_the_same_each_time_and_is_small():
    first, second = (compressor()._repr_mimebundle_()[0] for _ in range(2))
    assert first["text/html"] == second["text/html"]
    assert first["text/plain"] == "CacheCompressor(8 ways of storing, shows 2 bits)"
    assert len(gzip.compress(first["text/html"].encode())) < 10_000
    assert not re.search("https?:", first["text/html"])


def test_words_of_others_are_text():
    row = Stored("<i>&", 4.0, 0.0, 0.0, 2.0, 1, [0])
    soup = BeautifulSoup(CacheCompressor([row], {"<i>&": ["<s>\n"]}).markup, "html.parser")
    assert not soup.select("i:not([class]), s")
    assert soup.select_one(".pd-chips span").get_text() == "<s>↵"
    assert soup.find("input")["value"] == "<i>&"


def test_rows_of_compare_storage_fit():
    model, tokenizer = toy.load()
    ids = [1, 9, 3, 13, 8, 2, 4, 5, 7, 7, 1, 3]
    stored = compare_storage(
        model, ids, {"window of 6": lambda: WindowKVCache(model.config, 6, model.dtype)}, chunk=4, new_tokens=3
    )
    ways = CacheCompressor(stored, tokenizer.tokens).data["ways"]
    assert {name: way["tokens"] for name, way in ways.items()} == {s.name: tokenizer.tokens(s.text) for s in stored}
    assert ways["exact"]["common"] == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: CacheCompressor([], tokens),
            "there are no rows: give those of compare_storage, exact storage first",
        ),
        (
            lambda: CacheCompressor(rows("exact", "exact"), tokens),
            "rows are called exact; exact: give each a name of its own",
        ),
        (
            lambda: CacheCompressor(rows("4 bits", "exact"), tokens),
            "the first row, '4 bits', has changed logits: put exact storage first",
        ),
        (
            lambda: CacheCompressor(rows("exact"), tokens, sizes={"3 bits": 1}),
            "sizes has '3 bits': expected names of rows, exact",
        ),
        (
            lambda: CacheCompressor(rows("exact"), tokens, sizes={"exact": 0}),
            "'exact' has 0 bytes a token, changes 0.0 and 0.0, perplexity 30.8: expected finite numbers and a size"
            " above 0",
        ),
        (
            lambda: CacheCompressor([replace(rows("exact")[0], perplexity=float("inf"))], tokens),
            "'exact' has 92160 bytes a token, changes 0.0 and 0.0, perplexity inf: expected finite numbers and a size"
            " above 0",
        ),
        (
            lambda: CacheCompressor(rows("exact"), {}),
            "tokens has 0 strings for 'exact': expected 10, one an id",
        ),
        (
            lambda: CacheCompressor(rows("exact"), tokens, storage="x"),
            "storage = 'x': expected one of exact",
        ),
    ],
)
def test_bad_arguments_are_told_in_one_line(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()
