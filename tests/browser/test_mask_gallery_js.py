"""The gallery's module in a browser: it shows what Python drew, row by row, and says why a row may read a key."""

from itertools import pairwise

import pytest
from playwright.sync_api import Locator, Page, expect
from widget_page import NO_SCRIPT, PHONE

from prefill_decode.widgets import MaskGallery
from prefill_decode.widgets.mask_gallery_examples import gallery, standard_cases, standard_questions

ROOT = '[data-widget="mask-gallery"]'
SENTENCE, CELL_LINE, CHOSEN = ".pd-sentence", ".pd-cell-line p", "section[data-chosen]"
TITLES = {case.name: case.title for case in standard_cases()}
NUMBERS = ("steps", "allowed", "dense", "formula", "wastedRows")


@pytest.fixture(scope="module")
def widget() -> MaskGallery:
    return gallery()


@pytest.fixture
def page(open_page, widget) -> Page:
    return open_page(widget)


def root_of(page: Page, nth: int = 0) -> Locator:
    return page.locator(ROOT).nth(nth)


def state_of(root: Locator) -> dict:
    """Return the root's contract attributes."""
    return root.evaluate("e => ({...e.dataset})")


def button(place: Page | Locator, name: str) -> Locator:
    return place.get_by_role("button", name=name, exact=True)


def go_to(page: Page, step: int) -> None:
    page.get_by_label("Step", exact=True).fill(str(step))


def cell(page: Page, q: int, k: int) -> Locator:
    return page.locator(f'{CHOSEN} td[data-q="{q}"][data-k="{k}"]')


# --- one picture


PICTURE = """root => {
  const copy = root.cloneNode(true);
  copy.querySelectorAll("script").forEach(e => e.remove());
  for (const e of [copy, ...copy.querySelectorAll("*")])
    ["hidden", "tabindex", "data-live", "role", "aria-valuetext"].forEach(name => e.removeAttribute(name));
  return copy.outerHTML;
}"""


@pytest.mark.parametrize("name", TITLES)
def test_mounting_changes_nothing_that_is_seen_whichever_case_is_open(open_page, name):
    widget = MaskGallery(standard_cases(), standard_questions(), case=name)
    still, mounted = (open_page(widget, mount=mount) for mount in (False, True))
    expect(root_of(mounted)).to_have_attribute("data-live", "page")
    assert root_of(still).evaluate(PICTURE) == root_of(mounted).evaluate(PICTURE)


def test_without_script_no_control_is_visible_and_no_hole_is_left(open_page, widget):
    page = open_page(widget, mount=False, head=NO_SCRIPT)
    assert page.locator("button:visible, input:visible").count() == 0
    box = "e => { const { top, bottom } = e.getBoundingClientRect(); return [top, bottom]; }"
    parts = [page.locator(f"{ROOT} {name}").evaluate(box) for name in (".pd-thumbs", SENTENCE, ".pd-stage")]
    assert all(below[0] - above[1] <= 20 for above, below in pairwise(parts))
    text = page.locator(SENTENCE).evaluate("""e => {
      const range = document.createRange();
      range.selectNodeContents(e);
      return e.getBoundingClientRect().bottom - range.getBoundingClientRect().bottom;
    }""")
    assert text <= 8


@pytest.mark.parametrize("width", [360, 1280])
def test_mounting_and_choosing_move_nothing(open_page, widget, width):
    still, page = (open_page(widget, mount=mount, viewport={"width": width, "height": 900}) for mount in (False, True))
    places = "root => [root, ...root.children].map(e => [e.offsetTop, e.offsetHeight])"
    before = root_of(still).evaluate(places)
    assert len(set(page.locator("section").evaluate_all("all => all.map(e => e.offsetTop)"))) == 1
    for name in [*TITLES.values(), *(question["ask"] for question in widget.data["questions"])]:
        button(page, name).click()
        assert root_of(page).evaluate(places) == before


@pytest.mark.parametrize("name", TITLES)
def test_a_case_is_shown_with_its_numbers_at_every_step(page, widget, name):
    button(page, TITLES[name]).click()
    data, root = widget.data["cases"][name], root_of(page)
    expect(button(page, TITLES[name])).to_have_attribute("aria-pressed", "true")
    assert page.locator("[aria-pressed=true]").count() == 1
    assert page.locator("section:visible").evaluate_all("all => all.map(e => e.dataset.mask)") == [name]
    for step in [*range(data["steps"]), data["steps"]]:
        go_to(page, step)
        state = state_of(root)
        assert [state[key] for key in NUMBERS] == [str(data[key]) for key in NUMBERS]
        assert (state["case"], state["step"], state["pairs"]) == (name, str(step), str(data["pairs"][step]))
        assert page.locator(SENTENCE).inner_text() == data["sentences"][step]
        runs = page.locator(f"{CHOSEN} tr[data-row]").evaluate_all("all => all.map(e => e.dataset.run)")
        wanted = ["done"] * (step - 1) + ["now"] * (step > 0) + ["future"] * (data["steps"] - step)
        assert runs == wanted
        so_far = page.locator(f"{CHOSEN} [data-so-far]").all_inner_texts()
        rest = f" of {data['allowed']}" if step < data["steps"] else ""
        assert so_far == [str(step), str(data["pairs"][step]), rest]
        blue = page.locator(f'{CHOSEN} tr:not([data-run="future"]) td[data-state="allowed"]').count()
        assert blue == data["pairs"][step]


def test_every_cell_says_its_reason(page, widget):
    cases = {case.name: case for case in standard_cases()}
    root_of(page).evaluate("e => e.focus()")
    for name, case in cases.items():
        button(page, TITLES[name]).click()
        said = page.evaluate("""() => [...document.querySelectorAll("section[data-chosen] td[data-q]")].map(e => {
          e.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
          return document.querySelector(".pd-cell-line p").textContent;
        })""")
        wanted = []
        for q, row in enumerate(case.rows):
            for k, key in enumerate(case.columns):
                names = [place.label if place.prompt >= 0 else str(at) for place, at in ((row, q), (key, k))]
                verb = "reads" if case.mask[q, k] else "may not read"
                wanted.append(f"row {names[0]} {verb} key {names[1]}: {case.reason(q, k)}")
        assert said == wanted


# --- reasons


def test_a_cell_is_explained_when_pointed_at_tapped_or_reached_by_key(open_page, widget):
    page = open_page(widget, viewport=PHONE, has_touch=True)
    line = page.locator(CELL_LINE)
    hint = line.inner_text()
    button(page, "Packed").click()
    cell(page, 6, 5).hover()
    expect(line).to_have_text("row b1 reads key b0: same prompt, earlier")
    cell(page, 6, 4).tap()
    expect(line).to_have_text("row b1 may not read key a4: another prompt")
    assert page.locator("[data-pointed]").count() == 1
    cell(page, 0, 0).focus()
    expect(line).to_have_text("row a0 reads key a0: its own key")
    button(page, "Left-padded").click()
    expect(line).to_have_text(hint)
    assert page.locator("[data-pointed]").count() == 0
    cell(page, 7, 5).tap()
    expect(line).to_have_text("row b0 may not read key 5: a pad")


def test_arrow_keys_walk_in_the_grid_which_is_one_stop(page):
    root, line = root_of(page), page.locator(CELL_LINE)
    cell(page, 0, 0).focus()
    for key, said in (
        ("ArrowUp", "row a0 reads key a0: its own key"),
        ("ArrowRight", "row a0 may not read key a1: comes later"),
        ("ArrowDown", "row a1 reads key a1: its own key"),
        ("ArrowLeft", "row a1 reads key a0: same prompt, earlier"),
        ("ArrowLeft", "row a1 reads key a0: same prompt, earlier"),
    ):
        page.keyboard.press(key)
        expect(line).to_have_text(said)
    assert state_of(root)["step"] == "8"
    assert page.locator(f"{CHOSEN} td[tabindex]").count() == 1
    expect(page.get_by_role("grid", name="Causal: 8 rows, 8 keys")).to_be_visible()
    page.keyboard.press("Home")
    expect(root).to_have_attribute("data-step", "0")


# --- controls


def test_buttons(page):
    root = root_of(page)
    for name, step in (
        ("Previous step", 7),
        ("First step", 0),
        ("Previous step", 0),
        ("Next step", 1),
        ("Last step", 8),
        ("Next step", 8),
    ):
        button(page, name).click()
        expect(root).to_have_attribute("data-step", str(step))


def test_keyboard(page):
    root = root_of(page)
    root.focus()
    for key, step in (("ArrowLeft", 7), ("Home", 0), ("ArrowRight", 1), ("ArrowUp", 2), ("ArrowDown", 1), ("End", 8)):
        page.keyboard.press(key)
        expect(root).to_have_attribute("data-step", str(step))
    page.keyboard.press("Space")
    expect(button(page, "Pause")).to_be_visible()
    page.keyboard.press("Space")
    expect(button(page, "Play")).to_be_visible()
    page.keyboard.press("Control+Home")
    button(page, "Packed").focus()
    page.keyboard.press("Space")
    expect(root).to_have_attribute("data-case", "packed")
    expect(button(page, "Play")).to_be_visible()


def test_every_control_is_reached_by_tab_and_has_a_name(page, widget):
    root_of(page).focus()
    names = []
    for _ in range(7 + 6 + 1 + 5):
        page.keyboard.press("Tab")
        names.append(page.evaluate("e => (e = document.activeElement).ariaLabel || e.dataset.q || e.innerText"))
    steps = ["First step", "Previous step", "Play", "Next step", "Last step", "Step"]
    assert names == [*TITLES.values(), *(each["ask"] for each in widget.data["questions"]), *steps, "0"]


def test_play_runs_all_rows_and_another_control_stops_it(page):
    page.evaluate("""() => {
      window.seen = [];
      new MutationObserver(all => all.forEach(m => window.seen.push(+m.target.dataset.step)))
        .observe(document.querySelector("[data-widget]"), { attributeFilter: ["data-step"] });
    }""")
    button(page, "Play").click()
    expect(button(page, "Pause")).to_be_visible()
    expect(button(page, "Play")).to_be_visible(timeout=10_000)
    assert page.evaluate("window.seen") == [*range(9)]
    button(page, "Play").click()
    button(page, "First step").click()
    expect(button(page, "Play")).to_be_visible()
    page.wait_for_timeout(600)
    assert state_of(root_of(page))["step"] == "0"


def test_questions_show_their_case_and_answer(page, widget):
    for question in widget.data["questions"]:
        button(page, question["ask"]).click()
        state, (q, k) = state_of(root_of(page)), question["cell"]
        assert (state["case"], state["step"]) == (question["case"], state["steps"])
        assert page.locator(SENTENCE).inner_text() == question["answer"]
        expect(cell(page, q, k)).to_have_attribute("data-pointed", "")
        expect(button(page, question["ask"])).to_have_attribute("aria-pressed", "true")
    assert page.locator("[data-ask][aria-pressed=true]").count() == 1
    go_to(page, 3)
    assert page.locator("[data-ask][aria-pressed=true]").count() == 0


def test_one_polite_sentence_a_step_and_few_changes(page):
    go_to(page, 3)
    page.evaluate("""() => {
      window.said = [0, 0];
      document.querySelectorAll("[aria-live=polite]").forEach((e, i) =>
        new MutationObserver(() => { window.said[i] += 1; }).observe(e, { childList: true }));
      window.touched = new Set();
      new MutationObserver(all => all.forEach(m => window.touched.add(m.target)))
        .observe(document.querySelector("[data-widget]"), { attributes: true, childList: true, subtree: true });
    }""")
    root_of(page).focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("[window.said, window.touched.size]") == [[1, 0], 8]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            "['ArrowRight', 'ArrowDown', 'End', 'Home', ' ', 'x'].map(k => stepForKey(k, 3, 9))",
            [4, 2, 9, 0, "play", None],
        ),
        ("[stepForKey('ArrowUp', 9, 9), stepForKey('ArrowLeft', 0, 9)]", [9, 0]),
        ("[0, 1, 2, 3].map(row => stateOf(row, 3))", ["done", "done", "now", "future"]),
        (
            "reasonOf({rows: ['a', '{key}'], keys: ['b', '$&'], why: ['00', '0b']}, [...'0123456789a', '{row}+{key}'],"
            " 1, 1)",
            "{key}+$&",
        ),
    ],
)
def test_pure_function(live, call, expected):
    assert live.evaluate(f"(() => {{ with (window.module) {{ return {call}; }} }})") == expected


# --- several, live, printed


def test_two_copies_do_not_disturb_each_other(open_page, widget):
    page = open_page(widget, MaskGallery(standard_cases(), case="window"))
    first, second = root_of(page), root_of(page, 1)
    button(first, "Packed").click()
    button(second, "First step").click()
    told = [[state_of(root)[name] for name in ("case", "step")] for root in (first, second)]
    assert told == [["packed", "10"], ["window", "0"]]


def test_live_in_jupyter_it_talks_with_the_model(live):
    root = root_of(live)
    button(live, "Packed").click()
    button(live, "Previous step").click()
    assert live.evaluate("['case', 'step'].map(n => window.values[n])") == ["packed", 9]
    live.evaluate("model.set('step', 3)")
    live.evaluate("model.set('case', 'chunks')")
    assert [state_of(root)[name] for name in ("case", "step", "live")] == ["chunks", "3", "lab"]
    live.evaluate("model.set('case', 'x')")
    assert [state_of(root)[name] for name in ("case", "step")] == ["chunks", "3"]
    live.evaluate("model.set('step', 99); model.set('case', 'window')")
    assert [state_of(root)[name] for name in ("case", "step")] == ["window", "8"]


def test_live_in_jupyter_its_keys_stay_with_it(live):
    root_of(live).focus()
    for key in ("x", "ArrowDown", "Control+s"):
        live.keyboard.press(key)
    assert live.evaluate("window.keys") == ["Control", "s"]


def test_a_mounted_copy_can_be_removed(live):
    button(live, "Play").click()
    live.evaluate("window.unmount()")
    step = state_of(root_of(live))["step"]
    button(live, "Last step").click()
    live.evaluate("model.set('step', 2)")
    live.wait_for_timeout(600)
    expect(root_of(live)).to_have_attribute("data-step", step)


def test_print_shows_the_finished_picture(page):
    go_to(page, 3)
    button(page, "Play").click()
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("button:visible, input:visible").count() == 0
    expect(root_of(page)).to_have_attribute("data-step", "8")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(root_of(page)).to_have_attribute("data-step", "3")
    page.emulate_media(media="screen")
    expect(button(page, "Play")).to_be_visible()


# --- reach

# The column of the book and a phone: window, and the width of the column.
COLUMNS = [({"width": 1280, "height": 800}, 688), (PHONE, 344), ({"width": 1280, "height": 800}, 1264)]


def column_of(width: int) -> str:
    return f"<style>body {{ margin: 8px; max-width: {width}px; }}</style>"


@pytest.mark.parametrize(("viewport", "width"), COLUMNS)
def test_the_height_is_the_same_at_every_step_cell_and_answer(open_page, widget, viewport, width):
    page = open_page(widget, viewport=viewport, head=column_of(width))
    assert root_of(page).evaluate("e => e.offsetWidth") == width
    heights = page.evaluate("""() => {
      const root = document.querySelector("[data-widget]"), heights = new Set();
      const tell = (e, event) => {
        e.dispatchEvent(new Event(event, { bubbles: true }));
        heights.add(root.offsetHeight);
      };
      const range = root.querySelector("input");
      for (const button of root.querySelectorAll("[data-choose], [data-ask]")) {
        button.click();
        heights.add(root.offsetHeight);
        if (button.dataset.ask) continue;
        for (const cell of root.querySelectorAll("[data-chosen] td[data-q]")) tell(cell, "pointerover");
        for (range.value = 0; ; range.value = Number(range.value) + 1) {
          tell(range, "input");
          if (range.value === range.max) break;
        }
      }
      return [...heights];
    }""")
    assert len(heights) == 1


@pytest.mark.parametrize(("viewport", "width"), COLUMNS)
def test_an_answer_is_on_screen_with_its_button_and_the_controls(open_page, widget, viewport, width):
    page = open_page(widget, viewport=viewport, head=column_of(width))
    box = "e => { const { top, bottom } = e.getBoundingClientRect(); return [top, bottom]; }"
    names = (".pd-thumbs", ".pd-questions", ".pd-steps", SENTENCE, ".pd-stage")
    parts = [page.locator(f"{ROOT} {name}").evaluate(box) for name in names]
    assert all(above[1] <= below[0] for above, below in pairwise(parts))
    assert parts[3][1] - parts[1][0] <= viewport["height"]


def test_heads_of_columns_stand_apart_on_a_phone(open_page, widget):
    page = open_page(widget, viewport=PHONE, head=column_of(344))
    for title in TITLES.values():
        button(page, title).click()
        gaps = page.locator(f"{CHOSEN} .pd-mask thead tr:last-child").evaluate("""row => {
          const boxes = [...row.querySelectorAll("th")].map(e => {
            const text = e.ownerDocument.createTreeWalker(e, NodeFilter.SHOW_TEXT), range = document.createRange();
            let seen = { left: Infinity, right: -Infinity };
            while (text.nextNode()) {
              if (getComputedStyle(text.currentNode.parentElement).clipPath !== "none") continue;
              range.selectNodeContents(text.currentNode);
              const { left, right } = range.getBoundingClientRect();
              seen = { left: Math.min(seen.left, left), right: Math.max(seen.right, right) };
            }
            return seen;
          });
          return boxes.slice(1).map((box, i) => box.left - boxes[i].right);
        }""")
        assert min(gaps) >= 3, title


@pytest.mark.parametrize("name", TITLES)
def test_no_horizontal_scroll_and_no_small_text_on_a_phone(open_page, widget, name):
    page = open_page(widget, viewport=PHONE)
    button(page, TITLES[name]).click()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    sizes = page.locator("button, input").evaluate_all(
        "all => all.map(e => { const b = e.getBoundingClientRect(); return Math.min(b.width, b.height); })"
    )
    assert min(sizes) >= 24
    fonts = page.locator(f"{ROOT} :is(td, th, p, span, b, small, button)").evaluate_all(
        "all => all.map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(fonts) >= 11
    wide = page.locator(f"{CHOSEN} :is(th, .pd-read)").evaluate_all(
        "all => all.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)"
    )
    assert wide == []


PAINT = """e => { const s = getComputedStyle(e); return [s.backgroundColor, s.backgroundImage].join(); }"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_states_differ_by_more_than_hue(open_page, widget, theme):
    head = f'<script>Object.assign(document.documentElement.dataset, {{theme: "{theme}"}})</script>'
    page = open_page(widget, head=head)
    button(page, "Paged").click()
    paints = [page.locator(f"{CHOSEN} td[data-state={state}]").first.evaluate(PAINT) for state in ("masked", "unused")]
    button(page, "Left-padded").click()
    paints += [page.locator(f"{CHOSEN} td[data-state={state}]").first.evaluate(PAINT) for state in ("pad", "allowed")]
    assert len(set(paints)) == 4
    assert ["gradient" in paint for paint in paints] == [False, True, True, False]


def test_tables_have_scoped_headers_and_pictures_have_names(page):
    assert page.locator(f"{ROOT} th:not([scope])").count() == 0
    assert page.locator("svg[role=img]:not([aria-label])").count() == 0
    expect(page.get_by_role("img", name="Packed: 24 of 100 cells are filled")).to_be_visible()
