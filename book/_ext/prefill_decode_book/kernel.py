"""The kernels that run the notebooks: the same for every reader."""

import os
from pathlib import Path

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


def setup(app: Sphinx) -> None:
    """Isolate before the first notebook runs."""
    app.connect("builder-inited", isolate_kernels)
