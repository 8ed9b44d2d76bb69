"""The decoder once more, in JavaScript, for the reader's own browser; Python stays the reference.

The modules are plain ES modules. A page has them as one classic script that a worker runs: pages opened from the disk
may neither import modules nor start a worker from a file, but from a text they may.
"""

import re
from pathlib import Path

HERE = Path(__file__).parent
MODULES = ("gguf", "decoder", "tokenizer", "observe", "worker")  # each imports from earlier ones only

IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class)\b)", re.MULTILINE)


def source() -> str:
    """Return all modules as one classic script."""
    return "\n".join(EXPORT.sub("", IMPORT.sub("", (HERE / f"{name}.js").read_text("utf-8"))) for name in MODULES)
