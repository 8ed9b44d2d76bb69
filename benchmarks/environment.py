"""Where a number was measured: the machine and the versions, without a name of host or user."""

from __future__ import annotations

import os
import platform
import runpy
import subprocess
from importlib.metadata import version
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
CPUINFO = Path("/proc/cpuinfo")
PACKAGES = ("numpy", "matplotlib", "jupyter-book", "ipykernel")


def machine() -> dict[str, str | int | float]:
    """Return CPU model, cores, memory in GB (10^9 bytes) and operating system."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 1e9, 1),
        "os": f"{_system()}, {platform.machine()}",
    }


def versions() -> dict[str, str]:
    """Return the versions that a time depends on."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
        "blas": f"{blas['name']} {blas['version']}",
        "chromium": _chromium_version(),
    }


def chromium() -> str:
    """Return the path of the Chromium that the browser tests use, or stop with one line."""
    path = runpy.run_path(str(ROOT / "tools" / "chromium.py"))["find"]()
    if path is None:
        raise SystemExit("no Chromium found, the widget is measured in one; run: python tools/chromium.py")
    return path


def _cpu() -> str:
    lines = CPUINFO.read_text("utf-8").splitlines() if CPUINFO.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return f"{platform.system()} {platform.release()}"


def _chromium_version() -> str:
    said = subprocess.run([chromium(), "--version"], capture_output=True, text=True, check=True).stdout
    return next(word for word in said.split() if word[0].isdigit())
