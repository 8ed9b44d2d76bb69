"""`YourPhrase`: a phrase of the reader's own, run in the plain page by the twin of the decoder, without a kernel."""

import html

from prefill_decode import smollm2
from prefill_decode.config import is_whole
from prefill_decode.widgets.elements import root
from prefill_decode.widgets.page_only import page_only

MAX_PROMPT, MAX_NEW_TOKENS = 48, 16
LEAD = (
    "<b>Your own phrase.</b> The real model, SmolLM2-135M-Instruct, can run in your browser. What you type does not"
    " leave it."
)
ELSEWHERE = (
    "That takes a built page with scripts: <code>make book</code> serves one. In a notebook,"
    " <code>PromptExplorer</code> runs a phrase with Python."
)


class YourPhrase:
    """Let a reader of the plain page type a phrase, run it in the browser, and step through what its tokens read.

    A page-only widget: in a notebook, where Python can run the model, `PromptExplorer` is the one to use.

    Parameters
    ----------
    phrase : str
        What stands in the text area at first.
    new_tokens : int
        1 to 16.

    Raises
    ------
    ValueError
        If `new_tokens` is out of range.
    """

    def __init__(self, phrase: str = "The capital of France is", new_tokens: int = 5) -> None:
        if not is_whole(new_tokens) or not 1 <= new_tokens <= MAX_NEW_TOKENS:
            raise ValueError(f"new_tokens is {new_tokens!r}, expected 1 to {MAX_NEW_TOKENS}")
        self.phrase, self.new_tokens = phrase, new_tokens

    def __repr__(self) -> str:
        return f"YourPhrase({self.phrase!r}, new_tokens={self.new_tokens})"

    def _repr_html_(self) -> str:
        """Return the widget as it waits: nothing is loaded, nothing has run."""
        told = {"state": "idle", "prompt-ids": "", "generated-ids": "", "ttft-ms": "", "tpot-ms": "", "model": ""}
        limits = {
            "file": smollm2.FILE,
            "size": smollm2.FILE_BYTES,
            "sha256": smollm2.SHA256,
            "maxPrompt": MAX_PROMPT,
            "maxNew": MAX_NEW_TOKENS,
        }
        body = (
            f'<p class="pd-lead">{LEAD}</p>'
            f'<p class="pd-note pd-elsewhere">{ELSEWHERE}</p>'
            f'<div class="pd-controls" hidden>{page_only(_controls(self.phrase, self.new_tokens))}</div>'
            '<div class="pd-result"></div>'
        )
        return root("your-phrase", "Your own phrase", told, limits, body)


def _controls(phrase: str, new_tokens: int) -> str:
    acts = {"load": "Load the model", "run": "Run", "stop": "Stop"}
    buttons = "".join(f'<button type="button" data-act="{act}">{shown}</button>' for act, shown in acts.items())
    return (
        '<label class="pd-phrase"><span>Your phrase</span>'
        '<textarea name="phrase" rows="2" spellcheck="false" autocomplete="off" aria-keyshortcuts="Control+Enter">'
        f"{html.escape(phrase)}</textarea></label>"
        '<div class="pd-choices"><label><span>New tokens</span>'
        f'<input type="number" name="new" min="1" max="{MAX_NEW_TOKENS}" step="1" value="{new_tokens}"'
        ' autocomplete="off"></label>'
        '<label class="pd-check"><input type="checkbox" name="recompute" autocomplete="off">'
        "<span>Without a cache: all rows again, every pass</span></label></div>"
        f'<div class="pd-acts">{buttons}<button type="button" data-act="forget" hidden>Forget the model</button>'
        '<label class="pd-file" hidden><span>Choose the file</span> <input type="file" accept=".gguf"></label></div>'
        f'<p class="pd-note">At most {MAX_PROMPT} tokens in and {MAX_NEW_TOKENS} out; Ctrl+Enter runs.</p>'
        '<progress max="1" value="0" aria-label="Progress" hidden></progress>'
        '<p class="pd-status" role="status"></p>'
    )
