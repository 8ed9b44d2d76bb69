"""What a `TokenSampler` computes, says and refuses; the browser tests see to the rest."""

import gzip
import json

import numpy as np
import pytest
from bs4 import BeautifulSoup
from token_sampler_fixture import V, logits_of, token_sampler, tokens_of
from traitlets import TraitError

from prefill_decode.sampling import softmax
from prefill_decode.widgets import TokenSampler
from prefill_decode.widgets.page_only import for_page
from prefill_decode.widgets.token_sampler_data import (
    DRAWS,
    MIN_P,
    ONE,
    SEEDS,
    TEMPERATURES,
    TOP_P,
    Choice,
    others_of,
    sampler_data,
)
from prefill_decode.widgets.token_sampler_html import picture
from prefill_decode.widgets.token_sampler_reading import read
from prefill_decode.widgets.token_sampler_words import sentence, share, tally

HALVES = np.log2([0.5, 0.25, 0.125, 0.125]) * np.log(2)  # shares known by hand


@pytest.fixture(scope="module")
def widget() -> TokenSampler:
    return token_sampler()


def soup_of(widget: TokenSampler) -> BeautifulSoup:
    return BeautifulSoup(for_page(widget._repr_mimebundle_()[0]["text/html"]), "html.parser")


def words_of(choice: Choice, logits: np.ndarray = HALVES) -> tuple[str, str]:
    data, reading = sampler_data(logits, tokens_of(len(logits)), ""), read(logits, choice)
    return sentence(data, choice, reading), tally(data, choice, reading)


# --- the reading


def test_a_reading_by_hand():
    reading = read(HALVES, Choice(top_p=0.7, draws=2))
    assert reading.before == pytest.approx([0.5, 0.25, 0.125, 0.125])
    assert reading.after == pytest.approx([2 / 3, 1 / 3, 0, 0])
    assert (reading.left, reading.kept) == ([4, 4, 2, 2], 2)
    assert reading.kept_mass == pytest.approx(0.75)
    assert reading.segments == {0: pytest.approx((0, 2 / 3)), 1: pytest.approx((2 / 3, 1 / 3))}
    assert reading.drawn == [0, 0]  # u = 0.637 and 0.270
    assert [reading.removed_by("transformers", rank) for rank in range(4)] == ["", "", "top_p", "top_p"]


def test_the_order_decides_what_is_kept():
    kept = {order: read(HALVES, Choice(2.0, top_p=0.7, order=order)) for order in ("transformers", "llama.cpp")}
    # heated by 2, shares are as √p: 0.71, 0.5, 0.35, 0.35 of 1.91; the first two have 0.63
    assert kept["transformers"].left == [4, 4, 3, 3]
    assert kept["llama.cpp"].left == [4, 2, 2, 2]
    assert kept["llama.cpp"].kept_mass == pytest.approx(0.75)
    assert kept["llama.cpp"].after[:2] == pytest.approx([0.5**0.5 / (0.5**0.5 + 0.5), 0.5 / (0.5**0.5 + 0.5)])


def test_greedy_leaves_one_token_in_every_order():
    for order in ("transformers", "vllm", "llama.cpp"):
        reading = read(logits_of(), Choice(0.0, top_k=7, order=order))
        assert (reading.kept, reading.after[0], set(reading.drawn)) == (1, 1, {int(np.argmax(logits_of()))})


def test_the_sampler_of_a_choice_draws_the_same_tokens(widget):
    for choice in (Choice(1.5), Choice(0.8, top_p=0.9, seed=2), Choice(2.0, top_k=20, min_p=0.05, order="vllm")):
        sampler = choice.sampler()
        assert read(logits_of(), choice).drawn == [sampler(logits_of()) for _ in range(DRAWS)]


# --- the data


def test_depths_of_filters_are_those_of_the_sampler(widget):
    for index in (1, 7, ONE, 15, 20):
        at, value = widget.data["at"][index], TEMPERATURES[index]
        assert at["all"] == V
        assert at["topP"] == [read(logits_of(), Choice(value, top_p=p)).kept for p in TOP_P]
        assert at["minP"] == [read(logits_of(), Choice(value, min_p=p)).kept for p in MIN_P]
        for i, row in at["joint"].items():
            choices = (Choice(value, top_p=p, min_p=MIN_P[i], order="vllm") for p in TOP_P)
            assert row == [read(logits_of(), choice).kept for choice in choices]
    assert any(at["joint"] for at in widget.data["at"])


def test_what_is_sent_of_the_rest_is_what_settings_reach(widget):
    for at in widget.data["at"]:
        reached = {at["all"], *at["topP"], *at["minP"], *(n for row in at["joint"].values() for n in row)}
        assert {depth for depth in reached if depth > 50} <= set(at["rest"])
        assert all(len(codes) == DRAWS * len(SEEDS) for _, _, codes in at["rest"].values())
    ids = set(widget.data["ids"])
    assert len(others_of(widget.data)) > 20
    assert not ids & set(others_of(widget.data))


def test_logits_keep_their_precision(widget):
    expected = np.sort(logits_of().astype(np.float64))[::-1][:50]
    assert json.loads(json.dumps(widget.data["logits"])) == expected.tolist()


def test_equal_logits_go_by_id():
    data = sampler_data(np.zeros(60), tokens_of(60), "")
    assert data["ids"] == list(range(50))
    assert read(np.zeros(60), Choice(0.0)).drawn == [0] * DRAWS


def test_data_fit_a_page():
    logits = logits_of(20_000, 2.5)
    logits[:2] += 15  # sure, as a model often is
    data = json.dumps(token_sampler(logits).data, ensure_ascii=False, separators=(",", ":"))
    assert len(gzip.compress(data.encode())) < 20_000


# --- words


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (0, "0%"),
        (1e-9, "<0.01%"),
        (0.00007, "<0.01%"),
        (0.0012, "0.12%"),
        (0.09994, "9.99%"),
        (0.09996, "10.0%"),
        (0.4567, "45.7%"),
        (0.9999, ">99.9%"),
        (1, "100%"),
    ],
)
def test_a_share_never_rounds_to_nothing_or_all(p, text):
    assert share(p) == text


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        (Choice(draws=0), "All 4 tokens are kept. Nothing is drawn yet."),
        (
            Choice(0.0, draws=1),
            "T = 0 is greedy: one token is left, “<b>&”. Draw 1: u = 0.6370 falls to “<b>&” (100%).",
        ),
        (Choice(top_k=1, draws=0), "One token is left, “<b>&”. Nothing is drawn yet."),
        (
            Choice(top_p=0.7, draws=0),
            "2 of 4 tokens are kept; at T = 1.0 they have 75.0% together. Nothing is drawn yet.",
        ),
        (
            Choice(2.0, top_p=0.7, order="llama.cpp", draws=0),
            "2 of 4 tokens are kept; before heating they have 75.0% together. Nothing is drawn yet.",
        ),
    ],
)
def test_a_sentence_says_what_is_kept_and_drawn(choice, text):
    assert words_of(choice)[0] == text


def test_a_count_says_what_was_drawn():
    assert words_of(Choice(draws=0, seed=2))[1] == "No draw of seed 2 yet."
    assert words_of(Choice(draws=1))[1].startswith("1 draw of seed 0: “")
    told = words_of(Choice(2.0), logits_of())[1]
    assert told.startswith("12 draws of seed 0: ")
    assert "others" in told
    numbers = [int(part.rstrip(".").split()[-1]) for part in told.split(": ")[1].split(", ")]
    assert sum(numbers) == DRAWS


def test_answers_have_the_numbers_of_their_choice(widget):
    greedy, nonsense, sure, order, seed = widget.data["questions"]
    assert greedy["set"]["temperature"] == 0
    hot = read(logits_of(), Choice(1.5))
    outside = sum(i not in widget.data["ids"] for i in hot.drawn)
    assert f"the 150 tokens that are not shown have {share(hot.rest)} together" in nonsense["answer"]
    assert f"{outside} of these 12 draws" in nonsense["answer"]
    assert f"it keeps {read(logits_of(), Choice(top_p=0.9)).kept} of 200 tokens" in sure["answer"]
    kept = [read(logits_of(), Choice(2.0, top_p=0.8, order=name)).kept for name in ("vllm", "llama.cpp")]
    assert kept[0] > kept[1]
    assert f"has {kept[0]} tokens. llama.cpp filters first: {kept[1]} of them" in order["answer"]
    assert (seed["set"]["seed"], seed["set"]["draws"]) == (1, 1)
    assert "u = 0.5118" in seed["answer"]


# --- markup


def test_the_root_tells_the_state():
    root = soup_of(token_sampler(temperature=1.5, top_k=20, min_p=0.05, order="vllm", top_p=None)).find("div")
    reading = read(logits_of(), Choice(1.5, top_k=20, min_p=0.05, order="vllm"))
    told = {name: root[f"data-{name}"] for name in ("temperature", "top-k", "top-p", "min-p", "order", "kept", "token")}
    assert told == {
        "temperature": "1.5",
        "top-k": "20",
        "top-p": "off",
        "min-p": "0.05",
        "order": "vllm",
        "kept": str(reading.kept),
        "token": str(reading.drawn[-1]),
    }
    assert float(root["data-kept-mass"]) == pytest.approx(reading.kept_mass, rel=1e-5)


def test_bars_say_their_share_or_what_removed_them():
    choice = {"temperature": 1.2, "top_k": 12, "top_p": 0.8, "min_p": 0.05}
    soup, reading = soup_of(token_sampler(**choice)), read(logits_of(), Choice(**choice))
    rows = soup.select(".pd-bars > li")
    assert len(rows) == 50
    for rank, row in enumerate(rows):
        by = reading.removed_by("transformers", rank)
        assert row.select_one("b").get_text() == (by.replace("_", "-") or share(reading.after[rank]))
        assert row["data-state"] == ("removed" if by else row["data-state"])
    assert {row.select_one("b").get_text() for row in rows} >= {"top-k", "top-p"}
    assert soup.select_one(".pd-rest b").get_text() == "none kept (top-k)"


def test_the_rest_is_counted_and_weighed():
    soup, reading = soup_of(token_sampler(temperature=2.0)), read(logits_of(), Choice(2.0, top_p=0.9))
    assert reading.kept > 50
    assert soup.select_one(".pd-rest b").get_text() == f"{share(reading.rest)}, {reading.kept - 50} kept"
    assert soup.select_one(".pd-rest span").get_text() == "the other 150 tokens"
    assert reading.rest_before == pytest.approx(np.sort(softmax(logits_of()))[:-50].sum())


def test_a_small_vocabulary_has_no_rest():
    soup = soup_of(token_sampler(logits_of(8)))
    assert len(soup.select(".pd-bars > li")) == 8
    assert not soup.select(".pd-rest")


def test_words_of_others_are_text(widget):
    soup = soup_of(widget)
    assert not soup.select("i:not([data-bar], [data-tick]), b b")
    assert "“once <i>upon”" in soup.select_one(".pd-heading").get_text()


def test_it_is_the_same_each_time_and_follows_its_traits():
    widget, again = token_sampler(), token_sampler()
    assert widget._repr_mimebundle_()[0]["text/html"] == again._repr_mimebundle_()[0]["text/html"]
    widget.temperature, widget.top_p = 2.0, None
    assert soup_of(widget).find("div")["data-kept"] == "200"
    assert widget.choice == Choice(2.0)
    assert repr(widget) == "TokenSampler(200 tokens after 'once <i>upon')"
    assert picture(widget.data, widget.choice, read(logits_of(), widget.choice), with_data=False).count("<script") == 0


# --- refused


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: TokenSampler(np.zeros(3), ["a", "b"], ""),
            "2 tokens for 3 logits: expected a text for each",
        ),
        (lambda: TokenSampler(np.zeros(1), ["a"], ""), "logits has one token: expected at least 2"),
        (lambda: TokenSampler(np.array([0, np.nan]), ["a", "b"], ""), "the logits hold nan or inf"),
        (lambda: TokenSampler(np.zeros((2, 2)), ["a", "b"], ""), r"logits are \(2, 2\): expected one a token"),
        (
            lambda: TokenSampler(np.array([0, -np.inf]), ["a", "b"], ""),
            "the logits are inf apart",
        ),
        (lambda: token_sampler(temperature=2.1), "temperature = 2.1: the widget offers 0.0, 0.1"),
        (lambda: token_sampler(top_k=51), "top_k = 51: the widget offers None or 1 to 50"),
        (lambda: token_sampler(order="x"), "order = 'x': the widget offers transformers, vllm, llama.cpp"),
    ],
)
def test_what_is_refused_is_said_in_one_line(make, message):
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_kernel_may_set_only_what_is_offered(widget):
    with pytest.raises(TraitError, match=r"top_p = 0\.42: the widget offers None, 0\.05"):
        widget.top_p = 0.42
    assert widget.top_p == 0.9
