"""The kernels that run the notebooks: the same for every reader."""

import os
from functools import partial
from pathlib import Path

from jupyter_cache.executors.utils import single_nb_execution
from myst_nb.core.execute import direct
from sphinx.application import Sphinx

# A kernel's remarks on its sockets are no news in a build.
SETTINGS = "c = get_config()\nc.IPKernelApp.log_level = 'ERROR'\nc.HistoryManager.enabled = False\n"


def isolate_kernels(app: Sphinx) -> None:
    """Give kernels a profile of the build, so that a reader's own start-up files change no page."""
    folder = Path(app.outdir).parent / "ipython"
    profile = folder / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "ipython_kernel_config.py").write_text(SETTINGS, "utf-8")
    os.environ["IPYTHONDIR"] = str(folder)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a second thread that waits for a busy core costs far more


def join_streams(_app: Sphinx) -> None:
    """Let the client join what a cell printed: where a kernel cuts a line depends on the moment.

    MyST-NB's own joining (nb_merge_streams) ends every piece as if it were a line; by then there is one piece.
    """
    direct.single_nb_execution = partial(single_nb_execution, coalesce_streams=True)


def setup(app: Sphinx) -> None:
    """Prepare before the first notebook runs."""
    app.connect("builder-inited", isolate_kernels)
    app.connect("builder-inited", join_streams)
