"""The timeline's module in a browser, put together by the book's own code: the mounted widget against its contract."""

import pytest
from playwright.sync_api import Locator, Page, expect
from timeline_fixture import LAYERS, PROMPT, STEPS, TOKENS, timeline
from widget_page import NO_SCRIPT, PHONE

from prefill_decode.widgets import PassTimeline

ROOT = '[data-widget="pass-timeline"]'
DESKTOP = {"width": 1280, "height": 900}
SENTENCE, STALL_SENTENCE = (f"[data-scene={name}] [aria-live=polite]" for name in ("schedule", "stall"))


@pytest.fixture(scope="module")
def widget() -> PassTimeline:
    return timeline()


@pytest.fixture
def page(open_page, widget) -> Page:
    return open_page(widget)


def state_of(root: Locator) -> dict:
    """Return the root's contract attributes."""
    return root.evaluate("e => ({...e.dataset})")


def go_to(page: Page, step: int) -> Locator:
    page.get_by_label("Step", exact=True).fill(str(step))
    return page.locator(ROOT)


def variant_of(widget: PassTimeline, slow: bool = False) -> dict:
    return widget.data["schedule"]["variants"][slow]


# --- one representation


# Numbers in attributes are compared as numbers; what is left out is the script's own.
PICTURE = """root => {
  const own = ["hidden", "checked", "value", "tabindex", "data-live", "aria-valuetext"];
  const number = (text) => text.replace(/-?[0-9]+(\\.[0-9]+)?/g, Number);
  const style = (e) => [...e.style].sort().filter(name => !name.startsWith("--"))
    .map(name => `${name}:${number(e.style.getPropertyValue(name))}`);
  const attributes = (e) => [...e.attributes].filter(a => ![...own, "style"].includes(a.name))
    .map(a => `${a.name}=${number(a.value)}`).concat(style(e)).sort();
  const outline = (node) => node.nodeType === 3 ? node.data
    : [node.tagName, attributes(node), [...node.childNodes].filter(n => n.nodeName !== "SCRIPT").map(outline)];
  return outline(root);
}"""


@pytest.mark.parametrize(("scenario", "slow"), [("whole", True), ("2048", False), ("512", True), ("128", False)])
def test_script_shows_what_python_draws(page, open_page, scenario, slow):
    drawn = open_page(timeline(slow=slow, scenario=scenario), mount=False)
    page.locator(f"input[value='{scenario}']").check()
    page.get_by_label("Slow layer").set_checked(slow)
    assert page.locator(ROOT).evaluate(PICTURE) == drawn.locator(ROOT).evaluate(PICTURE)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"slow": True, "scenario": "128"},
        {"tokens": ["<script>", "</table>", "\"'&", "\n", "\u202eשלום", "\u0301"]},
        {"tokens": ["a", " b", " c"], "prompt_len": 1, "layers": 1, "slow_layer": 0},
        {"tokens": [f" t{i}" for i in range(10)], "prompt_len": 4, "layers": 12},
    ],
    ids=["plain", "slow", "markup", "least", "most"],
)
def test_mounting_changes_nothing(open_page, options):
    drawn, mounted = open_page(timeline(**options), mount=False), open_page(timeline(**options))
    assert mounted.locator(ROOT).get_attribute("data-live") == "page"
    assert mounted.locator(ROOT).evaluate(PICTURE) == drawn.locator(ROOT).evaluate(PICTURE)


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_mounting_moves_nothing(open_page, widget, viewport):
    boxes = """() => [...document.querySelectorAll("td, th, p, svg, form, .pd-bar *, .pd-card, .pd-steps, .pd-choices")]
      .map(e => JSON.stringify(e.getBoundingClientRect()))"""
    drawn, mounted = (open_page(widget, mount=mount, viewport=viewport) for mount in (False, True))
    assert mounted.evaluate(boxes) == drawn.evaluate(boxes)


def test_without_script_no_control_is_visible(open_page, widget):
    page = open_page(widget, mount=False, head=NO_SCRIPT)
    assert page.locator("button:visible, input:visible").count() == 0
    for picture in (".pd-layers", ".pd-passes", ".pd-lanes", ".pd-numbers"):
        expect(page.locator(picture)).to_be_visible()


# --- the contract


def expected_at(step: int) -> dict:
    if step == 0:
        return {"phase": "idle", "pass": "0", "layer": "none"}
    number, layer = divmod(step - 1, LAYERS + 1)
    return {
        "phase": "decode" if number else "prefill",
        "pass": str(number + 1),
        "layer": "choice" if layer == LAYERS else str(layer),
    }


CELLS = """() => [...document.querySelectorAll("td[data-layer]")]
  .map(cell => [+cell.dataset.layer, +cell.dataset.position, cell.dataset.state])"""


def cell_state(layer: int, position: int, step: int) -> str:
    ready = max(0, position - PROMPT + 1) * (LAYERS + 1) + layer + 1
    return "future" if ready > step else "now" if ready == step else "done"


@pytest.mark.parametrize("order", [range(STEPS + 1), [7, 2, 15, 0, 11, 10]], ids=["forward", "to and fro"])
def test_contract_at_every_step(page, widget, order):
    for step in order:
        state = state_of(go_to(page, step))
        assert {name: state[name] for name in ("phase", "pass", "layer")} == expected_at(step)
        assert (state["steps"], state["step"], state["ttftMs"], state["tpotMs"]) == ("15", str(step), "13", "9")
        assert page.evaluate(CELLS) == [
            [layer, i, cell_state(layer, i, step)] for layer in reversed(range(LAYERS)) for i in range(len(TOKENS) - 1)
        ]
        chosen = [max(0, step // (LAYERS + 1)), 3][step == STEPS]
        assert page.locator(".pd-chosen:not([data-state=future])").count() == chosen
        assert page.locator("tfoot [data-at]:not([data-state=future])").count() == min(2, chosen)
        assert page.locator(".pd-told:not([data-state=future])").count() == chosen
        assert page.locator(SENTENCE).inner_html() == variant_of(widget)["sentences"][step]


def test_what_is_to_come_is_not_seen(page):
    go_to(page, 3)
    for thing in (".pd-chosen bdi", "tfoot [data-at] bdi", ".pd-told", ".pd-end"):
        assert page.locator(f"{thing}:visible").count() == 0
    seen = page.locator("td[data-layer]").evaluate_all(
        "all => all.filter(e => getComputedStyle(e).color !== 'rgba(0, 0, 0, 0)').length"
    )
    assert seen == 3 * PROMPT


def test_a_slow_layer_makes_the_first_and_every_token_later(page, widget):
    root = page.locator(ROOT)
    page.get_by_label("Slow layer: layer 1 takes 4 times as long").check()
    state = state_of(root)
    assert (state["slow"], state["ttftMs"], state["tpotMs"], state["step"]) == ("1", "22", "15", "15")
    assert page.locator(".pd-end").all_inner_texts() == ["22", "37", "52"]
    assert page.locator("[data-card=ttft] .pd-value").inner_text() == "22 ms"
    widths = page.locator(".pd-bar").first.locator("span").evaluate_all("all => all.map(e => e.offsetWidth)")
    assert widths[1] / widths[0] == pytest.approx(4, rel=0.05)
    go_to(page, 2)
    expect(page.locator(SENTENCE)).to_contain_text("4 times as long as another, is ready at 15 ms")
    page.get_by_label("Slow layer").uncheck()
    assert page.locator(SENTENCE).inner_html() == variant_of(widget)["sentences"][2]
    assert state_of(root)["slow"] == "0"


def test_scenarios(page, widget):
    for scenario in widget.data["stall"]["scenarios"]:
        page.get_by_role("radio", name=scenario["label"], exact=True).check()
        state = state_of(page.locator(ROOT))
        assert (state["scenario"], state["largestGapMs"]) == (scenario["name"], scenario["gapMs"])
        expect(page.locator("tr[aria-current]")).to_have_count(1)
        assert page.locator("tr[aria-current]").get_attribute("data-scenario") == scenario["name"]
        assert page.locator(STALL_SENTENCE).inner_text() == scenario["sentence"]
        bars = page.locator(".pd-chunk").evaluate_all("all => all.filter(e => e.getBBox().width > 0.1).length")
        assert f"{bars} ×" in scenario["row"][-1]
        assert page.locator("[data-bracket=gap] text").text_content() == scenario["gap"]["text"]


def test_questions_set_a_state_and_answer(page, widget):
    for question in widget.data["questions"]:
        page.get_by_role("button", name=question["ask"], exact=True).click()
        state, wanted = state_of(page.locator(ROOT)), question["set"]
        if question["scene"] == "schedule":
            assert (state["step"], state["slow"]) == (str(wanted["step"]), str(int(wanted["slow"])))
        else:
            assert state["scenario"] == wanted["scenario"]
        sentence = page.locator(SENTENCE if question["scene"] == "schedule" else STALL_SENTENCE)
        assert sentence.inner_text() == question["answer"]


def test_one_polite_sentence_a_step(page):
    page.evaluate("""() => {
      window.said = [0, 0];
      document.querySelectorAll("[aria-live=polite]").forEach((e, i) =>
        new MutationObserver(() => { window.said[i] += 1; }).observe(e, { childList: true }));
    }""")
    sentences = [go_to(page, step).locator(SENTENCE).inner_text() for step in range(STEPS + 1)]
    assert len(set(sentences)) == STEPS + 1
    assert page.evaluate("window.said") == [STEPS + 1, 0]


# --- controls


def test_buttons(page):
    root = page.locator(ROOT)
    for name, step in (
        ("Previous step", 14),
        ("First step", 0),
        ("Previous step", 0),
        ("Next step", 1),
        ("Last step", 15),
        ("Next step", 15),
    ):
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
    root = page.locator(ROOT)
    root.focus()
    page.keyboard.press("Control+Home")
    page.get_by_role("radio", name="whole").focus()
    page.keyboard.press("ArrowDown")
    page.get_by_label("Slow layer").focus()
    page.keyboard.press("Space")
    state = state_of(root)
    assert (state["step"], state["scenario"], state["slow"]) == ("15", "2048", "1")
    page.get_by_label("Step", exact=True).focus()
    page.keyboard.press("ArrowLeft")
    expect(root).to_have_attribute("data-step", "14")


def test_the_form_is_never_sent(page):
    go_to(page, 14)
    page.evaluate("document.querySelector('form').requestSubmit()")
    page.wait_for_timeout(200)
    expect(page.locator(ROOT)).to_have_attribute("data-step", "14")  # sent, it would load the page anew


def test_every_control_is_reached_by_tab_and_has_a_name(page):
    page.locator(ROOT).focus()
    names = []
    for _ in range(13):
        page.keyboard.press("Tab")
        names.append(
            page.evaluate("e => (e = document.activeElement).labels?.[0]?.innerText || e.ariaLabel || e.innerText")
        )
    assert names[:6] == ["First step", "Previous step", "Play", "Next step", "Last step", "Step"]
    assert names[6:] == [
        "Slow layer: layer 1 takes 4 times as long",
        "Does a longer prompt add layers?",
        "Where does TTFT end?",
        "A slow layer: who pays?",
        "whole",
        "Who waits for the newcomer’s prompt?",
        "What does a smaller chunk cost?",
    ]


def test_play_from_the_end_starts_at_zero_and_stops_at_the_end(open_page):
    page = open_page(timeline(tokens=TOKENS[:5], layers=1, slow_layer=0))
    page.evaluate("""() => {
      window.seen = [];
      new MutationObserver(all => all.forEach(m => window.seen.push(+m.target.dataset.step)))
        .observe(document.querySelector("[data-widget]"), { attributeFilter: ["data-step"] });
    }""")
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible(timeout=8000)
    assert page.evaluate("window.seen") == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("placeAt(0, 4)", {"phase": "idle", "pass": 0, "layer": "none"}),
        ("placeAt(4, 4)", {"phase": "prefill", "pass": 1, "layer": 3}),
        ("placeAt(5, 4)", {"phase": "prefill", "pass": 1, "layer": "choice"}),
        ("placeAt(6, 4)", {"phase": "decode", "pass": 2, "layer": 0}),
        ("[3, 4, 5].map(at => stateOf(at, 4))", ["done", "now", "future"]),
        (
            "['ArrowUp', 'ArrowLeft', 'Home', 'End', ' ', 'x'].map(k => stepForKey(k, 9, 9))",
            [9, 8, 0, 9, "play", None],
        ),
        ("delayFor([3, 3, 12, 1], 30)", [400, 400, 1600, 240]),
    ],
)
def test_pure_function(live, call, expected):
    assert live.evaluate(f"(() => {{ with (window.module) {{ return {call}; }} }})") == expected


# --- several, live, printed


def test_two_copies_do_not_disturb_each_other(open_page, widget):
    page = open_page(widget, timeline(scenario="512"))
    first, second = page.locator(ROOT).nth(0), page.locator(ROOT).nth(1)
    second.get_by_role("button", name="First step", exact=True).click()
    first.get_by_role("radio", name="chunks of 128").check()
    second.get_by_label("Slow layer").check()
    told = [[state_of(root)[name] for name in ("step", "slow", "scenario")] for root in (first, second)]
    assert told == [["15", "0", "128"], ["0", "1", "512"]]
    expect(second.get_by_role("radio", name="chunks of 512")).to_be_checked()


def test_live_in_jupyter_it_makes_its_own_root_and_talks_with_the_model(live):
    root = live.locator(ROOT)
    live.get_by_role("button", name="Previous step", exact=True).click()
    live.get_by_role("radio", name="chunks of 512").check()
    live.get_by_label("Slow layer").check()
    assert live.evaluate("['step', 'slow', 'scenario'].map(n => window.values[n])") == [14, True, "512"]
    live.evaluate("model.set('step', 3); model.set('slow', false); model.set('scenario', '128')")
    assert [state_of(root)[name] for name in ("step", "slow", "scenario", "live")] == ["3", "0", "128", "lab"]
    expect(live.get_by_role("radio", name="chunks of 128")).to_be_checked()
    live.evaluate("model.set('step', 99); model.set('step', undefined); model.set('scenario', 'x')")
    assert [state_of(root)[name] for name in ("step", "scenario")] == ["3", "128"]


def test_live_in_jupyter_its_keys_stay_with_it(live):
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
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("button:visible, input:visible").count() == 0
    expect(page.locator(ROOT)).to_have_attribute("data-step", "15")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(page.locator(ROOT)).to_have_attribute("data-step", "3")


def test_printing_stops_play(page):
    page.get_by_role("button", name="Play", exact=True).click()
    said = (
        "() => { dispatchEvent(new Event('beforeprint')); return document.querySelector('[data-act=play]').innerText; }"
    )
    assert page.evaluate(said) == "Play"


# --- reach


MOST = {"tokens": [f" token{i}" for i in range(10)], "prompt_len": 6, "layers": 12}


@pytest.mark.parametrize("options", [{}, MOST], ids=["plain", "most"])
@pytest.mark.parametrize("slow", [False, True])
def test_no_horizontal_scroll_and_no_small_text_on_a_phone(open_page, options, slow):
    page = open_page(timeline(**options, slow=slow), viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    sizes = page.locator("button, input[type=range], label").evaluate_all(
        "all => all.map(e => { const b = e.getBoundingClientRect(); return Math.min(b.width, b.height); })"
    )
    assert min(sizes) >= 24
    fonts = page.locator(f"{ROOT} :is(td, th, text, p, span, b)").evaluate_all(
        "all => all.map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(fonts) >= 11
    words = page.locator(".pd-lanes text").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect()).filter(b => b.left < 0 || b.right > innerWidth).length"
    )
    assert words == 0


@pytest.mark.parametrize("scenario", ["whole", "2048", "512", "128"])
@pytest.mark.parametrize("width", [330, 360, 1280])
def test_words_of_the_picture_stay_inside_of_it(open_page, scenario, width):
    page = open_page(timeline(scenario=scenario), viewport={"width": width, "height": 800})
    cut = page.locator(".pd-lanes").evaluate(
        """svg => { const box = svg.getBoundingClientRect(); return [...svg.querySelectorAll("text")].filter(e => {
          const { left, right } = e.getBoundingClientRect(); return left < box.left || right > box.right;
        }).length; }"""
    )
    assert cut == 0


@pytest.mark.parametrize("width", [600, 700, 1280])
def test_without_script_cards_stand_side_by_side_below_the_picture_or_in_a_column_beside_it(open_page, widget, width):
    page = open_page(widget, mount=False, head=NO_SCRIPT, viewport={"width": width, "height": 900})
    main, ttft, tpot = (
        page.locator(f"[data-scene=schedule] {part}").bounding_box()
        for part in (".pd-main", "[data-card=ttft]", "[data-card=tpot]")
    )
    bottom = main["y"] + main["height"]
    below = ttft["y"] == tpot["y"] >= bottom
    beside = ttft["x"] == tpot["x"] >= main["x"] + main["width"] and tpot["y"] < bottom
    assert below or beside
    assert max(ttft["height"], tpot["height"]) < 130
    upright = page.locator(".pd-layers bdi").first.evaluate("e => getComputedStyle(e).writingMode")
    assert upright == "horizontal-tb"


@pytest.mark.parametrize("options", [{}, MOST], ids=["plain", "most"])
@pytest.mark.parametrize("width", [360, 1280])
def test_times_fit_their_cells(open_page, options, width):
    page = open_page(timeline(**options, slow=True), viewport={"width": width, "height": 800})
    tight = page.locator("td[data-layer]").evaluate_all(
        "all => all.filter(e => e.scrollWidth > e.clientWidth + 1).length"
    )
    assert tight == 0


CONTRAST = """() => {
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (colour) => {
    const [r, g, b] = colour.match(/[0-9.]+/g).map(v => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (cell) => {
    const { color, backgroundColor } = getComputedStyle(cell);
    const [a, b] = [light(color), light(backgroundColor)];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  return Math.min(...[...document.querySelectorAll("td[data-layer]")].map(contrast));
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_times_are_readable_on_both_fills(open_page, widget, theme):
    head = f'<script>Object.assign(document.documentElement.dataset, {{mode: "auto", theme: "{theme}"}})</script>'
    assert open_page(widget, head=head).evaluate(CONTRAST) >= 4.5


def test_a_step_touches_few_elements(page):
    go_to(page, 6)
    page.evaluate("""() => {
      window.touched = new Set();
      new MutationObserver(all => all.forEach(m => window.touched.add(m.target)))
        .observe(document.querySelector("[data-widget]"), { attributes: true, childList: true, subtree: true });
    }""")
    page.get_by_role("button", name="Next step", exact=True).click()
    assert page.evaluate("window.touched.size") <= 8


def test_tables_and_picture_have_names_and_scoped_headers(page):
    expect(
        page.get_by_role("table", name="One legal order; a cell says when it is ready, in ms from the start")
    ).to_be_visible()
    expect(page.get_by_role("img", name="Tokens of each request over time")).to_be_visible()
    assert page.locator("th:not([scope])").count() == 0
