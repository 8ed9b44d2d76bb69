"""A JupyterLab that works on a copy of the notebooks, and a browser that may ask nobody else."""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

import nbformat
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Locator, Page, Route, expect

from prefill_decode import saving

ROOT = Path(__file__).parents[2]
# A busy machine is slow, not wrong: seconds until the server answers; milliseconds for JupyterLab to load, a notebook
# to run, and anything smaller to be seen.
START, LOAD, RUN, SEEN = 120, 90_000, 400_000, 15_000
SETTINGS = {
    "notebook-extension/tracker": {"windowingMode": "none"},  # cells out of sight stay in the page
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "apputils-extension/sessionDialogs": {"skipKernelRestartDialog": True},
    "docmanager-extension/plugin": {"autosave": False},
}
# What this page's notebook says of itself: is there one, has its kernel said that it is ready.
READY = """name => {
  const panel = window.jupyterapp?.shell.currentWidget;
  if (panel?.context?.path !== name || !panel.context.isReady) return false;
  return panel.sessionContext.session?.kernel?.status === "idle";
}"""
CELLS = "() => window.jupyterapp.shell.currentWidget.content.model.toJSON().cells"
# Every code cell with a source has run, or one of them failed and the rest never will.
FINISHED = f"""() => {{
  const code = ({CELLS})().filter((cell) => cell.cell_type === "code" && cell.source.length > 0);
  const failed = (cell) => cell.outputs.some((output) => output.output_type === "error");
  return code.every((cell) => cell.execution_count) || code.some(failed);
}}"""


@dataclass
class Lab:
    """A running server: its address, its token and the folder it works on."""

    address: str
    token: str
    folder: Path


def copy_notebooks(folder: Path) -> None:
    """Copy the notebooks, each with an empty cell at its end in which a test may run something."""
    folder.mkdir()
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        notebook.cells.append(nbformat.v4.new_code_cell(id="probe"))
        nbformat.write(notebook, folder / path.name)


def write_notebook(path: Path, *sources: str) -> None:
    """Write a notebook of code cells, with an empty one at its end in which a test may run something."""
    cells = [nbformat.v4.new_code_cell(source) for source in (*sources, "")]
    metadata = {"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), path)


def write_settings(folder: Path) -> None:
    """Write what a person would have set in the settings editor."""
    for plugin, values in SETTINGS.items():
        path = folder / "@jupyterlab" / f"{plugin}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), "utf-8")


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def command(port: int, token: str, folder: Path) -> list[str]:
    """Return the command that starts JupyterLab; its application is exposed, so that tests can ask it."""
    told = {"ip": "127.0.0.1", "port": port, "ServerApp.port_retries": 0, "ServerApp.root_dir": folder}
    flags = ["--no-browser", "--allow-root", "--expose-app-in-browser", f"--IdentityProvider.token={token}"]
    return [sys.executable, "-m", "jupyterlab", *flags, *(f"--{name}={value}" for name, value in told.items())]


def environment(home: Path) -> dict[str, str]:
    """Return this environment with every folder that Jupyter writes to below `home`."""
    folders = {f"JUPYTER_{kind}_DIR": kind for kind in ("CONFIG", "DATA", "RUNTIME")}
    folders |= {f"JUPYTERLAB_{kind}_DIR": kind for kind in ("SETTINGS", "WORKSPACES")} | {"IPYTHONDIR": "IPYTHON"}
    return {**os.environ, **{name: str(home / folder.lower()) for name, folder in folders.items()}}


def wait_until_it_answers(server: subprocess.Popen, address: str, log: Path) -> None:
    """Ask until there is an answer; a server that died or stays silent fails with the end of its log."""
    end = time.monotonic() + START
    while server.poll() is None and time.monotonic() < end:
        try:
            urlopen(address, timeout=5).close()
            return
        except (URLError, TimeoutError):
            time.sleep(0.1)
    pytest.fail(f"JupyterLab does not answer:\n{log.read_text('utf-8')[-2000:]}", pytrace=False)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Start JupyterLab in the repository's root, as Binder does, with all that it writes somewhere else."""
    home = tmp_path_factory.mktemp("lab")
    copy_notebooks(home / "notebooks")
    write_settings(home / "settings")
    saving.install(home / "config")
    token, port, log = secrets.token_hex(), free_port(), home / "server.log"
    with log.open("w") as out:
        server = subprocess.Popen(
            command(port, token, home / "notebooks"), cwd=ROOT, env=environment(home), stdout=out, stderr=out
        )
    try:
        address = f"http://127.0.0.1:{port}"
        wait_until_it_answers(server, f"{address}/api/status?token={token}", log)
        yield Lab(address, token, home / "notebooks")
    finally:
        server.terminate()  # it ends its kernels itself
        server.wait(timeout=60)
        shutil.rmtree(home)


class Notebook:
    """A notebook that is open in JupyterLab."""

    def __init__(self, page: Page, lab: Lab, name: str) -> None:
        self.page, self.lab, self.name = page, lab, name
        self.foreign: list[str] = []
        self.complaints: list[str] = []
        page.set_default_timeout(SEEN)
        page.on("pageerror", self.note_error)
        page.on("console", self.note_message)
        page.context.route("**/*", self.let_through)

    def note_error(self, error: Error) -> None:
        self.note(f"{error} {error.stack}")

    def note_message(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.note(f"{message.text} ({message.location.get('url', '')})")

    def note(self, text: str) -> None:
        """Keep what a widget's module is behind (it is loaded from a blob); JupyterLab has complaints of its own."""
        if "blob:" in text or "anywidget" in text:
            self.complaints.append(text)

    def let_through(self, route: Route) -> None:
        if urlsplit(route.request.url).netloc == urlsplit(self.lab.address).netloc:
            route.continue_()
        else:
            self.foreign.append(route.request.url)
            route.abort()

    def open(self) -> None:
        """Open the notebook alone, and wait for its kernel."""
        address = f"{self.lab.address}/lab/tree/{self.name}?token={self.lab.token}&reset"
        self.page.goto(address, timeout=LOAD)
        self.page.wait_for_function(READY, arg=self.name, timeout=LOAD)

    def cells(self) -> list[dict]:
        """Return the cells as they stand in the browser."""
        return self.page.evaluate(CELLS)

    def command(self, name: str) -> None:
        """Start one of JupyterLab's commands, without waiting for its end."""
        self.page.evaluate("name => void window.jupyterapp.commands.execute(name)", name)

    def run_all(self) -> None:
        """Restart the kernel and run all cells, from no output at all: what is seen then is of this run."""
        self.command("notebook:clear-all-cell-outputs")
        self.command("notebook:restart-run-all")
        self.page.wait_for_function(FINISHED, timeout=RUN)

    def restart(self) -> None:
        """Restart the kernel and wait until it is another one in all but its id."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
        self.page.wait_for_function(READY, arg=self.name, timeout=LOAD)

    def save(self) -> None:
        """Save the notebook and wait until it is written."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.context.save()")

    def run(self, code: str) -> Locator:
        """Type code into the last cell, run it, and return the cell's outputs."""
        cell = self.page.locator(".jp-Notebook-cell").last
        cell.locator(".cm-content").click()
        self.page.keyboard.press("ControlOrMeta+A")
        self.page.keyboard.insert_text(code)
        before = self.cells()[-1]["execution_count"]
        self.page.keyboard.press("Control+Enter")
        self.page.wait_for_function(
            f"before => ![null, before].includes(({CELLS})().at(-1).execution_count)", arg=before
        )
        expect(cell.locator(".jp-OutputArea-output[data-mime-type*=error]")).to_have_count(0)
        return cell.locator(".jp-Cell-outputArea")

    def outputs(self, index: int) -> Locator:
        """Return the outputs of a cell."""
        return self.page.locator(".jp-Notebook-cell").nth(index).locator(".jp-Cell-outputArea")

    def check(self) -> None:
        assert self.foreign == [], "asked another host"
        assert self.complaints == [], "a widget failed"

    def close(self) -> None:
        """End the kernel, which holds a model, and close the page."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        self.page.context.close()


@pytest.fixture(scope="module")
def notebook(request: pytest.FixtureRequest, browser: Browser, lab: Lab) -> Iterator[Notebook]:
    """Open a notebook with a test module's ``SOURCES``, a cell each, and run it."""
    name = f"{request.module.__name__.rpartition('.')[2]}.ipynb"
    write_notebook(lab.folder / name, *request.module.SOURCES)
    notebook = Notebook(browser.new_context(viewport={"width": 1280, "height": 900}).new_page(), lab, name)
    notebook.open()
    notebook.run_all()
    yield notebook
    notebook.close()
    notebook.check()
