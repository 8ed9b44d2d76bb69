"""Links to the repository and to Binder: derived from the git remote, absent when there is none."""

import os
import re
import subprocess

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective

VARIABLE = "BOOK_REPOSITORY_URL"
BINDER = "https://mybinder.org"
HOSTS = re.compile(r"^https://(?:www\.)?(github|gitlab)\.com/([^/]+)/([^/]+)$")


def as_web_address(remote: str) -> str:
    """Return the https address of a remote, e.g. of ``git@github.com:owner/name.git``; "" if it has none."""
    address = re.sub(r"^(?:ssh://)?git@([^:/]+)[:/]", r"https://\1/", remote.strip())
    address = re.sub(r"(?:\.git)?/?$", "", address)
    return address if HOSTS.match(address) else ""


def find_repository(folder: str) -> str:
    """Return the address in the environment, else that of the remote ``origin``, else ""."""
    if given := os.environ.get(VARIABLE):
        return as_web_address(given)
    git = subprocess.run(
        ["git", "-C", folder, "remote", "get-url", "origin"], capture_output=True, text=True, check=False
    )
    return as_web_address(git.stdout)


def binder_address(repository: str, branch: str) -> str:
    """Return where Binder opens the chapter's first notebook."""
    host, owner, name = HOSTS.match(repository).groups()
    place = f"gh/{owner}/{name}" if host == "github" else f"gl/{owner}%2F{name}"
    return f"{BINDER}/v2/{place}/{branch}?urlpath=lab/tree/notebooks/01_prefill.ipynb"


def add_buttons(app: Sphinx, config: Config) -> None:
    """Give the theme its repository and launch buttons."""
    repository = find_repository(app.srcdir)
    config.book_repository = repository
    if repository:
        config.html_theme_options.update(
            repository_url=repository,
            repository_branch="main",
            use_repository_button=True,
            launch_buttons={"binderhub_url": BINDER, "notebook_interface": "jupyterlab"},
        )


class BinderDirective(SphinxDirective):
    """``{binder}``: the content as a link to the chapter on Binder; nothing at all without a repository."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return one paragraph with one link, or nothing."""
        if not self.config.book_repository:
            return []
        address = binder_address(self.config.book_repository, "main")
        text = " ".join(self.content)
        return [nodes.paragraph("", "", nodes.reference("", text, refuri=address), classes=["pd-launch"])]


def setup(app: Sphinx) -> None:
    """Register the buttons and the directive."""
    app.add_config_value("book_repository", "", "env", [str])
    app.connect("config-inited", add_buttons)
    app.add_directive("binder", BinderDirective)
