"""The sampler's module in a browser, put together by the book's own code: its numbers against `prefill_decode`'s."""

import json
from itertools import product

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect
from token_sampler_fixture import logits_of, token_sampler
from widget_page import NO_SCRIPT, PHONE, PICTURE, load_module

from prefill_decode.sampling import ORDERS
from prefill_decode.widgets import TokenSampler
from prefill_decode.widgets.token_sampler_data import CHOICES, DRAWS, MIN_P, SEEDS, TEMPERATURES, TOP_P, Choice
from prefill_decode.widgets.token_sampler_reading import read
from prefill_decode.widgets.token_sampler_words import length, sentence, share

ROOT = '[data-widget="token-sampler"]'
SENTENCE = f"{ROOT} .pd-sentence"
PATHS = ("after", "rest", "kept_mass")


@pytest.fixture(scope="module")
def widget() -> TokenSampler:
    return token_sampler()


@pytest.fixture
def page(open_page, widget) -> Page:
    return open_page(widget)


def state_of(root: Locator) -> dict:
    return root.evaluate("e => ({...e.dataset})")


def ask_of(page: Page, widget: TokenSampler, index: int) -> None:
    page.get_by_role("button", name=widget.data["questions"][index]["ask"], exact=True).click()


# --- the numbers


READ = """([data, choices]) => choices.map((choice) => {
  const { left, keptMass, after, rest, segments, drawn } = window.module.readingOf(data, choice);
  const ids = drawn.map((code) => window.module.idOf(data, code));
  return { left, kept_mass: keptMass, after, rest, drawn: ids, segments: [...segments].sort(([a], [b]) => a - b) };
})"""


def choices_of(every: int) -> list[Choice]:
    """Return every so manieth of all settings that are offered, top-k at its ends and in between."""
    every_one = product(TEMPERATURES, (None, 1, 2, 7, 30, 50), (None, *TOP_P), (None, *MIN_P), ORDERS)
    return [Choice(*values, seed=SEEDS[i % 3], draws=DRAWS) for i, values in enumerate(every_one)][::every]


@pytest.mark.parametrize(
    ("logits", "every"),
    [
        (logits_of(), 29),
        (logits_of(400, 1.0, 5), 37),
        (logits_of(90, 12.0, 6), 97),
        (logits_of(50), 211),
        (logits_of(2), 331),
    ],
    ids=["plain", "flat", "steep", "no rest", "two"],
)
def test_the_page_computes_what_python_does(open_page, logits, every):
    page, choices = open_page(), choices_of(every)
    load_module(page, "token_sampler")
    data = json.loads(json.dumps(token_sampler(logits).data))
    told = page.evaluate(READ, [data, [vars(choice) for choice in choices]])
    for choice, shown in zip(choices, told, strict=True):
        reading = read(logits, choice)
        assert shown["left"] == reading.left, choice
        assert shown["drawn"] == reading.drawn, choice
        for name in PATHS:
            assert shown[name] == pytest.approx(getattr(reading, name), rel=1e-12, abs=1e-12), (name, choice)
        assert [rank for rank, _ in shown["segments"]] == list(reading.segments), choice
        places = [each for _, place in shown["segments"] for each in place]
        expected = [each for place in reading.segments.values() for each in place]
        assert places == pytest.approx(expected, abs=1e-12), choice


def test_the_grid_goes_beyond_what_is_shown():
    partly = [choice for choice in choices_of(29) if 50 < read(logits_of(), choice).kept < 200]
    assert {choice.order for choice in partly} == set(ORDERS)
    assert len([choice for choice in partly if choice.order == "vllm" and choice.top_p and choice.min_p]) > 3


def test_shares_and_bars_are_written_as_python_writes_them(live):
    p = [0, *np.geomspace(1e-7, 1, 400).tolist(), 1 - 1e-10, 0.99951, 0.0995, 0.09995]
    told = live.evaluate("p => p.map((each) => [window.module.share(each), window.module.lengthOf(each)])", p)
    assert told == [[share(each), length(each)] for each in p]


OPENED = [
    {},
    {"temperature": 0.0},
    {"temperature": 2.0, "order": "llama.cpp", "top_p": 0.8, "seed": 1},
    {"temperature": 2.0, "top_p": None, "draws": 3},
    {"temperature": 1.7, "top_p": 0.95, "min_p": 0.01, "order": "vllm", "seed": 2},
    {"temperature": 0.1, "top_k": 3, "top_p": None, "draws": 0},
    {"temperature": 1.3, "top_k": 40, "min_p": 0.1, "top_p": None, "draws": 1},
]


@pytest.mark.parametrize("opened", OPENED)
def test_script_shows_what_python_draws(live, open_page, opened):
    drawn = open_page(token_sampler(**opened), mount=False)
    choice = vars(Choice(**{"top_p": 0.9} | opened))
    live.evaluate("choice => Object.entries(choice).forEach(([name, value]) => model.set(name, value))", choice)
    assert live.locator(ROOT).evaluate(PICTURE) == drawn.locator(ROOT).evaluate(PICTURE)
    for name in ("temperature", "top_k", "top_p", "min_p"):
        value, expected = (
            at.locator(f"input[name={name}]").evaluate("e => [e.value, e.ariaValueText]") for at in (live, drawn)
        )
        assert value == expected


# --- mounted


@pytest.mark.parametrize("width", [360, 800, 1280])
def test_mounting_changes_and_moves_nothing(open_page, widget, width):
    boxes = """() => [...document.querySelectorAll("li, p, i, .pd-strip > span, .pd-controls, .pd-questions")]
      .map(e => JSON.stringify(e.getBoundingClientRect()))"""
    drawn, mounted = (open_page(widget, mount=m, viewport={"width": width, "height": 800}) for m in (False, True))
    assert mounted.locator(ROOT).get_attribute("data-live") == "page"
    assert mounted.evaluate(boxes) == drawn.evaluate(boxes)


def test_without_script_no_control_is_visible(open_page, widget):
    page = open_page(widget, mount=False, head=NO_SCRIPT)
    assert page.locator("button:visible, input:visible, select:visible").count() == 0
    for part in (".pd-bars", ".pd-strip", ".pd-trail", ".pd-sentence", ".pd-tally", ".pd-rest"):
        expect(page.locator(part)).to_be_visible()


def test_sliders_by_keyboard(page):
    root = page.locator(ROOT)
    steps = [
        ("Temperature", "ArrowRight", "temperature", "1.1"),
        ("Temperature", "Home", "temperature", "0.0"),
        ("Top-k", "ArrowLeft", "top-k", "50"),
        ("Top-k", "Home", "top-k", "1"),
        ("Top-k", "End", "top-k", "off"),
        ("Top-p", "ArrowRight", "top-p", "0.95"),
        ("Top-p", "End", "top-p", "off"),
        ("Min-p", "ArrowRight", "min-p", "0.01"),
        ("Min-p", "Home", "min-p", "off"),
    ]
    for title, key, name, value in steps:
        page.get_by_label(title, exact=True).press(key)
        expect(root).to_have_attribute(f"data-{name}", value)
        expect(page.get_by_label(title, exact=True)).to_have_attribute("aria-valuetext", value)


def test_a_draw_takes_the_next_number(page, widget):
    root, draw = page.locator(ROOT), page.get_by_role("button", name="Draw", exact=True)
    page.get_by_role("button", name="Start over", exact=True).click()
    assert page.locator(SENTENCE).inner_text().endswith("Nothing is drawn yet.")
    for draws in range(1, DRAWS + 1):
        draw.press("Enter")
        choice = Choice(top_p=0.9, draws=draws)
        reading = read(logits_of(), choice)
        assert [state_of(root)[name] for name in ("draws", "token")] == [str(draws), str(reading.drawn[-1])]
        assert page.locator(SENTENCE).inner_text() == sentence(widget.data, choice, reading)
    draw.click()
    expect(page.locator(SENTENCE)).to_contain_text("All 12 numbers of seed 0 are used")
    expect(root).to_have_attribute("data-draws", "12")


def test_the_marker_lands_in_the_interval_of_the_token(open_page):
    page = open_page(token_sampler(logits_of(spread=4.0), draws=0))
    for _ in range(DRAWS):
        page.get_by_role("button", name="Draw", exact=True).click()
        left, marker, right = page.locator(ROOT).evaluate("""root => {
          const now = root.querySelector("[data-tick][data-state=now]").getBoundingClientRect();
          const { left, right } = root.querySelector("[data-segment][data-drawn]").getBoundingClientRect();
          return [left, (now.left + now.right) / 2, right];
        }""")
        assert left - 0.2 <= marker <= right + 0.2
        assert page.locator(".pd-bars [data-state=chosen]").count() == 1


def test_a_token_of_the_rest_has_no_bar_and_its_marker_stands_in_a_gap(open_page):
    page = open_page(token_sampler(temperature=2.0, top_p=None))
    drawn = read(logits_of(), Choice(2.0)).drawn
    ids = token_sampler().data["ids"]
    draws = next(i for i, token in enumerate(drawn, 1) if token not in ids)
    page.get_by_role("button", name="Start over", exact=True).click()
    for _ in range(draws):
        page.get_by_role("button", name="Draw", exact=True).click()
    expect(page.locator(ROOT)).to_have_attribute("data-token", str(drawn[draws - 1]))
    expect(page.locator(".pd-rest")).to_have_attribute("data-state", "chosen")
    assert page.locator(".pd-bars [data-state=chosen], [data-segment][data-drawn]").count() == 0
    expect(page.locator(SENTENCE)).to_contain_text("(one of the rest)")


def test_questions_set_a_state_and_answer(page, widget):
    for index, question in enumerate(widget.data["questions"]):
        ask_of(page, widget, index)
        reading = read(logits_of(), Choice(**question["set"]))
        assert state_of(page.locator(ROOT))["kept"] == str(reading.kept)
        assert page.locator(SENTENCE).inner_text() == question["answer"]
        assert page.locator("[aria-pressed=true]").inner_text() == question["ask"]
    page.get_by_label("Seed").select_option("2")
    assert page.locator("[aria-pressed=true]").count() == 0


def test_one_polite_sentence_a_change(page):
    page.evaluate("""() => {
      window.said = 0;
      const live = document.querySelectorAll("[aria-live=polite]");
      new MutationObserver(() => { window.said += 1; }).observe(live[0], { childList: true });
      window.lives = live.length;
    }""")
    for value in range(5):
        page.get_by_label("Temperature").fill(str(value))
    assert page.evaluate("[window.lives, window.said]") == [1, 5]


# --- several, live, printed


def test_two_copies_do_not_disturb_each_other(open_page, widget):
    page = open_page(widget, token_sampler(temperature=2.0, order="vllm"))
    first, second = page.locator(ROOT).nth(0), page.locator(ROOT).nth(1)
    second.get_by_label("Order").select_option("llama.cpp")
    first.get_by_label("Seed").select_option("1")
    told = [[state_of(root)[name] for name in ("temperature", "order", "seed")] for root in (first, second)]
    assert told == [["1.0", "transformers", "1"], ["2.0", "llama.cpp", "0"]]


def test_live_in_jupyter_it_talks_with_the_model(live):
    root = live.locator(ROOT)
    live.get_by_label("Top-p").press("End")
    live.get_by_label("Order").select_option("vllm")
    names = list(CHOICES)
    assert live.evaluate("names => names.map(n => window.values[n])", names) == [1, None, None, None, "vllm", 0, 12]
    live.evaluate("model.set('top_k', 5)")
    assert [state_of(root)[name] for name in ("topK", "kept", "live")] == ["5", "5", "lab"]
    expect(live.get_by_label("Top-k")).to_have_value("5")
    live.evaluate("window.keys = []")
    live.get_by_label("Temperature").press("x")
    live.get_by_label("Temperature").press("Control+s")
    assert live.evaluate("window.keys") == ["Control", "s"]


def test_a_mounted_copy_can_be_removed(live):
    live.evaluate("window.unmount()")
    live.get_by_role("button", name="Start over", exact=True).click()
    live.evaluate("model.set('top_k', 5)")
    assert [state_of(live.locator(ROOT))[name] for name in ("draws", "topK")] == ["12", "off"]


def test_print_has_no_controls(page):
    page.emulate_media(media="print")
    assert page.locator("button:visible, input:visible, select:visible").count() == 0
    expect(page.locator(".pd-bars")).to_be_visible()


# --- reach


def test_on_a_phone_nothing_overflows_and_letters_stay_legible(open_page, widget):
    page = open_page(widget, viewport=PHONE)
    for index in range(5):
        ask_of(page, widget, index)
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        out = page.locator(ROOT).evaluate("""root => [...root.querySelectorAll(".pd-bars b, .pd-rest b, .pd-trail li")]
          .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.outerHTML)""")
        assert out == []
    sizes = page.locator(f"{ROOT} :is(b, bdi, p, span, small):visible").evaluate_all(
        "all => all.map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(sizes) >= 11
    targets = page.locator(f"{ROOT} :is(button, select, input)").evaluate_all("all => all.map(e => e.offsetHeight)")
    assert min(targets) >= 24


@pytest.mark.parametrize("width", [344, 688, 1264])
def test_the_height_is_the_same_in_every_state(open_page, widget, width):
    page = open_page(
        widget,
        head=f"<style>body {{ margin: 8px; max-width: {width}px; }}</style>",
        viewport={"width": 1280, "height": 800},
    )
    heights = page.evaluate("""() => {
      const root = document.querySelector("[data-widget]"), heights = new Set([root.offsetHeight]);
      const look = () => heights.add(root.offsetHeight);
      const tell = (e, value) => { e.value = value; e.dispatchEvent(new Event("input", { bubbles: true })); look(); };
      const ranges = [...root.querySelectorAll("input")];
      for (const range of ranges) for (const heat of [0, 10, 20]) {
        tell(ranges[0], heat);
        const kept = range.value;
        for (let at = Number(range.min); at <= Number(range.max); at += 1) tell(range, at);
        tell(range, kept);
      }
      for (const select of root.querySelectorAll("select")) {
        for (const option of select.options) tell(select, option.value);
      }
      for (const button of root.querySelectorAll("[data-act], [data-ask]")) {
        button.click();
        if (button.dataset.act || root.clientWidth > 520) look(); // on a phone an answer may push the rest down
      }
      return [...heights];
    }""")
    assert len(heights) == 1
