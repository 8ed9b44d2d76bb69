"""What is too slow for every `make test`: the same results on other machines, as far as one machine can show it.

python tools/verify.py            all parts
python tools/verify.py cpus lab   some of them
"""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
HTML = Path("_build", "html")
BLAS_KERNELS = ("Haswell", "Nehalem")  # `make test` has this machine's own, and the oldest runs without SIMD below
PYTHONS = ("3.11", "3.12", "3.13")
# A folder name and an environment that have broken builds elsewhere.
ODD_FOLDER = "a path with späces – и буквы"
# Tests that read or write files, start processes or open pages: a path can break these, not an array.
ABOUT_PLACES = tuple(
    f"tests/{name}.py"
    for name in ("browser/test_pages", "test_cli", "test_example", "test_notebooks", "test_publishing", "test_smollm2")
)
ODD_ENVIRONMENT = {"TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "77"}


def cpus() -> None:
    """Compare every notebook cell under other BLAS kernels, and without SIMD in NumPy."""
    for kernel in BLAS_KERNELS:
        _pytest("--nbval", "notebooks", "-n", "2", "--dist", "loadscope", OPENBLAS_CORETYPE=kernel)
    slow = {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": _simd_features()}
    _pytest("--nbval", "notebooks", "-n", "2", "--dist", "loadscope", **slow)
    _pytest("tests/test_model.py", "tests/test_attention.py", "tests/test_observe.py", **slow)


def pythons() -> None:
    """Run everything but the browser under every other supported Python that is on this machine."""
    for version, executable in _other_pythons():
        with tempfile.TemporaryDirectory() as folder:
            clone = _clone(Path(folder, f"python{version}"))
            _run("make", f"PYTHON={executable}", ".venv/.complete", cwd=clone)
            _pytest(
                "--nbval", "tests", "notebooks", "-n", "2", "--dist", "loadscope",
                "--ignore", "tests/browser", "--ignore", "tests/lab", cwd=clone,
            )  # fmt: skip


def elsewhere() -> None:
    """Build again in an oddly named folder and another time zone: the same bytes must come out. Then the C locale."""
    with tempfile.TemporaryDirectory() as folder:
        clone = _clone(Path(folder, ODD_FOLDER))
        _run("make", f"PYTHON={sys.executable}", "build", cwd=clone, **ODD_ENVIRONMENT)
        different = list(_differences(filecmp.dircmp(ROOT / HTML, clone / HTML)))
        if different:
            raise SystemExit("two builds differ in: " + ", ".join(different[:20]))
        _pytest(*ABOUT_PLACES, "-n", "2", "--dist", "loadscope", cwd=clone, **ODD_ENVIRONMENT)
    # here, since pip itself cannot install into a folder whose name its locale cannot spell
    _pytest("tests/test_cli.py", "tests/test_smollm2.py", LC_ALL="C", **ODD_ENVIRONMENT)


def rewritten() -> None:
    """Run every notebook anew, as `make notebooks` does, in the C locale and another time zone: the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        clone = _clone(Path(folder, "rewritten"))
        names = sorted(str(path.relative_to(clone)) for path in clone.glob("notebooks/*.ipynb"))
        odd = {"PYTHONPATH": str(clone / "src"), "LC_ALL": "C", **ODD_ENVIRONMENT}
        _run(sys.executable, "tools/notebooks.py", *names, cwd=clone, **odd)
        different = [name for name in names if (ROOT / name).read_bytes() != (clone / name).read_bytes()]
        if different:
            raise SystemExit(f"run again, these are other bytes: {', '.join(different)}; run: make notebooks")


def lab() -> None:
    """Run every notebook in JupyterLab, with a real browser."""
    _pytest("tests/lab")


PARTS: dict[str, Callable[[], None]] = {part.__name__: part for part in (cpus, lab, rewritten, elsewhere, pythons)}


def main(names: list[str]) -> None:
    """Run the parts in order; the first failure ends it."""
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise SystemExit(f"no part is called {unknown[0]!r}: there are {', '.join(PARTS)}")
    for name in names or PARTS:
        start = time.monotonic()
        print(f"== {name}: {PARTS[name].__doc__}", flush=True)
        PARTS[name]()
        print(f"== {name}: as expected, {time.monotonic() - start:.0f} s", flush=True)


def _pytest(*args: str, cwd: Path = ROOT, **env: str) -> None:
    # one thread each: two workers' threads would wait for each other's cores
    env = {"OPENBLAS_NUM_THREADS": "1", **env}
    _run(str(Path(".venv", "bin", "python")), "-m", "pytest", "-q", *args, cwd=cwd, **env)


def _run(*command: str, cwd: Path = ROOT, **env: str) -> None:
    told = " ".join(f"{key}={value}" for key, value in env.items())
    print(f"-- {told} {' '.join(command)}", flush=True)
    status = subprocess.run(command, cwd=cwd, env={**os.environ, **env}, check=False).returncode
    if status:
        raise SystemExit(f"failed with status {status}: {' '.join(command)}")


def _clone(target: Path) -> Path:
    """Copy what git tracks or would track, as it stands, into a repository of its own."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name, follow_symlinks=False)  # benchmarks/recorded.json is a link
    subprocess.run(["git", "init", "-q"], cwd=target, check=True)
    return target


def _differences(both: filecmp.dircmp) -> Iterator[str]:
    _, changed, unreadable = filecmp.cmpfiles(both.left, both.right, both.common_files, shallow=False)
    for name in (*both.left_only, *both.right_only, *changed, *unreadable):
        yield str(Path(both.left, name).relative_to(ROOT / HTML))
    for inner in both.subdirs.values():
        yield from _differences(inner)


def _simd_features() -> str:
    """Return what this NumPy would use on this CPU beyond its baseline."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return " ".join(name for name in __cpu_dispatch__ if __cpu_features__.get(name))


def _other_pythons() -> Iterator[tuple[str, str]]:
    """Yield the other supported Pythons on the PATH, or among pyenv's versions, and name those that are not there."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    for version in PYTHONS:
        if version == "{}.{}".format(*sys.version_info):
            continue
        candidates = [shutil.which(f"python{version}"), *map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))]
        # a version manager's shim can be on the PATH without a Python behind it
        works = [
            c for c in candidates if c and not subprocess.run([c, "-c", "import venv"], capture_output=True).returncode
        ]
        if works:
            yield version, works[0]
        else:
            print(f"-- Python {version} is not on this machine: not checked", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
