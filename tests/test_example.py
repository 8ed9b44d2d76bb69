"""The chapter in one file: its output, its size, and that each of its claims can fail."""

import ast
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from prefill_decode.config import Config
from prefill_decode.model import Layer, Model, forward

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPT = EXAMPLES / "prefill_decode.py"
SOURCE = SCRIPT.read_text(encoding="utf-8")
EXPECTED = (EXAMPLES / "expected_output.txt").read_text(encoding="utf-8")
SIMD = np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", [])

KERNELS = {
    "this machine's": {},
    "without wide vectors in NumPy": {"NPY_DISABLE_CPU_FEATURES": " ".join(SIMD)},
    "Prescott": {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": " ".join(SIMD)},
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
}

# what is broken: (text of the file, its replacement, the claim that must fail)
MUTATIONS = {
    "mask shifted by one, own key hidden": ("n_keys - n_queries, dtype", "n_keys - n_queries - 1, dtype", "a pencil"),
    "mask shifted by one, next key seen": ("n_keys - n_queries, dtype", "n_keys - n_queries + 1, dtype", "a pencil"),
    "mask aligned upper left": ("n_keys - n_queries, dtype", "0, dtype", "one query row"),
    "mask not applied": ("np.where(mask, scores, -np.inf)", "scores", "a pencil"),
    "mask forgotten in the model": ("causal_mask(n, past + n)", "np.ones((n, past + n), bool)", "= 10 pairs"),
    "mask upside down in the model": ("causal_mask(n, past + n)", "causal_mask(n, past + n)[::-1]", "one triangle"),
    "1/sqrt(d) forgotten": (" / np.sqrt(q.shape[-1])", "", "a pencil"),
    "positions restart after prefill": ("past + np.arange(n)", "np.arange(n)", "every position"),
    "first prompt key never written": ("= k, v, end", "= k * np.sign(range(start, end))[:, None], v, end", "4 keys"),
    "KV heads in turn": ("np.repeat(x, len(q) // len(x), axis=0)", "np.tile(x, (len(q) // len(x), 1, 1))", "share"),
    "KV heads swapped": ("np.repeat(x, ", "np.repeat(x[::-1], ", "share KV"),
    "key heads swapped": ("q @ k.swap", "q @ k[::-1].swap", "share KV"),
    "value heads swapped": ("weights @ v ", "weights @ v[::-1] ", "share KV"),
    "key heads swapped in the cache": ("= k, v, end", "= k[::-1], v, end", "only the last row"),
    "keys stored as values": ("= k, v, end", "= v, k, end", "only the last row"),
    "logits of the first row": ("x[-1]", "x[0]", "only the last row"),
    "a decode pass in two rows": ("[token], cache", "[token] * 2, cache", "one query row"),
    "prefill without the last prompt token": ("else prefill(model, ids,", "else prefill(model, ids[:-1],", "1 prefill"),
    "last token counted as cached": ("return ids, trace, len(cache)", "return ids, trace, len(ids)", "not fed back"),
    "one row a pass without a cache": ("forward(model, ids, None", "forward(model, ids[-1:], None", "rows: T = 9"),
    "masked pairs counted": ("in (len, np.sum)", "in (len, np.size)", "pairs: T(T + 1)/2"),
    "an old token fed again": ("ids[-1], cache", "ids[0], cache", "the same tokens"),
    "the last token not changed": ("(after, 7)", "(after, 5)", "not one bit"),
    "mask shifted on one side only": ("late[:3, :3]", "causal_mask(3, 3)", "still equals"),
    "mask not shifted in experiment 7": ("np.tri(4, 4, -1", "np.tri(4, 4, 0", "both are wrong"),
}  # fmt: skip


def run(script: Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=cwd,
        env=os.environ | {"PYTHONHASHSEED": "random"} | environment,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_output_is_the_recorded_one(kernel: str, tmp_path: Path) -> None:
    done = run(SCRIPT, tmp_path, **KERNELS[kernel])
    assert done.returncode == 0, done.stderr
    assert done.stdout == EXPECTED


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_copy_stops_at_the_claim_it_breaks(name: str, tmp_path: Path) -> None:
    old, new, claim = MUTATIONS[name]
    assert SOURCE.count(old) == 1, f"{old!r} should occur once in {SCRIPT.name}"
    broken = tmp_path / SCRIPT.name
    broken.write_text(SOURCE.replace(old, new), encoding="utf-8")
    done = run(broken, tmp_path)
    assert done.returncode == 1
    last_line = done.stderr.strip().splitlines()[-1]
    assert last_line.startswith("AssertionError: ")
    assert claim in last_line
    assert claim not in done.stdout


def test_every_claim_is_broken_by_a_mutation() -> None:
    claims = [line for line in EXPECTED.splitlines() if "verified:" in line]
    fragments = [claim for _, _, claim in MUTATIONS.values()]
    unbroken = [line for line in claims if not any(fragment in line for fragment in fragments)]
    assert len(claims) == 16
    assert not unbroken


def test_claims_are_checked_under_python_o_as_well(tmp_path: Path) -> None:
    broken = tmp_path / SCRIPT.name
    broken.write_text(SOURCE.replace(" / np.sqrt(q.shape[-1])", ""), encoding="utf-8")
    assert run(broken, tmp_path, PYTHONOPTIMIZE="1").returncode == 1


def test_chosen_tokens_win_by_more_than_the_noise(capsys: pytest.CaptureFixture) -> None:
    names = runpy.run_path(str(SCRIPT))
    n_prompt = len(names["PROMPT"])
    rows = names["forward"](names["model"], names["ids"][:-1])[n_prompt - 1 :]  # [m, vocab]
    best, second = np.sort(rows, axis=-1)[:, [-1, -2]].T
    assert len(rows) == 6
    assert (best - second).min() > 0.1


def test_the_library_computes_the_same_logits_with_these_weights(capsys: pytest.CaptureFixture) -> None:
    names = runpy.run_path(str(SCRIPT))
    w, sizes = names["model"], {name.lower(): size for name, size in names.items() if name[:2] in ("N_", "D_")}
    config = Config(**sizes, vocab_size=names["VOCAB"], n_ctx=32, rope_theta=10_000.0, norm_eps=1e-5)
    layers = tuple(
        Layer(
            attention_norm=w.attention_gain[i],
            qkv=np.concatenate([w.q[i], w.k[i], w.v[i]], axis=1).T,  # [(h + 2 h_kv) d, D]
            output=w.out[i].T,
            ffn_norm=w.ffn_gain[i],
            gate_up=np.concatenate([w.gate[i], w.up[i]], axis=1).T,  # [2 F, D]
            down=w.down[i].T,
        )
        for i in range(config.n_layers)
    )
    library_model = Model(config, w.embedding, layers, w.final_gain, np.dtype(np.float64))
    expected = names["forward"](w, names["ids"])
    np.testing.assert_allclose(forward(library_model, names["ids"]), expected, rtol=0, atol=1e-12)


def test_file_is_short_and_plain_text() -> None:
    assert len(SOURCE.splitlines()) < 200
    assert SOURCE.isascii()
    assert EXPECTED.isascii()


def test_imports_are_numpy_and_the_standard_library() -> None:
    nodes = list(ast.walk(ast.parse(SOURCE)))
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert "numpy" in modules
    assert {module.partition(".")[0] for module in modules} - {"numpy"} <= sys.stdlib_module_names


def test_no_function_is_longer_than_23_lines() -> None:
    functions = [node for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, ast.FunctionDef)]
    lengths = {node.name: node.end_lineno - node.lineno + 1 for node in functions}
    assert lengths["forward"] > 10
    assert {name: length for name, length in lengths.items() if length > 23} == {}
