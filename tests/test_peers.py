"""Other engines are measured fairly: same weights, same tokens, same computation; one that is absent is told."""

import itertools
import re
import sys

import numpy as np
import pytest
from gguf import GGUFReader
from reference import ROOT

from benchmarks import __main__ as bench
from benchmarks import peers, record, results
from benchmarks.measure import CannotMeasureError
from benchmarks.peers import contest, handover, install, serve
from benchmarks.peers.worker import THREAD_VARIABLES, Worker
from prefill_decode import smollm2
from prefill_decode.model import forward
from prefill_decode.recorded import Missing, read_all

IDS = np.array([5, 3, 7, 1, 2, 6])


class Noting(serve.Decoder):
    """Note what it is asked; the logits are how many tokens it has seen."""

    name = "noting"

    def __init__(self):
        self.asked = []

    def prefill(self, ids):
        self.asked.append(("prefill", ids.tolist()))
        return np.array([len(ids)])

    def keep(self, n):
        self.asked.append(("keep", n))

    def step(self, token):
        self.asked.append(("step", token))
        return np.array([0])


class Answering:
    """Stand in for a worker: it agrees with ours, is twice as fast, and neither is always at its best."""

    def __init__(self, python, script, folder):
        self.name = script
        self.factor = {"run_ours.py": 2, "run_llama_cpp_packed.py": 8}.get(script, 4)
        self.slowness = itertools.cycle([0.1, 0.1, 3, 2, 1, 2, 3])  # what comes before it is warm does not count

    def ask(self, request):
        what, n = request.split()
        if what == "logits":
            return [[0.0, 1.0], [1.0, 0.0]]
        return int(n) / 64 / self.factor * next(self.slowness)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


@pytest.fixture
def answering(monkeypatch):
    monkeypatch.setattr(contest, "Worker", Answering)
    monkeypatch.setattr(contest, "PAUSE", 0)
    monkeypatch.setattr(contest, "_prepare", lambda folder: None)
    monkeypatch.setattr(contest, "python_with", lambda requirements: "python")


# --- the same weights


def test_the_gguf_file_holds_the_model(toy_model, tmp_path):
    handover.hand_over(toy_model, IDS, tmp_path)
    reader = GGUFReader(tmp_path / "weights.gguf")
    w = {t.name: t.data for t in reader.tensors}
    c, layer = toy_model.config, toy_model.layers[1]
    q = smollm2._split_pairs(w["blk.1.attn_q.weight"], c.n_heads)
    k = smollm2._split_pairs(w["blk.1.attn_k.weight"], c.n_kv_heads)
    assert np.array_equal(np.concatenate([q, k, w["blk.1.attn_v.weight"]]), layer.qkv)
    assert np.array_equal(np.concatenate([w["blk.1.ffn_gate.weight"], w["blk.1.ffn_up.weight"]]), layer.gate_up)
    assert np.array_equal(w["token_embd.weight"], toy_model.embedding)
    assert sum(x.size for x in w.values()) == toy_model.n_params
    assert all(x.dtype == np.float32 for x in w.values())
    assert {"llama.attention.head_count": c.n_heads, "llama.attention.head_count_kv": c.n_kv_heads}.items() <= {
        name: field.contents() for name, field in reader.fields.items() if name.startswith("llama.")
    }.items()


def test_the_real_model_written_and_read_by_the_loader_is_the_same_configuration(real_model, tmp_path):
    handover._write_gguf(real_model, tmp_path / "weights.gguf")
    reader = GGUFReader(tmp_path / "weights.gguf")
    tensors = {t.name: t for t in reader.tensors}
    assert smollm2._config(reader.fields) == real_model.config
    read, kept = smollm2._layer(tensors, 7, real_model.config), real_model.layers[7]
    assert all(np.array_equal(getattr(read, name), getattr(kept, name)) for name in vars(kept))


def test_arrays_are_handed_over_by_the_names_of_the_model(toy_model, tmp_path):
    handover.hand_over(toy_model, IDS, tmp_path)
    w = np.load(tmp_path / "weights.npz")
    assert np.array_equal(w["1.down"], toy_model.layers[1].down)
    assert len(w.files) == len(toy_model.arrays())
    assert np.array_equal(np.load(tmp_path / "ids.npy"), IDS)


# --- the same computation


def test_the_worker_with_our_decoder_computes_what_the_library_does(real_model, tmp_path):
    np.save(tmp_path / "ids.npy", IDS)
    with Worker(sys.executable, "run_ours.py", tmp_path) as worker:
        prompt, step = worker.ask("logits 4")
        assert worker.ask("prefill 3") > 0
        assert worker.ask("decode 3") > 0
    np.testing.assert_allclose(prompt, forward(real_model, IDS[:4], logits="last"), atol=contest.TOLERANCE)
    np.testing.assert_allclose(step, forward(real_model, IDS[:5], logits="last"), atol=contest.TOLERANCE)


def test_every_decode_step_finds_as_many_entries():
    decoder = Noting()
    assert serve.decode_seconds(decoder, IDS, 4) >= 0
    assert decoder.asked == [("prefill", [5, 3, 7, 1]), *[("keep", 4), ("step", 2)] * serve.STEPS]


def test_another_token_or_another_logit_is_another_computation():
    ours = [[0.0, 1.0], [5.0, 1.0]]
    contest.check_agreement(ours, [[0.0005, 1.0], [5.0, 0.9995]])
    with pytest.raises(CannotMeasureError, match="likeliest next token is another one"):
        contest.check_agreement(ours, [[0.0, 1.0], [0.9999, 1.0]])
    with pytest.raises(CannotMeasureError, match=r"a logit differs by 0\.002, over 0\.001"):
        contest.check_agreement(ours, [[0.0, 1.002], [5.0, 1.0]])
    with pytest.raises(CannotMeasureError):
        contest.check_agreement(ours, [[0.0, 1.0, 0.0], [5.0, 1.0, 0.0]])


# --- what becomes a measure


def test_rates_are_tokens_a_second_against_each_peer(answering):
    measured = contest.measure()
    against = [key for key in measured if key.startswith(("prefill_against_", "decode_against_"))]
    assert len(against) == len(contest.PEERS) * (len(contest.PREFILL_LENGTHS) + 1)
    prefill = measured["prefill_against_transformers_1024"]
    assert (prefill.value, prefill.peer.value, prefill.peer.what) == (128, 256, "run_transformers.py")
    assert (prefill.n, prefill.statistic, prefill.at_least, prefill.met) == (5, "best", 0.9, False)
    decode = measured["decode_against_llama_cpp_256"]
    assert (decode.value, decode.peer.value, decode.at_least) == (0.5, 1, None)
    assert measured["decode_against_transformers_256"].at_least == 2


def test_packed_weights_are_held_against_the_same_engine_in_float32(answering, monkeypatch):
    packed = contest.measure()["llama_cpp_packed_decode_against_float32_256"]
    assert (packed.value, packed.peer.what, packed.ratio) == (2, "run_llama_cpp.py", 2)

    class Unpacked(Answering):
        def __init__(self, python, script, folder):
            if script == "run_llama_cpp_packed.py":
                raise CannotMeasureError("its worker ended: no such file")
            super().__init__(python, script, folder)

    monkeypatch.setattr(contest, "Worker", Unpacked)
    measured = contest.measure()
    assert measured["llama_cpp_packed"] == Missing("its worker ended: no such file")
    assert "decode_against_llama_cpp_256" in measured


def test_a_peer_that_is_absent_is_told_and_the_other_one_measured(answering, monkeypatch, tmp_path):
    def python_with(requirements):
        if requirements == "llama_cpp.txt":
            raise CannotMeasureError("it was not installed: no compiler")
        return "python"

    monkeypatch.setattr(contest, "python_with", python_with)
    monkeypatch.setattr(record, "RECORDED", tmp_path / "recorded.json")
    monkeypatch.setattr(record, "RESULTS", tmp_path / "RESULTS.md")
    measured = contest.measure()
    assert measured["llama_cpp"] == Missing("it was not installed: no compiler")
    box = {"cpu": "c", "cores": 2, "memory_gb": 1.5, "os": "o"}
    record.write("peers", measured, {"date": "2001-02-03", "machine": box, "versions": {}, "load_average": 0.1})
    run = read_all(record.RECORDED)["peers"]
    assert run.missing == {"llama_cpp": "it was not installed: no compiler"}
    assert len(run.measures) == len(contest.PREFILL_LENGTHS) + 1
    last = record.RESULTS.read_text("utf-8").splitlines()[-1]
    assert last == "| llama_cpp | not measured: it was not installed: no compiler |  |  |  |"


def test_a_peer_that_computes_something_else_is_not_measured(answering, monkeypatch):
    class Disagreeing(Answering):
        def ask(self, request):
            answer = super().ask(request)
            return answer[::-1] if request.startswith("logits") and self.name == "run_transformers.py" else answer

    monkeypatch.setattr(contest, "Worker", Disagreeing)
    measured = contest.measure()
    assert measured["transformers"].why.startswith("it computes something else")
    assert [key for key in measured if "transformers" in key] == ["transformers"]
    assert "prefill_against_llama_cpp_16" in measured


def test_without_any_peer_the_old_numbers_stay(answering, monkeypatch, capsys, tmp_path):
    def no_python(requirements):
        raise CannotMeasureError("it was not installed: no network")

    monkeypatch.setattr(contest, "python_with", no_python)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "peers"])
    monkeypatch.setattr(record, "write", lambda *_: pytest.fail("something was written"))
    with pytest.raises(SystemExit) as stopped:
        bench.main()
    assert stopped.value.code == 1
    told = "transformers: it was not installed: no network; llama_cpp: it was not installed: no network"
    assert capsys.readouterr().err == f"peers keeps its old numbers: {told}\n"


def test_every_worker_has_the_threads_that_the_results_name(tmp_path):
    script = tmp_path / "threads.py"
    script.write_text(f"import json, os; print(json.dumps([os.environ[n] for n in {THREAD_VARIABLES}]))", "utf-8")
    with Worker(sys.executable, str(script), tmp_path) as worker:
        assert worker.name == ["2"] * len(THREAD_VARIABLES)
    assert "two threads each" in results.TITLES["peers"]


# --- what can go wrong on the way


def test_a_worker_that_ends_says_its_last_line(tmp_path):
    script = tmp_path / "broken.py"
    script.write_text("raise SystemExit('first\\nthe engine is missing')", "utf-8")
    with pytest.raises(CannotMeasureError, match=r"^its worker ended: the engine is missing$"):
        Worker(sys.executable, str(script), tmp_path)


def test_a_worker_that_ends_while_it_is_asked_is_told_too(tmp_path):
    script = tmp_path / "short.py"
    script.write_text("print('\"short\"')", "utf-8")
    with Worker(sys.executable, str(script), tmp_path) as worker:
        assert worker.name == "short"
        with pytest.raises(CannotMeasureError, match=r"^its worker ended: it says nothing$"):
            worker.ask("prefill 3")


def test_what_pip_complains_of_is_one_line():
    complaint = "import sys; sys.exit('Looking\\nERROR: first\\nERROR: no distribution for torch\\n\\nnotice: x')"
    with pytest.raises(CannotMeasureError, match=r"^it was not installed: no distribution for torch$"):
        install._run([sys.executable, "-c", complaint])


def test_what_is_installed_is_not_installed_again(tmp_path, monkeypatch):
    commands = []
    monkeypatch.setattr(install, "_run", commands.append)
    python = install.python_with("transformers.txt", tmp_path)
    assert [command[2] for command in commands] == ["venv", "pip"]
    assert install.python_with("transformers.txt", tmp_path) == python
    assert len(commands) == 2
    (tmp_path / "installed-transformers.txt").write_text("older", "utf-8")
    install.python_with("transformers.txt", tmp_path)
    assert len(commands) > 2


@pytest.mark.parametrize("peer", contest.PEERS)
def test_every_requirement_of_a_peer_is_pinned_and_has_its_reason(peer):
    lines = (install.HERE / f"{peer}.txt").read_text("utf-8").splitlines()
    required = [i for i, line in enumerate(lines) if not line.startswith("#")]
    assert all(re.match(r"[\w-]+==\d[\w.+]*( ; .+)?$", lines[i]) for i in required)
    assert all(lines[i - 1].startswith("#") or i - 1 in required for i in required)
    constraints = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert next(line for line in lines if line.startswith("numpy==")) in constraints
    assert (install.HERE / f"run_{peer}.py").exists()


def test_the_part_is_the_contest():
    assert peers.measure is contest.measure
