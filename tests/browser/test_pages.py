"""The built pages, as a reader meets them: from a server, from the disk, on a phone, in the dark, without scripts."""

import functools
import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, Page, expect

from prefill_decode import smollm2

TOC = yaml.safe_load((Path(__file__).parents[2] / "_toc.yml").read_text("utf-8"))
LANDING = TOC["root"]
CHAPTERS = [chapter["file"] for part in TOC["parts"] for chapter in part["chapters"]]
NOTEBOOKS = [name for name in CHAPTERS if name.startswith("notebooks/")]
PAGES = [LANDING, *CHAPTERS]
GRID = '[data-widget="attention-grid"]'
WIDGETS = {  # on the pages without a grid: what a slider is called and which attribute it changes
    "ledger-table": ("notebooks/03_cost", "n", "data-n"),
    "roofline": ("notebooks/03_cost", "Batch, slider", "data-batch"),
    "pass-timeline": ("notebooks/03_cost", "Step", "data-step"),
    "tile-sweep": ("notebooks/04_flash_attention", "Step", "data-step"),
    "mask-gallery": ("notebooks/05_limits", "Step", "data-step"),
    "token-sampler": ("notebooks/06_choose_and_store", "Temperature", "data-temperature"),
}
WITH_GRID = [LANDING, "notebooks/01_prefill", "notebooks/02_decode"]
PHRASE = '[data-widget="your-phrase"]'
WITH_PHRASE = [LANDING, "notebooks/01_prefill"]


@functools.cache
def soup_of(html: Path, name: str) -> BeautifulSoup:
    """Parse one built page; read only."""
    return BeautifulSoup((html / f"{name}.html").read_text("utf-8"), "html.parser")


def open_page(page: Page, address: str, *, until: str = "load") -> Page:
    """Open a page; its own scripts have run when it is loaded: on a slow machine later than its network is idle."""
    page.goto(address)
    page.wait_for_load_state(until)
    return page


def step_through(page: Page) -> None:
    """Step the first grid of a page and expect its counts to follow."""
    grid = page.locator(GRID).first
    steps = int(grid.get_attribute("data-steps"))
    expect(grid).to_have_attribute("data-step", str(steps))
    grid.get_by_role("button", name="First step").click()
    first = int(grid.get_attribute("data-step"))
    assert first < steps
    grid.get_by_role("button", name="Next step").click()
    expect(grid).to_have_attribute("data-step", str(first + 1))
    expect(grid).to_have_attribute("data-pairs", str((first + 1) * (first + 2) // 2))


COLOURS = """element => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const text = numbers(getComputedStyle(element).color);
  const fill = (node) => numbers(getComputedStyle(node).backgroundColor);
  while (element.parentElement && fill(element)[3] === 0) element = element.parentElement;
  return [text.slice(0, 3), fill(element).slice(0, 3)];
}"""


def luminances(page: Page, selector: str) -> list[float]:
    """Return the relative luminances (0 to 1, WCAG 2) of an element's text and of what lies behind it."""
    text, behind = page.locator(selector).first.evaluate(COLOURS)
    return [luminance(text), luminance(behind)]


def luminance(rgb: list[float]) -> float:
    """Return the relative luminance of a colour of 0 to 255."""
    r, g, b = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (c / 255 for c in rgb))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.parametrize("name", PAGES)
def test_the_book_is_named_beside_its_mark(html: Path, name: str):
    soup = soup_of(html, name)
    assert soup.select_one(".logo__title").get_text() == "Prefill and decode"
    assert soup.title.get_text().count("Prefill and decode") == 1


@pytest.mark.parametrize("name", [*PAGES, "search", "genindex"])
def test_page_opens_from_a_server_in_silence(page: Page, site: str, name: str):
    open_page(page, f"{site}/{name}.html", until="networkidle")
    expect(page.locator("h1:visible").first).to_be_visible()


@pytest.mark.parametrize("name", PAGES)
def test_page_opens_from_the_disk_in_silence(page: Page, html: Path, name: str):
    open_page(page, (html / f"{name}.html").as_uri(), until="networkidle")
    expect(page.locator("h1:visible").first).to_be_visible()


def test_root_leads_to_the_landing_page_from_the_disk(page: Page, html: Path):
    page.goto((html / "index.html").as_uri())
    page.wait_for_url(f"**/{LANDING}.html")
    step_through(page)


@pytest.mark.parametrize("name", WITH_GRID)
def test_widget_steps_from_a_server(page: Page, site: str, name: str):
    open_page(page, f"{site}/{name}.html")
    step_through(page)


@pytest.mark.parametrize("widget", WIDGETS)
def test_widget_steps_by_keyboard_from_a_server(page: Page, site: str, widget: str):
    name, range_name, attribute = WIDGETS[widget]
    root = open_page(page, f"{site}/{name}.html").locator(f'[data-widget="{widget}"]')
    slider = root.get_by_role("slider", name=range_name, exact=True)
    slider.focus()
    before = root.get_attribute(attribute)
    slider.press("ArrowLeft" if range_name == "Step" else "ArrowRight")  # steps begin at their end
    expect(root).not_to_have_attribute(attribute, before)


def test_the_compressor_is_chosen_by_keyboard(page: Page, site: str):
    root = open_page(page, f"{site}/notebooks/06_choose_and_store.html").locator('[data-widget="cache-compressor"]')
    before = root.get_attribute("data-storage")
    root.get_by_role("radio", checked=True).press("ArrowUp")
    expect(root).not_to_have_attribute("data-storage", before)


@pytest.mark.parametrize(
    ("widget", "name"),
    [*((widget, where[0]) for widget, where in WIDGETS.items()), ("cache-compressor", "notebooks/06_choose_and_store")],
)
def test_widget_is_a_finished_picture_without_scripts(new_page, site: str, widget: str, name: str):
    page = open_page(new_page(java_script_enabled=False), f"{site}/{name}.html")
    root = page.locator(f'[data-widget="{widget}"]')
    expect(root.locator("table, ol").first).to_be_visible()  # its numbers, as a table or a list
    assert not [button for button in root.locator("button").all() if button.is_visible()]


def test_the_site_is_as_large_as_teachers_are_told(html: Path):
    told = int(re.search(r"It takes (\d+) MB", soup_of(html, "book/teachers").get_text())[1])
    assert abs(sum(path.stat().st_size for path in html.rglob("*") if path.is_file()) / 1e6 - told) < 1


@pytest.mark.parametrize("name", WITH_PHRASE)
def test_the_model_lies_where_the_page_says(html: Path, name: str):
    address = soup_of(html, name).select_one(PHRASE)["data-model"]
    assert ((html / name).parent / address).stat().st_size == smollm2.FILE_BYTES


@pytest.mark.parametrize("name", WITH_PHRASE)
def test_your_phrase_waits_for_its_reader(page: Page, site: str, name: str):
    root = open_page(page, f"{site}/{name}.html").locator(PHRASE)
    expect(root).to_have_attribute("data-state", "idle")
    for button in ("Load the model", "Run", "Stop"):
        expect(root.get_by_role("button", name=button, exact=True)).to_be_visible()
    expect(root.locator(".pd-elsewhere")).to_be_hidden()
    page.emulate_media(media="print")
    expect(root.locator("button:visible, textarea:visible, input:visible")).to_have_count(0)


@pytest.mark.parametrize("name", WITH_PHRASE)
def test_your_phrase_is_words_without_scripts(new_page, site: str, name: str):
    root = open_page(new_page(java_script_enabled=False), f"{site}/{name}.html").locator(PHRASE)
    expect(root.locator(".pd-lead")).to_be_visible()
    expect(root.locator(".pd-elsewhere")).to_be_visible()
    expect(root.locator("button:visible, textarea:visible, input:visible")).to_have_count(0)


def test_landing_page_shows_the_widget_without_scrolling(new_page, site: str):
    for width, height in [(1280, 800), (360, 740)]:
        page = open_page(new_page(viewport={"width": width, "height": height}), f"{site}/{LANDING}.html")
        table = page.locator(f"{GRID} table").first.bounding_box()
        assert table["y"] + table["height"] <= height, f"the picture ends below the fold of {width} x {height}"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_section_opens_with_a_picture_that_moves_once_and_leads_to_its_widget(new_page, site: str, name: str):
    page = open_page(new_page(viewport={"width": 360, "height": 740}), f"{site}/{name}.html")
    preview = page.locator("a.pd-preview")
    box = preview.bounding_box()
    assert box["y"] + box["height"] <= 740
    moving = preview.evaluate("""(link) => {
      const again = link.cloneNode(true); // what is over is no longer told
      link.replaceWith(again);
      const moves = again.getAnimations({ subtree: true });
      const end = Math.max(...moves.map((move) => move.effect.getComputedTiming().endTime));
      moves.forEach((move) => move.finish());
      const stays = [...again.querySelectorAll("path:not(.pd-passing)")];
      return [moves.length, end, stays.every((path) => getComputedStyle(path).opacity === "1")];
    }""")
    assert moving[0] == preview.locator("path").count()
    assert 1000 <= moving[1] <= 5000  # milliseconds; what moves longer needs a way to stop it (WCAG 2.2.2)
    assert moving[2]
    preview.click()
    section = page.locator(preview.get_attribute("href"))
    expect(section).to_be_in_viewport()
    first = page.locator("[data-widget]").first
    assert section.evaluate("(section, widget) => section.contains(widget)", first.element_handle())


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_preview_is_still_for_those_who_want_it_and_not_on_paper(new_page, site: str, name: str):
    page = open_page(new_page(reduced_motion="reduce"), f"{site}/{name}.html")
    preview = page.locator("a.pd-preview")
    assert preview.evaluate("(link) => link.getAnimations({ subtree: true }).length") == 0
    expect(preview).to_be_visible()
    page.emulate_media(media="print")
    expect(preview).to_be_hidden()


def test_landing_page_does_not_move_while_it_is_mounted(new_page, site: str):
    pages = [new_page(viewport={"width": 1280, "height": 800}, java_script_enabled=on) for on in (False, True)]
    boxes = [open_page(page, f"{site}/{LANDING}.html").locator(f"{GRID} table").first.bounding_box() for page in pages]
    assert boxes[0] == pytest.approx(boxes[1], abs=1)


@pytest.mark.parametrize("name", WITH_GRID)
def test_finished_picture_is_there_without_scripts(new_page, site: str, name: str):
    page = open_page(new_page(java_script_enabled=False), f"{site}/{name}.html")
    grid = page.locator(GRID).first
    steps = int(grid.get_attribute("data-steps"))
    expect(grid.locator("td[data-q]")).to_have_count(steps**2)
    expect(grid.locator("td[data-q]").first).to_be_visible()
    expect(grid.locator("td[data-q]").first).to_have_text(re.compile(r"\d\.\d+"))


def test_failing_widget_leaves_its_picture_and_the_others(browser: Browser, html: Path, site: str):
    landing = soup_of(html, LANDING).select_one(GRID)
    broken = '<div data-widget="attention-grid"><script type="application/json">{"data": 1}</script><p>kept</p></div>'
    page = browser.new_page()  # not watched: what fails says so on the console
    page.goto(f"{site}/book/notation.html")
    page.set_content(f'{broken}<div data-widget="unknown"><p>kept too</p></div>{landing}')
    page.add_script_tag(url=f"{site}/_static/widgets.js")
    last = page.locator(GRID).last
    last.get_by_role("button", name="First step").click()
    assert int(last.get_attribute("data-step")) < int(last.get_attribute("data-steps"))
    expect(page.get_by_text("kept", exact=True)).to_be_visible()
    expect(page.get_by_text("kept too")).to_be_visible()
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_page_does_not_scroll_sideways_on_a_phone(new_page, site: str, name: str):
    page = open_page(new_page(viewport={"width": 360, "height": 740}), f"{site}/{name}.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("name", [LANDING, *NOTEBOOKS])
def test_page_follows_the_dark_theme(new_page, site: str, name: str):
    page = open_page(new_page(color_scheme="dark"), f"{site}/{name}.html")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    for selector in ("article", "[data-widget]"):
        if page.locator(selector).count():  # a section may have no widget
            assert luminances(page, selector)[1] < 0.05, f"{selector} is light in the dark theme"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_text_stands_out_in_both_themes(new_page, site: str, scheme: str, scripts: bool):
    page = open_page(new_page(color_scheme=scheme, java_script_enabled=scripts), f"{site}/{LANDING}.html")
    for selector in ("article section > p", "article section > p a", "article .table td", "article pre", "nav li a"):
        dark, light = sorted(luminances(page, selector))
        assert (light + 0.05) / (dark + 0.05) >= 4.5, f"{selector} is hard to read"


def test_paper_is_light_and_the_screen_stays_dark(new_page, site: str):
    page = open_page(new_page(color_scheme="dark"), f"{site}/{LANDING}.html")
    page.evaluate("addEventListener('beforeprint', () => { window.printed = document.documentElement.dataset.theme; })")
    page.pdf()
    assert page.evaluate("window.printed") == "light"
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_theme_switch_changes_the_theme(page: Page, site: str):
    open_page(page, f"{site}/{LANDING}.html")
    seen = set()
    for _ in range(3):
        page.locator("button.theme-switch-button:visible").first.click()
        seen.add(page.locator("html").get_attribute("data-theme"))
    assert seen == {"light", "dark"}


@pytest.mark.parametrize("from_disk", [False, True])
def test_search_finds_pages(page: Page, site: str, html: Path, from_disk: bool):
    base = html.as_uri() if from_disk else site
    open_page(page, f"{base}/search.html?q=cache")
    expect(page.locator("#search-results li").first).to_be_visible()


@pytest.mark.parametrize("from_disk", [False, True])
def test_mathematics_is_set(page: Page, site: str, html: Path, from_disk: bool):
    base = html.as_uri() if from_disk else site
    open_page(page, f"{base}/book/notation.html")
    expect(page.locator("mjx-container").first).to_be_visible()
    assert page.locator("mjx-merror").count() == 0


def test_icons_are_drawn_by_the_web_font(page: Page, site: str):
    open_page(page, f"{site}/{LANDING}.html")
    page.wait_for_function("[...document.fonts].some(f => f.family.includes('Awesome') && f.status === 'loaded')")


@functools.cache
def anchors_of(path: Path) -> frozenset[str]:
    """Return the ids of a built page."""
    page = BeautifulSoup(path.read_text("utf-8"), "html.parser")
    return frozenset(element["id"] for element in page.select("[id]"))


def resolve(html: Path, page: str, address: str) -> str:
    """Return what is wrong with a link of a page, "" if it leads somewhere."""
    target = urlsplit(address)
    if target.scheme or target.netloc:
        return ""
    source = html / f"{page}.html"
    path = (source.parent / unquote(target.path)).resolve() if target.path else source
    if not path.is_file():
        return f"{address}: no such file"
    if not target.fragment or path.suffix != ".html":
        return ""
    return "" if unquote(target.fragment) in anchors_of(path) else f"{address}: no such place on the page"


def addresses_of(html: Path, name: str) -> set[str]:
    """Return what a built page links to and loads, and what its first address forwards to."""
    page = soup_of(html, name)
    elements = page.select("a[href], link[href], [src]")
    forwards = [meta["content"].partition("url=")[2] for meta in page.select('meta[http-equiv="refresh"]')]
    return {element.get("href") or element.get("src") for element in elements} | set(forwards)


@pytest.mark.parametrize("name", [*PAGES, "search", "genindex", "index"])
def test_links_and_anchors_resolve(html: Path, name: str):
    addresses = addresses_of(html, name)
    assert addresses
    assert [wrong for address in sorted(addresses) if (wrong := resolve(html, name, address))] == []


@pytest.mark.parametrize("name", PAGES)
def test_words_of_the_glossary_are_linked_once_on_each_page(html: Path, name: str):
    links = [link["href"] for link in soup_of(html, name).select("a.first-use")]
    assert len(set(links)) == len(links)
    assert (links == []) == (name == "book/glossary")


def test_what_names_a_page_for_others_names_all_of_them_once(html: Path):
    listed = re.findall(
        r"^- \[.+?\]\((?:https?://.+?/)?([^/]+/[^/]+)\.md\): .", (html / "llms.txt").read_text("utf-8"), re.M
    )
    assert listed == PAGES


@pytest.mark.parametrize("name", PAGES)
def test_the_markdown_of_a_page_is_text_whose_links_resolve(html: Path, name: str):
    text = (html / f"{name}.md").read_text("utf-8")
    assert text.startswith(f"# {soup_of(html, name).h1.find(string=True)}")
    prose = re.sub(r"^(`{3,}).*?^\1$|`[^`\n]+`", "", text, flags=re.M | re.S)  # code has brackets of its own
    assert not re.search(r"<(?:div|table|svg|script|button|input)\b|application/json|base64", prose)
    assert prose.count("*Widget: ") == len(soup_of(html, name).select("[data-widget]"))
    assert prose.count("*Figure: ") == len(soup_of(html, name).select(".pd-figure svg"))
    links = re.findall(r"\]\(([^()\s]+)\)", prose)
    assert [wrong for address in links if (wrong := resolve(html, name, address))] == []


def test_each_page_has_a_title_and_a_description_of_its_own(html: Path):
    pages = [soup_of(html, name) for name in PAGES]
    titles = [page.title.string for page in pages]
    described = [page.select_one('meta[name="description"]')["content"] for page in pages]
    assert len(set(titles)) == len(set(described)) == len(PAGES)
    assert all(titles)
    assert [text for text in described if not 50 <= len(text) <= 160] == []
    assert [page.select_one('meta[property="og:description"]')["content"] for page in pages] == described


@pytest.mark.parametrize("name", PAGES)
def test_a_page_ends_with_its_markdown_and_its_licences(html: Path, name: str):
    links = soup_of(html, name).select(".pd-page-links a")
    markdown, *others = [link["href"] for link in links]
    assert markdown == f"{Path(name).name}.md"
    assert [address for address in others if "issues/new" not in address] == [
        "https://creativecommons.org/licenses/by/4.0/",
        "https://opensource.org/license/mit",
    ]


def test_a_page_is_copied_as_markdown(new_page, site: str, html: Path):
    page = open_page(new_page(permissions=["clipboard-read", "clipboard-write"]), f"{site}/{LANDING}.html")
    page.get_by_role("link", name="Copy as Markdown").click()
    expect(page.get_by_role("link", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == (html / f"{LANDING}.md").read_text("utf-8")


def test_the_markdown_is_a_plain_link_where_nothing_can_be_fetched(new_page, site: str, html: Path):
    page = open_page(new_page(), (html / f"{LANDING}.html").as_uri())
    expect(page.get_by_role("link", name="This page as Markdown")).to_be_visible()
    page = open_page(new_page(java_script_enabled=False), f"{site}/{LANDING}.html")
    expect(page.get_by_role("link", name="This page as Markdown")).to_be_visible()


@pytest.mark.parametrize("name", PAGES)
def test_ids_of_a_page_are_unique(html: Path, name: str):
    counts = Counter(element["id"] for element in soup_of(html, name).select("[id]"))
    assert [name for name, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("name", PAGES)
def test_pictures_say_what_they_show(html: Path, name: str):
    page = soup_of(html, name)
    figures = page.select("article .cell_output svg:not([data-widget] svg), article .pd-figure svg")
    assert all(figure.get("role") == "img" for figure in figures)
    texts = [image.get("alt") for image in page.select("article img")] + [f.get("aria-label") for f in figures]
    file_name = re.compile(r"\.(svg|png|jpe?g|gif|webp)\s*$", re.IGNORECASE)
    assert [text for text in texts if not (text or "").strip() or file_name.search(text)] == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_figures_take_the_colours_of_the_theme(html: Path, name: str):
    figures = soup_of(html, name).select(".pd-figure svg")
    assert all("var(--pd-" in str(figure) for figure in figures)


def test_pages_name_no_other_host(html: Path):
    """Links a reader follows may lead away; what a page loads may not."""
    loaded = re.compile(r"""(?:src=["']|@import\s+["']|url\(["']?)(?:https?:)?//[^"')\s]+""")
    files = [*html.rglob("*.html"), *html.glob("_static/**/*.css")]
    assert [(path.name, match) for path in files for match in loaded.findall(path.read_text("utf-8"))] == []
