"""What `PromptExplorer` answers to a phrase: a grid, or one line and the last good grid."""

import threading

import pytest
import traitlets
from bs4 import BeautifulSoup

from prefill_decode import smollm2, toy
from prefill_decode.observe import notable_heads, observe
from prefill_decode.widgets import AttentionGrid, PromptExplorer
from prefill_decode.widgets.attention_grid_data import shown
from prefill_decode.widgets.prompt_explorer import RUN_IT_LIVE

VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def toy_explorer() -> PromptExplorer:
    return PromptExplorer(toy.load, phrase="the old cat", max_new_tokens=3)


@pytest.fixture(scope="module")
def real_explorer(real_model, tokenizer) -> PromptExplorer:
    return PromptExplorer(lambda: (real_model, tokenizer), max_new_tokens=2)


def asked(explorer: PromptExplorer, phrase: str, new: int | None = None) -> str:
    """Run a phrase as a reader would; return the line."""
    explorer.phrase.value = phrase
    explorer.new_tokens.value = new or explorer.new_tokens.value
    thread = explorer.run()
    thread.join(60)
    assert not thread.is_alive()
    assert "\n" not in explorer.status.line
    assert explorer.status.passes == 0
    return explorer.status.line


def drawn(explorer: PromptExplorer) -> dict:
    return explorer.grid.data["phrases"][0]


# --- good phrases


def test_the_first_phrase_is_run_at_once(toy_explorer, toy_model, toy_tokenizer):
    seen = observe(toy_model, toy_tokenizer, "the old cat", 3)
    expected = AttentionGrid(**vars(seen), names=notable_heads(seen.weights), dtype_name="float32")
    assert toy_explorer.grid.data == expected.data
    assert toy_explorer.children[-1] is toy_explorer.grid
    assert toy_explorer.status.line == ("prompt tokens: 3, new tokens: 3, rows: 5, passes: 1 prefill + 2 decode")


def test_a_phrase_replaces_the_last_one_in_the_same_grid(toy_explorer, toy_model, toy_tokenizer):
    grid = toy_explorer.grid
    grid.step, grid.layer, grid.without_cache = 1, "0", True
    line = asked(toy_explorer, "a dog sees the bird", 6)
    assert line == "prompt tokens: 5, new tokens: 6, rows: 10, passes: 1 prefill + 5 decode"
    seen = observe(toy_model, toy_tokenizer, "a dog sees the bird", 6)
    fresh = AttentionGrid(**vars(seen), names=notable_heads(seen.weights), dtype_name="float32")
    for name in ("data", "phrase", "step", "layer", "head", "without_cache"):
        assert getattr(grid, name) == getattr(fresh, name), name
    assert toy_explorer.grid is grid


def test_a_view_gets_the_new_phrase_in_one_message(toy_explorer, monkeypatch):
    sent = []
    monkeypatch.setattr(type(toy_explorer.grid), "send_state", lambda self, key=None: sent.append({*key}))
    asked(toy_explorer, "a dog sees the bird", 6)
    assert len(sent) == 1
    assert {"data", "step"} <= sent[0]


def test_the_bar_goes_one_step_a_pass(toy_explorer):
    steps = []
    toy_explorer.status.observe(lambda change: steps.append((change.new, toy_explorer.status.passes)), "passed")
    asked(toy_explorer, "a dog", 4)
    assert steps == [(0, 0), (1, 4), (2, 4), (3, 4), (4, 4)]


def test_the_model_is_loaded_once():
    calls = []
    explorer = PromptExplorer(lambda: calls.append("load") or toy.load(), phrase="a cat")
    asked(explorer, "a dog")
    assert calls == ["load"]


@pytest.mark.parametrize(
    "starts",
    [lambda it: it.button.click(), lambda it: it.phrase._handle_custom_msg({"event": "submit"}, [])],
    ids=["button", "Enter"],
)
def test_button_and_enter_run(toy_explorer, starts):
    done = threading.Event()
    toy_explorer.status.observe(lambda change: change.new.startswith("prompt tokens: 2") and done.set(), "line")
    toy_explorer.phrase.value = "a dog"
    starts(toy_explorer)
    assert done.wait(60)
    assert drawn(toy_explorer)["tokens"][:2] == ["a", "dog"]


def test_real_phrase_of_64_rows(real_explorer):
    assert asked(real_explorer, " a" * 60, 5).startswith("prompt tokens: 60, new tokens: 5, rows: 64,")
    assert (drawn(real_explorer)["steps"], drawn(real_explorer)["positions"]) == (64, 64)


@pytest.mark.parametrize(
    ("phrase", "tokens"),
    [
        ("   ", ["···"]),
        ("<script>alert(1)</script>", ["<", "script", ">", "alert"]),
        ("stop<|im_end|> now", ["stop", "<|im_end|>", "·now"]),
        ("👩‍🔬", None),
        ("\ud800", None),
    ],
)
def test_odd_phrases_run_like_any_other(real_explorer, tokenizer, phrase, tokens):
    prompt = tokenizer.encode(phrase)
    assert asked(real_explorer, phrase, 2).startswith(f"prompt tokens: {len(prompt)}, new tokens: 2,")
    assert drawn(real_explorer)["tokens"][: len(prompt)] == [shown(token) for token in tokenizer.tokens(prompt)]
    assert tokens is None or drawn(real_explorer)["tokens"][: len(tokens)] == tokens
    page = BeautifulSoup(real_explorer._repr_mimebundle_()["text/html"], "html.parser")
    assert [tag["type"] for tag in page.select("script")].count("application/json") == 1
    assert all("alert" not in tag.get_text() for tag in page.select("script:not([type])"))


# --- bad input


@pytest.mark.parametrize(
    ("phrase", "line"),
    [
        ("", "the phrase is empty: type a word or two"),
        (" \t ", "the phrase gives no token: type a word or two"),
        ("the cat " * 15, "the phrase has 30 tokens; with 5 new ones the context holds up to 28: shorten it"),
        ("<b>the</b>", "the toy does not know '<b>the</b>': its words are " + " ".join(toy.WORDS)),
        ("the 👩‍🔬", "the toy does not know '👩\\u200d🔬': its words are " + " ".join(toy.WORDS)),
    ],
)
def test_bad_input_is_one_line_and_the_grid_stays(toy_explorer, phrase, line):
    before = toy_explorer.grid.data
    assert asked(toy_explorer, phrase, 5) == line
    assert toy_explorer.grid.data is before


@pytest.mark.parametrize(
    ("phrase", "new", "line"),
    [
        (" a" * 90, 5, "the phrase has 90 tokens; with 5 new ones the grid draws up to 60: shorten it"),
        (" a" * 65, 1, "the phrase has 65 tokens; with 1 new one the grid draws up to 64: shorten it"),
        ("x" * 10_000, 16, "the phrase has 2,500 tokens; with 16 new ones the grid draws up to 49: shorten it"),
    ],
)
def test_a_phrase_that_the_grid_cannot_draw(real_explorer, phrase, new, line):
    before = real_explorer.grid.data
    assert asked(real_explorer, phrase, new) == line
    assert real_explorer.grid.data is before


def test_a_line_stays_a_line(toy_explorer):
    line = asked(toy_explorer, "x" * 10_000)
    assert len(line) < 410
    assert line.startswith("the toy does not know 'xx")
    assert line.endswith(" ".join(toy.WORDS))


def test_errors_that_nobody_expected_are_named():
    explorer = PromptExplorer(lambda: {}["x"])
    assert explorer.status.line == "KeyError: 'x'"


def test_a_first_phrase_that_fails_is_text_on_the_page():
    explorer = PromptExplorer(toy.load, phrase="<b>the</b>")
    assert explorer.grid is None
    assert explorer.status.line.startswith("the toy does not know '<b>the</b>'")
    page = explorer._repr_mimebundle_()["text/html"]
    assert page.startswith("<p>the toy does not know &#x27;&lt;b&gt;the&lt;/b&gt;&#x27;")


def test_absent_weights_are_one_line_until_they_are_there(monkeypatch):
    monkeypatch.setattr(smollm2.importlib.util, "find_spec", lambda name: None)
    loads = [smollm2.load, toy.load]
    explorer = PromptExplorer(lambda: loads.pop(0)(), phrase="<b> cat")
    line = f"the weights of SmolLM2 are not installed; {smollm2.INSTALL}"
    assert (explorer.status.line, explorer.grid, explorer.button.disabled) == (line, None, False)
    bundle = explorer._repr_mimebundle_()
    assert bundle["text/html"] == f"<p>{line}</p>"
    assert VIEW in bundle
    asked(explorer, "a cat")
    assert explorer.children[-1] is explorer.grid
    assert drawn(explorer)["tokens"][:2] == ["a", "cat"]


def test_a_second_click_is_one_line_and_starts_nothing(toy_tokenizer):
    gate, encoded = threading.Event(), []

    class Waiting(toy.WordTokenizer):
        def encode(self, text):
            assert gate.wait(60)
            encoded.append(text)
            return super().encode(text)

    gate.set()
    explorer = PromptExplorer(lambda: (toy.load()[0], Waiting()), phrase="a cat", max_new_tokens=2)
    before = explorer.grid.data
    gate.clear()
    explorer.phrase.value = "a dog"
    thread = explorer.run()
    assert explorer.status.line == "running …"
    explorer.phrase.value = "a bird"
    assert explorer.run() is None
    assert explorer.status.line.startswith("still running: ")
    assert explorer.grid.data is before
    gate.set()
    thread.join(60)
    assert explorer.status.line.startswith("prompt tokens: 2")
    assert drawn(explorer)["tokens"][:2] == ["a", "dog"]
    assert set(encoded) == {"a cat", "a dog"}


@pytest.mark.parametrize("new", [0, 17, 2.5])
def test_how_many_new_tokens(new):
    with pytest.raises(ValueError, match=f"max_new_tokens is {new}, expected 1 to 16"):
        PromptExplorer(toy.load, max_new_tokens=new)


def test_the_reader_may_choose_1_to_16(toy_explorer):
    assert toy_explorer.new_tokens.options == tuple(range(1, 17))
    with pytest.raises(traitlets.TraitError):
        toy_explorer.new_tokens.value = 17


# --- the three forms


def test_mimebundle_is_the_grid_s_picture_and_how_to_run_it(toy_explorer):
    bundle = toy_explorer._repr_mimebundle_()
    assert set(bundle) == {VIEW, "text/html", "text/plain"}
    assert bundle["text/plain"] == "PromptExplorer('the old cat', max_new_tokens=3)"
    assert bundle["text/html"] == toy_explorer.grid._repr_mimebundle_()[0]["text/html"] + RUN_IT_LIVE
    assert "make lab" in RUN_IT_LIVE
    assert bundle[VIEW]["model_id"] == toy_explorer.model_id


def test_controls_have_names(toy_explorer):
    controls = (toy_explorer.phrase, toy_explorer.new_tokens, toy_explorer.button)
    assert [control.description for control in controls] == ["Your phrase", "New tokens", "Run"]


def test_equal_phrases_give_equal_pictures():
    first, second = (PromptExplorer(toy.load, phrase="a cat", max_new_tokens=2) for _ in range(2))
    assert first._repr_mimebundle_()["text/html"] == second._repr_mimebundle_()["text/html"]


def test_one_token_and_one_new_one_are_a_single_row():
    explorer = PromptExplorer(toy.load, phrase="the", max_new_tokens=1)
    assert explorer.status.line == "prompt tokens: 1, new tokens: 1, rows: 1, passes: 1 prefill + 0 decode"
    assert explorer.grid.data["phrases"][0]["steps"] == 1
