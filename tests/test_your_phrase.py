"""`YourPhrase` before anything runs, the twin's text, and what the build puts beside the pages."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from bs4 import BeautifulSoup
from prefill_decode_book import model as extension
from prefill_decode_book.widgets import bundle_script
from reference import ROOT
from sphinx.errors import ExtensionError
from test_page_only import sanitised

from prefill_decode import smollm2, twin
from prefill_decode.widgets import YourPhrase
from prefill_decode.widgets.page_only import for_page
from prefill_decode.widgets.your_phrase import MAX_NEW_TOKENS, MAX_PROMPT

WIDGETS = ROOT / "src" / "prefill_decode" / "widgets"


def soup_of(widget: YourPhrase) -> BeautifulSoup:
    """Parse a widget as a page shows it."""
    return BeautifulSoup(for_page(widget._repr_html_()), "html.parser")


# --- the markup


def test_it_waits_and_says_what_may_be_loaded():
    root = soup_of(YourPhrase()).select_one('[data-widget="your-phrase"]')
    told = {name.removeprefix("data-"): value for name, value in root.attrs.items() if name.startswith("data-")}
    empty = dict.fromkeys(["prompt-ids", "generated-ids", "ttft-ms", "tpot-ms", "model"], "")
    assert told == {"widget": "your-phrase", "state": "idle", **empty}
    assert "What you type does not leave it." in root.get_text()
    assert json.loads(root.select_one('script[type="application/json"]').string) == {
        "file": smollm2.FILE,
        "size": smollm2.weights_path().stat().st_size,
        "sha256": smollm2.SHA256,
        "maxPrompt": MAX_PROMPT,
        "maxNew": MAX_NEW_TOKENS,
    }


def test_its_controls_have_names():
    root = soup_of(YourPhrase("two\nlines", 7))
    labels = [label.get_text(" ", strip=True) for label in root.select("label")]
    assert labels[0].startswith("Your phrase ")
    assert labels[1] == "New tokens"
    assert root.select_one("textarea").string == "two\nlines"
    number = root.select_one('[type="number"]')
    assert [number[name] for name in ("value", "min", "max", "step")] == ["7", "1", str(MAX_NEW_TOKENS), "1"]
    assert [button.string for button in root.select("button:not([hidden])")] == ["Load the model", "Run", "Stop"]
    assert all(button["type"] == "button" for button in root.select("button"))
    assert root.select_one("progress")["aria-label"]
    assert root.select_one('[role="status"]') is not None


@pytest.mark.parametrize(
    "phrase", ["</textarea><script>throw 1</script>", "&lt;b&gt; \"'", "\u202eשלום", "👩\u200d👧", ""]
)
def test_a_phrase_is_text(phrase):
    root = soup_of(YourPhrase(phrase))
    assert (root.select_one("textarea").string or "") == phrase
    assert len(root.select("script")) == 1


def test_a_notebook_viewer_shows_words_and_no_control():
    seen = sanitised(YourPhrase()._repr_html_())
    assert not {"button", "input", "textarea", "progress", "label"} & set(seen.tags)
    assert "In a notebook, PromptExplorer runs a phrase with Python." in "".join(seen.text)
    assert "The capital of France is" not in "".join(seen.text)


def test_the_same_widget_is_the_same_text():
    assert YourPhrase("a", 2)._repr_html_() == YourPhrase("a", 2)._repr_html_()


def test_repr():
    assert repr(YourPhrase("it's", 3)) == 'YourPhrase("it\'s", new_tokens=3)'


@pytest.mark.parametrize("new_tokens", [1, MAX_NEW_TOKENS, np.int64(3)])
def test_new_tokens_in_range(new_tokens):
    assert YourPhrase("a", new_tokens).new_tokens == new_tokens


@pytest.mark.parametrize("new_tokens", [0, -1, MAX_NEW_TOKENS + 1, 2.0, "3", None, True, float("nan")])
def test_new_tokens_out_of_range_are_refused(new_tokens):
    with pytest.raises(ValueError, match=r"^new_tokens is .+, expected 1 to 16$"):
        YourPhrase("a", new_tokens)


# --- the twin's text


def modules() -> dict[str, str]:
    return {name: (twin.HERE / f"{name}.js").read_text("utf-8") for name in twin.MODULES}


def test_the_twin_is_one_classic_script():
    assert re.findall(r"^\s*(?:import|export)\b.*", twin.source(), flags=re.M) == []


def test_no_name_of_the_twin_is_declared_twice():
    """Each module has a scope of its own; in one script the second is an error, or takes the place of the first."""
    declared = re.compile(r"^(?:async )?(?:function|class|const|let|var) ([\w$]+)", re.M)
    names = declared.findall(twin.source())
    assert len(names) > 40
    assert sorted(names) == sorted(set(names))


def test_every_module_of_the_twin_imports_from_earlier_ones_what_they_export():
    assert {path.stem for path in twin.HERE.glob("*.js")} == set(twin.MODULES)
    exported: dict[str, set[str]] = {}
    for name, text in modules().items():
        for names, source in re.findall(r'^import \{ ([^}]*) \} from "\./(\w+)\.js";$', text, flags=re.M):
            assert set(names.split(", ")) <= exported[source], f"{name} imports from {source}"
        assert text.count("\nimport ") + text.startswith("import ") == len(twin.IMPORT.findall(text))
        exported[name] = set(re.findall(r"^export (?:async )?(?:function|const|class) (\w+)", text, flags=re.M))


def code_of(text: str) -> Iterator[str]:
    """Yield the lines of a module that are no comment and no import."""
    in_comment = False
    for line in text.splitlines():
        in_comment = in_comment or line.lstrip().startswith("/**")
        if not in_comment and not line.lstrip().startswith("//") and not line.startswith("import "):
            yield line.removeprefix("export ")
        in_comment = in_comment and not line.endswith("*/")


def test_only_comments_are_left_out_of_the_twin():
    first, *kept = twin.source().splitlines()
    assert first == f'const KERNEL = "{twin.kernel()}";'
    assert kept == [line for text in modules().values() for line in code_of(text)]


def test_the_page_carries_the_twin_as_a_text():
    script = bundle_script(WIDGETS)
    text = re.search(r"^  const twin = (\".*\");$", script, flags=re.M)[1]
    assert json.loads(text) == twin.source()
    assert "</script" not in script.lower()


# --- the build


class App(SimpleNamespace):
    """As much of a Sphinx application as the extension asks for."""

    def __init__(self, outdir: Path) -> None:
        super().__init__(outdir=str(outdir), events=[])

    def connect(self, event: str, handler: object) -> None:
        self.events.append(event)


def page_with(monkeypatch: pytest.MonkeyPatch, setting: str | None, body: str) -> str:
    """Return a page's body after the extension, for a setting of MODEL."""
    set_model(monkeypatch, setting)
    context = {"body": body, "pathto": lambda name, resource: f"../{name}?{resource}"}
    extension.name_file(None, "book/index", "page.html", context, None)
    return context["body"]


def set_model(monkeypatch: pytest.MonkeyPatch, setting: str | None) -> None:
    if setting is None:
        monkeypatch.delenv("MODEL", raising=False)
    else:
        monkeypatch.setenv("MODEL", setting)


@pytest.mark.parametrize("setting", [None, "1"])
def test_a_page_is_told_where_the_file_lies(monkeypatch, setting):
    body = page_with(monkeypatch, setting, YourPhrase()._repr_html_())
    root = BeautifulSoup(body, "html.parser").select_one("[data-model]")
    assert root["data-model"] == f"../model/{smollm2.FILE}?1"


def test_a_build_without_the_model_names_no_file(monkeypatch):
    body = YourPhrase()._repr_html_()
    assert page_with(monkeypatch, "0", body) == body


def test_other_pages_are_left_alone(monkeypatch):
    assert page_with(monkeypatch, "1", "<p>data-model</p>") == "<p>data-model</p>"
    context: dict = {}
    extension.name_file(None, "genindex", "genindex.html", context, None)  # has no body
    assert context == {}


@pytest.mark.parametrize("setting", ["", "2", "no", "01"])
def test_a_misspelt_setting_stops_the_build(monkeypatch, setting):
    set_model(monkeypatch, setting)
    with pytest.raises(ExtensionError, match=re.escape(f"MODEL = {setting!r}: expected 1")):
        extension.check_setting(None)


def test_the_file_and_the_service_worker_are_copied(monkeypatch, tmp_path):
    set_model(monkeypatch, None)
    small = tmp_path / "installed.gguf"
    small.write_bytes(b"weights")
    monkeypatch.setattr(smollm2, "weights_path", lambda: small)
    for _ in range(2):  # a second build finds them there
        extension.copy_files(App(tmp_path), None)
    assert (tmp_path / "model" / smollm2.FILE).read_bytes() == b"weights"
    assert (tmp_path / "offline.js").read_bytes() == extension.OFFLINE.read_bytes()


@pytest.mark.parametrize(("setting", "error"), [("0", None), ("1", ValueError())], ids=["without", "failed"])
def test_nothing_is_copied_without_the_model_or_after_an_error(monkeypatch, tmp_path, setting, error):
    set_model(monkeypatch, setting)
    monkeypatch.setattr(shutil, "copyfile", None)  # not called
    extension.copy_files(App(tmp_path), error)
    assert list(tmp_path.iterdir()) == []


def test_the_setting_is_checked_before_and_the_files_are_copied_after_the_build(tmp_path):
    app = App(tmp_path)
    extension.setup(app)
    assert app.events == ["builder-inited", "html-page-context", "build-finished"]
