"""The sweep's module in a browser, put together by the book's own code: the mounted widget against its contract."""

import json
from itertools import pairwise

import pytest
from playwright.sync_api import Locator, Page, expect
from tile_sweep_fixture import MEMORIES, N, arrays, tile_sweep
from widget_page import NO_SCRIPT, PHONE, PICTURE

from prefill_decode.widgets import TileSweep
from prefill_decode.widgets.tile_sweep_data import memory_of
from prefill_decode.widgets.tile_sweep_html import edges

ROOT = '[data-widget="tile-sweep"]'
ORDERS = ("keys", "queries")
SENTENCE = f"{ROOT} .pd-sentence"


@pytest.fixture(scope="module")
def widget() -> TileSweep:
    return tile_sweep()


@pytest.fixture
def page(open_page, widget) -> Page:
    return open_page(widget)


def state_of(root: Locator) -> dict:
    return root.evaluate("e => ({...e.dataset})")


def choose(page: Page, fast: int, order: str) -> None:
    page.get_by_label("Fast memory").select_option(str(fast))
    page.get_by_label("Loop order").select_option(order)


def go_to(page: Page, step: int) -> Locator:
    page.get_by_label("Step", exact=True).fill(str(step))
    return page.locator(ROOT)


def told_of(widget: TileSweep, fast: int, order: str) -> dict:
    return memory_of(widget.data, fast)["orders"][order]


# --- one representation


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("fast", MEMORIES)
def test_script_shows_what_python_draws(page, open_page, fast, order):
    drawn = open_page(tile_sweep(memory=fast, order=order), mount=False)
    choose(page, fast, order)
    assert page.locator(ROOT).evaluate(PICTURE) == drawn.locator(ROOT).evaluate(PICTURE)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"order": "queries", "memory": 120, "labels": None},
        {"arrays": arrays(1, 1, 0), "memories": (4,), "memory": 4, "labels": None},
        {"arrays": arrays(16, 4, 1), "memories": (16, 64), "memory": 64, "labels": None},
    ],
    ids=["plain", "queries", "least", "most"],
)
@pytest.mark.parametrize("width", [360, 800, 1280])
def test_mounting_changes_and_moves_nothing(open_page, options, width):
    boxes = """() => [...document.querySelectorAll("td, th, p, .pd-bar *, .pd-steps, .pd-choices, .pd-questions")]
      .map(e => JSON.stringify(e.getBoundingClientRect()))"""
    viewport = {"width": width, "height": 800}
    drawn, mounted = (open_page(tile_sweep(**options), mount=mount, viewport=viewport) for mount in (False, True))
    assert mounted.locator(ROOT).get_attribute("data-live") == "page"
    assert mounted.locator(ROOT).evaluate(PICTURE) == drawn.locator(ROOT).evaluate(PICTURE)
    assert mounted.evaluate(boxes) == drawn.evaluate(boxes)


def test_without_script_no_control_is_visible_and_no_hole_is_left(open_page, widget):
    page = open_page(widget, mount=False, head=NO_SCRIPT)
    assert page.locator("button:visible, input:visible, select:visible").count() == 0
    for picture in (".pd-grid", ".pd-rows", ".pd-accesses", ".pd-sentence"):
        expect(page.locator(picture)).to_be_visible()
    box = "e => { const { top, bottom } = e.getBoundingClientRect(); return [top, bottom]; }"
    parts = [page.locator(f"{ROOT} {name}").evaluate(box) for name in (".pd-legend", ".pd-sentence", ".pd-accesses")]
    assert all(below[0] - above[1] <= 20 for above, below in pairwise(parts))
    text = page.locator(SENTENCE).evaluate("""e => {
      const range = document.createRange();
      range.selectNodeContents(e);
      return e.getBoundingClientRect().bottom - range.getBoundingClientRect().bottom;
    }""")
    assert text <= 8


# --- the contract

SEEN = """root => ({
  cells: [...root.querySelectorAll(".pd-grid tbody tr")].map(row => [...row.querySelectorAll("td")]
    .map(cell => [cell.dataset.state, cell.textContent])),
  rows: [...root.querySelectorAll(".pd-rows tbody tr")]
    .map(row => [row.dataset.turn, [...row.querySelectorAll("td")].map(cell => cell.textContent)]),
})"""


def cells_at(widget: TileSweep, fast: int, order: str, step: int) -> list[list[list[str]]]:
    memory, told = memory_of(widget.data, fast), told_of(widget, fast, order)

    def cell(i: int, j: int) -> list[str]:
        row, column = i // memory["queries"], j // memory["keys"]
        at, now = told["at"][row][column], told["tiles"][step] == [row, column]
        later = not any([row, column] == tile for tile in told["tiles"])
        state = "future" if at > step else "skipped" if later else "now" if now else "done"
        return [state, widget.data["scores"][i][j] if now and j <= i else ""]

    return [[cell(i, j) for j in range(N)] for i in range(N)]


def rows_at(widget: TileSweep, fast: int, order: str, step: int) -> list[list]:
    memory, told = memory_of(widget.data, fast), told_of(widget, fast, order)
    rows = [["future", [""] * 7] for _ in range(N)]
    for now in range(1, step + 1):  # replay: what each visit writes
        row_tile, key_tile = told["tiles"][now]
        for i, row in enumerate(rows):
            row[0], row[1][2] = row[0] if row[0] == "future" else "done", ""
            if i // memory["queries"] != row_tile:
                continue
            if key_tile * memory["keys"] > i:
                row[1][2] = "1.00"
                continue
            maximum, total, output, factor = memory["known"][i][key_tile]
            final = "✓" if (key_tile + 1) * memory["keys"] > i else ""
            rows[i] = ["now", [maximum, total, factor or "–", *output, final]]
    return rows


@pytest.mark.parametrize(
    ("fast", "order"), [(24, "keys"), (24, "queries"), (37, "keys"), (37, "queries"), (120, "keys")]
)
def test_contract_at_every_step(page, widget, fast, order):
    choose(page, fast, order)
    told = told_of(widget, fast, order)
    for step in [*range(told["steps"] + 1), told["steps"] // 2, 0]:
        root = go_to(page, step)
        state = state_of(root)
        expected = {"steps": told["steps"], "step": step, "memory": fast, "order": order, "standard": 520}
        expected |= {name: told[name][step] for name in ("reads", "writes", "skipped")}
        expected["accesses"] = told["reads"][step] + told["writes"][step]
        assert {name: state[name] for name in expected} == {name: str(value) for name, value in expected.items()}
        assert root.evaluate(SEEN) == {
            "cells": cells_at(widget, fast, order, step),
            "rows": rows_at(widget, fast, order, step),
        }
        assert page.locator(SENTENCE).inner_text() == told["sentences"][step]
        told_texts = [page.locator(f"[data-text={name}]").inner_text() for name in ("accesses", "reads", "writes")]
        assert told_texts == [f"{expected[name]:,}" for name in ("accesses", "reads", "writes")]


def test_no_other_tile_keeps_scores(page, widget):
    choose(page, 12, "keys")
    for step in (0, 1, 30, 55):
        shown = go_to(page, step).locator(".pd-grid td:not(:empty)").filter(has_text="0")
        texts = [text for text in page.locator(".pd-grid td").all_inner_texts() if text.strip()]
        assert len(texts) == min(step, 1)
        assert shown.count() <= 1


def test_bars_grow_to_the_mark(page, widget):
    box = "e => { const { left, right } = e.getBoundingClientRect(); return [left, right]; }"
    for order in ORDERS:
        choose(page, 24, order)
        reads, writes, end = (page.locator(f"[data-part={name}]") for name in ("reads", "writes", "end"))
        assert writes.evaluate(box)[1] == pytest.approx(end.evaluate(box)[1], abs=1)
        go_to(page, 5)
        assert reads.evaluate(box)[1] == pytest.approx(writes.evaluate(box)[0], abs=0.1)
        assert writes.evaluate(box)[1] < end.evaluate(box)[0]
        assert page.locator("[data-text=end]").inner_text() == told_of(widget, 24, order)["end"]


def test_a_choice_is_shown_at_its_end(page, widget):
    go_to(page, 3)
    page.get_by_label("Fast memory").select_option("12")
    assert state_of(page.locator(ROOT))["step"] == "55"
    assert page.get_by_label("Step", exact=True).input_value() == "55"
    page.get_by_label("Loop order").select_option("queries")
    assert page.locator(SENTENCE).inner_text() == told_of(widget, 12, "queries")["sentences"][-1]


def test_questions_set_a_state_and_answer(page, widget):
    for question in widget.data["questions"]:
        page.get_by_role("button", name=question["ask"], exact=True).click()
        assert page.locator("[data-ask][aria-pressed=true]").all_inner_texts() == [question["ask"]]
        state = state_of(page.locator(ROOT))
        assert {name: state[name] for name in question["set"]} == {k: str(v) for k, v in question["set"].items()}
        assert page.locator(SENTENCE).inner_text() == question["answer"]
    go_to(page, 1)
    expect(page.locator("[data-ask][aria-pressed=true]")).to_have_count(0)


def test_one_polite_sentence_a_step(page):
    page.evaluate("""() => {
      window.said = 0;
      const live = document.querySelectorAll("[aria-live=polite]");
      new MutationObserver(() => { window.said += 1; }).observe(live[0], { childList: true });
      window.lives = live.length;
    }""")
    said = {go_to(page, step).locator(".pd-sentence").inner_text() for step in range(16)}
    assert (len(said), page.evaluate("[window.lives, window.said]")) == (16, [1, 16])


# --- controls


def test_buttons(page):
    root = page.locator(ROOT)
    steps = [("Previous step", 14), ("First step", 0), ("Previous step", 0), ("Next step", 1), ("Last step", 15)]
    for name, step in [*steps, ("Next step", 15)]:
        page.get_by_role("button", name=name, exact=True).click()
        expect(root).to_have_attribute("data-step", str(step))


def test_keyboard(page):
    root = page.locator(ROOT)
    root.focus()
    for key, step in (("ArrowLeft", 14), ("Home", 0), ("ArrowRight", 1), ("ArrowUp", 2), ("ArrowDown", 1), ("End", 15)):
        page.keyboard.press(key)
        expect(root).to_have_attribute("data-step", str(step))
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()


def test_keys_of_the_browser_and_of_native_controls_are_left_alone(page):
    page.locator(ROOT).focus()
    page.keyboard.press("Control+Home")
    page.get_by_label("Fast memory").focus()
    page.keyboard.press("ArrowDown")
    state = state_of(page.locator(ROOT))
    assert (state["memory"], state["step"]) == ("37", state["steps"])
    page.get_by_label("Step", exact=True).focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(ROOT)).to_have_attribute("data-step", str(int(state["steps"]) - 1))


def test_every_control_is_reached_by_tab_and_has_a_name(page, widget):
    page.locator(ROOT).focus()
    names = []
    for _ in range(13):
        page.keyboard.press("Tab")
        names.append(page.evaluate("e => (e = document.activeElement).ariaLabel || e.innerText"))
    assert names[:6] == ["First step", "Previous step", "Play", "Next step", "Last step", "Step"]
    assert names[6:] == ["Fast memory", "Loop order", *(each["ask"] for each in widget.data["questions"])]


def test_play_from_the_end_starts_at_zero_and_stops_at_the_end(page):
    choose(page, 120, "keys")
    page.evaluate("""() => {
      window.seen = [];
      new MutationObserver(all => all.forEach(m => window.seen.push(+m.target.dataset.step)))
        .observe(document.querySelector("[data-widget]"), { attributeFilter: ["data-step"] });
    }""")
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible(timeout=9000)
    assert page.evaluate("window.seen") == [0, 1, 2, 3, 4]


def test_sides_of_tiles_are_those_that_python_draws(live):
    calls = [
        (i, j, queries, keys, n)
        for n in (1, 5, 10)
        for queries, keys in ((1, 1), (2, 3), (4, 10))
        for i in range(n)
        for j in range(n)
    ]
    script = "calls => calls.map(([i, j, queries, keys, n]) => window.module.edgesOf(i, j, { queries, keys }, n))"
    assert live.evaluate(script, calls) == [
        " ".join(edges(i, queries, n, ("top", "bottom")) + edges(j, keys, n, ("left", "right")))
        for i, j, queries, keys, n in calls
    ]


# --- several, live, printed


def test_two_copies_do_not_disturb_each_other(open_page, widget):
    page = open_page(widget, tile_sweep(memory=48, order="queries"))
    first, second = page.locator(ROOT).nth(0), page.locator(ROOT).nth(1)
    second.get_by_role("button", name="First step", exact=True).click()
    first.get_by_label("Fast memory").select_option("12")
    told = [[state_of(root)[name] for name in ("step", "memory", "order")] for root in (first, second)]
    assert told == [["55", "12", "keys"], ["0", "48", "queries"]]


def test_live_in_jupyter_it_makes_its_own_root_and_talks_with_the_model(live, widget):
    root = live.locator(ROOT)
    live.get_by_role("button", name="Previous step", exact=True).click()
    assert live.evaluate("['memory', 'order', 'step'].map(n => window.values[n])") == [24, "keys", 14]
    choose(live, 48, "queries")
    assert live.evaluate("['memory', 'order', 'step'].map(n => window.values[n])") == [
        48,
        "queries",
        told_of(widget, 48, "queries")["steps"],
    ]
    live.evaluate("model.set('step', 3)")
    assert [state_of(root)[name] for name in ("step", "live")] == ["3", "lab"]
    live.evaluate("model.set('memory', 12); model.set('order', 'keys'); model.set('step', 40)")
    assert [state_of(root)[name] for name in ("memory", "order", "step")] == ["12", "keys", "40"]
    expect(live.get_by_label("Fast memory")).to_have_value("12")
    live.evaluate("model.set('memory', 13)")
    assert state_of(root)["memory"] == "12"


def test_live_in_jupyter_its_keys_stay_with_it(live):
    live.evaluate("window.keys = []")
    live.locator(ROOT).focus()
    for key in ("x", "ArrowDown", "Control+s"):
        live.keyboard.press(key)
    assert live.evaluate("window.keys") == ["Control", "s"]


def test_a_mounted_copy_can_be_removed(live):
    live.evaluate("window.unmount()")
    live.get_by_role("button", name="First step", exact=True).click()
    live.evaluate("model.set('step', 2)")
    expect(live.locator(ROOT)).to_have_attribute("data-step", "15")


def test_print_shows_the_finished_picture(page):
    go_to(page, 3)
    page.get_by_role("button", name="Play", exact=True).click()
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("button:visible, input:visible, select:visible").count() == 0
    expect(page.locator(ROOT)).to_have_attribute("data-step", "15")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(page.locator(ROOT)).to_have_attribute("data-step", "3")


# --- reach

# The column of the book and a phone: window, and the width of the column.
COLUMNS = [({"width": 1280, "height": 800}, 688), (PHONE, 344), ({"width": 1280, "height": 800}, 1264)]
LARGER_PHONE = ({"width": 412, "height": 915}, 390)
BOOK = {"arrays": arrays(12, 4, 7), "memories": (16, 32, 48, 64, 192), "memory": 48, "labels": None}


def column_of(width: int) -> str:
    return f"<style>body {{ margin: 8px; max-width: {width}px; }}</style>"


@pytest.mark.parametrize("options", [{}, BOOK], ids=["plain", "book"])
@pytest.mark.parametrize(("viewport", "width"), [*COLUMNS, LARGER_PHONE])
def test_the_height_is_the_same_at_every_step_and_answer(open_page, options, viewport, width):
    page = open_page(tile_sweep(**options), viewport=viewport, head=column_of(width))
    assert page.locator(ROOT).evaluate("e => e.offsetWidth") == width
    heights = page.evaluate("""() => {
      const root = document.querySelector("[data-widget]"), heights = new Set();
      const tell = (e) => { e.dispatchEvent(new Event("input", { bubbles: true })); heights.add(root.offsetHeight); };
      const [memory, order] = root.querySelectorAll("select"), range = root.querySelector("input");
      for (const size of memory.options) for (const way of order.options) {
        [memory.value, order.value] = [size.value, way.value];
        tell(order);
        for (range.value = 0; ; range.value = Number(range.value) + 1) {
          tell(range);
          if (range.value === range.max) break;
        }
      }
      for (const button of root.querySelectorAll("[data-ask]")) { button.click(); heights.add(root.offsetHeight); }
      return [...heights];
    }""")
    assert len(heights) == 1


@pytest.mark.parametrize(("viewport", "width"), COLUMNS)
def test_an_answer_is_on_screen_with_its_button_and_the_controls(open_page, viewport, width):
    page = open_page(tile_sweep(**BOOK), viewport=viewport, head=column_of(width))
    box = "e => { const { top, bottom } = e.getBoundingClientRect(); return [top, bottom]; }"
    names = (".pd-grid", ".pd-steps", ".pd-sentence", ".pd-choices", ".pd-questions")
    parts = [page.locator(f"{ROOT} {name}").evaluate(box) for name in names]
    assert all(above[1] <= below[0] for above, below in pairwise(parts))
    assert parts[-1][1] - parts[1][0] <= viewport["height"]


def test_on_a_phone_the_label_of_a_row_says_what_is_final(open_page):
    page = open_page(tile_sweep(**BOOK), viewport=PHONE, head=column_of(344))
    expect(page.locator(f"{ROOT} .pd-rows td:last-child").first).to_be_hidden()
    marks = "all => all.map(e => getComputedStyle(e, '::after').content)"
    rows = page.locator(f"{ROOT} .pd-rows tbody th")
    assert rows.evaluate_all(marks) == ['"✓"'] * 12
    go_to(page, 1)
    assert rows.evaluate_all(marks) == ['"✓"'] * 3 + ["none"] * 9
    go_to(page, 10)
    gaps = page.locator(f"{ROOT} .pd-rows tbody tr").evaluate_all("""rows => rows.flatMap(row => {
      const boxes = [...row.querySelectorAll("td")].filter(e => e.textContent && e.offsetWidth).map(e => {
        const range = document.createRange();
        range.selectNodeContents(e);
        return range.getBoundingClientRect();
      });
      return boxes.slice(1).map((box, i) => box.left - boxes[i].right);
    })""")
    assert min(gaps) >= 4


MOST = {"arrays": arrays(16, 4, 1), "memories": (16, 64, 256), "memory": 64, "labels": None}


@pytest.mark.parametrize("options", [{}, MOST], ids=["plain", "most"])
def test_no_horizontal_scroll_and_no_small_text_on_a_phone(open_page, options):
    page = open_page(tile_sweep(**options), viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    sizes = page.locator("button, input, select").evaluate_all(
        "all => all.map(e => { const b = e.getBoundingClientRect(); return Math.min(b.width, b.height); })"
    )
    assert min(sizes) >= 24
    fonts = page.locator(f"{ROOT} :is(td, th, p, span, b)").evaluate_all(
        "all => all.map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(fonts) >= 11


@pytest.mark.parametrize("options", [{}, MOST], ids=["plain", "most"])
@pytest.mark.parametrize("width", [360, 610, 700, 740, 800, 950, 1280])
def test_numbers_fit_their_cells_and_rows_stand_in_line(open_page, options, width):
    page = open_page(tile_sweep(**options), viewport={"width": width, "height": 900})
    largest = max(each["m"] for each in memory_of_all(page))
    page.get_by_label("Fast memory").select_option(str(largest))
    tight = """all => all.filter(e => e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)
      .map(e => e.textContent)"""
    assert page.locator(f"{ROOT} td").evaluate_all(tight) == []
    tops = "all => all.map(e => e.getBoundingClientRect().top)"
    grid, rows = (page.locator(f"{name} tbody tr").evaluate_all(tops) for name in (".pd-grid", ".pd-rows"))
    heights = {round(b - a, 1) for a, b in pairwise(grid)}
    assert len(heights) == 1
    if width >= 740:  # side by side
        assert grid == pytest.approx(rows, abs=1)


def memory_of_all(page: Page) -> list[dict]:
    text = page.locator(f"{ROOT} script[type='application/json']").text_content()
    return json.loads(text)["data"]["memories"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_scores_are_ink_on_the_soft_blue(open_page, widget, theme):
    head = f'<script>document.documentElement.dataset.theme = "{theme}"</script>'
    page = open_page(widget, head=head)
    colours = """() => {
      const { color, backgroundColor } = getComputedStyle(document.querySelector(".pd-grid [data-state=now]"));
      const probe = document.body.appendChild(document.createElement("p"));
      probe.style = "color: var(--pd-ink); background: var(--pd-prefill-soft)";
      const wanted = getComputedStyle(probe);
      return color === wanted.color && backgroundColor === wanted.backgroundColor && color !== backgroundColor;
    }"""
    assert page.evaluate(colours)


def test_tables_have_names_and_scoped_headers(page):
    for name in ("Scores: query (row) × key (column)", "What each row knows"):
        expect(page.get_by_role("table", name=name)).to_be_visible()
    assert page.locator("th:not([scope])").count() == 0
