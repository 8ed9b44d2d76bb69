"""Links to the repository, to Binder and to the site: derived from the git remote, absent when there is none."""

import os
import re
import subprocess
from typing import Any
from urllib.parse import quote

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

VARIABLE, SITE_VARIABLE = "BOOK_REPOSITORY_URL", "BOOK_SITE_URL"
BINDER = "https://mybinder.org"
# What a teacher fills in.
HUB = "https://YOUR-HUB.example"
UNKNOWN = "https://github.com/OWNER/REPOSITORY"
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


def find_site(repository: str) -> str:
    """Return the site's address, with a slash at its end: the environment's, else that of GitHub Pages, else ""."""
    if given := os.environ.get(SITE_VARIABLE):
        if not re.match(r"https?://[^/]", given):
            raise ExtensionError(f"{SITE_VARIABLE} = {given!r}: expected an address such as https://example.org/book/")
        return given.rstrip("/") + "/"
    match = HOSTS.match(repository)
    if not match or match[1] != "github":
        return ""
    host = f"{match[2].lower()}.github.io"
    return f"https://{host}/" if match[3].lower() == host else f"https://{host}/{match[3]}/"


def report_address(repository: str, title: str, pagename: str) -> str:
    """Return where a reader reports an error on a page, the page already named."""
    subject = quote(f"Error on “{title}” ({pagename})", safe="")
    if HOSTS.match(repository)[1] == "github":
        return f"{repository}/issues/new?title={subject}"
    return f"{repository}/-/issues/new?issue%5Btitle%5D={subject}"


def binder_address(repository: str, branch: str) -> str:
    """Return where Binder opens the chapter's first notebook."""
    host, owner, name = HOSTS.match(repository).groups()
    place = f"gh/{owner}/{name}" if host == "github" else f"gl/{owner}%2F{name}"
    return f"{BINDER}/v2/{place}/{branch}?urlpath=lab/tree/notebooks/01_prefill.ipynb"


def pull_address(repository: str, branch: str) -> str:
    """Return where a JupyterHub's nbgitpuller copies the repository for a student and opens the first notebook."""
    folder = repository.rsplit("/", 1)[-1]
    first = quote(f"lab/tree/{folder}/notebooks/01_prefill.ipynb", safe="")
    return f"{HUB}/hub/user-redirect/git-pull?repo={quote(repository, safe='')}&branch={branch}&urlpath={first}"


def add_buttons(app: Sphinx, config: Config) -> None:
    """Give the theme its repository and launch buttons."""
    repository = find_repository(app.srcdir)
    config.book_repository = repository
    config.html_baseurl = find_site(repository)  # each page then names its own address, too
    if repository:
        config.html_theme_options.update(
            repository_url=repository,
            repository_branch="main",
            use_repository_button=True,
            launch_buttons={"binderhub_url": BINDER, "notebook_interface": "jupyterlab"},
        )


def add_report(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document) -> None:
    """Tell the page's last line where errors are reported."""
    if doctree is not None and app.config.book_repository:
        title = app.env.titles[pagename].astext()
        context["report_address"] = report_address(app.config.book_repository, title, pagename)


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


class PullDirective(SphinxDirective):
    """``{nbgitpuller}``: the link to give to a class; without a repository, with a placeholder for it."""

    def run(self) -> list[nodes.Node]:
        """Return the link as text, since the hub in it is the teacher's own."""
        address = pull_address(self.config.book_repository or UNKNOWN, "main")
        return [nodes.literal_block(address, address, language="text")]


def setup(app: Sphinx) -> None:
    """Register the buttons, the link for errors and the directive."""
    app.add_config_value("book_repository", "", "env", [str])
    app.connect("config-inited", add_buttons)
    app.connect("html-page-context", add_report)
    app.add_directive("binder", BinderDirective)
    app.add_directive("nbgitpuller", PullDirective)
