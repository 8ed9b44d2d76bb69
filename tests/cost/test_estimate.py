"""The estimate before renting a device, as text, as JSON, as an error in one line."""

import json

import pytest

from prefill_decode import __main__ as cli
from prefill_decode.cost import IDEAL, known, request_time, this_machine
from prefill_decode.cost.estimate import estimate

ASKED = dict(prompt_len=512, new_tokens=128, batch=8)
WORDS = "--prompt-len 512 --new-tokens 128 --batch 8".split()


def run(capsys, *words: str) -> str:
    assert cli.main(["cost", *words]) == 0
    return capsys.readouterr().out


def error_of(capsys, *words: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["cost", *words])
    assert stopped.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    return line


def test_bound_and_expectation_are_those_of_the_model():
    told = estimate("Llama-3-8B", "2xH100-SXM", **ASKED)
    shape, machine = known.find_model("Llama-3-8B").shape, known.find_device("H100-SXM").machine(count=2)
    assert told.bound == request_time(shape, machine, IDEAL, **ASKED)
    assert told.expected.ttft > told.bound.ttft
    assert told.expected.tpot > told.bound.tpot
    assert told.cache_bytes == 8 * shape.kv_bytes(512 + 128 - 1)
    assert told.memory == 160e9


def test_the_largest_batch_is_the_last_that_fits():
    most = estimate("Llama-3-8B", "L4", **{**ASKED, "batch": 1}).largest_batch
    assert estimate("Llama-3-8B", "L4", **{**ASKED, "batch": most}).batch == most
    with pytest.raises(ValueError, match=f"does not fit: .* L4 has 24 GB; the largest batch is {most}"):
        estimate("Llama-3-8B", "L4", **{**ASKED, "batch": most + 1})


def test_the_text_names_units_limits_and_trust(capsys):
    text = run(capsys, "Llama-3-8B", "--device", "H100", *WORDS)
    first, _, memory, ttft, tpot, request, rate, _, trust, *_ = text.splitlines()
    assert first == "Llama-3-8B in float16 on H100-SXM: 8 requests of 512 prompt tokens and 128 new"
    assert "weights 16.06 GB (14.96 GiB), cache 0.67 GB (0.62 GiB); they fit into 80 GB, the largest batch is" in memory
    assert ttft.startswith("TTFT     at least 58.4 ms, about ")
    assert "memory binds" in tpot
    assert "at least" in request
    assert "tokens/s, all requests together" in rate
    assert "published" not in first
    assert trust.startswith("trust    about: compiled engine on GPU with HBM; an engine not seen was off by ")


def test_the_json_says_the_same(capsys):
    told = json.loads(run(capsys, "Llama-3-8B", "--device", "H100", *WORDS, "--json"))
    expected = estimate("Llama-3-8B", "H100", **ASKED)
    assert told["expected"]["ttft_s"] == expected.expected.ttft
    assert told["bound"]["tpot_s"] == expected.bound.tpot
    assert told["fits"] is True
    assert told["largest_batch"] == expected.largest_batch
    assert told["trust"] == vars(expected.trust)


def test_one_new_token_has_no_tpot(capsys):
    words = ["Llama-3-8B", "--device", "H100", "--prompt-len", "5", "--new-tokens", "1"]
    assert "TPOT     none: one token comes out of prefill" in run(capsys, *words)
    assert json.loads(run(capsys, *words, "--json"))["expected"]["tpot_s"] is None


def test_without_a_sourced_peak_the_bytes_alone_bound(capsys):
    text = run(capsys, "Llama-2-7B", "--device", "Apple-M2Max", *WORDS)
    assert "at least: from the bytes alone, no source gives the peak" in text
    assert "no source says how much the device has" in text


def test_this_machine_is_measured_on_request(capsys, monkeypatch):
    monkeypatch.setattr(this_machine, "SIDE", 64)
    monkeypatch.setattr(this_machine, "TALL", (64, 32))
    text = run(capsys, "SmolLM2-135M", "--device", "this-machine", *WORDS)
    assert "SmolLM2-135M in float32 on this-machine" in text
    assert "trust    rates of long products, measured just now" in text
    assert "at least" not in text
    assert "inf" not in text
    assert "nan" not in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["Llama-9", "--device", "H100", *WORDS], "unknown model 'Llama-9': expected one of GPT-2, SmolLM2-135M"),
        (["GPT-2", "--device", "B9000", *WORDS], "unknown device 'B9000': expected one of A100-40GB-SXM"),
        (
            ["GPT-2", "--device", "H100", *WORDS, "--dtype", "float17"],
            "unknown dtype 'float17': expected one of float64",
        ),
        (["GPT-2", "--device", "A100", *WORDS, "--dtype", "float8"], "has no sourced rate for float8: try float16"),
        (["GPT-2", "--device", "H100", *WORDS, "--batch", "0"], "batch = 0: expected at least 1"),
        (["GPT-2", "--device", "H100", *WORDS, "--prompt-len", "-4"], "prompt_len = -4: expected at least 1"),
        (["GPT-2", "--device", "H100", *WORDS, "--new-tokens", "0"], "new_tokens = 0: expected at least 1"),
        (
            ["GPT-2", "--device", "H100", *WORDS, "--engine", "steam"],
            "unknown engine 'steam': expected one of compiled",
        ),
        (["GPT-2", "--device", "0xH100", *WORDS], "expected 1 to 1,024 devices"),
        (["GPT-2", "--device", "this-machine", *WORDS, "--dtype", "int8"], "this-machine has no fast products in int8"),
        (
            ["GPT-2", "--device", "H100", *WORDS, "--prompt-len", "5000"],
            "GPT-2 has 1,024 positions, 5,127 are needed",
        ),
        (
            ["GPT-2", "--device", "H100", *WORDS, "--batch", "9999999999"],
            "at least 1 and at most 1,000,000,000",
        ),
        (["GPT-2", "--device", "99999xH100", *WORDS], "unknown device '99999xH100'"),
        (["Llama-3-70B", "--device", "A100", *WORDS], "does not fit: weights 141.1 GB and 8 x cache 0.21 GB"),
        (["DeepSeek-V2", "--device", "H100", *WORDS], "a shape with a latent cache is for its cache alone"),
        ([], "the following arguments are required: MODEL, --device, --prompt-len, --new-tokens"),
    ],
)
def test_bad_input_is_one_line(capsys, words, message):
    assert message in error_of(capsys, *words)


def test_cost_is_a_command_only_as_the_first_word(capsys):
    assert cli.main(["--toy", "--json", "--", "the cat"]) == 0
    capsys.readouterr()
    with pytest.raises(SystemExit):
        cli.main(["--toy", "--", "cost"])  # a phrase; the toy does not know the word
    assert "cost" in capsys.readouterr().err
