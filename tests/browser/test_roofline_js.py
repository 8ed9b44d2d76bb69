"""The roofline's module in a browser: its numbers against the cost model, and the mounted widget."""

import itertools
from collections.abc import Iterator

import pytest
from cost_examples import CONSTANTS, DEVICES, EACH, SHAPES
from playwright.sync_api import Browser, Page, expect
from widget_page import LIVE, PHONE, load_module

from prefill_decode.cost import DTYPES, IDEAL, Machine, ledger, request_time, work_of
from prefill_decode.widgets import Roofline
from prefill_decode.widgets.roofline_numbers import Choice
from prefill_decode.widgets.roofline_texts import attributes, places, texts

ROOT = '[data-widget="roofline"]'
JUDGED = {name: f"median error {i} %" if i else None for i, name in enumerate(DEVICES)}
CLASSES = {name: f"class {i}" if i else None for i, name in enumerate(DEVICES)}
LENGTHS, BATCHES = (1, 5, 317, 2048, 8191, 131_072), (1, 7, 300, 4096)


def roofline(**options) -> Roofline:
    given = {"shapes": SHAPES, "devices": DEVICES, "constants": EACH, "judged": JUDGED, "classes": CLASSES}
    return Roofline(**{**given, **options})


def choices() -> list[Choice]:
    """Return every choice of the grid that a device has a rate for."""
    dtypes = ("float16", "int8", "int4", "float32")
    grid = itertools.product(SHAPES, DEVICES, dtypes, LENGTHS, BATCHES)
    return [Choice(*chosen) for chosen in grid if chosen[2] != "float32" or DEVICES[chosen[1]].get("float32_peak")]


@pytest.fixture
def page(open_page) -> Page:
    return open_page(roofline())


@pytest.fixture(scope="module")
def module(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    page.set_content("<body></body>")
    load_module(page, "roofline")
    yield page
    page.close()


def state_of(page: Page, nth: int = 0) -> dict:
    return page.locator(ROOT).nth(nth).evaluate("e => ({...e.dataset})")


def sentence(page: Page):
    return page.locator(".pd-sentence")


def machine_of(choice: Choice) -> Machine:
    device = DEVICES[choice.device]
    rate = device["float32_peak"] if DTYPES[choice.dtype].arithmetic == "float32" else device["peak"]
    return Machine(rate, device["bandwidth"])


# --- numbers


def test_flops_bytes_and_times_are_those_of_the_cost_model(module):
    asked = choices()
    found = module.evaluate(
        """([data, choices]) => choices.map((choice) => {
          const r = window.module.readingOf(data, choice);
          const numbers = ({ work, intensity, least, about }) =>
            [work.flops, work.weights, work.read, work.written, intensity, least, about];
          return [...numbers(r.prefill), ...numbers(r.decode), r.ttft, r.tpot, r.tpotLeast, r.whole];
        })""",
        [roofline().data, [vars(choice) for choice in asked]],
    )
    assert len(found) == len(asked) > 500
    for choice, numbers in zip(asked, found, strict=True):
        assert numbers == pytest.approx(expected_numbers(choice), rel=1e-12, abs=0), choice


def expected_numbers(choice: Choice) -> list[float]:
    shape, machine, n = SHAPES[choice.model], machine_of(choice), choice.prompt_len
    common = {"batch": choice.batch, "dtype": choice.dtype}
    asked = {**common, "prompt_len": n, "new_tokens": 128}
    about, least = (request_time(shape, machine, reached, **asked) for reached in (EACH[choice.device], IDEAL))
    numbers = []
    for queries, keys in ((n, n), (1, n + 1)):
        counted, work = ledger(shape, queries, keys, **common), work_of(shape, queries, keys, **common)
        moved, reached = counted.bytes, EACH[choice.device]
        numbers += [counted.flops.total, moved.weights, moved.kv_read, moved.kv_written, counted.intensity]
        numbers.append(max(work.flops / machine.peak, work.bytes / machine.bandwidth))
        slower = max(work.flops / machine.peak / reached.compute, work.bytes / machine.bandwidth / reached.memory)
        waits = reached.overhead if keys > n else reached.prefill_overhead
        numbers.append(shape.layers * waits + slower)
    return [*numbers, about.ttft, about.tpot, least.tpot, about.seconds]


def test_texts_places_and_attributes_are_those_of_the_picture(module):
    widget, asked = roofline(), choices()[::7]
    found = module.evaluate(
        """([data, choices]) => choices.map((choice) => {
          const { readingOf, textsOf, placesOf, attributesOf } = window.module;
          const reading = readingOf(data, choice);
          return [textsOf(data, choice, reading), placesOf(data, reading), attributesOf(choice, reading)];
        })""",
        [widget.data, [vars(choice) for choice in asked]],
    )
    for choice, (said, put, told) in zip(asked, found, strict=True):
        machine, reading = widget._read(widget.data, choice)
        assert said == texts(widget.data, choice, reading)
        assert put == places(widget.data, choice, reading, peak=machine.peak, bandwidth=machine.bandwidth)
        assert {name: str(value) for name, value in told.items()} == {
            f"data-{name}": value for name, value in attributes(choice, reading).items()
        }


def test_slider_has_every_small_number_and_both_ends(module):
    places = module.evaluate("window.module.stops(131072)")
    assert (places[:9], places[-1]) == ([1, 2, 3, 4, 5, 6, 7, 8, 9], 131_072)
    assert places == sorted(set(places))
    nearest = "(n) => ((places) => places[window.module.nearestStop(n, places)])(window.module.stops(131072))"
    assert module.evaluate(f"[1, 5, 2048, 131072].map({nearest})") == [1, 5, 2048, 131_072]


@pytest.mark.parametrize("text", ["", " ", "0", "-3", "1.5", "131073", "1e9", "abc", "Infinity"])
def test_a_wrong_number_is_complained_of(module, text):
    assert module.evaluate("text => window.module.complaint('prompt_len', text, 2048)", text) == (
        "Prompt length: expected a whole number from 1 to 131,072; it stays 2,048."
    )


# --- the mounted widget


def test_mounting_changes_no_word_and_no_place(open_page):
    seen = [
        open_page(roofline(), mount=mount)
        .locator(ROOT)
        .evaluate(
            """root => [...root.querySelectorAll("[data-text], [data-place]")].map((e) => {
              const box = e.getBoundingClientRect();
              const text = e.dataset.text ? e.textContent : "";
              return [text, box.x, box.y, box.width, box.height, e.getAttribute("style")];
            })"""
        )
        for mount in (False, True)
    ]
    assert seen[0] == seen[1]
    assert len(seen[0]) > 40


def test_controls_move_points_and_numbers(page):
    page.get_by_label("Model", exact=True).select_option("SmolLM2-135M")
    page.get_by_label("Device", exact=True).select_option("A100")
    page.get_by_label("Dtype", exact=True).select_option(label="32 bits")
    page.get_by_label("Prompt length", exact=True).fill("100")
    page.get_by_label("Batch", exact=True).fill("4")
    state = state_of(page)
    assert [state[name] for name in ("model", "device", "dtype", "promptLen", "batch")] == [
        "SmolLM2-135M",
        "A100",
        "float32",
        "100",
        "4",
    ]
    expected = ledger(SHAPES["SmolLM2-135M"], 100, 100, batch=4, dtype="float32").intensity
    assert float(state["prefillIntensity"]) == pytest.approx(expected, rel=1e-5)
    expect(sentence(page)).to_contain_text("Prefill of 4 prompts of 100 tokens")
    expect(page.locator(".pd-caption")).to_have_text(
        "SmolLM2-135M on A100 · 32 bits · 4 prompts of 100 tokens, 128 new tokens each"
    )
    expect(page.get_by_label("Prompt length, slider")).to_have_attribute("aria-valuetext", "100")


def test_sliders_step_by_key(page):
    slider = page.get_by_label("Prompt length, slider")
    slider.focus()
    page.keyboard.press("Home")
    assert state_of(page)["promptLen"] == "1"
    page.keyboard.press("ArrowRight")
    assert state_of(page)["promptLen"] == "2"
    expect(page.get_by_label("Prompt length", exact=True)).to_have_value("2")
    page.keyboard.press("End")
    assert state_of(page)["promptLen"] == "131072"


@pytest.mark.parametrize("text", ["", "0", "4097", "2.5"])
def test_a_wrong_number_loses_nothing(page, text):
    box = page.get_by_label("Batch", exact=True)
    before = state_of(page)
    box.fill(text)
    expect(page.get_by_role("alert")).to_have_text("Batch: expected a whole number from 1 to 4,096; it stays 1.")
    expect(box).to_have_attribute("aria-invalid", "true")
    assert state_of(page) == before
    box.blur()
    expect(box).to_have_value("1")
    box.fill("8")
    expect(page.locator(".pd-alert")).to_have_text("")
    assert state_of(page)["batch"] == "8"


@pytest.mark.parametrize("typed", ["131073", "1e9", "2.5", "-7", "0", "12e"])
def test_a_number_typed_wrong_leaves_what_was_before_the_typing(page, typed):
    box = page.get_by_label("Prompt length", exact=True)
    before = state_of(page)
    box.focus()
    page.keyboard.press("Control+a")
    page.keyboard.type(typed)
    page.keyboard.press("Tab")
    assert state_of(page) == before
    expect(box).to_have_value("2048")
    expect(box).to_have_attribute("aria-invalid", "false")
    alert = page.get_by_role("alert")
    expect(alert).to_have_text("Prompt length: expected a whole number from 1 to 131,072; it stays 2,048.")
    expect(alert).to_be_visible()
    page.keyboard.press("ArrowRight")  # the slider, by which the next good number comes
    expect(page.locator(".pd-alert")).to_have_text("")
    assert state_of(page)["promptLen"] != "2048"


def test_a_number_is_settled_by_enter_and_goes_back_no_further(page):
    box = page.get_by_label("Prompt length", exact=True)
    box.focus()
    for typed, held, shown in (("300", "300", "300"), ("2.5", "300", "300"), ("00012", "12", "12")):
        page.keyboard.press("Control+a")
        page.keyboard.type(typed)
        page.keyboard.press("Enter")
        assert state_of(page)["promptLen"] == held
        expect(box).to_have_value(shown)
    expect(page.locator(".pd-alert")).to_have_text("")


def test_a_device_without_the_rate_falls_back_to_16_bits(page):
    page.get_by_label("Device", exact=True).select_option("A100")
    page.get_by_label("Dtype", exact=True).select_option("float32")
    page.get_by_label("Device", exact=True).select_option("H100 SXM")
    assert state_of(page)["dtype"] == "float16"
    expect(sentence(page)).to_contain_text("H100 SXM has no rate in 32 bits: 16 bits instead.")
    expect(page.locator("option[value=float32]")).to_be_disabled()


@pytest.mark.parametrize(
    ("name", "state", "words"),
    [
        ("A 5-token prompt: what binds?", {"promptLen": "5", "prefillBound": "memory"},
         ["4.72 FLOP per byte", "the ridge is 295", "TTFT, 4.48 ms at least, is about one TPOT, 4.48 ms"]),
        ("Which prompt stands at the ridge?", {"promptLen": "317", "prefillBound": "compute"},
         ["A prompt of 317 tokens: 296 FLOP per byte", "4.51 ms"]),
        ("Can a batch stay memory-bound for ever?", {"promptLen": "8192", "batch": "58", "decodeBound": "memory"},
         ["tends to 18.0, below the ridge of 295", "No batch is compute-bound"]),
        ("What do int4 weights speed up?", {"dtype": "int4", "promptLen": "2048"},
         ["a token goes from 4.56 ms to 1.20 ms", "stays at 30.0 ms"]),
        ("A batch that does not fit?", {"promptLen": "8192", "batch": "59", "unfit": ""},
         ["59 requests of 8,192 tokens and 127 more entries for 128 new tokens do not fit", "58 do"]),
    ],
)  # fmt: skip
def test_questions_set_the_controls_and_answer(page, name, state, words):
    button = page.get_by_role("button", name=name)
    button.click()
    assert state_of(page).items() >= state.items()
    for part in words:
        expect(sentence(page)).to_contain_text(part)
    expect(button).to_have_attribute("aria-pressed", "true")
    page.get_by_label("Batch", exact=True).fill("2")
    expect(page.locator("[aria-pressed=true]")).to_have_count(0)


def test_questions_stay_true_on_a_device_without_memory_to_wait_for(open_page):
    page = open_page(roofline(device="Slow chip"))
    answers = []
    for button in page.locator("[data-ask]").all():
        button.click()
        answers.append(sentence(page).inner_text())
    assert "compute binds all the same" in answers[0]
    assert "A prompt of 1 token: " in answers[1]
    assert "above the ridge of 0.750" in answers[2]
    assert "a token stays at 53.7 ms at least: the arithmetic is still in 16 bits" in answers[3]
    assert not any(word in " ".join(answers) for word in ("NaN", "Infinity", "undefined", "null"))


def test_what_does_not_fit_is_told(page):
    page.get_by_label("Prompt length", exact=True).fill("131072")
    page.get_by_label("Batch", exact=True).fill("4096")
    expect(page.locator(".pd-unfit")).to_contain_text("At most 3 such requests fit")
    page.get_by_label("Batch", exact=True).fill("3")
    expect(page.locator(".pd-unfit")).to_have_text("")


def test_two_copies_do_not_disturb_each_other(open_page):
    page = open_page(roofline(), roofline(prompt_len=7))
    page.get_by_label("Batch", exact=True).nth(1).fill("9")
    assert [(state_of(page, i)["promptLen"], state_of(page, i)["batch"]) for i in (0, 1)] == [("2048", "1"), ("7", "9")]


def test_live_in_a_notebook_both_sides_follow_each_other(module):
    widget = roofline(constants=CONSTANTS)
    values = {
        name: getattr(widget, name) for name in ("data", "markup", "model", "device", "dtype", "prompt_len", "batch")
    }
    module.evaluate(LIVE, values)
    assert module.locator("script").count() == 1  # the test's own: the controls have left their wrapping
    module.get_by_label("Batch", exact=True).fill("3")
    assert module.evaluate("window.values.batch") == 3
    module.evaluate("window.model.set('prompt_len', 5)")
    assert state_of(module)["promptLen"] == "5"
    module.evaluate("window.unmount()")
    module.get_by_label("Batch", exact=True).fill("4")
    assert state_of(module)["batch"] == "3"
    module.evaluate("window.model.set('prompt_len', 9)")
    assert state_of(module)["promptLen"] == "5"


def test_keys_stay_in_the_widget(page):
    page.evaluate("window.heard = []; addEventListener('keydown', (e) => window.heard.push(e.key))")
    page.get_by_label("Batch", exact=True).focus()
    for key in ("x", "ArrowUp", "Control+k"):
        page.keyboard.press(key)
    assert page.evaluate("window.heard") == ["Control", "k"]


def test_a_phone_shows_all_of_it(open_page):
    page = open_page(roofline(), viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    sizes = page.locator("button, select, input").evaluate_all(
        "all => all.map(e => { const b = e.getBoundingClientRect(); return Math.min(b.width, b.height); })"
    )
    assert min(sizes) >= 24
    letters = page.locator("svg text, td, th, p, small").evaluate_all(
        "all => all.map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(letters) >= 11
    for button in page.locator("[data-ask]").all():
        button.click()
        edges = page.locator("svg text").evaluate_all(
            "all => all.map(e => e.getBoundingClientRect()).flatMap(b => [b.left, b.right])"
        )
        assert min(edges) >= 8
        assert max(edges) <= PHONE["width"] - 8


@pytest.mark.parametrize("width", [360, 1280])
def test_names_of_the_points_never_cover_each_other(open_page, width):
    page = open_page(roofline(), viewport={"width": width, "height": 800})
    for model, device, n, batch in itertools.product(SHAPES, DEVICES, (1, 5, 100, 317, 8192), (1, 30, 300, 4096)):
        page.locator(ROOT).evaluate(
            """(root, choice) => { for (const [name, value] of Object.entries(choice)) {
              const input = root.querySelector(`select[name=${name}], input[type=number][name=${name}]`);
              input.value = value;
              input.dispatchEvent(new Event("input", { bubbles: true }));
            } }""",
            {"model": model, "device": device, "prompt_len": n, "batch": batch},
        )
        boxes = page.locator(".pd-name, .pd-at").evaluate_all(
            "all => all.map(e => e.getBoundingClientRect()).map(b => [b.left, b.top, b.right, b.bottom])"
        )
        decode, prefill = boxes[:2], boxes[2:]
        for (l1, t1, r1, b1), (l2, t2, r2, b2) in itertools.product(decode, prefill):
            overlap = min(r1, r2) - max(l1, l2) > 0 and min(b1, b2) - max(t1, t2) > 3
            assert not overlap, (model, device, n, batch)


CROSSED = """() => {
  const box = (e) => e.getBoundingClientRect();
  const seen = [...document.querySelectorAll("svg text:not(.pd-name, .pd-at)")]
    .filter(e => getComputedStyle(e).visibility === "visible");
  const lines = [...document.querySelectorAll(".pd-drop, .pd-ridge, line.pd-limit, .pd-roof")].map(box);
  const cross = (a, b) => { // every line rises to the right or stands upright
    const [left, right] = [Math.max(a.left, b.left), Math.min(a.right, b.right)];
    const y = (x) => b.bottom - b.height * (x - b.left) / b.width;
    const [low, high] = b.width > 1 ? [y(left), y(right)] : [b.bottom, b.top];
    return left <= right && high < a.bottom - 2 && low > a.top + 2;
  };
  return seen.filter(e => lines.some(b => cross(box(e), b))).map(e => e.textContent);
}"""


COVERED = """() => {
  const seen = [...document.querySelectorAll("svg text:is(.pd-axis, :not(.pd-scale *))")]
    .filter(e => getComputedStyle(e).visibility === "visible").map(e => [e, e.getBoundingClientRect()]);
  const shared = (a, b, low, high) => Math.min(a[high], b[high]) - Math.max(a[low], b[low]);
  return seen.flatMap(([e, a], i) => seen.slice(i + 1)
    .filter(([, b]) => shared(a, b, "left", "right") > 0 && shared(a, b, "top", "bottom") > 4)
    .map(([other]) => [e.textContent, other.textContent]));
}"""


@pytest.mark.parametrize("width", [360, 720, 1280])
def test_no_line_crosses_the_words_of_the_ridge_and_of_the_limit(open_page, width):
    page = open_page(roofline(), viewport={"width": width, "height": 800})
    states = [lambda: None, *(ask.click for ask in page.locator("[data-ask]").all())]
    lengths = page.get_by_label("Prompt length", exact=True)
    states.append(lambda: page.get_by_label("Batch", exact=True).fill("1"))
    states += [lambda n=n: lengths.fill(str(n)) for n in (50, 200, 600, 1000, 30_000)]
    for show in states:
        show()
        assert page.evaluate(CROSSED) == []
        assert page.evaluate(COVERED) == []


def test_words_stand_over_the_lines_and_break_them(page):
    order = page.locator("svg").evaluate(
        """svg => [...svg.querySelectorAll("text, .pd-drop, .pd-ridge, line.pd-limit, .pd-roof")]
          .filter(e => !e.closest(".pd-scale")).map(e => e.tagName)"""
    )
    assert order == sorted(order)  # every line before every text
    halo = page.locator(".pd-name").first.evaluate("e => parseFloat(getComputedStyle(e).strokeWidth)")
    assert halo >= 6  # wider than a space between words


def test_print_shows_no_control(page):
    page.emulate_media(media="print")
    assert page.locator("button:visible, select:visible, input:visible").count() == 0
    expect(page.locator(f"{ROOT} svg")).to_be_visible()
