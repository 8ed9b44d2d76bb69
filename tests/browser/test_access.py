"""Every page for every reader: what axe finds is nothing; zoomed to 200 % nothing is cut; nothing moves by itself."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from test_pages import LANDING, NOTEBOOKS, PAGES, luminance, open_page

# WCAG 2.2, A and AA, and the rule of success criterion 2.5.3, which axe still calls an experiment.
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
EVERYTHING = {
    "runOnly": {"type": "tag", "values": TAGS},
    "rules": {"label-content-name-mismatch": {"enabled": True}},
    "preload": False,  # style sheets would be fetched once more
    "resultTypes": ["violations", "incomplete"],
}
COLOURS_ONLY = {**EVERYTHING, "runOnly": ["color-contrast", "link-in-text-block"], "rules": {}}
WIDE, PHONE, ZOOMED = ({"width": w, "height": h} for w, h in ((1280, 800), (360, 740), (640, 400)))

# A kind of word that the page's code had before, on the same ground, becomes plain text: axe needs two minutes for
# 16,000 elements, and they have a dozen looks.
UNWRAP_REPEATED_CODE = """() => {
  const seen = new Set();
  const isRepeated = (word) => {
    const look = `${word.className} on ${getComputedStyle(word.closest("pre")).backgroundColor}`;
    return seen.has(look) || !seen.add(look);
  };
  const words = [...document.querySelectorAll(".highlight pre span:not(:has(span))")].filter(isRepeated);
  for (const word of words) word.replaceWith(word.textContent); // in between, each style would be computed anew
  for (const pre of document.querySelectorAll(".highlight pre")) pre.normalize();
}"""

# Text that axe does not judge (beside a picture, above a shade): its colour, and the nearest one laid behind it.
UNJUDGED = """targets => targets.map((target) => {
  const numbers = (colour) => (colour.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  let element = document.querySelector(target);
  const style = getComputedStyle(element);
  const text = numbers(element.ownerSVGElement ? style.fill : style.color);
  const fill = () => numbers(getComputedStyle(element).backgroundColor);
  while (element.parentElement && (fill()[3] ?? 1) < 1) element = element.parentElement;
  return [text, fill().slice(0, 3)];
})"""

# Moves every slider of every widget to its middle and chooses another answer; returns the widgets that stood still.
STEP_ALL = """() => {
  const roots = [...document.querySelectorAll('[data-widget]:not([data-widget="your-phrase"])')];
  const before = roots.map(root => root.outerHTML);
  for (const root of roots) {
    for (const range of root.querySelectorAll('input[type="range"]')) {
      range.value = (Number(range.min) + Number(range.max)) / 2;
      range.dispatchEvent(new Event("input", { bubbles: true }));
      range.dispatchEvent(new Event("change", { bubbles: true }));
    }
    root.querySelector('input[type="radio"]:not(:checked)')?.click();
  }
  return roots.filter((root, i) => root.outerHTML === before[i]).map(root => root.dataset.widget);
}"""

# Controls that the window or their own box cuts; what scrolls inside a box of its own is not cut.
CUT = """() => {
  const scrolls = (e) => e && (/auto|scroll/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  const isCut = (e) => {
    const { left, right, width } = e.getBoundingClientRect();
    const isOwnTextCut = e.matches("button, select") && e.scrollWidth > e.clientWidth + 1;
    return width > 1 && (left < 0 || right > innerWidth || isOwnTextCut);
  };
  return [...document.querySelectorAll("button, input, select, textarea, summary")]
    .filter(e => e.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
    .filter(e => !scrolls(e.parentElement) && isCut(e))
    .map(e => e.outerHTML.slice(0, 120));
}"""


def run_axe(page: Page, options: dict) -> dict:
    """Run axe on a page, each look of its code measured once."""
    page.evaluate(UNWRAP_REPEATED_CODE)
    return Axe().run(page, options=options).response


def say(results: list[dict]) -> list[str]:
    """Return a line for each element that axe names."""
    return [f"{r['id']}: {node['target']} {node['html'][:120]}" for r in results for node in r["nodes"]]


def faint_texts(page: Page, incomplete: list[dict]) -> list[str]:
    """Return the texts that axe leaves to us and that stand out by less than 4.5 to 1 (not transparent ones)."""
    nodes = [node for rule in incomplete if rule["id"] == "color-contrast" for node in rule["nodes"]]
    faint = []
    for node, (text, behind) in zip(nodes, page.evaluate(UNJUDGED, [n["target"][0] for n in nodes]), strict=True):
        dark, light = sorted([luminance(text[:3]), luminance(behind)])
        if text[3:] != [0] and (light + 0.05) / (dark + 0.05) < 4.5:
            faint.append(f"{node['target']} {node['html'][:120]}")
    return faint


def expect_nothing(page: Page, options: dict) -> None:
    """Expect axe to find nothing, and what it cannot judge to be readable."""
    found = run_axe(page, options)
    assert say(found["violations"]) == []
    assert faint_texts(page, found["incomplete"]) == []


def unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")


@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("name", [*PAGES, "search", "genindex"])
def test_axe_finds_nothing(new_page, site: str, name: str, viewport: dict):
    """Wide as the page opens, on a phone with each widget stepped; what is not colour is the same in both themes."""
    page = new_page(viewport=viewport, reduced_motion="reduce")
    open_page(page, f"{site}/{name}.html" + ("?q=cache" if name == "search" else ""), until="networkidle")
    unfold(page)
    if viewport is PHONE:
        assert page.evaluate(STEP_ALL) == [], "widgets that did not move"
    expect_nothing(page, EVERYTHING)
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect_nothing(page, COLOURS_ONLY)


@pytest.mark.parametrize("button", ["Search", "Toggle primary sidebar", "Toggle secondary sidebar"])
def test_axe_finds_nothing_in_what_a_button_opens(new_page, site: str, button: str):
    page = new_page(viewport=PHONE, reduced_motion="reduce")
    open_page(page, f"{site}/book/notation.html", until="networkidle")
    page.locator(f'button[aria-label="{button}"]:visible').first.click()
    expect(page.locator("dialog[open]")).to_be_visible()
    expect_nothing(page, EVERYTHING)


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_at_twice_the_size(new_page, site: str, name: str):
    page = new_page(viewport=ZOOMED, device_scale_factor=2)
    page.goto(f"{site}/{name}.html")
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= ZOOMED["width"]
    assert page.evaluate(CUT) == []


@pytest.mark.parametrize("name", [LANDING, *NOTEBOOKS])
def test_nothing_moves_by_itself_for_who_wants_that(new_page, site: str, name: str):
    page = new_page(reduced_motion="reduce")
    open_page(page, f"{site}/{name}.html", until="networkidle")
    widgets = [page.locator("[data-widget]").evaluate_all("all => all.map(w => w.outerHTML)")]
    page.wait_for_timeout(1200)  # longer than a beat of any Play
    widgets.append(page.locator("[data-widget]").evaluate_all("all => all.map(w => w.outerHTML)"))
    assert widgets[0] == widgets[1]
    unfold(page)
    moving = "new Promise(requestAnimationFrame).then(() => document.getAnimations().map(a => a.animationName))"
    assert page.evaluate(moving) == []
