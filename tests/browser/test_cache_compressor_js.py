"""The compressor's module in a browser: it shows what Python wrote of the chosen way of storing."""

import pytest
from compressor_fixture import EXACT, MEASURED, TOKENS, compressor
from playwright.sync_api import Locator, Page, expect
from widget_page import NO_SCRIPT, PHONE

from prefill_decode.widgets import CacheCompressor

ROOT = '[data-widget="cache-compressor"]'
NAMES = list(MEASURED)
SENTENCE = ".pd-sentence"
# The column of the book and a phone: window, and the width of the column.
COLUMNS = [({"width": 1280, "height": 900}, 688), (PHONE, 344)]


@pytest.fixture(scope="module")
def widget() -> CacheCompressor:
    return compressor()


@pytest.fixture
def page(open_page, widget) -> Page:
    return open_page(widget)


def root_of(page: Page, nth: int = 0) -> Locator:
    return page.locator(ROOT).nth(nth)


def radio(place: Page | Locator, name: str) -> Locator:
    return place.get_by_role("radio", name=name, exact=True)


def ask(place: Page | Locator, question: str) -> None:
    place.get_by_role("button", name=question, exact=True).click()


def expect_shown(root: Locator, data: dict, name: str) -> None:
    """Expect all parts to be those of a way of storing."""
    way = data["ways"][name]
    state = root.evaluate("e => ({...e.dataset})")
    assert {key: state[key] for key in way["attributes"]} == way["attributes"]
    assert root.locator(".pd-bars b").all_inner_texts() == [
        name,
        *(way["texts"][key] for key in ("bytes", "mean", "perplexity")),
    ]
    styles = root.locator(".pd-bar").evaluate_all("all => all.map(e => e.getAttribute('style'))")
    assert styles == [place["style"] for place in way["places"].values()]
    chips = root.locator(".pd-stage > :visible :is(span, u)").evaluate_all("all => all.map(e => e.textContent)")
    assert chips == TOKENS[name]
    expect(root.locator("[aria-current]")).to_have_count(1)
    expect(root.locator("[aria-current]")).to_have_attribute("data-row", name)
    expect(radio(root, name)).to_be_checked()


# --- choices


@pytest.mark.parametrize("name", NAMES)
def test_a_click_shows_a_way_of_storing_with_its_sentence(page, widget, name):
    radio(page, name).check()
    expect_shown(root_of(page), widget.data, name)
    assert page.locator(SENTENCE).inner_text() == widget.data["ways"][name]["texts"]["sentence"]


def test_every_choice_is_reached_by_the_keys_of_radio_buttons(page, widget):
    radio(page, "2 bits").focus()
    for name in [*NAMES[5:], *NAMES[:5]]:
        page.keyboard.press("ArrowDown")
        expect_shown(root_of(page), widget.data, name)
    page.keyboard.press("ArrowUp")
    expect_shown(root_of(page), widget.data, "4 bits")


def test_the_form_around_the_radio_buttons_is_never_sent(page, widget):
    radio(page, "4 bits").check()
    stopped = page.locator("form").evaluate("""form => new Promise(done => {
      document.addEventListener("submit", event => done(event.defaultPrevented));
      form.requestSubmit();  // as the Enter key does in some browsers
    })""")
    assert stopped
    expect_shown(root_of(page), widget.data, "4 bits")


def test_every_choice_is_reached_by_arrows_on_the_widget(page, widget):
    root = root_of(page)
    root.focus()
    page.keyboard.press("Home")
    for name in NAMES:
        expect_shown(root, widget.data, name)
        page.keyboard.press("ArrowRight")
    expect_shown(root, widget.data, NAMES[-1])
    for key, name in (("ArrowLeft", NAMES[-2]), ("ArrowUp", NAMES[-3]), ("ArrowDown", NAMES[-2]), ("End", NAMES[-1])):
        page.keyboard.press(key)
        expect_shown(root, widget.data, name)
    page.keyboard.press("Control+Home")
    expect_shown(root, widget.data, NAMES[-1])


def test_questions_show_their_row_and_answer(page, widget):
    for question in widget.data["questions"]:
        ask(page, question["ask"])
        expect_shown(root_of(page), widget.data, question["storage"])
        assert page.locator(SENTENCE).inner_text() == question["answer"]
        pressed = page.locator("[data-ask][aria-pressed=true]")
        assert pressed.all_inner_texts() == [question["ask"]]
    radio(page, "exact").check()
    assert page.locator("[data-ask][aria-pressed=true]").count() == 0


def test_every_control_is_reached_by_tab(page, widget):
    root_of(page).focus()
    names = []
    for _ in range(6):
        page.keyboard.press("Tab")
        names.append(page.evaluate("e => (e = document.activeElement).value || e.innerText"))
    assert names == ["2 bits", *(each["ask"] for each in widget.data["questions"])]


def test_one_polite_sentence_a_choice(page):
    page.evaluate("""() => {
      window.said = 0;
      const live = document.querySelectorAll("[aria-live=polite]");
      for (const e of live) new MutationObserver(() => { window.said += 1; }).observe(e, { childList: true });
    }""")
    radio(page, "8 bits").check()
    assert page.evaluate("window.said") == 1


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            "['ArrowRight', 'ArrowDown', 'ArrowLeft', 'ArrowUp', 'Home', 'End'].map(k => indexForKey(k, 3, 7, true))",
            [4, 4, 2, 2, 0, 7],
        ),
        ("[indexForKey('ArrowRight', 7, 7), indexForKey('ArrowLeft', 0, 7), indexForKey('x', 3, 7)]", [7, 0, None]),
    ],
)
def test_pure_function(live, call, expected):
    assert live.evaluate(f"(() => {{ with (window.module) {{ return {call}; }} }})") == expected


# --- one picture

PICTURE = """root => {
  const copy = root.cloneNode(true);
  copy.querySelectorAll("script").forEach(e => e.remove());
  for (const e of [copy, ...copy.querySelectorAll("*")])
    ["hidden", "tabindex", "data-live", "aria-pressed"].forEach(name => e.removeAttribute(name));
  return copy.outerHTML;
}"""
PLACES = "root => [root, ...root.querySelectorAll('*')].map(e => [e.offsetTop, e.offsetHeight, e.localName])"


@pytest.mark.parametrize("name", NAMES)
def test_mounting_changes_nothing_that_is_seen_whichever_is_open(open_page, name):
    still, mounted = (open_page(compressor(storage=name), mount=mount) for mount in (False, True))
    expect(root_of(mounted)).to_have_attribute("data-live", "page")
    assert root_of(still).evaluate(PICTURE) == root_of(mounted).evaluate(PICTURE)


def column(width: int, more: str = "") -> str:
    return f"<style>body {{ margin: 8px; max-width: {width}px; }}</style>{more}"


@pytest.mark.parametrize(("viewport", "width"), COLUMNS)
def test_mounting_choosing_and_asking_move_nothing(open_page, widget, viewport, width):
    still, page = (open_page(widget, mount=m, viewport=viewport, head=column(width)) for m in (False, True))
    root = root_of(page)
    assert root.evaluate("e => e.offsetWidth") == width
    places = root_of(still).evaluate(PLACES)
    assert [place for place in places if place[2] == "input"] != []
    assert root.evaluate(PLACES) == places
    assert len(set(page.locator(".pd-stage > *").evaluate_all("all => all.map(e => e.offsetTop)"))) == 1
    for name in NAMES:
        radio(page, name).check()
        assert root.evaluate(PLACES) == places, name
    for question in widget.data["questions"]:
        ask(page, question["ask"])
        assert root.evaluate(PLACES) == places, question["ask"]


@pytest.mark.parametrize("name", NAMES)
def test_no_horizontal_scroll_and_nothing_small_on_a_phone(open_page, widget, name):
    page = open_page(widget, viewport=PHONE, head=column(344))
    radio(page, name).check()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    over = page.locator(f"{ROOT} *").evaluate_all("""all => {
      const { right } = all[0].closest("[data-widget]").getBoundingClientRect();
      return all.filter(e => e.getBoundingClientRect().right > right).map(e => e.outerHTML);
    }""")
    assert over == []
    sizes = page.locator("button, label").evaluate_all("all => all.map(e => e.offsetHeight)")
    assert min(sizes) >= 24
    fonts = page.locator(f"{ROOT} :is(td, th, p, span, u, em, b, small, button, label)").evaluate_all(
        "all => all.map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(fonts) >= 11
    wide = page.locator(f"{ROOT} :is(th, td):visible").evaluate_all(
        "all => all.filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)"
    )
    assert wide == []


def test_tokens_of_another_text_differ_by_more_than_colour(page):
    chosen = page.locator(".pd-stage > :visible")
    lines = [chosen.locator(tag).first.evaluate("e => getComputedStyle(e).textDecorationLine") for tag in ("span", "u")]
    assert lines == ["none", "underline"]
    expect(chosen.get_by_text("from here on another text")).to_be_visible()
    radio(page, "4 bits").check()
    expect(page.get_by_text("from here on another text").locator("visible=true")).to_have_count(0)


def test_without_script_no_control_is_visible_and_the_picture_is_finished(open_page, widget):
    page = open_page(widget, mount=False, head=NO_SCRIPT)
    assert page.locator("button:visible, input:visible, legend:visible").count() == 0
    assert page.locator(".pd-stage > :visible :is(span, u)").all_inner_texts() == TOKENS["2 bits"]
    assert page.locator(".pd-texts > .pd-chips span").all_inner_texts() == EXACT
    assert page.locator("tbody tr:visible").count() == 8
    widths = page.locator(".pd-bar").evaluate_all(
        "all => all.map(e => parseFloat(getComputedStyle(e, '::before').width) / e.offsetWidth)"
    )
    assert widths == pytest.approx([8126 / 23040, 0.652 / 3.021, 33.2 / 76.2], abs=2e-3)


def test_print_leaves_the_controls_out(page):
    page.emulate_media(media="print")
    assert page.locator("button:visible, input:visible").count() == 0
    expect(page.locator("tbody tr").last).to_be_visible()


# --- several, live


def test_two_copies_do_not_disturb_each_other(open_page, widget):
    page = open_page(widget, compressor(storage="8 bits"))
    first, second = root_of(page), root_of(page, 1)
    expect_shown(first, widget.data, "2 bits")
    radio(first, "window of 64").check()
    ask(second, "Where does the text break?")
    radio(second, "float16").check()
    expect_shown(first, widget.data, "window of 64")
    expect_shown(second, widget.data, "float16")


def test_live_in_jupyter_it_talks_with_the_model(live, widget):
    root = root_of(live)
    expect(root).to_have_attribute("data-live", "lab")
    radio(live, "4 bits").check()
    assert live.evaluate("window.values.storage") == "4 bits"
    live.evaluate("model.set('storage', 'exact')")
    expect_shown(root, widget.data, "exact")
    live.evaluate("model.set('storage', 'x')")
    expect_shown(root, widget.data, "exact")


def test_live_in_jupyter_its_keys_stay_with_it(live):
    root_of(live).focus()
    for key in ("x", "ArrowDown", "Control+s"):
        live.keyboard.press(key)
    assert live.evaluate("window.keys") == ["Control", "s"]


def test_a_mounted_copy_can_be_removed(live):
    live.evaluate("window.unmount()")
    root_of(live).focus()
    live.keyboard.press("Home")
    expect(root_of(live)).to_have_attribute("data-storage", "2 bits")
