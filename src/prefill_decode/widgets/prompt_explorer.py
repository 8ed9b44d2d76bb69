"""`PromptExplorer`: a phrase of the reader's own, run by the model in the kernel and shown as an `AttentionGrid`."""

import html
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import anywidget
import ipywidgets
import traitlets

from prefill_decode.generate import Pass
from prefill_decode.model import Model
from prefill_decode.observe import Observation, notable_heads, observe
from prefill_decode.widgets.attention_grid import AttentionGrid
from prefill_decode.widgets.attention_grid_data import MAX_ROWS, phrase_data
from prefill_decode.widgets.attention_grid_html import opening, picture

HERE = Path(__file__).parent
MAX_NEW_TOKENS = 16
LONGEST_LINE = 400  # characters: an error may quote all of the reader's text
RUN_IT_LIVE = (
    "<p>A phrase of your own needs Python behind the page: run this cell in JupyterLab"
    " (<code>make lab</code> opens it) or on Binder.</p>"
)


class RunStatus(anywidget.AnyWidget):
    """Say in one line, read out by screen readers, how a run went; show a bar while there are passes to count."""

    _esm = HERE / "prompt_explorer.js"
    _css = (HERE / "theme.css").read_text("utf-8") + (HERE / "prompt_explorer.css").read_text("utf-8")

    line = traitlets.Unicode().tag(sync=True)
    passes = traitlets.Int(0).tag(sync=True)
    passed = traitlets.Int(0).tag(sync=True)


class PromptExplorer(ipywidgets.VBox):
    """Let a reader type a phrase, run it, and step through what its tokens read.

    Parameters
    ----------
    load : callable
        Returns a model and its tokenizer. Called by the first run, and by later ones until it has succeeded once.
    phrase : str
        Run at once, so that there is a grid to see.
    max_new_tokens : int
        1 to 16.

    Raises
    ------
    ValueError
        If `max_new_tokens` is out of range. Whatever goes wrong in a run is a line in the widget.
    """

    def __init__(
        self,
        load: Callable[[], tuple[Model, object]],
        *,
        phrase: str = "The capital of France is",
        max_new_tokens: int = 5,
    ) -> None:
        if max_new_tokens not in range(1, MAX_NEW_TOKENS + 1):
            raise ValueError(f"max_new_tokens is {max_new_tokens!r}, expected 1 to {MAX_NEW_TOKENS}")
        self._load, self._loaded = load, None
        self._lock, self._running = threading.Lock(), False
        self._first = (phrase, max_new_tokens)
        self.grid: AttentionGrid | None = None
        self.phrase, self.new_tokens, self.button = controls = _controls(phrase, max_new_tokens)
        self.status = RunStatus().add_class("pd-explorer-status")
        super().__init__([ipywidgets.HBox(controls, layout={"flex_flow": "row wrap"}), self.status])
        self.add_class("pd-explorer")
        self.button.on_click(lambda _: self.run())
        self.phrase.on_msg(lambda _, content, buffers: content.get("event") == "submit" and self.run())  # Enter
        self._work(phrase, max_new_tokens)

    def run(self) -> threading.Thread | None:
        """Run what the controls say in a thread, as the button does; return it, or None while another one runs."""
        with self._lock:
            if self._running:
                self.status.line = "still running: one phrase at a time, its grid comes with the last pass"
                return None
            self._running = True
            self.status.line = "running …"
        thread = threading.Thread(target=self._work, args=(self.phrase.value, self.new_tokens.value), daemon=True)
        thread.start()
        return thread

    def _work(self, phrase: str, max_new_tokens: int) -> None:
        self.status.passed, self.status.passes = 0, max_new_tokens
        try:
            seen = self._observe(phrase, max_new_tokens)
            self._draw(seen)
            line = _summary(seen)
        except Exception as error:  # a reader's phrase never ends in a traceback; a thread's would be seen by nobody
            line = _one_line(error)
        self.status.passes = 0
        with self._lock:  # or a click just now could write "still running" over the result
            self._running = False
            self.status.line = line

    def _observe(self, phrase: str, max_new_tokens: int) -> Observation:
        if not phrase:
            raise ValueError("the phrase is empty: type a word or two")
        if self._loaded is None:
            self._loaded = self._load()
        model, tokenizer = self._loaded
        _check_length(len(tokenizer.encode(phrase)), max_new_tokens, model.config.n_ctx)
        return observe(model, tokenizer, phrase, max_new_tokens, on_token=self._count)

    def _count(self, token: int, record: Pass) -> None:
        self.status.passed += 1

    def _draw(self, seen: Observation) -> None:
        more = {"names": notable_heads(seen.weights), "dtype_name": "float32"}
        if self.grid is None:
            self.grid = AttentionGrid(**vars(seen), **more)
            self.children = [*self.children, self.grid]
            return
        phrase = phrase_data(**vars(seen), **more)
        with self.grid.hold_sync():  # one message: a view never draws new data at an old step
            for name, value in {"data": {"phrases": [phrase]}, **opening(phrase)}.items():
                setattr(self.grid, name, value)

    def __repr__(self) -> str:
        phrase, new = self._first
        return f"PromptExplorer({textwrap.shorten(phrase, 60, placeholder='…')!r}, max_new_tokens={new})"

    def _repr_mimebundle_(self, **kwargs: object) -> dict:
        line = f"<p>{html.escape(self.status.line)}</p>"
        shown = line if self.grid is None else picture(self.grid.data) + RUN_IT_LIVE
        return {**super()._repr_mimebundle_(**kwargs), "text/plain": repr(self), "text/html": shown}


def _controls(phrase: str, max_new_tokens: int) -> tuple[ipywidgets.DOMWidget, ...]:
    whole = {"description_width": "initial"}  # or "New tokens" is cut off
    return (
        ipywidgets.Text(phrase, description="Your phrase", style=whole, layout={"flex": "1 1 260px", "width": "auto"}),
        ipywidgets.Dropdown(
            options=range(1, MAX_NEW_TOKENS + 1),
            value=max_new_tokens,
            description="New tokens",
            style=whole,
            layout={"width": "130px"},
        ),
        ipywidgets.Button(description="Run", button_style="primary", layout={"width": "80px"}),
    )


def _check_length(n_prompt: int, max_new_tokens: int, n_ctx: int) -> None:
    if n_prompt == 0:
        raise ValueError("the phrase gives no token: type a word or two")
    rows, what = min((MAX_ROWS, "the grid draws"), (n_ctx, "the context holds"))
    room = rows + 1 - max_new_tokens  # the last new token has no row
    if n_prompt > room:
        raise ValueError(
            f"the phrase has {n_prompt:,} tokens; with {max_new_tokens} new {'one' if max_new_tokens == 1 else 'ones'}"
            f" {what} up to {room}: shorten it"
        )


def _summary(seen: Observation) -> str:
    rows, new = seen.weights.shape[-1], len(seen.tokens) - seen.prompt_len
    return f"prompt tokens: {seen.prompt_len}, new tokens: {new}, rows: {rows}, passes: 1 prefill + {new - 1} decode"


def _one_line(error: Exception) -> str:
    kind = "" if isinstance(error, ValueError | RuntimeError) and str(error) else f"{type(error).__name__}: "
    line = " ".join(f"{kind}{error}".split())
    half = LONGEST_LINE // 2  # the end says what to do
    return line if len(line) <= LONGEST_LINE else f"{line[:half]} … {line[-half:]}"
