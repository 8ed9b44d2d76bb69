"""The command line, started as a user starts it."""

import json
import os
import subprocess
import sys

import pytest
from reference import reference_cases

from prefill_decode import __main__ as cli
from prefill_decode import toy
from prefill_decode.generate import generate
from prefill_decode.sampling import Sampler


def run(*args, stdin=None, **env):
    return subprocess.run(
        [sys.executable, "-m", "prefill_decode", *args],
        capture_output=True,
        input=stdin,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **env},
        timeout=120,
        check=False,
    )


def run_json(*args, **kwargs):
    done = run(*args, "--json", **kwargs)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""  # not a terminal: no progress bar
    return json.loads(done.stdout)


def test_the_real_model_as_json():
    case = reference_cases()[0]
    told = run_json("The capital of France is", "--max-new-tokens", "4")
    assert told["prompt_ids"] == case["ids"]
    assert told["generated_ids"] == case["greedy24"][:4]
    assert told["prompt_tokens"] == ["The", " capital", " of", " France", " is"]
    assert told["text"] == " Paris.\n\n"
    assert [(p["phase"], p["n_queries"], p["n_keys"], p["pairs"]) for p in told["passes"]] == [
        ("prefill", 5, 5, 15),
        ("decode", 1, 6, 6),
        ("decode", 1, 7, 7),
        ("decode", 1, 8, 8),
    ]
    assert (told["cache_len"], told["cache_bytes"]) == (8, 8 * 46_080)
    assert told["ttft_s"] == told["passes"][0]["seconds"]
    assert told["tpot_s"] == pytest.approx(sum(p["seconds"] for p in told["passes"][1:]) / 3)
    assert set(told) == set(
        "prompt_ids generated_ids prompt_tokens text passes cache_len cache_bytes ttft_s tpot_s sampler".split()
    )
    assert told["sampler"] is None  # greedy


def test_the_text_and_the_table():
    done = run("The capital of France is", "--max-new-tokens", "3", "--dtype", "float64")
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "The capital of France is Paris."
    assert [line.split()[:5] for line in lines if line.strip()[:1].isdigit()] == [
        ["1", "prefill", "5", "5", "15"],
        ["2", "decode", "1", "6", "6"],
        ["3", "decode", "1", "7", "7"],
    ]
    assert lines[-1].startswith("TTFT ")
    assert lines[-1].endswith("cache 7 entries, 645,120 bytes used")  # float64: twice 46,080 an entry


def test_chat_stops_at_the_end_of_the_turn():
    told = run_json("Say hi.", "--chat", "--max-new-tokens", "60")
    assert told["generated_ids"][-1] == 2
    assert "<|im_end|>" not in told["text"]
    assert told["prompt_tokens"][0] == "<|im_start|>"
    beyond = run_json("Say hi.", "--chat", "--ignore-stop", "--max-new-tokens", str(len(told["generated_ids"]) + 2))
    assert beyond["generated_ids"][: len(told["generated_ids"])] == told["generated_ids"]
    assert len(beyond["generated_ids"]) == len(told["generated_ids"]) + 2


def test_without_a_cache():
    told = run_json("--toy", "--no-cache", "--max-new-tokens", "3", "the old cat")
    assert [(p["phase"], p["n_queries"], p["n_keys"]) for p in told["passes"]] == [
        ("full", 3, 3),
        ("full", 4, 4),
        ("full", 5, 5),
    ]
    assert (told["cache_len"], told["cache_bytes"]) == (0, 0)
    assert told["generated_ids"] == run_json("--toy", "--max-new-tokens", "3", "the old cat")["generated_ids"]


def test_one_token_has_no_tpot():
    assert run_json("--toy", "--max-new-tokens", "1", "the")["tpot_s"] is None
    assert b"TPOT none (one token)" in run("--toy", "--max-new-tokens", "1", "the").stdout


@pytest.mark.parametrize(("stdin", "tokens"), [(b"Hi\n", ["Hi"]), (b"Hi\r\n", ["Hi"]), (b"Hi\n\n", ["Hi", "\n"])])
def test_standard_input_loses_one_newline(stdin, tokens):
    assert run_json("-", "--max-new-tokens", "1", stdin=stdin)["prompt_tokens"] == tokens


def test_a_phrase_that_begins_with_a_dash():
    done = run("--max-new-tokens", "1", "--json", "--", "--json")
    assert "".join(json.loads(done.stdout)["prompt_tokens"]) == "--json"


def test_odd_bytes_do_not_crash():
    told = run_json("-", "--max-new-tokens", "1", stdin=b"\xff\x00 <script> \xe2\x80\xae\n")
    assert " <script>" in "".join(told["prompt_tokens"])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([""], "the phrase is empty"),
        (["-"], "the phrase is empty"),
        (["--toy", "   "], "there is no token to run"),
        (["--toy", "the zebra"], "the toy does not know 'zebra'"),
        (["--toy", "--chat", "the"], "the toy has no chat template"),
        (["--toy", "--dtype", "float32", "the"], "the toy computes in float64"),
        (["--max-new-tokens", "0", "x"], "--max-new-tokens 0: expected at least 1"),
        (["--max-new-tokens", "many", "x"], "invalid int value: 'many'"),
        (["--dtype", "int8", "x"], "choose from"),
        (["--colour", "x"], "unrecognized arguments: --colour"),
        ([], "the following arguments are required: phrase"),
        (["--toy", " ".join(["the"] * 33)], "the prompt has 33 tokens, the context holds 32"),
        (["word " * 9000], "tokens, the context holds 8192: shorten the phrase"),
    ],
)
def test_bad_input_is_one_line_and_status_2(args, message):
    done = run(*args, stdin=b"")
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.decode().count("\n") == 1
    assert message in done.stderr.decode()


def test_absent_weights_are_one_line(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit) as left:
        cli.main(["hello"])
    assert left.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("prefill_decode: error: the weights of SmolLM2 are not installed; run: python -m pip")


def test_a_character_waits_for_its_last_byte(tokenizer, capsys):
    ids = tokenizer.encode(" П")
    growing = cli.GrowingText(tokenizer, [19556], (), show_prompt=True)
    printed = []
    for token in ids:
        growing(token, None)
        printed.append(capsys.readouterr().out)
    assert printed == ["Hello"] + [""] * (len(ids) - 2) + [" П"]


def test_tokens_are_drawn_as_the_options_say():
    options = ("--toy", "the old cat", "--max-new-tokens", "8", "--ignore-stop")
    greedy = run_json(*options)["generated_ids"]
    assert run_json(*options, "--temperature", "0", "--top-p", "0.9")["generated_ids"] == greedy
    assert run_json(*options, "--top-k", "1", "--seed", "7")["generated_ids"] == greedy
    drawn = [run_json(*options, "--temperature", "1.5", "--min-p", "0.01", "--seed", s)["generated_ids"] for s in "112"]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_drawn_run_tells_what_repeats_it():
    told = run_json(
        "--toy", "the old cat", "--max-new-tokens", "8", "--ignore-stop", "--temperature", "1.5", "--seed", "3"
    )
    assert told["sampler"] == {
        "temperature": 1.5,
        "top_k": None,
        "top_p": None,
        "min_p": None,
        "order": ["temperature", "top_k", "top_p", "min_p"],
        "repetition_penalty": None,
        "seed": 3,
    }
    again = generate(toy.load()[0], told["prompt_ids"], 8, sample=Sampler(**told["sampler"]))
    assert again.new_ids == told["generated_ids"]
    assert run_json("--toy", "the", "--max-new-tokens", "1", "--top-k", "2")["sampler"]["seed"] == 0  # the default, too


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--temperature", "-1"], "temperature = -1.0: expected 0"),
        (["--top-p", "0"], "top_p = 0.0: expected more than 0 and at most 1"),
        (["--top-k", "0"], "top_k = 0: expected a whole number of at least 1"),
        (["--min-p", "2"], "min_p = 2.0: expected 0 to 1"),
        (["--seed", "-1"], "--seed -1: expected 0 or more"),
    ],
)
def test_a_way_of_choosing_that_is_none(options, message):
    done = run("--toy", "the old cat", *options)
    assert (done.returncode, done.stdout) == (2, b"")
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
