"""Scripts that do not parse stop the build: on a page the browser would run none of them, and say so to nobody.

The parser is that of the browsers, V8, in the program that Playwright brings for its own use.
"""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import playwright

DRIVER = Path(playwright.__file__).parent / "driver"
# Parses each file as a module and runs none; the first that fails ends it, with its name and line.
PARSE = """
const {SourceTextModule} = require("vm"), {readFileSync} = require("fs");
for (const path of process.argv.slice(1)) new SourceTextModule(readFileSync(path, "utf8"), {identifier: path});
"""
PLACE, ERROR = re.compile(r"^(.+:\d+)$", re.MULTILINE), re.compile(r"^SyntaxError: .*", re.MULTILINE)


def find_fault(root: Path, paths: Sequence[Path]) -> str:
    """Return where the first file that is no JavaScript goes wrong, and how; "" if all parse.

    Parameters
    ----------
    root : Path
        The files are named from here.
    paths : sequence of Path

    Returns
    -------
    str
        ``src/…/roofline.js:15: SyntaxError: Unexpected token '='``.
    """
    node = shutil.which("node", path=DRIVER)
    names = [path.relative_to(root).as_posix() for path in paths]
    command = [node, "--no-warnings", "--experimental-vm-modules", "--eval", PARSE, "--", *names]
    said = subprocess.run(command, cwd=root, capture_output=True, text=True, encoding="utf-8", check=False)
    if said.returncode == 0:
        return ""
    place, error = PLACE.search(said.stderr), ERROR.search(said.stderr)
    return f"{place[1]}: {error[0]}" if place and error else said.stderr
