"""What each notebook needs, as it was measured: the table of the teachers' page."""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from prefill_decode import recorded

HEAD = "| Notebook | Most memory of its kernel | Every cell, start to end | Real weights |\n| --- | ---: | ---: | --- |"


def as_markdown(folder: Path) -> str:
    """Return the table of all notebooks in a folder, from the record of ``make bench PARTS=notebooks``.

    A new one is told as not yet measured: `make bench` itself needs a book that can be built.
    """
    run = recorded.read("notebooks")
    rows = "\n".join(_row(path, run) for path in sorted(folder.glob("*.ipynb")))
    return f"{HEAD}\n{rows}\n\nMeasured on {run.where}. Your seconds will differ, your memory hardly."


def _row(path: Path, run: recorded.Run) -> str:
    peak, seconds = (_amount(run.measures.get(f"{path.stem}_{what}")) for what in ("peak_mb", "seconds"))
    weights = "yes" if "smollm2.load(" in path.read_text("utf-8") else "no"
    return f"| [](/notebooks/{path.name}) | {peak} | {seconds} | {weights} |"


def _amount(measure: recorded.Measure | None) -> str:
    return "not yet measured" if measure is None else f"{measure.value:,.0f} {measure.unit}"


class NeedsDirective(SphinxDirective):
    """``{notebook-needs}``: the table."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        return self.parse_text_to_nodes(as_markdown(Path(self.env.srcdir, "notebooks")))


def setup(app: Sphinx) -> None:
    """Register the directive; pages with it are as new as the record."""
    app.add_directive("notebook-needs", NeedsDirective)
