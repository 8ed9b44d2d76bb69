"""The peer of a widget step: a Jupyter kernel that draws the same picture with Matplotlib and sends it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import start_new_kernel

TIMEOUT = 60  # seconds
SETUP = """
%matplotlib inline
import matplotlib.pyplot as plt
import numpy as np
weights = np.load({path!r})  # [T, T]
"""
DRAW = """
shown = np.full_like(weights, np.nan)
shown[:{step}] = weights[:{step}]
plt.imshow(shown, vmin=0, vmax=1)
plt.show()
"""


@contextmanager
def drawing_kernel(weights: np.ndarray, folder: Path) -> Iterator[BlockingKernelClient]:
    """Start a kernel that holds the weights of one head, and stop it at the end.

    Parameters
    ----------
    weights : ndarray, [T, T]
    folder : Path
        Where the weights may be left for it.
    """
    path = folder / "weights.npy"
    np.save(path, weights)
    # its errors come in its replies; on standard error it only warns about its transport
    manager, client = start_new_kernel(stderr=subprocess.DEVNULL)
    try:
        _run(client, SETUP.format(path=str(path)))
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def redraw_seconds(client: BlockingKernelClient, step: int) -> float:
    """Return the time from the request to draw ``step`` rows until picture and reply are here."""
    start = time.perf_counter()
    pictures = _run(client, DRAW.format(step=step))
    elapsed = time.perf_counter() - start
    if pictures != 1:
        raise RuntimeError(f"the kernel sent {pictures} pictures, expected 1: look at the code it was given")
    return elapsed


def _run(client: BlockingKernelClient, code: str) -> int:
    messages = []
    reply = client.execute_interactive(code, timeout=TIMEOUT, output_hook=messages.append)
    if reply["content"]["status"] != "ok":
        raise RuntimeError(f"the kernel answered {reply['content'].get('evalue')!r} to {code.strip()[:40]!r}")
    return sum("image/png" in message["content"].get("data", {}) for message in messages)
