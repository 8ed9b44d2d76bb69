"""The grid's module in a browser: its pure functions, and the mounted widget against its contract."""

import base64
import json
import re
from collections.abc import Callable, Iterator

import pytest
from grid_fixture import CELLS, CURRENT, TOKENS, cells_at, grid_of, page_of, paris
from playwright.sync_api import Browser, Locator, Page, expect
from widget_page import PHONE, PICTURE, opener

from prefill_decode.widgets import AttentionGrid, GridQuestion

ROOT = '[data-widget="attention-grid"]'
READY = '<script>document.documentElement.dataset.mode = "light"</script>'
STEPS, PROMPT = 9, 5


@pytest.fixture
def open_grid(browser: Browser, tmp_path) -> Iterator[Callable[..., Page]]:
    """Return a function that opens a page of grids from the disk; no other host, no word on the console."""
    with opener(browser, tmp_path, page_of, head=READY) as opened:
        yield opened


@pytest.fixture
def page(open_grid) -> Page:
    return open_grid(paris())


@pytest.fixture(scope="module")
def module(browser: Browser) -> Iterator[Page]:
    """Return a page that holds the module and nothing else."""
    page = browser.new_page()
    page.set_content(page_of())
    yield page
    page.close()


def triangle(step: int) -> int:
    return step * (step + 1) // 2


def without_cache(step: int) -> int:
    return triangle(step) if step <= PROMPT else sum(triangle(t) for t in range(PROMPT, step + 1))


def state_of(root: Locator) -> dict:
    """Return the root's contract attributes."""
    return root.evaluate("e => ({...e.dataset})")


def go_to(page: Page, step: int) -> Locator:
    page.get_by_label("Step", exact=True).fill(str(step))
    return page.locator(ROOT)


# --- pure functions


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("pairsAt(4)", 10),
        ("pairsAt(0)", 0),
        ("triangleIndex(2, 3, 1, 5)", 2 * 15 + 6 + 1),
        ("[0, 1, 5, 6].map(t => phaseAt(t, 5))", ["idle", "prefill", "prefill", "decode"]),
        ("[0, 1, 5, 6, 9].map(t => passAt(t, 5))", [0, 1, 1, 2, 5]),
        ("[3, 5, 6, 7].map(t => pairsWithoutCache(t, 5))", [6, 15, 36, 64]),
        ("pairsWithoutCache(639, 512)", 21321024),
        ("[0, 4, 5, 6, 7].map(q => timesComputed(q, 7, 5))", [3, 3, 2, 1, 0]),
        ("stateOf(1, 2, 9, 5)", "masked"),
        ("stateOf(4, 4, 4, 5)", "future"),
        ("stateOf(4, 0, 5, 5)", "prefill"),
        ("stateOf(5, 0, 6, 5)", "decode"),
        ("[3, 4, 5, 6, 7].map(i => chipState(i, 6, 5))", ["known", "known", "current", "chosen", "future"]),
        ("[1, 2, 5].map(i => chipState(i, 2, 5))", ["current", "known", "future"]),
        ("[...bytesOf('AAH/')]", [0, 1, 255]),
        ("[...int16Of('AQD//wCA')]", [1, -1, -32768]),
        ("[0, 26, 255].map(formatWeight)", ["0.00", "0.10", "1.00"]),
        ("[0, 64, 255].map(shadeOf)", ["0.000", "0.501", "1.000"]),
        ("formatScore(-1250, {step: 0.01, decimals: 2})", "−12.50"),
        ("[625, 7].map(formatPermille)", ["62.5 %", "0.7 %"]),
        ("formatMeasure(204, {max: 1, decimals: 2})", "0.80"),
        ("formatMeasure(255, {max: 3.1699, decimals: 1})", "3.2"),
        ("[[0, 0], [0.99, 0.5], [0.5, 0.99]].map(([x, y]) => headAt(x, y, 30, 9))", [0, 29 * 9 + 4, 15 * 9 + 8]),
        ("[[-0.2, 0.5], [1, 1], [0.5, 1.3]].map(([x, y]) => headAt(x, y, 30, 9))", [4, 29 * 9 + 8, 15 * 9 + 8]),
        ("formatCount(21321024)", "21,321,024"),
        ("sumOf([15, 21, 28])", "15 + 21 + 28"),
        ("sumOf([15, 21, 28, 36])", "15 + … + 36"),
        ("escapeHtml(`<b>&\"'`)", "&lt;b&gt;&amp;&quot;&#x27;"),
        ("parseHash('#step=6&layer=23&head=4')", {"step": "6", "layer": "23", "head": "4"}),
        ("parseHash('#step=6&g2.step=3', 'g2.')", {"step": "3"}),
        ("parseHash('#phrase=1&example=2')", {"example": "2"}),
        ("parseHash('#prefill')", {}),
        ("formatHash('#g2.step=3&step=1', '', {step: 6, layer: 'a b'})", "#step=6&layer=a%20b&g2.step=3"),
        ("formatHash('#step=1&g2.step=3', 'g2.', {step: 4})", "#step=1&g2.step=4"),
        ("formatHash('#decode', '', {step: 6})", "#step=6"),
        (
            "['ArrowRight', 'ArrowLeft', 'Home', 'End', ' ', 'x'].map(k => stepForKey(k, 9, 9))",
            [9, 8, 0, 9, "play", None],
        ),
        ("delayAt(2, 5, 9) < delayAt(6, 5, 9)", True),
    ],
)
def test_pure_function(module, call, expected):
    assert module.evaluate(f"(() => {{ with (window.grid) {{ return {call}; }} }})") == expected


def test_bytes_are_read_as_layer_head_row_key(open_grid):
    grid = grid_of(2, 3, ["a", " b", " c", " d", " e", " f"], 3)
    page = open_grid(grid)
    page.get_by_label("Layer", exact=True).select_option("1")
    page.get_by_label("Head", exact=True).select_option("2")
    packed = page.evaluate("data => [...window.grid.bytesOf(data)]", grid.data["phrases"][0]["weights"])
    for q, k in ((0, 0), (3, 1), (4, 4)):
        byte = packed[(1 * 3 + 2) * 15 + q * (q + 1) // 2 + k]
        assert page.locator(f'td[data-q="{q}"][data-k="{k}"]').inner_text() == f"{byte / 255:.2f}"


# --- one representation


# What differs by design: the map is drawn by the script only, and hidden, tabindex and the like are the script's.
NORMAL = """root => {
  const copy = root.cloneNode(true);
  copy.querySelectorAll("script, .pd-map > *").forEach(e => e.remove());
  copy.querySelector("input[type=range]").removeAttribute("style");
  const own = ["hidden", "selected", "tabindex", "data-live", "aria-valuetext"];
  const style = (text) => text.split(";").filter(Boolean).map(part => part.split(":"))
    .map(([name, value]) => [name.trim(), Number(value)]).join(";");
  const attributes = (e) => [...e.attributes].filter(a => !own.includes(a.name))
    .map(a => `${a.name}=${a.name === "style" ? style(a.value) : a.value}`).sort();
  const outline = (node) => node.nodeType === 3 ? node.data
    : [node.tagName, attributes(node), [...node.childNodes].map(outline)];
  return outline(copy);
}"""


@pytest.mark.parametrize(
    "grid",
    [
        paris(),
        grid_of(2, 3, ["a", " b", " c"], 2),
        grid_of(2, 3, ["a", " b", " c"], 1),
        grid_of(2, 3, ["<script>", "</table>", "\"'&", "\n", "\u202eשלום", "\u0301"], 3, label="<b>"),
        grid_of(1, 2, [f" t{i}" for i in range(81)], 30),
        grid_of(1, 2, [f" t{i}" for i in range(81)], 70),
        AttentionGrid.of_phrases([grid_of(2, 3, ["a", " b", " c"], 2, label="one"), paris(label="two")]),
        paris(questions=[GridQuestion("Is a < b?", "It is.")]),
    ],
    ids=["paris", "T=P", "P=1", "markup", "clipped", "clipped prompt", "phrases", "questions"],
)
def test_mounting_changes_nothing(open_grid, grid):
    still, live = open_grid(grid, mount=False), open_grid(grid)
    assert live.locator(ROOT).evaluate(NORMAL) == still.locator(ROOT).evaluate(NORMAL)


@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 900}, PHONE], ids=["desktop", "phone"])
def test_mounting_moves_nothing(open_grid, viewport):
    boxes = """() => [...document.querySelectorAll("td, th, p, .pd-card, .pd-steps, .pd-choices")]
      .map(e => JSON.stringify(e.getBoundingClientRect()))"""
    still, live = open_grid(paris(), mount=False, viewport=viewport), open_grid(paris(), viewport=viewport)
    assert live.evaluate(boxes) == still.evaluate(boxes)


def test_without_script_no_control_is_visible(open_grid):
    page = open_grid(paris(), mount=False, head="")
    assert page.locator("button:visible, select:visible, input:visible").count() == 0
    assert page.locator("td[data-q='4'][data-k='3']").is_visible()


# --- the contract


def test_contract_at_every_step(page):
    for step in range(STEPS + 1):
        state = state_of(go_to(page, step))
        phase = "idle" if step == 0 else "prefill" if step <= PROMPT else "decode"
        assert (state["steps"], state["step"], state["promptLen"], state["phase"]) == ("9", str(step), "5", phase)
        assert (state["pairs"], state["cache"]) == (str(triangle(step)), str(step))
        assert page.locator(ROOT).evaluate(CELLS) == cells_at(step, STEPS, PROMPT)
        assert page.locator(ROOT).evaluate(CURRENT) == ([str(step - 1)] if step else [])


def test_without_a_cache_every_pass_counts_its_whole_triangle(page):
    for step in range(STEPS + 1):
        root = go_to(page, step)
        page.get_by_label("Without a cache", exact=True).check()
        assert (state_of(root)["pairs"], state_of(root)["cache"]) == (str(without_cache(step)), "0")
        page.get_by_label("Without a cache", exact=True).uncheck()
        assert (state_of(root)["pairs"], state_of(root)["cache"]) == (str(triangle(step)), str(step))


def test_buttons(page):
    root = page.locator(ROOT)
    for name, step in (
        ("Previous step", 8),
        ("First step", 0),
        ("Previous step", 0),
        ("Next step", 1),
        ("Last step", 9),
        ("Next step", 9),
    ):
        page.get_by_role("button", name=name, exact=True).click()
        expect(root).to_have_attribute("data-step", str(step))


def test_keyboard(page):
    root = page.locator(ROOT)
    root.focus()
    for key, step in (("ArrowLeft", 8), ("Home", 0), ("ArrowRight", 1), ("End", 9), ("ArrowUp", 8), ("ArrowDown", 9)):
        page.keyboard.press(key)
        expect(root).to_have_attribute("data-step", str(step))
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()


def test_keys_of_the_browser_are_left_alone(page):
    root = page.locator(ROOT)
    root.focus()
    page.keyboard.press("Control+Home")
    page.get_by_label("Layer", exact=True).focus()
    page.keyboard.press("Home")
    expect(root).to_have_attribute("data-step", "9")


def test_play_from_the_end_starts_at_zero_and_stops_at_the_end(open_grid):
    page = open_grid(grid_of(2, 3, ["a", " b", " c", " d"], 2))
    page.evaluate("""() => {
      window.seen = [];
      new MutationObserver(all => all.forEach(m => window.seen.push(+m.target.dataset.step)))
        .observe(document.querySelector("[data-widget]"), { attributeFilter: ["data-step"] });
    }""")
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible(timeout=8000)
    assert page.evaluate("window.seen") == [0, 1, 2, 3]


def test_one_polite_sentence_a_step(page):
    page.evaluate("""() => {
      window.said = [];
      new MutationObserver(() => window.said.push(1))
        .observe(document.querySelector("[aria-live=polite]"), { childList: true });
    }""")
    sentences = [go_to(page, step).locator("[aria-live=polite]").inner_text() for step in range(STEPS + 1)]
    assert len(set(sentences)) == STEPS + 1
    assert page.evaluate("window.said.length") == STEPS + 1
    assert "all 5 prompt rows are computed at once" in sentences[3]
    assert sentences[7].endswith(
        "reads 7 keys, 6 of them from the cache; its logits choose “↵”. 6·7/2 + 7 = 28 pairs so far."
    )


def test_a_question_shows_what_it_is_about_and_is_answered_once(open_grid):
    asked = [
        GridQuestion("Who copies?", "Head 0 & <layer> 16.", head=(16, 0), step=6),
        GridQuestion("And without?", "All again.", without_cache=True),
    ]
    page = open_grid(paris(questions=asked))
    root, said = page.locator(ROOT), page.locator("[aria-live=polite]")
    page.evaluate("""() => {
      window.said = [];
      new MutationObserver(() => window.said.push(1))
        .observe(document.querySelector("[aria-live=polite]"), { childList: true });
    }""")
    first, second = (page.get_by_role("button", name=each.ask) for each in asked)
    first.focus()
    page.keyboard.press("Enter")
    assert said.inner_text() == "Head 0 & <layer> 16."
    assert page.evaluate("window.said.length") == 1
    assert state_of(root)["step"] == "6"
    assert page.get_by_label("Layer", exact=True).evaluate("e => e.selectedOptions[0].text") == "16"
    expect(first).to_have_attribute("aria-pressed", "true")
    second.click()
    assert (state_of(root)["step"], state_of(root)["pairs"]) == (str(STEPS), str(without_cache(STEPS)))
    expect(page.get_by_label("Without a cache", exact=True)).to_be_checked()
    expect(first).to_have_attribute("aria-pressed", "false")
    go_to(page, 3)
    assert said.inner_text().startswith("Prefill, pass 1")
    expect(second).to_have_attribute("aria-pressed", "false")


def test_prompt_rows_before_the_last_choose_nothing(page):
    likely = page.locator(".pd-next")
    go_to(page, 4)
    expect(likely).to_contain_text("Nothing is chosen")
    go_to(page, 5)
    expect(likely.locator("[data-chosen]")).to_have_text("·Paris62.5 %")


def test_tokens_appear_when_they_are_chosen(page):
    go_to(page, 5)
    chips = page.locator("[data-chip]").evaluate_all("all => all.map(e => e.dataset.chip)")
    assert chips == ["known"] * 4 + ["current", "chosen"] + ["future"] * 4
    assert page.locator("th[data-i]:not([data-unknown])").count() == 6


# --- choosing a head


def test_selects_map_and_names_choose_the_same_head(page):
    cell = page.locator("td[data-q='4'][data-k='3']")
    opened = cell.inner_text()
    page.get_by_role("button", name="16/0 previous token").click()
    by_name = page.locator("td[data-state]").all_inner_texts()
    page.locator("[data-named='0']").click()
    assert cell.inner_text() == opened
    page.get_by_label("Layer", exact=True).select_option("16")
    page.get_by_label("Head", exact=True).select_option("0")
    assert page.locator("td[data-state]").all_inner_texts() == by_name
    page.get_by_role("radio", name="layer 23, head 4: “is” looks at “France”").click()
    assert cell.inner_text() == opened


def test_map_has_one_tab_stop_and_moves_by_arrows(page):
    expect(page.locator("[data-head][tabindex='0']")).to_have_count(1)
    page.locator("[data-head][tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    expect(page.locator("[data-head]:focus")).to_have_attribute("aria-label", re.compile("^layer 24, head 3: "))
    expect(page.locator(ROOT)).to_have_attribute("data-step", "9")


# --- the map of heads


@pytest.mark.parametrize("measure", range(4))
def test_map_shows_and_says_the_chosen_measure(open_grid, measure):
    grid = paris()
    sent = grid.data["phrases"][0]["measures"][measure]
    packed = base64.b64decode(sent["data"])
    page = open_grid(grid)
    page.get_by_label("Measure", exact=True).select_option(label=sent["name"])
    shades = page.locator("[data-head]").evaluate_all("all => all.map(e => Number(e.style.getPropertyValue('--pd-s')))")
    assert shades == [round(byte / 255, 3) for byte in packed]
    expect(page.locator(".pd-legend")).to_have_text(f"0{sent['top']}")
    expect(page.locator(".pd-meaning")).to_have_text(sent["meaning"])
    head = page.locator(f"[data-head='{16 * 9 + 1}']")
    head.hover()
    value = f"{packed[16 * 9 + 1] / 255 * sent['max']:.{sent['decimals']}f} {sent['says']}"
    expect(page.locator(".pd-told")).to_have_text(f"layer 16, head 1: {value}")
    expect(head).to_have_attribute("aria-label", f"layer 16, head 1: {value}")


def test_told_is_the_head_under_pointer_or_focus_else_the_chosen_one(page):
    told = page.locator(".pd-told")
    expect(told).to_contain_text(re.compile("^layer 23, head 4: .* on the first token · “is” looks at “France”$"))
    page.locator("[data-head='0']").hover()
    expect(told).to_contain_text("layer 0, head 0: ")
    page.mouse.move(0, 0)
    expect(told).to_contain_text("layer 23, head 4: ")
    page.locator("[data-head='5']").focus()
    expect(told).to_contain_text("layer 0, head 5: ")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_more_stands_out_more(open_grid, theme):
    head = f'<script>document.documentElement.dataset.theme = "{theme}"</script>'
    page = open_grid(paris(), head=head + STILL)
    shades = page.evaluate(SHADES)
    assert shades == sorted(shades, reverse=theme == "light")
    assert abs(shades[-1] - shades[0]) > 0.3


# What red light the cells give off, from the least measured head to the most.
SHADES = """() => [...document.querySelectorAll("[data-head]:not([aria-checked=true])")]
  .sort((a, b) => a.style.getPropertyValue("--pd-s") - b.style.getPropertyValue("--pd-s"))
  .map(e => Number(getComputedStyle(e).backgroundColor.match(/[0-9.]+/)[0]))"""


@pytest.mark.parametrize(
    ("viewport", "least"), [(PHONE, 8), ({"width": 1280, "height": 900}, 16)], ids=["phone", "wide"]
)
def test_cells_of_the_map_can_be_hit(open_grid, viewport, least):
    box = open_grid(paris(), viewport=viewport).locator("[data-head='100']").bounding_box()
    assert min(box["width"], box["height"]) >= least


@pytest.mark.parametrize(("beside", "place"), [(-1, "layer 6, head 2"), (1, "layer 7, head 2")])
def test_a_tap_where_two_cells_meet_selects_the_nearer(open_grid, beside, place):
    page = open_grid(paris(), viewport=PHONE, has_touch=True)
    page.locator(".pd-map").scroll_into_view_if_needed()
    box = page.locator(".pd-map").bounding_box()
    page.touchscreen.tap(box["x"] + 7 * box["width"] / 30 + beside, box["y"] + 2.5 * box["height"] / 9)
    expect(page.locator("caption")).to_contain_text(place)


# By mouse, since browsers move a finger's tap to a button near it, some further than others.
@pytest.mark.parametrize(
    ("across", "down", "place"),
    [(12.5 / 30, 1.06, "layer 12, head 8"), (-0.03, 4.5 / 9, "layer 0, head 4")],
    ids=["below", "left"],
)
def test_a_miss_beside_the_map_selects_the_nearest_head(open_grid, across, down, place):
    page = open_grid(paris(), viewport=PHONE)
    page.locator(".pd-told").scroll_into_view_if_needed()
    box = page.locator(".pd-map").bounding_box()
    page.mouse.click(box["x"] + across * box["width"], box["y"] + down * box["height"])
    expect(page.locator("caption")).to_contain_text(place)


def test_named_heads_are_marked_and_the_chosen_one_is_outlined(page):
    marked = page.locator("[data-head]").evaluate_all(
        "all => all.filter(e => getComputedStyle(e, '::before').content !== 'none').map(e => e.dataset.head)"
    )
    outlined = page.locator("[data-head]").evaluate_all(
        "all => all.filter(e => getComputedStyle(e).outlineStyle === 'solid').map(e => e.dataset.head)"
    )
    assert (marked, outlined) == ([str(16 * 9), str(23 * 9 + 4)], [str(23 * 9 + 4)])


def test_the_measure_stays_when_the_phrase_changes(open_grid):
    one_row, letters = (grid_of(2, 3, ["a", " b", " c", " d"][:n], 1, label=f"{n}") for n in (2, 4))
    page = open_grid(AttentionGrid.of_phrases([paris(label="English"), letters, one_row]))
    page.get_by_label("Measure", exact=True).select_option(label="Entropy (in bits)")
    page.get_by_label("Phrase", exact=True).select_option("2")
    expect(page.get_by_label("Measure", exact=True)).to_have_count(0)
    expect(page.locator(".pd-told")).to_have_text("layer 0, head 0")
    page.get_by_role("radio", name="layer 1, head 2", exact=True).click()
    expect(page.locator("caption")).to_contain_text("layer 1, head 2")
    page.get_by_label("Phrase", exact=True).select_option("1")
    expect(page.get_by_label("Measure", exact=True)).to_have_value("3")
    expect(page.locator(".pd-told")).to_contain_text("bits of entropy")
    expect(page.locator(".pd-legend")).to_have_text("01.6 bits")


# --- one cell


@pytest.mark.parametrize("way", ["hover", "click", "focus"])
def test_a_cell_says_query_key_score_weight(page, way):
    getattr(page.locator("td[data-q='4'][data-k='3']"), way)()
    expect(page.locator(".pd-readout")).to_contain_text("query “·is”, key “·France”: score ")
    expect(page.locator(".pd-readout")).to_contain_text("weight 0.")


def test_scores_are_said_only_for_heads_that_have_them(page):
    page.get_by_label("Head", exact=True).select_option("5")
    page.locator("td[data-q='4'][data-k='3']").hover()
    expect(page.locator(".pd-readout")).not_to_contain_text("score")


def test_shift_and_arrows_move_the_cell(page):
    page.locator("td[data-q='4'][data-k='3']").focus()
    page.keyboard.press("Shift+ArrowLeft")
    expect(page.locator("td:focus")).to_have_attribute("data-k", "2")
    expect(page.locator(ROOT)).to_have_attribute("data-step", "9")


# --- address, copies, phrases


def test_state_is_read_from_and_written_to_the_address(open_grid):
    page = open_grid(paris(), address="#step=6&layer=16&head=0")
    expect(page.locator(ROOT)).to_have_attribute("data-step", "6")
    expect(page.locator("caption")).to_contain_text("layer 16, head 0")
    page.get_by_role("button", name="Next step", exact=True).click()
    assert page.evaluate("location.hash") == "#step=7&layer=16&head=0"
    page.evaluate("location.hash = '#step=2'")
    expect(page.locator(ROOT)).to_have_attribute("data-step", "2")


def test_nonsense_in_the_address_is_ignored(open_grid):
    page = open_grid(paris(), address="#step=x&layer=99&head=%&example=7")
    expect(page.locator(ROOT)).to_have_attribute("data-step", "9")
    page.get_by_role("button", name="Previous step", exact=True).click()
    expect(page.locator(ROOT)).to_have_attribute("data-step", "8")


def test_two_copies_do_not_disturb_each_other(open_grid):
    page = open_grid(paris(), paris(), address="#g2.step=3")
    first, second = page.locator(ROOT).nth(0), page.locator(ROOT).nth(1)
    expect(first).to_have_attribute("data-step", "9")
    expect(second).to_have_attribute("data-step", "3")
    second.get_by_role("button", name="Next step", exact=True).click()
    first.get_by_label("Without a cache", exact=True).check()
    assert (state_of(first)["step"], state_of(second)["step"]) == ("9", "4")
    assert (state_of(first)["pairs"], state_of(second)["pairs"]) == ("145", "10")
    assert page.evaluate("window.grid.parseHash(location.hash, 'g2.').step") == "4"
    assert page.evaluate("window.grid.parseHash(location.hash).step") == "9"


def test_phrases(open_grid):
    other = grid_of(2, 3, ["a", " b", " c", " d"], 2, label="letters")
    page = open_grid(AttentionGrid.of_phrases([paris(label="English"), other]))
    page.get_by_label("Phrase", exact=True).select_option(label="letters")
    root = page.locator(ROOT)
    assert (state_of(root)["steps"], state_of(root)["step"], state_of(root)["promptLen"]) == ("3", "3", "2")
    assert page.locator("td[data-state]").count() == 9
    assert page.evaluate("window.grid.parseHash(location.hash).example") == "1"


@pytest.mark.parametrize(("address", "steps"), [("#example=1", 3), ("#phrase=1", STEPS)])
def test_the_address_names_an_example_and_leaves_a_phrase_to_its_reader(open_grid, address, steps):
    other = grid_of(2, 3, ["a", " b", " c", " d"], 2, label="letters")
    page = open_grid(AttentionGrid.of_phrases([paris(label="English"), other]), address=address)
    expect(page.locator(ROOT)).to_have_attribute("data-steps", str(steps))


def test_a_mounted_copy_can_be_removed(page):
    page.evaluate("window.unmount.forEach(f => f())")
    page.get_by_role("button", name="First step", exact=True).click()
    expect(page.locator(ROOT)).to_have_attribute("data-step", "9")


def test_live_in_jupyter_it_makes_its_own_root_and_leaves_the_address(open_grid):
    grid = grid_of(2, 3, ["a", " b", " c", " d"], 2)
    page = open_grid()
    page.evaluate(
        """values => {
          const handlers = {};
          window.values = values;
          window.model = { get: n => values[n], on: (e, f) => { handlers[e] = f; }, off() {}, save_changes() {},
            set: (n, v) => { values[n] = v; handlers["change:" + n]?.(); } };
          const el = document.body.appendChild(document.createElement("div"));
          window.grid.default.render({ model: window.model, el });
        }""",
        json.loads(
            json.dumps({"data": grid.data, "phrase": 0, "step": 3, "layer": "1", "head": "2", "without_cache": False})
        ),
    )
    page.get_by_role("button", name="Previous step", exact=True).click()
    assert page.evaluate("[window.values.step, location.hash]") == [2, ""]
    page.evaluate("window.model.set('step', 1)")
    expect(page.locator(ROOT)).to_have_attribute("data-step", "1")


# --- a phrase that is still being run


# As the twin in the page sends it: bytes that are no text, rows that are not there yet, one row at a time.
GROW = """(phrase) => {
  const grid = window.grid;
  const bytes = grid.bytesOf(phrase.weights);
  const heads = [...Array(phrase.layers.length * phrase.heads.length).keys()];
  const { names, measures, sinks, steps } = phrase;
  const render = (entry) => {
    const [layer, head] = entry.open.map(String);
    const values = { data: { phrases: [entry] }, phrase: 0, step: entry.known ?? entry.steps, layer, head };
    const handlers = {};
    const model = {
      get: (name) => values[name], off() {}, save_changes() {}, on(name, handler) { handlers[name] = handler; },
      set(name, value) { values[name] = value; handlers["change:" + name]?.(); },
    };
    grid.default.render({ model, el: document.body.appendChild(document.createElement("div")) });
    return model;
  };
  const finished = { ...phrase, weights: bytes, scores: null };
  window.finish = () => render({ ...finished }) && null;
  window.begin = (known) => {
    const weights = bytes.slice();
    for (const head of heads) {
      weights.fill(0, grid.triangleIndex(head, known, 0, steps), grid.triangleIndex(head + 1, 0, 0, steps));
    }
    window.model = render({
      ...finished, weights, known, sinks: [0], names: [[0, 1, "first seen"]],
      measures: measures.map((measure) => ({ ...measure, top: "?" })),
      next: phrase.next.map((row, q) => (q < known ? row : [])),
      tokens: phrase.tokens.map((token, i) => (i <= known ? token : "…")),
    });
  };
  window.add = (q) => {
    const rowOf = (head) => bytes.subarray(grid.triangleIndex(head, q, 0, steps)).subarray(0, q + 1);
    const sent = Uint8Array.from(heads.flatMap((head) => [...rowOf(head)]));
    const [token, next] = [phrase.tokens[q + 1], phrase.next[q]];
    window.model.set("row", { q, bytes: sent, token, next, names, measures, sinks });
  };
}"""


def growing(page: Page, grid: AttentionGrid, known: int) -> Locator:
    """Begin a phrase of which only `known` rows have been computed."""
    page.evaluate(GROW, grid.data["phrases"][0])
    page.evaluate("known => begin(known)", known)
    return page.locator(ROOT).first


def finished(page: Page) -> list:
    """Return the picture of a phrase that was finished from the start."""
    page.evaluate("finish()")
    return page.locator(ROOT).last.evaluate(PICTURE)


@pytest.mark.parametrize(
    ("known", "layers"), [(PROMPT, 30), (STEPS - 1, 30), (1, 2)], ids=["prefill", "but one", "one token"]
)
def test_row_by_row_it_becomes_the_finished_picture(open_grid, known, layers):
    grid = paris() if layers == 30 else grid_of(2, 3, TOKENS, 1, next_tokens=[((token, 0.5),) for token in TOKENS[1:]])
    page = open_grid()
    root = growing(page, grid, known)
    for q in range(known, STEPS):
        assert (state_of(root)["steps"], state_of(root)["step"]) == (str(STEPS), str(q))
        assert root.evaluate(CELLS) == cells_at(q, STEPS, grid.data["phrases"][0]["promptLen"])
        page.evaluate("q => add(q)", q)
    assert root.evaluate(PICTURE) == finished(page)


@pytest.mark.parametrize("wait", [True, False], ids=["drawn first", "while it is drawn"])
@pytest.mark.parametrize("prompt_len", [30, 3, 40])
def test_a_large_phrase_is_drawn_in_portions_to_the_same_picture(open_grid, prompt_len, wait):
    tokens = [f" t{i}" for i in range(41)]
    grid = grid_of(2, 3, tokens, prompt_len, next_tokens=[((token, 0.5),) for token in tokens[1:]])
    page = open_grid()
    known = min(prompt_len, 39)
    page.evaluate(GROW, grid.data["phrases"][0])
    drawn = page.evaluate("known => { begin(known); return document.querySelectorAll('tr[data-row]').length; }", known)
    assert 1 <= drawn < 10
    root = page.locator(ROOT)
    rows = root.locator("tr[data-row]")
    if wait:
        expect(rows).to_have_count(40)
        to_come = len(range(max(prompt_len, known + 1), 40))  # what row `known` chose is known
        expect(root.locator(".pd-label[data-unknown]")).to_have_count(to_come)
    page.evaluate("rows => rows.forEach(add)", [*range(known, 40)])
    expect(rows).to_have_count(40)
    assert root.first.evaluate(PICTURE) == finished(page)


def test_steps_end_at_the_rows_that_are_known(open_grid):
    page = open_grid()
    root = growing(page, paris(), PROMPT)
    for way in (
        lambda: page.get_by_label("Step", exact=True).fill(str(STEPS)),
        lambda: page.get_by_role("button", name="Last step", exact=True).click(),
        lambda: page.get_by_role("button", name="Next step", exact=True).click(),
        lambda: page.evaluate("model.set('step', 8)"),
        lambda: root.press("End"),
    ):
        way()
        assert (state_of(root)["step"], state_of(root)["pairs"]) == ("5", "15")
    expect(page.get_by_label("Step", exact=True)).to_have_value("5")


def test_a_reader_who_looks_back_is_left_there(open_grid):
    page = open_grid()
    root = growing(page, paris(), PROMPT)
    page.get_by_role("button", name="Previous step", exact=True).click()
    page.evaluate("add(5)")
    assert state_of(root)["step"] == "4"
    page.get_by_role("button", name="Last step", exact=True).click()
    assert state_of(root)["step"] == "6"
    page.evaluate("add(6)")
    assert state_of(root)["step"] == "7"


# --- robustness and reach


def test_markup_is_text(open_grid):
    tokens = [
        "<script>throw 1</script>",
        "</table>",
        "\"><img src=x onerror='throw 1'>",
        "&amp;",
        "\x00",
        "\ud800",
        " x",
    ]
    names = {(1, 2): "<i>name</i>"}
    page = open_grid(AttentionGrid.of_phrases([grid_of(2, 3, tokens, 3, label="<u>label</u>", names=names)]))
    expect(page.locator(f"{ROOT} img, {ROOT} i, {ROOT} u, {ROOT} td script")).to_have_count(0)
    expect(page.locator("th[data-i='1']")).to_have_text("</table>")
    expect(page.locator(".pd-named")).to_contain_text("<i>name</i>")
    assert page.locator("[data-chip]").all_inner_texts()[4:6] == ["␀", "⟨U+D800⟩"]
    assert page.locator("tbody tr").count() == 6


@pytest.mark.parametrize("count", [2, 9, 16, 64])
def test_no_horizontal_scroll_on_a_phone(open_grid, count):
    page = open_grid(grid_of(2, 3, [f" t{i}" for i in range(count + 1)], max(1, count - 4)), viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    sizes = page.locator(".pd-steps button, select, .pd-steps input, .pd-check").evaluate_all(
        "all => all.map(e => { const b = e.getBoundingClientRect(); return Math.min(b.width, b.height); })"
    )
    assert min(sizes) >= 24


CONTRAST = """() => {
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (colour) => {
    const [r, g, b] = colour.match(/[0-9.]+/g).map(v => linear(colour.startsWith("rgb") ? v / 255 : Number(v)));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (cell, shade) => {
    cell.style.setProperty("--pd-s", shade);
    const { color, backgroundColor } = getComputedStyle(cell);
    const [a, b] = [light(color), light(backgroundColor)];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const shades = Array.from({ length: 101 }, (_, i) => i / 100);
  const cells = [...document.querySelectorAll("td[data-state]:not(.pd-masked)")];
  return Math.min(...cells.flatMap(cell => shades.map(s => contrast(cell, s))));
}"""
STILL = "<style>*, *::before { transition: none !important }</style>"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_numbers_in_cells_are_readable_at_every_shade(open_grid, theme):
    head = f'<script>document.documentElement.dataset.theme = "{theme}"</script>'
    page = open_grid(grid_of(2, 3, ["a", " b", " c"], 1), head=head + STILL)
    assert page.evaluate(CONTRAST) >= 4.5


def test_numbers_leave_small_cells_and_stay_in_the_table(open_grid):
    sizes = "parseFloat(getComputedStyle(document.querySelector('td[data-state]')).fontSize)"
    assert open_grid(paris(), viewport={"width": 1280, "height": 900}).evaluate(sizes) >= 11
    phone = open_grid(paris(), viewport=PHONE)
    assert phone.evaluate(sizes) == 0
    assert phone.locator("td[data-q='0'][data-k='0']").text_content() == "1.00"


def test_rows_to_come_are_covered(page):
    go_to(page, 3)
    cover = "q => getComputedStyle(document.querySelector(`tr[data-row='${q}'] .pd-label`), '::before').opacity"
    assert [page.evaluate(cover, q) for q in range(9)] == ["0"] * 3 + ["1"] * 6


def test_print_shows_the_finished_picture(page):
    go_to(page, 3)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("button:visible, select:visible, input:visible").count() == 0
    expect(page.locator(ROOT)).to_have_attribute("data-step", "9")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(page.locator(ROOT)).to_have_attribute("data-step", "3")


def test_table_is_named_and_its_headers_are_scoped(page):
    expect(
        page.get_by_role("table", name="Attention weights, layer 23, head 4 · “is” looks at “France”")
    ).to_be_visible()
    assert page.locator("th:not([scope])").count() == 0
    assert page.locator("thead th").count() == len(TOKENS) - 1


def test_a_step_touches_only_its_row(page):
    go_to(page, 6)
    page.evaluate("""() => {
      window.touched = new Set();
      const note = (change) => change.target.nodeName === "TD" && window.touched.add(change.target.dataset.q);
      new MutationObserver(all => all.forEach(note))
        .observe(document.querySelector("table"), { attributes: true, childList: true, subtree: true });
    }""")
    page.get_by_role("button", name="Next step", exact=True).click()
    assert page.evaluate("[...window.touched]") == ["6"]


def test_a_step_leaves_the_map_alone(page):
    page.evaluate("""() => {
      window.changes = 0;
      new MutationObserver(all => { window.changes += all.length; })
        .observe(document.querySelector("[data-card=heads]"), { attributes: true, childList: true, subtree: true });
    }""")
    page.get_by_role("button", name="Previous step", exact=True).click()
    assert page.evaluate("window.changes") == 0


@pytest.mark.parametrize("width", [360, 800, 1000, 1280])
def test_the_sum_of_pairs_is_read_to_its_end_at_every_step(open_grid, width):
    page = open_grid(paris(), viewport={"width": width, "height": 900})
    cut = "() => [...document.querySelectorAll('.pd-formula')].map((text) => text.scrollWidth - text.clientWidth)"
    for step in range(STEPS + 1):
        go_to(page, step)
        assert page.evaluate(cut) == [0, 0]
