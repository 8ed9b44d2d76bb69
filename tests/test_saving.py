"""Saved notebooks keep pictures, and the server is told so."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest
from jupyter_core.paths import jupyter_config_path
from reference import ROOT

from prefill_decode import saving

VIEW = "application/vnd.jupyter.widget-view+json"
FILE = "jupyter_server_config.json"


def notebook(*data: dict) -> dict:
    outputs = [{"output_type": "display_data", "data": dict(each)} for each in data]
    cells = [{"cell_type": "markdown"}, {"cell_type": "code", "outputs": [{"output_type": "stream"}, *outputs]}]
    return {"type": "notebook", "content": {"nbformat": 4, "cells": cells}}


def test_a_view_beside_a_picture_is_dropped_and_nothing_else():
    model = notebook({VIEW: {}, "text/html": "<p>", "text/plain": "x"}, {VIEW: {}, "text/plain": "y"})
    saving.drop_widget_views(model=model, path="a.ipynb", contents_manager=None)
    assert model == notebook({"text/html": "<p>", "text/plain": "x"}, {VIEW: {}, "text/plain": "y"})


@pytest.mark.parametrize("kind", [{"type": "file"}, {"type": "directory"}, {"content": {"nbformat": 3}}])
def test_what_is_no_notebook_of_today_is_left(kind):
    model = {**notebook({VIEW: {}, "text/html": ""}), **kind}
    before = copy.deepcopy(model)
    saving.drop_widget_views(model)
    assert model == before


def test_install_twice_gives_the_same_file(tmp_path):
    first = saving.install(tmp_path / "new"), (tmp_path / "new" / FILE).read_bytes()
    assert (saving.install(tmp_path / "new"), (tmp_path / "new" / FILE).read_bytes()) == first
    told = json.loads(first[1])
    assert told == {"FileContentsManager": {"pre_save_hook": "prefill_decode.saving.drop_widget_views"}}
    assert f"{saving.__name__}.{saving.drop_widget_views.__name__}" == saving.HOOK


def test_install_keeps_other_settings(tmp_path):
    theirs = {"ServerApp": {"port": 1}, "FileContentsManager": {"delete_to_trash": False}}
    (tmp_path / FILE).write_text(json.dumps(theirs))
    saving.install(tmp_path)
    told = json.loads((tmp_path / FILE).read_text())
    assert told["FileContentsManager"].pop("pre_save_hook") == saving.HOOK
    assert told == theirs


def test_install_leaves_another_hook_and_says_so(tmp_path):
    theirs = json.dumps({"FileContentsManager": {"pre_save_hook": "mine.hook"}})
    (tmp_path / FILE).write_text(theirs)
    assert "names another pre_save_hook, mine.hook" in saving.install(tmp_path)
    assert (tmp_path / FILE).read_text() == theirs


def test_a_broken_file_is_one_line(tmp_path):
    (tmp_path / FILE).write_text("{")
    with pytest.raises(ValueError, match=r"is not JSON .*: mend or remove it") as error:
        saving.install(tmp_path)
    assert "\n" not in str(error.value)


def test_the_server_reads_what_install_wrote(tmp_path, monkeypatch):
    """The server that JupyterLab starts drops a view when it saves; the setting reaches the manager it uses."""
    saving.install(tmp_path / "config")
    for name in ("CONFIG", "DATA", "RUNTIME"):
        monkeypatch.setenv(f"JUPYTER_{name}_DIR", str(tmp_path / name.lower()))
    code = (
        "from jupyter_server.serverapp import ServerApp\n"
        "app = ServerApp()\n"
        "app.initialize([], find_extensions=False, new_httpserver=False)\n"
        "hook = app.contents_manager.pre_save_hook\n"
        "print(type(app.contents_manager).__name__, hook.__module__, hook.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == ["AsyncLargeFileManager", "prefill_decode.saving", "drop_widget_views"]


def test_the_environment_s_own_folder_is_where_the_server_looks(tmp_path):
    code = "import runpy, sys\nsys.prefix = sys.argv[1]\nrunpy.run_module('prefill_decode.saving', run_name='__main__')"
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True, capture_output=True)
    assert (tmp_path / "etc" / "jupyter" / FILE).is_file()
    assert str(Path(sys.prefix, "etc", "jupyter")) in jupyter_config_path()


def test_binder_and_make_install_it():
    assert "\npython -m prefill_decode.saving\n" in (ROOT / "postBuild").read_text("utf-8")
    assert "bash postBuild" in (ROOT / "Makefile").read_text("utf-8")
