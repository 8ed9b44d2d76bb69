"""How the built pages look where room or colours are few: on a phone, on paper, in forced colours, in grey."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from test_pages import LANDING, NOTEBOOKS, PAGES, open_page, soup_of

PHONE = {"width": 360, "height": 740}
COST, TILES, LIMITS, STORE = (
    f"notebooks/{name}" for name in ("03_cost", "04_flash_attention", "05_limits", "06_choose_and_store")
)
SHEET = {"width": 673, "height": 1000}  # A4 less 16 mm at every side, in CSS pixels
LETTERS = """() => [...document.querySelectorAll(".pd-figure svg text")].map((text) => {
  const { a, b } = text.getScreenCTM(); // some are turned
  return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
})"""
OUTSIDE = """() => [...document.querySelectorAll(".pd-figure svg")].flatMap((figure) => {
  const { left, right, top, bottom } = figure.getBoundingClientRect();
  const isOut = (box) => box.left < left - 1 || box.right > right + 1 || box.top < top - 4 || box.bottom > bottom + 4;
  const texts = [...figure.querySelectorAll("text")];
  return texts.filter(text => isOut(text.getBoundingClientRect())).map(text => text.textContent);
})"""
HIDDEN_ANSWERS = """() => [...document.querySelectorAll("article section > details")]
  .filter(({ children: [question, answer] }) => !answer?.checkVisibility({ contentVisibilityAuto: true })
    || answer.getBoundingClientRect().height === 0).map(fold => fold.textContent)"""
NEW_AND_DASHED = """all => all.map((e) => {
  const { textDecorationStyle, borderBottomStyle } = getComputedStyle(e);
  const isNew = e.matches('[data-origin="new"], [data-part="decode"] *');
  return [isNew, [textDecorationStyle, borderBottomStyle].includes("dashed")];
})"""


def printed(page: Page, address: str) -> Page:
    """Open a page as it is laid out for paper."""
    open_page(page, address)
    page.emulate_media(media="print")
    page.set_viewport_size(SHEET)
    return page


def boxes(page: Page, *selectors: str) -> list[dict]:
    """Return where the first element of each kind stands."""
    return [page.locator(selector).first.bounding_box() for selector in selectors]


# --- a phone


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_letters_of_figures_stay_legible_on_a_phone(new_page, site: str, name: str):
    page = open_page(new_page(viewport=PHONE), f"{site}/{name}.html")
    assert min(page.evaluate(LETTERS), default=11) >= 10
    figures = page.locator(".pd-figure")
    assert figures.evaluate_all("all => all.filter(f => f.scrollWidth > f.clientWidth && f.tabIndex < 0).length") == 0


@pytest.mark.parametrize(("name", "widget"), [(TILES, "tile-sweep"), (LIMITS, "mask-gallery")])
def test_a_step_is_told_right_below_its_controls(new_page, site: str, name: str, widget: str):
    page = open_page(new_page(viewport=PHONE), f"{site}/{name}.html")
    steps, sentence = boxes(page, *(f'[data-widget="{widget}"] {part}' for part in (".pd-steps", ".pd-sentence")))
    assert 0 <= sentence["y"] - steps["y"] - steps["height"] <= 12


@pytest.mark.parametrize("name", [LANDING, "notebooks/01_prefill", "notebooks/02_decode"])
def test_no_triangle_is_cut_on_a_phone(new_page, site: str, name: str):
    page = open_page(new_page(viewport=PHONE), f"{site}/{name}.html")
    cut = page.locator('[data-widget="attention-grid"] .pd-scroll').evaluate_all(
        "all => all.map(e => e.scrollWidth - e.clientWidth)"
    )
    assert cut
    assert max(cut) <= 0


def test_choices_fill_their_rows_on_a_phone(new_page, site: str):
    page = open_page(new_page(viewport=PHONE), f"{site}/{STORE}.html")
    ways = '[data-widget="cache-compressor"] fieldset'
    title, first = boxes(page, f"{ways} legend", f"{ways} label")
    assert first["y"] >= title["y"] + title["height"]
    tried = page.locator('[data-widget="token-sampler"] .pd-questions')
    assert tried.evaluate("e => e.scrollWidth - e.clientWidth") == 0


def test_the_next_page_is_the_first_button_on_a_phone(new_page, site: str):
    page = open_page(new_page(viewport=PHONE), f"{site}/{COST}.html")
    following, before, whole = boxes(page, "a.right-next", "a.left-prev", ".prev-next-area")
    assert following["width"] == pytest.approx(whole["width"], abs=1)
    assert following["y"] + following["height"] <= before["y"]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_solution_keeps_away_from_the_next_exercise(page: Page, site: str, name: str):
    open_page(page, f"{site}/{name}.html")
    gaps = page.locator("article section > details + p").evaluate_all(
        "all => all.map(p => p.getBoundingClientRect().top - p.previousElementSibling.getBoundingClientRect().bottom)"
    )
    assert gaps
    assert min(gaps) >= 20


# --- figures


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_figures_have_the_font_of_the_page_and_hold_their_words(page: Page, site: str, html: Path, name: str):
    open_page(page, f"{site}/{name}.html")
    assert page.evaluate(OUTSIDE) == []
    texts = soup_of(html, name).select(".pd-figure svg text")
    assert [text for text in texts if "font-family: var(--pd-font)" not in text.get("style", "")] == []


# --- paper


@pytest.mark.parametrize("name", PAGES)
def test_contents_are_in_the_page_once(html: Path, name: str):
    page = soup_of(html, name)
    assert page.select("#jb-print-toc") == []
    assert len(page.select("h1")) == 1


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_answers_are_printed_and_folded_code_is_not(page: Page, site: str, name: str):
    printed(page, f"{site}/{name}.html")
    assert page.evaluate(HIDDEN_ANSWERS) == []
    expect(page.locator("article section > details").first).to_be_visible()
    expect(page.locator(".cell > details summary:visible")).to_have_count(0)
    expect(page.locator("h1:visible")).to_have_count(1)


@pytest.mark.parametrize(
    ("name", "widget"),
    [
        (COST, "ledger-table"),
        (TILES, "tile-sweep"),
        (LIMITS, "mask-gallery"),
        (STORE, "token-sampler"),
        (STORE, "cache-compressor"),
    ],
)
def test_a_widget_is_one_piece_of_paper(page: Page, site: str, name: str, widget: str):
    root = printed(page, f"{site}/{name}.html").locator(f'[data-widget="{widget}"]').first
    assert root.evaluate("e => getComputedStyle(e).breakInside") == "avoid"
    assert root.bounding_box()["height"] <= SHEET["height"]


# --- forced colours


@pytest.fixture
def forced(new_page, site: str):
    """Return a function that opens a page in the reader's own colours."""
    return lambda name: open_page(new_page(forced_colors="active"), f"{site}/{name}.html")


def colour(page: Page, selector: str, name: str, part: str = "") -> str:
    """Return a colour of an element or of what stands before it."""
    script = "(element, [name, part]) => getComputedStyle(element, part)[name]"
    return page.locator(selector).first.evaluate(script, [name, part])


def test_legends_keep_their_swatches_in_forced_colours(forced):
    page = forced(COST)
    swatches = [colour(page, f".pd-axis span:nth-child({i})", "backgroundColor", "::before") for i in (1, 2)]
    theme = [
        colour(page, f'.pd-pass[data-phase="{phase}"] .pd-segment', "backgroundColor")
        for phase in ("decode", "prefill")
    ]
    assert swatches == theme
    note = '[data-widget="cache-compressor"] .pd-note'
    page = forced(STORE)
    assert colour(page, f"{note} .pd-key", "backgroundColor") == colour(page, note, "color")


def test_what_is_chosen_is_marked_in_forced_colours(forced):
    page = forced(LANDING)
    chips = page.locator('[data-widget="attention-grid"]').first.locator("[data-chip]")
    borders = chips.evaluate_all("all => all.map(e => [e.dataset.chip, getComputedStyle(e).borderColor])")
    current = {border for state, border in borders if state == "current"}
    assert len(current) == 1
    assert current.isdisjoint(border for state, border in borders if state != "current")
    page.locator(".pd-named button").first.click()
    assert page.locator('.pd-named [aria-pressed="true"]').evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    chosen = forced(STORE).locator('[data-widget="cache-compressor"] tr[aria-current]')
    assert chosen.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"


# --- grey


def test_what_the_model_wrote_is_dashed_below(page: Page, site: str):
    grid = open_page(page, f"{site}/{LANDING}.html").locator('[data-widget="attention-grid"]').first
    for kind in ("[data-chip]", "tbody .pd-label", "th[scope=col]"):
        styles = grid.locator(kind).evaluate_all(NEW_AND_DASHED)
        assert {is_new for is_new, _ in styles} == {True, False}
        assert [kind for is_new, is_dashed in styles if is_new != is_dashed] == []


# --- search


def test_excerpts_begin_with_the_text(page: Page, site: str):
    open_page(page, f"{site}/search.html?q=cache", until="networkidle")
    excerpts = page.locator("#search-results p.context").all_inner_texts()
    assert excerpts
    assert [
        text for text in excerpts if text.lstrip(".").startswith("Contents") or "How many passes, how many" in text
    ] == []


@pytest.mark.parametrize("query", ["", "?q=xylophone"])
def test_a_search_without_results_leads_on(page: Page, site: str, query: str):
    open_page(page, f"{site}/search.html{query}")
    expect(page.get_by_role("main").get_by_role("link", name="glossary")).to_be_visible()
    if query:
        expect(page.get_by_text("No page has all of these words")).to_be_visible()
        expect(page.get_by_text("categories")).to_have_count(0)
