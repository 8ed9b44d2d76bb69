"""The widgets on a built page: their modules as one classic script, their styles as one sheet.

Readers open pages from the disk, and browsers refuse ES modules there. The modules import nothing, so that
taking the word ``export`` away and giving each a scope of its own is all that a bundler would do.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from prefill_decode import twin
from prefill_decode.widgets.modules import SHARED
from prefill_decode.widgets.page_only import for_page

from .syntax import find_fault

SOURCE = Path("src/prefill_decode/widgets")
SCRIPTS = ("src/prefill_decode/*/*.js", "book/_ext/*/*.js")
MOUNT = Path(__file__).parent / "mount.js"
MODULES, TWIN = "/* the widgets */", '/* the twin */ ""'

DEFAULT = re.compile(r"^export default\s+", re.MULTILINE)
NAMED = re.compile(r"^export (?=(?:async )?(?:function|const|let|class)\b)", re.MULTILINE)
LEFT_OVER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def as_block(path: Path, source: str) -> str:
    """Turn the ES module of one widget into a block that sets ``widgets[name]``.

    Parameters
    ----------
    path : Path
        Of the module: ``attention_grid.js`` holds the widget whose ``data-widget`` is ``attention-grid``.
    source : str
        Text of a module whose exports are ``export function``, ``export const`` and ``export default``, each at the
        start of a line.

    Raises
    ------
    SystemExit
        If the module imports, or exports in another form.
    """
    name = path.stem.replace("_", "-")
    body = NAMED.sub("", DEFAULT.sub(f'widgets["{name}"] = ', source))
    if line := LEFT_OVER.search(body):
        number = body.count("\n", 0, line.start()) + 1
        raise SystemExit(  # Jupyter Book would bury an exception of Sphinx under its traceback
            f"{path}:{number}: '{line.group()}' cannot be part of a classic script; export at the start of "
            "a line (function, const, default) and import nothing"
        )
    return f'load("{name}", () => {{\n{body}\n}});'


def bundle_script(folder: Path) -> str:
    """Join every widgets/<name>.js with the few lines that mount them; the twin is a text, for a worker to run."""
    shared = NAMED.sub("", SHARED.read_text("utf-8"))  # once, where every block sees it
    modules = [path for path in sorted(folder.glob("*.js")) if path.name != SHARED.name]
    blocks = [as_block(path, path.read_text("utf-8")) for path in modules]
    script = twin.without_comments(MOUNT.read_text("utf-8").replace(MODULES, "\n".join([shared, *blocks])))
    return script.replace(TWIN, json.dumps(twin.source(), ensure_ascii=False))


def bundle_styles(folder: Path) -> str:
    """Join every widgets/*.css but the theme, which all pages load."""
    sheets = [path.read_text("utf-8") for path in sorted(folder.glob("*.css")) if path.name != "theme.css"]
    return twin.without_comments("\n".join(sheets))


def check_scripts(app: Sphinx) -> None:
    """Stop before any notebook runs if a script of the pages does not parse.

    Raises
    ------
    SystemExit
    """
    root = Path(app.srcdir)
    scripts = sorted(path for pattern in SCRIPTS for path in root.glob(pattern))
    if fault := find_fault(root, scripts):
        raise SystemExit(f"{fault}; mend it: no page could run any widget")


def write_assets(app: Sphinx) -> None:
    """Write theme.css, widgets.js and widgets.css where Sphinx picks them up."""
    source, target = Path(app.srcdir) / SOURCE, Path(app.outdir).parent / "assets"
    target.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / "theme.css", target / "theme.css")
    (target / "widgets.js").write_text(bundle_script(source), "utf-8")
    (target / "widgets.css").write_text(bundle_styles(source), "utf-8")
    app.config.html_static_path.append(str(target))
    app.add_css_file("theme.css", priority=400)  # before book.css, which uses its properties


def has_widget(doctree: nodes.document | None) -> bool:
    """Say whether a page shows a widget's HTML."""
    return doctree is not None and any('data-widget="' in raw.astext() for raw in doctree.findall(nodes.raw))


def load_on_page(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document) -> None:
    """Add the widgets' script and styles to pages that show one, and take their controls out of their wrapping."""
    if has_widget(doctree):
        context["body"] = for_page(context["body"])
        app.add_css_file("widgets.css")
        app.add_js_file("widgets.js", loading_method="async", fetchpriority="high")  # runs while the page is being read


def setup(app: Sphinx) -> None:
    """Write the assets once a build, load them page by page."""
    app.connect("builder-inited", check_scripts)
    app.connect("builder-inited", write_assets)
    app.connect("html-page-context", load_on_page)
