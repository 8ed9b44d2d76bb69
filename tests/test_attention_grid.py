"""What an `AttentionGrid` checks, packs and prints; the browser tests see to the rest."""

import base64
import json
import re

import numpy as np
import pytest
from bs4 import BeautifulSoup

from prefill_decode.widgets import AttentionGrid, GridQuestion
from prefill_decode.widgets.attention_grid_data import shown
from prefill_decode.widgets.page_only import for_page

LAYERS, HEADS, ROWS, PROMPT = 2, 3, 5, 4
TOKENS = ["the", " cat", " sat", " on", " a", " mat"]


def arrays(layers=LAYERS, heads=HEADS, rows=ROWS):
    """Return causal softmax rows and the scores they come from, both [layers, heads, rows, rows]."""
    scores = np.random.default_rng(3).normal(0, 2, (layers, heads, rows, rows))
    powers = np.tril(np.exp(scores))
    return powers / powers.sum(-1, keepdims=True), scores


def grid(**options) -> AttentionGrid:
    weights, scores = arrays()
    return AttentionGrid(**{"tokens": TOKENS, "weights": weights, "scores": scores, "prompt_len": PROMPT, **options})


def phrase_of(widget: AttentionGrid) -> dict:
    return widget.data["phrases"][0]


def soup_of(widget: AttentionGrid) -> BeautifulSoup:
    return BeautifulSoup(for_page(widget._repr_mimebundle_()[0]["text/html"]), "html.parser")


# --- data


def test_weights_travel_as_bytes_of_the_lower_triangle():
    weights, _ = arrays()
    packed = np.frombuffer(base64.b64decode(phrase_of(grid())["weights"]), dtype=np.uint8)
    expected = [
        round(weights[layer, head, q, k] * 255)
        for layer in range(LAYERS)
        for head in range(HEADS)
        for q in range(ROWS)
        for k in range(q + 1)
    ]
    assert packed.tolist() == expected
    assert phrase_of(grid())["weightStep"] == "1/255"


def test_scores_travel_in_a_stated_step_for_the_named_heads_only():
    _, scores = arrays()
    scores[1, 2, 3, 1] = np.nan
    sent = phrase_of(grid(scores=scores, names={(1, 2): "one", (0, 1): "other"}))["scores"]
    packed = np.frombuffer(base64.b64decode(sent["data"]), dtype="<i2").reshape(2, -1)
    lower = np.tril_indices(ROWS)
    assert (sent["heads"], sent["step"], packed.shape[1]) == ([[1, 2], [0, 1]], 0.01, ROWS * (ROWS + 1) // 2)
    known = np.where(np.isnan(scores[1, 2][lower]), -327.68, scores[1, 2][lower])
    assert np.allclose(packed[0] * sent["step"], known, atol=sent["step"] / 2)
    assert np.allclose(packed[1] * sent["step"], scores[0, 1][lower], atol=sent["step"] / 2)


def test_large_scores_get_a_coarser_step():
    assert phrase_of(grid(scores=arrays()[1] * 1000))["scores"]["step"] == 1.0


def test_without_names_all_scores_travel_and_it_opens_on_the_first_head():
    phrase = phrase_of(grid())
    assert (len(phrase["scores"]["heads"]), phrase["open"]) == (LAYERS * HEADS, [0, 0])


def test_labels_are_not_indices():
    widget = grid(layers=[7, 23], heads=["a", "b", "c"], names={(23, "b"): "named"})
    assert phrase_of(widget)["open"] == [1, 1]
    assert (widget.layer, widget.head, widget.step) == ("23", "b", ROWS)


def test_measures_of_heads_travel_as_bytes_of_a_stated_range():
    weights, _ = arrays()
    entropies = [[[-(w[: q + 1] * np.log2(w[: q + 1])).sum() for q, w in enumerate(h)] for h in y] for y in weights]
    expected = {
        "Share on the first token": ("1", weights[:, :, range(1, 5), 0].mean(-1)),
        "Share on the previous token": ("1", weights[:, :, range(1, 5), range(4)].mean(-1)),
        "Share on itself": ("1", weights[:, :, range(1, 5), range(1, 5)].mean(-1)),
        "Entropy (in bits)": ("2.3 bits", np.mean(entropies, axis=-1) * ROWS / (ROWS - 1) / np.log2(ROWS)),
    }
    measures = {measure["name"]: measure for measure in phrase_of(grid())["measures"]}
    assert list(measures) == list(expected)
    for name, (top, shares) in expected.items():
        packed = np.frombuffer(base64.b64decode(measures[name]["data"]), dtype=np.uint8)
        assert (measures[name]["top"], packed.tolist()) == (top, [round(255 * share) for share in shares.flat])
    assert [measure["max"] for measure in measures.values()] == [1, 1, 1, 2.3219]


def test_each_measure_says_that_it_is_of_this_phrase():
    assert all(measure["meaning"].count("in this phrase") == 1 for measure in phrase_of(grid())["measures"])


def test_a_single_row_has_nothing_to_measure():
    widget = AttentionGrid(["a", " b"], arrays(2, 3, 1)[0], prompt_len=1)
    assert (phrase_of(widget)["measures"], phrase_of(widget)["sinks"]) == ([], [])
    soup = soup_of(widget)
    assert soup.select("[aria-label=Measure], .pd-legend, .pd-meaning") == []
    assert soup.select_one(".pd-told").get_text() == "layer 0, head 0"


def test_a_sink_never_looks_far_beyond_the_first_token():
    weights, _ = arrays()
    weights[1, 0] = 0
    weights[1, 0, :, 0] = 1
    assert phrase_of(grid(weights=weights, scores=None))["sinks"] == [1 * HEADS + 0]


def test_equal_input_gives_equal_bytes():
    first, second = (grid(names={(1, 2): "x"})._repr_mimebundle_()[0] for _ in range(2))
    assert (first["text/html"], first["text/plain"]) == (second["text/html"], second["text/plain"])


def test_long_phrases_are_clipped_and_say_so():
    weights, scores = arrays(1, 2, 80)
    widget = AttentionGrid([f" t{i}" for i in range(81)], weights, scores, prompt_len=70)
    assert (phrase_of(widget)["steps"], phrase_of(widget)["positions"], widget.step) == (64, 80, 64)
    assert len(base64.b64decode(phrase_of(widget)["weights"])) == 1 * 2 * 64 * 65 // 2
    assert "Shows the first 64 of 80 positions." in soup_of(widget).get_text()


# --- tokens


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (" capital", "·capital"),
        ("    x y", "····x y"),
        ("\n\n", "↵↵"),
        ("\tx", "⇥x"),
        ("\x00", "␀"),
        ("\x7f", "⟨U+007F⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("\u200d", "⟨U+200D⟩"),
        ("\u0301", "⟨U+0301⟩"),
        (" \u0301a", "·◌\u0301a"),
        ("👩‍🔬", "👩‍🔬"),
        ("שלום", "שלום"),
        ("⟨D0⟩", "⟨D0⟩"),
        ("", "⟨empty⟩"),
    ],
)
def test_tokens_are_shown(token, text):
    assert shown(token) == text


# --- the three forms


def test_mimebundle_holds_the_live_view_the_picture_and_a_short_text():
    bundle, _ = grid()._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"}
    assert bundle["text/plain"] == "AttentionGrid(4 prompt + 2 new tokens, 2 x 3 heads)"


def test_picture_is_a_real_table_with_its_numbers():
    weights, _ = arrays()
    root = soup_of(grid()).find(attrs={"data-widget": "attention-grid"})
    assert (root["data-steps"], root["data-step"], root["data-prompt-len"]) == ("5", "5", "4")
    assert (root["data-phase"], root["data-pairs"], root["data-cache"]) == ("decode", "15", "5")
    cells = root.select("table td[data-q][data-k][data-state]")
    assert len(cells) == ROWS * ROWS
    for cell in cells:
        q, k = int(cell["data-q"]), int(cell["data-k"])
        assert cell["data-state"] == ("masked" if k > q else "prefill" if q < PROMPT else "decode")
        assert cell.get_text() == "" or abs(float(cell.get_text()) - weights[0, 0, q, k]) < 0.0075
    assert [row["data-row"] for row in root.select("tr[aria-current]")] == ["4"]
    assert root.select_one("table > caption").get_text() == "Attention weights, layer 0, head 0"


def test_traits_in_the_page_are_the_traits_of_the_widget():
    widget = grid(label="</script><b>")
    script = soup_of(widget).find("script", type="application/json")
    assert json.loads(script.string)["data"] == widget.data
    assert "<" not in script.string


def test_controls_are_hidden_until_a_script_runs():
    soup = soup_of(grid())
    controls = soup.select("button, select, input")
    assert len(controls) == 5 + 1 + 2 + 1 + 1
    assert all(control.find_parent(hidden=True) for control in controls)


def test_questions_travel_with_indices_and_open_on_the_whole_picture():
    asked = [GridQuestion("A?", "It is a < b.", head=(1, 2), step=3), GridQuestion("B?", "So.", without_cache=True)]
    widget = grid(questions=asked, names={(0, 1): "first"})
    assert phrase_of(widget)["questions"] == [
        {"ask": "A?", "answer": "It is a < b.", "layer": 1, "head": 2, "step": 3, "withoutCache": False},
        {"ask": "B?", "answer": "So.", "layer": 0, "head": 1, "step": ROWS, "withoutCache": True},
    ]
    buttons = soup_of(widget).select(".pd-questions[hidden] button")
    assert [(button["data-ask"], button.text) for button in buttons] == [("0", "A?"), ("1", "B?")]
    assert soup_of(grid()).select(".pd-questions") == []


def test_a_place_is_told_where_two_tokens_are_called_the_same():
    readouts = [soup_of(grid(tokens=tokens)).select_one(".pd-readout").text for tokens in (list("abcdef"), ["a"] * 6)]
    assert "query “e”, key “" in readouts[0]
    assert re.search(r"query “a” \(4\), key “a” \([0-4]\): ", readouts[1])


def test_card_of_all_heads_says_what_its_map_will_show():
    weights, _ = arrays()
    card = soup_of(grid(layers=[7, 23], names={(23, 2): "named"})).select_one("[data-card=heads]")
    assert card.has_attr("hidden")
    assert [option.get_text() for option in card.select("[aria-label=Measure] option")] == [
        "Share on the first token",
        "Share on the previous token",
        "Share on itself",
        "Entropy (in bits)",
    ]
    assert [axis.get_text(" ") for axis in card.select(".pd-axis")] == ["0 head 2", "7 layer 23"]
    assert card.select_one(".pd-legend").get_text(" ") == "0 1"
    share = weights[1, 2, 1:, 0].mean()
    assert card.select_one(".pd-told").get_text() == f"layer 23, head 2: {share:.2f} on the first token · named"


def test_markup_is_text_everywhere():
    bad = ["<script>x</script>", "</table>", "\"'", "&lt;", "\u202eab", "\ud800"]
    widget = grid(tokens=bad, names={(0, 0): "<b>n</b>"}, label="<i>", dtype_name="<u>", kv_bytes_per_token=8,
                  next_tokens=[[("<s>", 0.5)]] * ROWS)  # fmt: skip
    soup = soup_of(widget)
    assert len(soup.select("script")) == 1
    assert soup.select("i, u, s, bdi b") == []
    assert soup.select_one("th[data-i='1']").get_text() == "</table>"
    soup_of(widget).encode("utf-8")


def test_ledger_of_the_last_step():
    likely = [[(" mat", 0.61249), (" rug", 0.0004)]] * ROWS
    text = soup_of(grid(kv_bytes_per_token=1000, dtype_name="float64", next_tokens=likely)).get_text(" ")
    for part in ("= 5·6/2", "= 10 + 15", "5 entries · 5,000 B", "1,000 B a position, float64", "61.2 %", "0.0 %"):
        assert part in " ".join(text.split())


# --- several phrases


def test_of_phrases_keeps_their_order_and_shows_the_first():
    other = AttentionGrid(["a", " b", " c"], arrays(1, 2, 2)[0], prompt_len=1, label="letters")
    joined = AttentionGrid.of_phrases([grid(label="cat"), other])
    assert [phrase["label"] for phrase in joined.data["phrases"]] == ["cat", "letters"]
    assert repr(joined) == "AttentionGrid(2 phrases, 2 x 3 heads)"
    assert [option.get_text() for option in soup_of(joined).select("[aria-label=Phrase] option")] == ["cat", "letters"]
    assert soup_of(joined).find(attrs={"data-widget": True})["data-steps"] == "5"


@pytest.mark.parametrize("labels", [[], ["a", "a"], ["a", None]])
def test_of_phrases_needs_different_labels(labels):
    with pytest.raises(ValueError, match="different labels"):
        AttentionGrid.of_phrases([grid(label=label) for label in labels])


# --- bad input


def altered(value, where=(0, 0, 2, 1)):
    weights, _ = arrays()
    weights[where] = value
    return weights


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": arrays()[0][0]}, "expected .layers, heads, 5, 5."),
        ({"weights": arrays(rows=6)[0]}, "expected .layers, heads, 5, 5. for 6 tokens"),
        ({"tokens": ["the"]}, "weights have the shape"),
        ({"prompt_len": 0}, "prompt_len is 0, expected 1 to 5"),
        ({"prompt_len": 6}, "prompt_len is 6, expected 1 to 5"),
        ({"weights": altered(np.nan)}, "NaN"),
        ({"weights": altered(-0.1)}, "negative"),
        ({"weights": altered(0.99)}, "do not sum to 1"),
        ({"weights": np.full((LAYERS, HEADS, ROWS, ROWS), 1 / ROWS)}, "over the keys 0..i"),
        ({"scores": arrays(heads=4)[1]}, "scores have the shape"),
        ({"scores": arrays()[1] * 1e6}, "less than 32768"),
        ({"layers": [1]}, "layers names 1 entries, expected 2"),
        ({"heads": [1, 1, 2]}, "expected 3 different ones"),
        ({"names": {(9, 0): "x"}}, "names has the key"),
        ({"next_tokens": [[]]}, "next_tokens has 1 rows, expected 5"),
        ({"questions": [GridQuestion("Where?", "", head=(0, 9))]}, "points at head .0, 9.: expected labels"),
        ({"questions": [GridQuestion("When?", "", step=6)]}, "points at step 6: expected 0 to 5"),
    ],
)
def test_bad_input_gets_one_line(options, message):
    with pytest.raises(ValueError, match=message) as error:
        grid(**options)
    assert "\n" not in str(error.value)
