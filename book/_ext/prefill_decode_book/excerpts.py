"""Show a widget of an executed notebook on a page that is not run.

    ```{widget} notebooks/01_prefill attention-grid
    ```

A third argument, counted from 0, chooses among several of one kind. The page then shows what the cell returned in
this very build: a number cannot grow old there.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

LOGGER = logging.getLogger(__name__)


class pending_widget(nodes.Element):  # noqa: N801 (docutils names its nodes so)
    """A place for a widget, filled when every notebook has been run."""


class WidgetDirective(SphinxDirective):
    """``{widget} <notebook> <name> [index]``."""

    required_arguments = 2
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Leave a place to be filled."""
        notebook, name, *index = self.arguments
        place = pending_widget(notebook=notebook, widget=name, index=int(index[0]) if index else 0)
        self.set_source_info(place)
        return [place]


def find_widgets(env: BuildEnvironment, notebook: str, name: str) -> list[nodes.raw]:
    """Return the HTML outputs of a notebook that are widgets of one kind, in order."""
    if notebook not in env.found_docs:
        return []
    mark = f'data-widget="{name}"'
    return [raw for raw in env.get_doctree(notebook).findall(nodes.raw) if mark in raw.astext()]


class FillPlaces(SphinxPostTransform):
    """Put each widget in its place; a missing one is a warning, and so fails the build."""

    default_priority = 3  # before myst-nb chooses among the formats of an output

    def run(self, **_: object) -> None:
        """Fill every place of the document."""
        for place in list(self.document.findall(pending_widget)):
            notebook, name, index = place["notebook"], place["widget"], place["index"]
            found = find_widgets(self.env, notebook, name)
            if index < len(found):
                place.replace_self(nodes.raw("", found[index].astext(), format="html"))
            else:
                LOGGER.warning(
                    "no widget %s number %s in %s: it has %s; show it in a cell there",
                    name,
                    index,
                    notebook,
                    len(found),
                    location=place,
                )
                place.parent.remove(place)


def setup(app: Sphinx) -> None:
    """Register the directive and what fills it."""
    app.add_node(pending_widget)
    app.add_directive("widget", WidgetDirective)
    app.add_post_transform(FillPlaces)
