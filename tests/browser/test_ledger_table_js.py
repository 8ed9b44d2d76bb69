"""The ledger table's module in a browser: it picks what Python computed, by slider, key and question."""

from collections.abc import Iterator

import pytest
from cost_examples import COUNTED
from playwright.sync_api import Browser, Locator, Page, expect
from widget_page import LIVE, PHONE, load_module

from prefill_decode.cost import ledger
from prefill_decode.widgets import LedgerTable

ROOT = '[data-widget="ledger-table"]'
SMOLLM2, LLAMA = COUNTED
SHOWN = """root => [...root.querySelectorAll("[data-text], [data-place]")].map((e) =>
  [...[...e.attributes].map(({ name, value }) => name + "=" + value).sort(), e.dataset.text ? e.textContent : ""])"""


def table(**options) -> LedgerTable:
    return LedgerTable(**{"shapes": COUNTED, **options})


@pytest.fixture
def page(open_page) -> Page:
    return open_page(table())


@pytest.fixture(scope="module")
def module(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    page.set_content("<body></body>")
    load_module(page, "ledger_table")
    yield page
    page.close()


def state_of(page: Page, nth: int = 0) -> dict:
    return page.locator(ROOT).nth(nth).evaluate("e => ({...e.dataset})")


def slider(page: Page) -> Locator:
    return page.get_by_label("n", exact=True)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("[0, 2].map(i => pick(['a', 'b', 'c'], i))", ["a", "c"]),
        ("[0, 2].map(i => pick(['a'], i))", ["a", "a"]),
        ("['ArrowRight', 'ArrowUp', 'ArrowLeft', 'ArrowDown', 'Home', 'End', 'x'].map(k => indexForKey(k, 3, 9))",
         [4, 4, 2, 2, 0, 9, None]),
        ("[indexForKey('ArrowRight', 9, 9), indexForKey('ArrowLeft', 0, 9)]", [9, 0]),
    ],
)  # fmt: skip
def test_pure_function(module, call, expected):
    assert module.evaluate(f"(() => {{ with (window.module) {{ return {call}; }} }})") == expected


@pytest.mark.parametrize(("model", "n"), [(SMOLLM2, 1), (SMOLLM2, 131_072), (LLAMA, 512)])
def test_a_choice_leads_to_the_picture_that_python_draws(open_page, model, n):
    drawn = open_page(table(model=model, n=n), mount=False).locator(ROOT).evaluate(SHOWN)
    page = open_page(table())
    page.get_by_label("Model", exact=True).select_option(model)
    slider(page).fill(str(n.bit_length() - 1))
    assert page.locator(ROOT).evaluate(SHOWN) == drawn
    assert len(drawn) > 100
    expect(page.locator("caption")).to_have_text(f"Four ledgers of {model}, one sequence")


def test_mounting_moves_nothing(open_page):
    places = [
        open_page(table(), mount=mount).locator(f"{ROOT} :is(table, .pd-plot, .pd-sentence, .pd-questions)")
        .evaluate_all("all => all.map(e => e.getBoundingClientRect()).map(b => [b.x, b.y, b.width, b.height])")
        for mount in (False, True)
    ]  # fmt: skip
    assert places[0] == places[1]


def test_slider_and_keys_step(page):
    root = page.locator(ROOT)
    expect(root).to_have_attribute("data-n", "4096")
    slider(page).focus()
    for key, n in (("ArrowRight", 8192), ("Home", 1), ("End", 131_072), ("ArrowLeft", 65_536)):
        page.keyboard.press(key)
        expect(root).to_have_attribute("data-n", str(n))
        expect(slider(page)).to_have_attribute("aria-valuetext", f"{n:,} token{'s' * (n > 1)}")
    root.focus()
    for key, n in (("ArrowLeft", 32_768), ("Home", 1), ("ArrowUp", 2)):
        page.keyboard.press(key)
        expect(root).to_have_attribute("data-n", str(n))
    expect(page.locator(".pd-sentence")).to_contain_text("Prefill of 2 tokens: 3 pairs")
    shape, dtype = COUNTED[SMOLLM2]
    assert int(state_of(page)["prefillFlops"]) == ledger(shape, 2, 2, dtype=dtype).flops.total


@pytest.mark.parametrize(
    ("name", "n", "words"),
    [
        ("When does attention pass the feed-forward?", 2048, "In decode from n = 2,304 on"),
        ("When does the cache weigh more than the weights?", 16_384, "From 11,676 cached tokens on"),
        ("What does a dense kernel compute in vain?", 4096, "50.0 %"),
        ("What changes from n to 2n?", 4096, "pairs × 4.00"),
    ],
)
def test_questions_set_the_slider_and_answer(page, name, n, words):
    slider(page).fill("1")
    button = page.get_by_role("button", name=name)
    button.click()
    expect(page.locator(ROOT)).to_have_attribute("data-n", str(n))
    expect(page.locator(".pd-sentence")).to_contain_text(words)
    expect(button).to_have_attribute("aria-pressed", "true")
    slider(page).fill("2")
    expect(page.locator("[aria-pressed=true]")).to_have_count(0)


def test_two_copies_do_not_disturb_each_other(open_page):
    page = open_page(table(), table(model=LLAMA))
    slider(page).nth(1).fill("3")
    assert [(state_of(page, i)["model"], state_of(page, i)["n"]) for i in (0, 1)] == [(SMOLLM2, "4096"), (LLAMA, "8")]


def test_live_in_a_notebook_both_sides_follow_each_other(module):
    widget = table()
    module.evaluate(LIVE, {name: getattr(widget, name) for name in ("data", "markup", "model", "n")})
    slider(module).fill("0")
    module.get_by_label("Model", exact=True).select_option(LLAMA)
    assert module.evaluate("[window.values.model, window.values.n]") == [LLAMA, 1]
    module.evaluate("window.model.set('n', 64)")
    assert state_of(module)["n"] == "64"
    module.evaluate("window.unmount()")
    slider(module).fill("2")
    assert state_of(module)["n"] == "64"
    module.evaluate("window.model.set('n', 8)")
    assert state_of(module)["n"] == "64"


def test_keys_stay_in_the_widget(page):
    page.evaluate("window.heard = []; addEventListener('keydown', (e) => window.heard.push(e.key))")
    page.locator(ROOT).focus()
    for key in ("x", "ArrowUp", "Control+k"):
        page.keyboard.press(key)
    assert page.evaluate("window.heard") == ["Control", "k"]


@pytest.mark.parametrize("model", COUNTED)
@pytest.mark.parametrize("index", [0, 9, 17])
def test_a_phone_shows_all_of_it(open_page, model, index):
    page = open_page(table(model=model), viewport=PHONE)
    slider(page).fill(str(index))
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    sizes = page.locator("button, select, input").evaluate_all(
        "all => all.map(e => { const b = e.getBoundingClientRect(); return Math.min(b.width, b.height); })"
    )
    assert min(sizes) >= 24
    parts = page.locator("svg text, td > span, th, p, small")
    assert min(parts.evaluate_all("all => all.map(e => parseFloat(getComputedStyle(e).fontSize))")) >= 11
    boxes = parts.evaluate_all("all => all.map(e => e.getBoundingClientRect()).map(b => [b.width, b.left, b.right])")
    edges = [edge for width, *both in boxes if width for edge in both]
    assert min(edges) >= 8
    assert max(edges) <= PHONE["width"] - 8
    scale = page.locator("svg .pd-scale text[text-anchor=end]").evaluate_all(
        "all => Math.max(...all.slice(0, -1).map(e => e.getBoundingClientRect().right))"
    )
    names = page.locator("svg .pd-name:visible").evaluate_all("all => all.map(e => e.getBoundingClientRect().left)")
    assert min(names) >= scale + 10  # the book's pages leave a little less room
    cut = page.locator("td").evaluate_all("all => all.filter(e => e.scrollWidth > e.clientWidth + 1).length")
    assert cut == 0


@pytest.mark.parametrize(("width", "exact"), [(360, False), (1280, True)])
def test_exact_numbers_where_there_is_room(open_page, width, exact):
    page = open_page(table(), viewport={"width": width, "height": 800})
    row = page.locator('tr[data-row="flops-total"]')
    assert row.locator(".pd-exact").first.is_visible() is exact
    expect(row.locator(".pd-short").first).to_be_visible()
    expect(page.locator('tr[data-row="pairs"] .pd-exact').first).to_be_visible()


def test_print_shows_no_control(page):
    page.emulate_media(media="print")
    assert page.locator("button:visible, select:visible, input:visible").count() == 0
    expect(page.locator(f"{ROOT} table")).to_be_visible()
