"""Print the path of a Chromium for the browser tests; install one if there is none.

Tried in turn: the program that $CHROMIUM names, one on the PATH, the one Playwright manages, Playwright's download,
and the system's package manager where this user may use it.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
NONE_FOUND = (
    "No Chromium found and none could be installed: the browser tests need one; install the package 'chromium' or "
    "'google-chrome', or set CHROMIUM to its program"
)


def find() -> str | None:
    """Return the path of an installed Chromium, or None.

    Raises
    ------
    SystemExit
        If $CHROMIUM is set and is no program: what was asked for is not quietly replaced.
    """
    if named := os.environ.get("CHROMIUM"):
        if path := shutil.which(named):
            return path
        raise SystemExit(f"CHROMIUM is '{named}', which is no program: give the path of a Chromium, or unset it")
    on_path = next((path for name in NAMES if (path := shutil.which(name))), None)
    return on_path or find_managed()


def find_managed() -> str | None:
    """Return the Chromium that Playwright downloaded, if it did."""
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def download() -> None:
    """Let Playwright download its own, with the libraries it needs if this user may install them."""
    dependencies = ["--with-deps"] if is_root() and shutil.which("apt-get") else []
    run([sys.executable, "-m", "playwright", "install", *dependencies, "chromium"])


def install_package() -> None:
    """Ask the system's package manager."""
    if is_root() and shutil.which("apt-get"):
        run(["apt-get", "update", "-q"])
        run(["apt-get", "install", "-q", "-y", "--no-install-recommends", "chromium"])


def is_root() -> bool:
    """Say whether this user may install packages."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def run(command: list[str]) -> None:
    """Run a command whose failure only means that the next way is tried; its output goes to stderr."""
    subprocess.run(command, stdout=sys.stderr, check=False, timeout=900)


def ways() -> Iterator[Callable[[], None]]:
    """Yield what to do before looking once more."""
    yield download
    yield install_package


def main() -> int:
    """Print the path; 1 and one line if there is none."""
    path = find()
    for way in ways():
        if path:
            break
        way()
        path = find()
    print(path or NONE_FOUND, file=sys.stdout if path else sys.stderr)
    return 0 if path else 1


if __name__ == "__main__":
    sys.exit(main())
