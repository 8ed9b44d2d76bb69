"""What nobody sees on this machine: the workflows, and what Binder makes of the files in the root."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import PurePosixPath

import pytest
import yaml
from reference import ROOT

FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(path for path in FOLDER.glob("*") if path.suffix in {".yml", ".yaml"})
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
USES = re.compile(r"^\s*(?:- )?uses:\s*(.+)$", re.M)
PINNED = re.compile(r"([\w.-]+/[\w./-]+)@([0-9a-f]{40}) # v\d+\.\d+\.\d+")
# Any of these in the root, or such a folder, and repo2docker would not look at requirements.txt.
PREFERRED_BY_BINDER = ("binder", ".binder", "Dockerfile", "environment.yml", "Pipfile", "Pipfile.lock", "Project.toml",
                       "REQUIRE", "default.nix", "DESCRIPTION", "install.R")  # fmt: skip


def load(path):
    return yaml.safe_load(path.read_text("utf-8"))


def jobs(path):
    return list(load(path)["jobs"].values())


def steps(path):
    return [step for job in jobs(path) for step in job["steps"]]


def name_of(requirement):
    """Return a requirement's name as package indexes compare names."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def lines(name):
    """Return a requirements file's lines without comments."""
    stripped = (line.split("#")[0].strip() for line in (ROOT / name).read_text("utf-8").splitlines())
    return [line for line in stripped if line]


def supported():
    """Return the Pythons of `requires-python`, e.g. ["3.11", "3.12"] for ">=3.11,<3.13"."""
    first, end = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", PROJECT["project"]["requires-python"]).groups()
    return [f"3.{minor}" for minor in range(int(first), int(end))]


def locked_for():
    """Return the Pythons that `make lock` resolves for."""
    return set(re.findall(r"--python-version (\S+)", (ROOT / "Makefile").read_text("utf-8")))


def test_there_are_two_workflows():
    assert [path.name for path in WORKFLOWS] == ["publish.yml", "test.yml"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
class TestWorkflow:
    def test_every_action_is_pinned_by_commit_with_its_version(self, path):
        written = USES.findall(path.read_text("utf-8"))
        assert len(written) == sum("uses" in step for step in steps(path)) > 0  # none is written in another way
        assert [action for action in written if not PINNED.fullmatch(action)] == []

    def test_it_may_only_read_but_for_the_deployment(self, path):
        assert load(path)["permissions"] == {"contents": "read"}
        allowed = {"pages": "write", "id-token": "write"}
        granted = [job["permissions"] for job in jobs(path) if "permissions" in job]
        assert granted == ([allowed] if path.stem == "publish" else [])

    def test_it_knows_no_secret_and_keeps_no_credentials(self, path):
        text = path.read_text("utf-8")
        assert not re.search(r"secrets|github\.token|GITHUB_TOKEN|pull_request_target|workflow_run", text)
        checkouts = [step for step in steps(path) if step.get("uses", "").startswith("actions/checkout@")]
        assert checkouts
        assert all(step["with"]["persist-credentials"] is False for step in checkouts)

    def test_no_text_of_an_event_reaches_a_shell(self, path):
        assert [step["run"] for step in steps(path) if "${{" in step.get("run", "")] == []

    def test_what_it_makes_the_makefile_has(self, path):
        targets = re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text("utf-8"), flags=re.M)
        made = [step["run"].split()[-1] for step in steps(path) if step.get("run", "").startswith("make ")]
        assert made
        assert set(made) <= set(targets)

    def test_it_ends(self, path):
        assert all(job["timeout-minutes"] <= 60 for job in jobs(path))


def test_an_action_has_one_version_in_all_workflows():
    used = {match.group(1, 2) for path in WORKFLOWS for match in PINNED.finditer(path.read_text("utf-8"))}
    assert len(used) == len({action for action, _ in used})


def test_every_supported_python_is_tested():
    workflow = load(FOLDER / "test.yml")
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == supported()
    assert {"push", "pull_request"} <= set(workflow[True])  # YAML 1.1 reads the key `on` as true


def test_what_cannot_be_audited_fails():
    [line] = [step["run"] for step in steps(FOLDER / "test.yml") if "pip_audit" in step.get("run", "")]
    assert {"--strict", "--require-hashes", "requirements.lock"} <= set(line.split())


def test_what_is_published_was_tested_and_comes_from_main():
    workflow = load(FOLDER / "publish.yml")
    assert workflow[True] == {"push": {"branches": ["main"]}}
    build, deploy = workflow["jobs"]["build"], workflow["jobs"]["deploy"]
    order = [step.get("run", step.get("uses", "")) for step in build["steps"]]
    tested = order.index("make PYTHON=python test")
    zipped = next(i for i, text in enumerate(order) if "zipfile" in text)
    uploaded = next(i for i, text in enumerate(order) if text.startswith("actions/upload-pages-artifact@"))
    assert tested < zipped < uploaded
    assert build["steps"][uploaded]["with"]["path"] == "_build/html"
    assert deploy["needs"] == "build"


def zip_a_site(folder, time, mode):
    """Make a small site whose files have this time and mode, and run the workflow's step in it."""
    site = folder / "_build" / "html"
    for name in ("notebooks/01.html", "index.html", "_static/a b.js", ".buildinfo"):
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}: ü" * 100, "utf-8")
        path.chmod(mode)
        os.utime(path, (time, time))
    script = next(step["run"] for step in steps(FOLDER / "publish.yml") if step.get("shell") == "python")
    subprocess.run([sys.executable, "-c", script], cwd=folder, check=True)
    return site


def test_the_zip_is_the_site_in_one_folder_and_the_same_bytes_each_time(tmp_path):
    first = zip_a_site(tmp_path / "first", 1_000_000_000, 0o644)
    second = zip_a_site(tmp_path / "second", 1_500_000_000, 0o600)
    archive = first / "prefill-decode.zip"
    assert archive.read_bytes() == (second / archive.name).read_bytes()
    with zipfile.ZipFile(archive) as zipped:
        contents = {name: zipped.read(name) for name in zipped.namelist()}
    assert list(contents) == sorted(contents, key=PurePosixPath)
    there = [path for path in first.rglob("*") if path.is_file() and path != archive]
    assert contents == {f"prefill-decode/{path.relative_to(first).as_posix()}": path.read_bytes() for path in there}


def test_binder_and_the_workflows_take_the_python_that_the_lock_was_made_for():
    runtime = (ROOT / "runtime.txt").read_text("utf-8").strip()
    version = re.fullmatch(r"python-(3\.\d+)", runtime)[1]  # repo2docker takes x.y, neither x nor x.y.z
    assert version in supported()
    assert locked_for() == {version}
    single = {step["with"]["python-version"] for path in WORKFLOWS for step in steps(path)
              if step.get("uses", "").startswith("actions/setup-python@")}  # fmt: skip
    assert single == {version, "${{ matrix.python }}"}


def test_nothing_hides_the_requirements_from_binder():
    assert [name for name in PREFERRED_BY_BINDER if (ROOT / name).exists()] == []


def test_every_direct_dependency_has_its_version_in_the_constraints():
    options = [line for line in lines("requirements.txt") if line.startswith("-")]
    assert options == ["-c constraints.txt", "-e ."]
    pins = lines("constraints.txt")
    assert all(re.match(r"[\w.-]+==[^\s;]+( ; .+)?$", pin) for pin in pins)
    direct = [line for line in lines("requirements.txt") if line not in options] + PROJECT["project"]["dependencies"]
    everywhere = {name_of(pin) for pin in pins if ";" not in pin}
    assert {name_of(requirement) for requirement in direct} - everywhere == set()


def test_the_library_is_whole_when_it_is_not_run_from_its_source():
    """Binder installs it a second time, and not in place: a file that the package forgets is missing there alone."""
    package = ROOT / "src" / "prefill_decode"
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["prefill_decode"]
    shipped = {path for pattern in patterns for path in package.glob(pattern)}
    code = set(package.rglob("*.py"))
    data = {path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts} - code
    assert data
    assert data - shipped == set()
    assert all((path.parent / "__init__.py").exists() for path in code)
