"""The environment of the peers, `.peers`: made when it is needed, apart from the book's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.environment import ROOT
from benchmarks.measure import CannotMeasureError

HERE = Path(__file__).parent
FOLDER = ROOT / ".peers"
MINUTES = 30


def python_with(requirements: str, folder: Path = FOLDER) -> Path:
    """Return the interpreter of the peers' environment, with one file of requirements installed.

    Parameters
    ----------
    requirements : str
        Name of a file beside this one.
    folder : Path
        Where the environment is or shall be.

    Raises
    ------
    CannotMeasureError
        If pip cannot install them.
    """
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    wanted = (HERE / requirements).read_text("utf-8")
    installed = folder / f"installed-{requirements}"
    if installed.exists() and installed.read_text("utf-8") == wanted:
        return python
    print(f"  installing {requirements} into {folder.name}, which takes minutes …", flush=True)
    if not python.exists():
        _run([sys.executable, "-m", "venv", str(folder)])
    _run(
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(HERE / requirements)]
    )
    installed.write_text(wanted, "utf-8")
    return python


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60 * MINUTES, check=False)
    except subprocess.TimeoutExpired as error:
        raise CannotMeasureError(f"it was not installed within {MINUTES} minutes") from error
    if done.returncode:
        said = [line.removeprefix("ERROR: ") for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        raise CannotMeasureError(f"it was not installed: {said[-1] if said else f'status {done.returncode}'}")
