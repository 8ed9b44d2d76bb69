"""The theme's icons: of the 2,000 in its web fonts, and of as many rules for them, those that the pages show."""

import re
from pathlib import Path

from fontTools import subset
from sphinx.application import Sphinx

SHEET = "_static/styles/pydata-sphinx-theme.css"
FONTS = "_static/vendor/fontawesome/webfonts"
NAME = re.compile(r"\bfa-[a-z0-9-]+")
# .fa-xmark:before,.fa-close:before{content:"\f00d"}
RULE = re.compile(r'((?:\.fa-[a-z0-9-]+:before,?)+)\{content:"[^"]*"\}')
# The sheet writes a sign as \f00d or as itself; both lie in the part of Unicode that is left to fonts.
SIGN = re.compile(r'"(?:\\(f[0-9a-f]{3})|([\ue000-\uf8ff]))"')
SOURCES = re.compile(r'(url\([^()]+)\.woff2\) format\("woff2"\),url\([^()]+\.ttf\) format\("truetype"\)')


def names_of(folder: Path) -> set[str]:
    """Return the icons that pages name, or scripts, which put some there later."""
    texts = [*folder.rglob("*.html"), *folder.glob("_static/*.js"), *folder.glob("_static/scripts/*.js")]
    return {name for path in texts for name in NAME.findall(path.read_text("utf-8"))}


def prune_rules(sheet: str, names: set[str]) -> str:
    """Leave out the rules of all other icons, and ask for the fonts in the form in which they are written here."""
    rules = RULE.sub(lambda rule: rule[0] if names & set(NAME.findall(rule[1])) else "", sheet)
    pruned, count = SOURCES.subn(r'\1.woff) format("woff")', rules)
    if count != 3:
        raise ValueError(f"{count} icon fonts in the theme's style sheet, expected 3: adapt SOURCES to this theme")
    return pruned


def signs_of(sheet: str) -> set[int]:
    """Return the code points of all icons that a sheet shows."""
    return {int(code, 16) if code else ord(sign) for code, sign in SIGN.findall(sheet)}


def write_font(path: Path, signs: set[int]) -> None:
    """Write the part of a font that has these signs beside it, as WOFF, which needs no other package."""
    options = subset.Options(flavor="woff", layout_features=[], name_IDs=["*"])  # its licence is one of its names
    font = subset.load_font(path, options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=signs)
    subsetter.subset(font)
    subset.save_font(font, path.with_suffix(".woff"), options)


def prune_icons(app: Sphinx, error: Exception | None) -> None:
    """Replace the fonts and their rules by those of the icons in use."""
    folder = Path(app.outdir)
    if error is not None or app.builder.format != "html":
        return
    sheet = folder / SHEET
    text = prune_rules(sheet.read_text("utf-8"), names_of(folder))
    sheet.write_text(text, "utf-8")
    for path in (folder / FONTS).glob("*.ttf"):
        write_font(path, signs_of(text))
        path.unlink()
        path.with_suffix(".woff2").unlink()


def setup(app: Sphinx) -> None:
    """Prune what was copied."""
    app.connect("build-finished", prune_icons)
