"""The decoder once more, in JavaScript, for the reader's own browser; Python stays the reference.

The modules are plain ES modules. A page has them as one classic script that a worker runs: pages opened from the disk
may neither import modules nor start a worker from a file, but from a text they may.
"""

import base64
import re
from pathlib import Path

from wasmtime import wat2wasm

HERE = Path(__file__).parent
MODULES = ("gguf", "kernel", "decoder", "tokenizer", "observe", "worker")  # each imports from earlier ones only

IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.MULTILINE)
COMMENT = re.compile(r"^ *(?://[^\n]*|/\*.*?\*/)\n", re.MULTILINE | re.DOTALL)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class)\b)", re.MULTILINE)


def source() -> str:
    """Return all modules as one classic script, with the kernel assembled."""
    text = f'const KERNEL = "{kernel()}";\n' + "".join((HERE / f"{name}.js").read_text("utf-8") for name in MODULES)
    return without_comments(EXPORT.sub("", IMPORT.sub("", text)))


def without_comments(text: str) -> str:
    """Leave out lines of a script or a sheet that hold only comments: up to a third, and no browser reads them."""
    return COMMENT.sub("", text)


def kernel() -> str:
    """Return kernel.wat, assembled, in base64."""
    return base64.b64encode(wat2wasm((HERE / "kernel.wat").read_text("utf-8"))).decode("ascii")
