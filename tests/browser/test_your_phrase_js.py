"""A phrase of the reader's own: the real model on the built landing page, and a tiny one where things go wrong."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from grid_fixture import CELLS, CURRENT, cells_at
from phrase_fixture import PLACE, for_file, small_page, tiny_model
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect
from server import Answer, Host, hosting
from test_access import EVERYTHING, expect_nothing
from widget_page import PHONE, load_module

from prefill_decode import smollm2
from prefill_decode.generate import generate
from prefill_decode.widgets.your_phrase import MAX_PROMPT

ROOT = '[data-widget="your-phrase"]'
LANDING = "/book/index.html"
UNTITLED = {**EVERYTHING, "rules": {**EVERYTHING["rules"], "document-title": {"enabled": False}}}  # the small page
PARIS = "The capital of France is"
SLOW = 60_000  # milliseconds until the real model is loaded, or has run; nothing is timed


# --- one widget on one page


@dataclass
class Phrase:
    """The widget on a page, as a reader finds it."""

    page: Page

    @property
    def root(self) -> Locator:
        return self.page.locator(ROOT)

    @property
    def grid(self) -> Locator:
        return self.root.locator('[data-widget="attention-grid"]')

    @property
    def text(self) -> Locator:
        return self.root.get_by_role("textbox", name="Your phrase", exact=True)

    @property
    def new_tokens(self) -> Locator:
        return self.root.get_by_role("spinbutton", name="New tokens", exact=True)

    @property
    def recompute(self) -> Locator:
        return self.root.locator(".pd-controls").get_by_role("checkbox")

    @property
    def file(self) -> Locator:
        return self.root.get_by_label("Choose the file", exact=True)

    def button(self, name: str) -> Locator:
        return self.root.get_by_role("button", name=name, exact=True)

    def press(self, name: str) -> None:
        """Click a button whatever it says of itself: one that is off answers with a line."""
        self.button(name).click(force=True)

    def expect_state(self, state: str) -> None:
        """Wait for a state; one that went wrong is not waited for."""
        expect(self.root).to_have_attribute("data-state", re.compile(f"^({state}|error)$"), timeout=SLOW)
        if self.state == "error" != state:
            pytest.fail(f"expected {state}, found an error: {self.line}")

    @property
    def state(self) -> str:
        return self.root.get_attribute("data-state")

    @property
    def line(self) -> str:
        return self.root.get_by_role("status").inner_text()

    def expect_line(self, state: str, start: str) -> None:
        """Wait for a state whose line begins like this."""
        self.expect_state(state)
        expect(self.root.get_by_role("status")).to_have_text(re.compile(f"^{re.escape(start)}"))

    def load(self) -> None:
        """Load the model; what is kept for the next visit is then kept."""
        self.press("Load the model")
        self.expect_state("ready")
        if ", and kept" in self.line:
            self.page.evaluate("navigator.serviceWorker.ready.then(() => null)")

    def run(self, text: str | None = None, new_tokens: int | None = None, *, recompute: bool = False) -> dict[str, str]:
        """Run to the end and return the root's attributes."""
        if text is not None:
            self.text.fill(text)
        if new_tokens is not None:
            self.new_tokens.fill(str(new_tokens))
        self.recompute.set_checked(recompute)
        self.press("Run")
        self.expect_state("done")
        return self.told()

    def told(self) -> dict[str, str]:
        return self.root.evaluate("e => ({...e.dataset})")


def ids_of(told: dict[str, str]) -> tuple[list[int], list[int]]:
    return [int(i) for i in told["promptIds"].split()], [int(i) for i in told["generatedIds"].split()]


# What the widget says while it works, and the rows that its grid has shown: the next pass may follow at once.
LISTEN = """root => {
  window.said = [];
  window.steps = [];
  const note = () => {
    const line = root.querySelector(".pd-status").textContent;
    const step = root.querySelector('.pd-place [data-step]')?.dataset.step;
    if (window.said.at(-1) !== line) window.said.push(line);
    if (step && window.steps.at(-1) !== Number(step)) window.steps.push(Number(step));
  };
  window.listener?.disconnect();
  window.listener = new MutationObserver(note);
  const all = { subtree: true, childList: true, characterData: true, attributeFilter: ["data-step"] };
  window.listener.observe(root, all);
}"""


# --- the real model on the landing page


@pytest.fixture(scope="module")
def ready(shared_new_page: Callable[..., Page], site: str) -> Phrase:
    """Return the widget of the landing page with the model loaded, by keyboard: tests leave it ready to run."""
    phrase = Phrase(shared_new_page(viewport={"width": 1280, "height": 900}))
    phrase.page.goto(site + LANDING)
    phrase.text.focus()
    for _ in range(3):  # New tokens, Recompute, Load
        phrase.page.keyboard.press("Tab")
    phrase.page.keyboard.press("Enter")
    phrase.expect_state("ready")
    assert phrase.line.startswith("The model is ready, and kept: ")
    return phrase


def test_by_keyboard_it_makes_what_python_makes(ready, real_model, tokenizer):
    keyboard = ready.page.keyboard
    ready.text.focus()
    keyboard.press("ControlOrMeta+a")
    keyboard.type(PARIS)
    keyboard.press("Tab")
    keyboard.type("4")
    for _ in range(3):  # Recompute, Load, Run
        keyboard.press("Tab")
    ready.root.evaluate(LISTEN)
    keyboard.press("Space")
    ready.expect_state("done")
    prompt, generated = ids_of(ready.told())
    assert prompt == tokenizer.encode(PARIS)
    assert prompt + generated == generate(real_model, prompt, 4).ids
    assert ready.page.evaluate("steps") == [5, 6, 7, 8]  # the prompt's rows when prefill ends, then a row a pass
    assert ready.root.locator(".pd-text").inner_text() == f"{PARIS} Paris.↵↵"
    said = ready.page.evaluate("said")
    assert said[0] == "Prefill: all rows of the phrase in one pass …"
    assert said[-1] == "Done. Now tick “Without a cache” and run again: from which pass on do the times part?"


def expect_contract(grid: Locator, step: int, steps: int, prompt_len: int) -> None:
    told = grid.evaluate("e => ({...e.dataset})")
    expected = {
        "steps": steps, "step": step, "promptLen": prompt_len, "pairs": step * (step + 1) // 2, "cache": step,
        "phase": "idle" if step == 0 else "prefill" if step <= prompt_len else "decode",
    }  # fmt: skip
    assert {name: told[name] for name in expected} == {name: str(value) for name, value in expected.items()}
    assert grid.evaluate(CELLS) == cells_at(step, steps, prompt_len)
    assert grid.evaluate(CURRENT) == ([str(step - 1)] if step else [])


def test_its_grid_keeps_the_contract(ready):
    ready.run(PARIS, 2)
    grid, address = ready.grid, ready.page.url
    expect_contract(grid, 6, 6, 5)
    for name, step in [("First step", 0), ("Next step", 1), ("Last step", 6), ("Previous step", 5)]:
        grid.get_by_role("button", name=name, exact=True).click()
        expect_contract(grid, step, 6, 5)
    assert ready.page.url == address  # which is the phrase's, not the grid's
    grid.get_by_role("button", name="Last step", exact=True).click()
    assert grid.locator("[data-chip]").all_inner_texts() == ["The", "·capital", "·of", "·France", "·is", "·Paris", "."]
    rows = grid.locator("tbody tr")
    sums = [sum(map(float, filter(None, row.locator("td").all_inner_texts()))) for row in rows.all()]
    assert sums == pytest.approx([1] * 6, abs=0.03)  # of weights with two digits


def test_without_a_cache_the_same_tokens_come_and_the_passes_stand_side_by_side(ready):
    kept = ready.run("A second phrase", 3)
    recomputed = ready.run("A second phrase", 3, recompute=True)
    assert ids_of(kept) == ids_of(recomputed)
    for told in (kept, recomputed):
        assert float(told["ttftMs"]) > 0
        assert float(told["tpotMs"]) > 0
    expect(ready.grid).to_have_attribute("data-without-cache", "")
    heads = ready.root.locator(".pd-passes th[scope=col]").all_text_contents()
    assert heads == ["pass", "With a cache", "Without a cache"]
    rows = ready.root.locator(".pd-passes small").all_text_contents()
    assert rows == ["3 rows", "3 rows", "1 row", "4 rows", "1 row", "5 rows"]
    ways = ready.root.locator(".pd-strips p").all_inner_texts()
    took = r"{}: .+ to the first token \(TTFT\), then .+ a token \(TPOT\); {} rows, {} query–key pairs a head"
    for said, numbers in zip(ways, [("With a cache", 5, 15), ("Without a cache", 12, 31)], strict=True):
        assert re.fullmatch(took.format(*numbers), said)
    assert re.match(r"Done\. Pass 3: 5 rows instead of 1, [\d.]+ times as long\.", ready.line)
    pieces = ready.root.locator(".pd-strip i").evaluate_all("all => all.map(e => e.dataset.phase)")
    assert pieces == ["prefill", "decode", "decode", "recomputed", "recomputed", "recomputed"]


def test_a_run_again_keeps_the_head_that_the_reader_chose(ready):
    ready.run(PARIS, 2)
    ready.grid.get_by_label("Layer", exact=True).select_option("3")
    ready.grid.get_by_label("Head", exact=True).select_option("7")
    ready.run(PARIS, 2, recompute=True)
    expect(ready.grid.locator("caption")).to_contain_text("layer 3, head 7")


def test_one_token_has_no_later_one(ready):
    told = ready.run(PARIS, 1)
    assert (float(told["ttftMs"]) > 0, told["tpotMs"]) == (True, "")
    said = ready.root.locator(".pd-strips p").all_inner_texts()
    assert [("TPOT" in line, "not run yet" in line) for line in said] == [(False, False), (False, True)]
    assert ready.line == "Done. One token takes one pass, with a cache or without. Ask for more."


# In the page, so that no click comes late: another address, Run again, Stop, as soon as a second token is there.
INTERRUPT = """root => new Promise((resolve) => {
  const observer = new MutationObserver(() => {
    if (root.dataset.generatedIds.split(" ").length < 2) return;
    observer.disconnect();
    location.hash = "#phrase=other";
    for (const act of ["run", "stop"]) root.querySelector(`[data-act=${act}]`).click();
    resolve();
  });
  observer.observe(root, { attributeFilter: ["data-generated-ids"] });
})"""


def test_a_second_click_says_so_and_stop_keeps_what_was_drawn(ready):
    ready.text.fill("Once upon a time")
    ready.new_tokens.fill("16")
    ready.recompute.check()  # the slower way: there is time to stop it
    ready.root.evaluate(LISTEN)
    ready.press("Run")
    ready.root.evaluate(INTERRUPT)
    ready.expect_line("ready", "Stopped; what was drawn stays.")
    expect(ready.text).to_have_value("Once upon a time")  # an address that comes while it runs is left
    assert "Still running, one phrase at a time: Stop ends it." in ready.page.evaluate("said")
    _, generated = ids_of(ready.told())
    assert 2 <= len(generated) < 16
    ready.grid.get_by_label("Without a cache", exact=True).uncheck()
    expect_contract(ready.grid, 3 + len(generated), 19, 4)


HARD = {
    "markup": "</textarea><script>throw 1</script><b>&amp;",
    "emoji": "👩\u200d👩\u200d👧 🏖\ufe0f",
    "right to left": "مرحبا \u202eabc\u202c",
    "special tokens": "a<|im_end|>b<|endoftext|>",
    "white space": " a\t\n\n b \t",
    "combining": "e\u0301\u0301 \u0301",
}


@pytest.mark.parametrize("text", HARD.values(), ids=HARD)
def test_hard_texts_run_as_in_python(ready, real_model, tokenizer, text):
    prompt, generated = ids_of(ready.run(text, 1))
    assert prompt == tokenizer.encode(text)
    assert generated == generate(real_model, prompt, 1).ids[len(prompt) :]
    assert ready.root.locator("script:not([type])").count() == 0


def test_half_a_surrogate_pair_counts_as_one_unknown_character(ready, tokenizer):
    ready.text.evaluate("e => { e.value = 'a' + String.fromCharCode(0xd800) + 'b'; }")
    prompt, _ = ids_of(ready.run(new_tokens=1))
    assert prompt == tokenizer.encode("a\ud800b") == tokenizer.encode("a\ufffdb")
    assert "phrase=a%EF%BF%BDb&" in ready.page.url


def test_as_many_rows_as_are_promised(ready):
    told = ready.run(" x" * MAX_PROMPT, 1)
    assert len(ids_of(told)[0]) == MAX_PROMPT
    expect(ready.grid.locator("tr[data-row]")).to_have_count(MAX_PROMPT)  # drawn in portions
    expect_contract(ready.grid, MAX_PROMPT, MAX_PROMPT, MAX_PROMPT)


REFUSED = {
    "empty": ("", "1", "The phrase is empty: type a word or two."),
    "49 tokens": (" x" * 49, "1", "The phrase has 49 tokens, expected at most 48 tokens: shorten it."),
    "10,000 characters": (
        "word " * 2000,
        "1",
        "The phrase has 10,000 characters, expected at most 48 tokens: shorten it.",
    ),
    **{
        f"{words} new tokens": (PARIS, words, "New tokens: expected a whole number from 1 to 16.")
        for words in ("0", "17", "", "2.5", "-1", "1e9")
    },
}


@pytest.mark.parametrize(("text", "new_tokens", "line"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_run_is_refused_in_a_line(ready, text, new_tokens, line):
    before = ready.run(PARIS, 1)
    drawn = ready.grid.evaluate(CELLS)
    ready.text.fill(text)
    ready.new_tokens.fill(new_tokens)
    ready.press("Run")
    ready.expect_line("error", line)
    assert ready.told() == {**before, "state": "error"}  # what was drawn stays
    assert ready.grid.evaluate(CELLS) == drawn


def test_the_address_holds_the_phrase_that_ran(ready):
    text = "1 + 1 =\t50 %\n#ß&"
    ready.run(text, 2)
    fragment = ready.page.url.partition("#")[2]
    entries = dict(part.split("=", 1) for part in fragment.split("&"))
    assert (unquote(entries["phrase"]), entries["new"], entries["cache"]) == (text, "2", "1")
    ready.page.evaluate("location.hash = '#phrase=other&new=7&cache=0'")
    expect(ready.text).to_have_value("other")
    expect(ready.new_tokens).to_have_value("7")
    expect(ready.recompute).to_be_checked()


def test_enter_belongs_to_the_text_and_runs_with_control(ready):
    ready.new_tokens.fill("1")
    ready.recompute.uncheck()
    ready.text.fill("a")
    ready.text.press("End")
    ready.text.press("Enter")
    ready.text.press("b")
    expect(ready.text).to_have_value("a\nb")
    ready.text.press("Control+Enter")
    expect(ready.root).to_have_attribute("data-prompt-ids", re.compile(r"^\d+ \d+ \d+$"), timeout=SLOW)
    ready.expect_state("done")
    assert len(ids_of(ready.told())[0]) == 3


def test_loaded_twice_is_loaded(ready):
    ready.run("a", 1)
    ready.press("Load the model")
    assert (ready.state, ready.line) == ("done", "The model is loaded: press Run.")


# --- before anything is loaded


def test_nothing_is_fetched_until_it_is_asked_for(page, site):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(site + LANDING)
    page.wait_for_load_state("networkidle")
    phrase = Phrase(page)
    told = phrase.told()
    assert {name: told[name] for name in ("state", "promptIds", "generatedIds", "ttftMs", "tpotMs")} == {
        "state": "idle", "promptIds": "", "generatedIds": "", "ttftMs": "", "tpotMs": "",
    }  # fmt: skip
    assert f"98 MB, once, from {site.removeprefix('http://')}" in phrase.line
    assert phrase.line.endswith("Nothing is loaded yet.")
    for control in (
        phrase.text,
        phrase.new_tokens,
        phrase.recompute,
        *map(phrase.button, ("Load the model", "Run", "Stop")),
    ):
        expect(control).to_be_visible()
    expect(phrase.file).to_be_hidden()
    phrase.press("Run")
    assert phrase.line == "Load the model first."
    phrase.press("Stop")
    assert phrase.state == "idle"
    assert [url for url in asked if "gguf" in url or "offline" in url] == []
    assert page.evaluate("caches.keys()") == []
    assert page.evaluate("navigator.serviceWorker.getRegistrations().then(all => all.length)") == 0


ADDRESSES = ["a b", "1+1", "50 %", "ünï 日本 👩\u200d👧", "a\tb\n\nc ", "#&=?", "<b>", "%41", ""]


@pytest.mark.parametrize("text", ADDRESSES, ids=repr)
def test_a_phrase_in_the_address_fills_the_text_area(visit, text):
    phrase = visit(address=f"#step=2&phrase={quote(text, safe='+')}&new=7")
    expect(phrase.text).to_have_value(text)
    expect(phrase.new_tokens).to_have_value("7")
    assert phrase.line.startswith("This phrase came with the link.")


@pytest.mark.parametrize("address", ["#new=x", "#new=", "#prefill", "#new=2.5", "#new=-1"])
def test_nonsense_in_the_address_is_ignored(visit, address):
    phrase = visit(address=address)
    assert (phrase.text.input_value(), phrase.new_tokens.input_value()) == ("ab c", "3")


# --- what goes wrong with a file, tried with a tiny one


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return tiny_model(tmp_path_factory.mktemp("tiny") / "tiny.gguf")


@pytest.fixture
def host(html: Path, tiny: bytes) -> Iterator[Host]:
    """Serve the built pages, a small page that holds the widget alone, and the tiny model as its file."""
    with hosting(html) as host:
        host.answers = {"/small.html": Answer(small_page(tiny).encode()), PLACE: Answer(tiny)}
        yield host


@pytest.fixture
def new_visitor(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Return a function that opens a page of a context of its own; a failed request may say so on the console."""
    contexts, said = [], []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("warning", "error") and not message.text.startswith("Failed to load resource"):
            said.append(message.text)

    def new_page(**options: object) -> Page:
        contexts.append(browser.new_context(**options))
        contexts[-1].set_default_timeout(10_000)
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("console", note)
        return page

    yield new_page
    for context in contexts:
        context.close()
    assert said == []


@pytest.fixture
def visit(new_visitor: Callable[..., Page], host: Host) -> Callable[..., Phrase]:
    """Return a function that opens the small page, or the one at `path`, in a context of its own."""

    def open_page(path: str = "/small.html", *, address: str = "", script: str = "", **options: object) -> Phrase:
        page = new_visitor(**options)
        if script:
            page.add_init_script(script)
        page.goto(host.address + path + address)
        return Phrase(page)

    return open_page


def test_the_tiny_model_is_loaded_and_runs(visit):
    phrase = visit()
    phrase.load()
    told = phrase.run("ab c<|im_end|>", 3)
    prompt, generated = ids_of(told)
    assert (prompt, len(generated)) == ([256, 220, 66, 257], 3)


def altered(file: bytes) -> bytes:
    return file[:-1] + bytes([file[-1] ^ 1])


@dataclass
class Wrong:
    """What a host says instead of the file, and the line that the reader sees."""

    answer: Callable[[bytes], Answer]
    line: str


WRONG = {
    "altered": Wrong(lambda file: Answer(altered(file)), "The file is altered (SHA-256 "),
    "truncated": Wrong(lambda file: Answer(file[:-1]), "The file stopped after 0 of 0 MB: load again."),
    "empty": Wrong(lambda file: Answer(b""), "The file stopped after 0 of 0 MB: load again."),
    "too long": Wrong(lambda file: Answer(file + b"\0"), "The file has more than its "),
    "absent": Wrong(
        lambda file: Answer(b"no", status=404), "This site does not serve the model (404): choose the file below"
    ),
    "cut at half": Wrong(
        lambda file: Answer(file[: len(file) // 2], length=len(file)), "The file stopped after 0 of 0 MB ("
    ),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_file_is_named_and_the_right_one_loads_after_it(visit, host, tiny, wrong):
    host.answers[PLACE] = wrong.answer(tiny)
    phrase = visit()
    phrase.press("Load the model")
    phrase.expect_line("error", wrong.line)
    expect(phrase.file).to_be_visible()  # another way to the same file
    assert phrase.page.evaluate("caches.match(document.querySelector('[data-model]').dataset.model)") is None
    host.answers[PLACE] = Answer(tiny)
    phrase.load()
    expect(phrase.file).to_be_hidden()
    phrase.run()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_what_the_widget_becomes(visit, host, tiny, theme):
    phrase = visit(color_scheme=theme)
    host.answers[PLACE] = Answer(altered(tiny))
    phrase.press("Load the model")
    phrase.expect_line("error", "The file is altered")
    expect_nothing(phrase.page, UNTITLED)
    host.answers[PLACE] = Answer(tiny)
    phrase.load()
    expect_nothing(phrase.page, UNTITLED)
    phrase.run("ab c<|im_end|>", 3)
    expect_nothing(phrase.page, UNTITLED)


def test_a_host_that_is_gone_is_named(visit, host):
    phrase = visit()
    host.stop()
    phrase.press("Load the model")
    phrase.expect_line("error", "The site cannot be reached (")


def test_a_file_that_is_no_model_is_named(visit, host):
    other = b"x" * 100
    host.answers |= {"/small.html": Answer(small_page(other).encode()), PLACE: Answer(other)}
    phrase = visit()
    phrase.press("Load the model")
    phrase.expect_line("error", "Error: this is no GGUF file of version 3.")


def test_a_load_is_stopped_and_begun_again(visit, host, tiny):
    file = tiny + bytes(3_000_000)  # long enough for the page to tell how far it is; what follows the tensors is unread
    gate, half = threading.Event(), 1_800_000
    host.answers["/small.html"] = Answer(small_page(file).encode())
    host.answers[PLACE] = Answer(file[:half], then=file[half:], gate=gate)
    phrase = visit()
    phrase.press("Load the model")
    expect(phrase.root.get_by_role("status")).to_have_text(re.compile("^Loaded [12] of 3 MB$"))
    expect(phrase.root.get_by_role("progressbar")).to_be_visible()
    phrase.press("Load the model")
    assert phrase.line == "Still loading: Stop ends it."
    phrase.press("Run")
    assert phrase.line == "The model is still loading."
    phrase.press("Stop")
    phrase.expect_line("idle", "Stopped. ")  # though the host has not said another word
    gate.set()
    host.answers[PLACE] = Answer(file)
    phrase.load()
    phrase.run()


def test_stopped_while_it_reads_the_store_the_model_is_still_kept(visit, host, tiny):
    phrase = visit()
    phrase.load()
    wait = " if (!stop.signal.aborted) await new Promise((go) => stop.signal.addEventListener(`abort`, go));"
    host.answers["/small.html"] = Answer(
        small_page(tiny, {"await store?.match(url);": f"await store?.match(url);{wait}"}).encode()
    )
    phrase.page.reload()
    phrase.press("Load the model")
    phrase.press("Stop")
    phrase.expect_line("idle", "Stopped. ")
    assert phrase.page.evaluate("caches.match(document.querySelector('[data-model]').dataset.model).then(Boolean)")


def test_a_worker_that_breaks_is_given_up(visit, host, tiny):
    page = small_page(tiny, {"let stop = new AbortController()": "throw new Error(location.protocol)"})
    host.answers["/small.html"] = Answer(page.encode())
    phrase = visit()
    for _ in range(2):  # the second time another one is started
        phrase.press("Load the model")
        phrase.expect_line("error", "The model stopped (")
        phrase.root.evaluate("e => { e.dataset.state = 'seen'; }")


@pytest.mark.parametrize(
    "refusal", ["await store.put(url, new Response(bytes))", "caches.open(STORE)"], ids=["full", "absent"]
)
def test_without_room_the_model_runs_and_is_not_kept(visit, host, tiny, refusal):
    page = small_page(tiny, {refusal: "Promise.reject(new Error())" if "open" in refusal else "throw new Error()"})
    host.answers["/small.html"] = Answer(page.encode())
    phrase = visit()
    phrase.press("Load the model")
    phrase.expect_line("ready", "The model is ready, but not kept: this browser has no room for it here. Press Run.")
    phrase.run()
    assert phrase.page.evaluate("navigator.serviceWorker.getRegistrations().then(all => all.length)") == 0


def test_a_browser_without_workers_says_so(visit):
    phrase = visit(script="delete window.Worker")
    phrase.press("Load the model")
    phrase.expect_line("error", "This browser cannot run the model here (")


def test_a_page_that_may_not_check_the_file_says_so(new_visitor, tiny):
    page = new_visitor()
    asked = []
    page.context.route(
        "**/*", lambda route: (asked.append(route.request.url), route.fulfill(body=small_page(tiny)))[-1]
    )
    page.goto("http://book.test/")  # no https and no localhost: crypto.subtle is absent
    phrase = Phrase(page)
    phrase.press("Load the model")
    phrase.expect_line(
        "error", "The file cannot be checked here; browsers do that on https pages, on localhost and from the disk"
    )
    assert asked == ["http://book.test/"]


# --- the file picker


def test_without_the_model_the_page_says_so_and_takes_a_file(visit, host, tiny):
    host.answers["/small.html"] = Answer(small_page(tiny, model="").encode())
    phrase = visit()
    expect(phrase.file).to_be_visible()
    says = "This copy of the book comes without the model (built with MODEL=0)"
    phrase.expect_line("idle", says)
    phrase.press("Load the model")
    phrase.expect_line("idle", says)
    for name, file, line in [
        (
            "short.gguf",
            tiny[:-1],
            f"“short.gguf” has {len(tiny) - 1:,} bytes, the model’s file {len(tiny):,}: choose another one.",
        ),
        ("altered.gguf", altered(tiny), "The file is altered (SHA-256 "),
    ]:
        phrase.file.set_input_files({"name": name, "mimeType": "application/octet-stream", "buffer": file})
        phrase.expect_line("error", line)
        expect(phrase.file).to_be_visible()
    phrase.file.set_input_files({"name": "tiny.gguf", "mimeType": "application/octet-stream", "buffer": tiny})
    phrase.expect_line("ready", "The model is ready, from your file.")
    expect(phrase.file).to_be_hidden()
    phrase.run()
    assert [path for path in host.asked if "model" in path] == []


def test_opened_from_the_disk_it_takes_the_real_file(page, html, real_model, tokenizer):
    page.goto((html / LANDING[1:]).as_uri())
    phrase = Phrase(page)
    phrase.expect_line(
        "idle", f"Opened from the disk, a page may not fetch: choose {smollm2.FILE} in the folder “model” of this book."
    )
    expect(phrase.file).to_be_visible()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    phrase.file.set_input_files(html / "offline.js")
    phrase.expect_line("error", "“offline.js” has ")
    phrase.file.set_input_files(smollm2.weights_path())
    phrase.expect_state("ready")
    prompt, generated = ids_of(phrase.run(PARIS, 1))
    assert prompt + generated == generate(real_model, tokenizer.encode(PARIS), 1).ids
    assert [url for url in asked if "gguf" in url] == []


# --- the next visit


@pytest.fixture
def landing(visit: Callable[..., Phrase], host: Host, html: Path, tiny: bytes) -> Phrase:
    """Return the landing page with the tiny model loaded and everything kept."""
    host.answers[LANDING] = Answer(for_file((html / LANDING[1:]).read_text("utf-8"), tiny).encode())
    phrase = visit(LANDING)
    phrase.load()
    phrase.page.wait_for_function("caches.match(location.href.split('#')[0]).then(Boolean)")
    return phrase


def test_the_next_visit_needs_no_server(landing, host):
    landing.page.wait_for_function("navigator.serviceWorker.controller !== null")
    host.stop()
    landing.page.reload()
    landing.press("Load the model")
    landing.expect_line("ready", "The model is ready, from this browser’s store. Press Run.")
    landing.run("ba", 2)
    expect_contract(landing.grid, 3, 3, 2)
    assert landing.page.locator('[data-widget="attention-grid"][data-live]').count() == 2  # scripts and styles came too
    assert landing.page.evaluate("[...document.styleSheets].every(sheet => sheet.cssRules.length > 0)")


@pytest.mark.parametrize("change", [altered, lambda file: file[:10]], ids=["altered", "truncated"])
def test_a_wrong_file_in_the_store_is_fetched_anew(landing, host, tiny, change):
    landing.page.evaluate(
        """async (bytes) => {
          const url = document.querySelector('[data-model]').dataset.model;
          await (await caches.open("prefill-decode")).put(url, new Response(Uint8Array.from(bytes)));
        }""",
        [*change(tiny)],
    )
    before = host.asked.count(PLACE)
    landing.page.reload()
    landing.load()
    assert landing.line.startswith("The model is ready, and kept: ")
    assert host.asked.count(PLACE) == before + 1


def test_what_is_kept_can_be_forgotten(landing, host):
    landing.press("Forget the model")
    expect(landing.button("Forget the model")).to_be_hidden()
    landing.run("ba", 1)  # in this visit it is still there
    assert landing.page.evaluate("caches.keys()") == []
    assert landing.page.evaluate("navigator.serviceWorker.getRegistrations().then(all => all.length)") == 0
    before = host.asked.count(PLACE)
    landing.page.reload()
    landing.load()
    assert host.asked.count(PLACE) == before + 1


# --- reach


def test_it_fits_a_phone(visit):
    phrase = visit(viewport=PHONE)
    phrase.load()
    phrase.run("ab c" * 6, 3)
    phrase.run("ab c" * 6, 3, recompute=True)
    assert phrase.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_keys_typed_into_the_text_stay_there(visit):
    """Shortcuts of the book, such as arrows that turn its pages, must not take them."""
    phrase = visit()
    phrase.page.evaluate("window.keys = []; document.addEventListener('keydown', (event) => keys.push(event.key))")
    for key in ("Home", "ArrowLeft", "/"):
        phrase.text.press(key)
        phrase.new_tokens.press(key)
    assert phrase.page.evaluate("keys") == []


# --- pure functions


@pytest.fixture(scope="module")
def module(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    load_module(page, "your_phrase")
    yield page
    page.close()


PASSES = json.dumps(
    [{"nQueries": 5, "nKeys": 5, "milliseconds": 1200}, {"nQueries": 1, "nKeys": 6, "milliseconds": 99.6},
     {"nQueries": 1, "nKeys": 7, "milliseconds": 100.2}]
)  # fmt: skip


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("[1, 999, 1000, 1234567].map(formatCount)", ["1", "999", "1,000", "1,234,567"]),
        ("[0.4, 99.6, 999, 1234].map(formatMs)", ["0 ms", "100 ms", "999 ms", "1.23 s"]),
        ("[[5, 5], [1, 6], [2, 6]].map(([nQueries, nKeys]) => pairsOf({ nQueries, nKeys }))", [15, 6, 11]),
        (f"timesOf({PASSES}).ttft", 1200),
        (f"timesOf({PASSES}).tpot.toFixed(2)", "99.90"),
        (f"timesOf({PASSES}.slice(0, 1)).tpot", None),
        ("timesOf([])", {"ttft": None, "tpot": None}),
        (
            f"sentenceOf({PASSES})",
            "1.20 s to the first token (TTFT), then 100 ms a token (TPOT); 7 rows, 28 query–key pairs a head",
        ),
        (
            "sentenceOf([{ nQueries: 1, nKeys: 1, milliseconds: 3 }])",
            "3 ms to the first token (TTFT); 1 row, 1 query–key pair a head",
        ),
        (
            f"conclusionOf({{ kept: {PASSES}, recomputed: [1, 2, {{ nQueries: 7, milliseconds: 300.6 }}] }})",
            "Pass 3: 7 rows instead of 1, 3.0 times as long.",
        ),
        (f"conclusionOf({{ kept: {PASSES} }}).slice(0, 9)", "Now tick "),
        (f"conclusionOf({{ recomputed: {PASSES} }}).slice(0, 11)", "Now untick "),
        ("hashWith('', { phrase: 'a b&=#', newTokens: 3, useCache: true })", "#phrase=a%20b%26%3D%23&new=3&cache=1"),
        (
            "hashWith('#phrase=x&step=2&new=1&cache=1&g.x=4&prefill', { phrase: 'y', newTokens: 5, useCache: false })",
            "#phrase=y&new=5&cache=0&step=2&g.x=4",
        ),
        ("runOfHash('#phrase=1+1%0A&new=2')", {"phrase": "1+1\n", "newTokens": "2", "useCache": None}),
        ("runOfHash('')", {"phrase": None, "newTokens": None, "useCache": None}),
        ("[...wellFormed('a\\ud83d\\ude00\\ud83d\\ude00b')].length", 4),
        ("wellFormed('\\ud800a\\udc00\\udc00')", "\ufffda\ufffd\ufffd"),
    ],
)
def test_pure_function(module, call, expected):
    assert module.evaluate(f"(() => {{ with (window.module) {{ return {call}; }} }})") == expected
