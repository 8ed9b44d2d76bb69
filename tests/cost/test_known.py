"""Published models and devices: found in any spelling, each with its source, none with a sparse peak."""

import pytest

from prefill_decode.cost import known
from prefill_decode.cost.latency import limits_of
from prefill_decode.cost.names import bits_of, read_cores, split_model

ASKED_FOR = (
    "GPT-2 SmolLM2-135M Llama-2-7B Llama-2-13B Llama-2-70B Llama-3-8B Llama-3-70B Mistral-7B GPT-J-6B DeepSeek-V2"
).split()
DEVICES = (
    "A100-40GB-SXM A100-40GB-PCIe A100-80GB-SXM A100-80GB-PCIe H100-SXM H100-PCIe H200 L4 L40S RTX-3090 RTX-4090 "
    "Apple-M1 TPU-v4 TPU-v5e"
).split()


@pytest.mark.parametrize("name", [*ASKED_FOR, "GPT-1.3B(FT)", "GPT-6.7B(FT)", "GPT-20B(FT)"])
def test_model_is_known(name):
    assert known.find_model(name).name == name


@pytest.mark.parametrize("model", known.models().values(), ids=lambda model: model.name)
def test_every_model_has_its_source_and_its_parameters_add_up(model):
    assert model.source
    if model.shape.latent_kv is None:
        assert model.shape.params == model.params
        assert 0 <= model.shape.vectors < 0.001 * model.params


@pytest.mark.parametrize("name", DEVICES)
def test_device_is_known(name):
    assert known.find_device(name).name == name


@pytest.mark.parametrize("device", known.devices().values(), ids=lambda device: device.name)
def test_every_device_has_its_source_and_a_plausible_ridge(device):
    assert device.source
    assert device.bandwidth > 10e9
    if device.peak is not None:  # a sparse peak, twice as high, would leave this range for most
        assert 50 < device.peak / device.bandwidth < 600


def test_the_peak_of_an_h100_is_the_dense_one():
    assert known.find_device("H100-SXM").peak == 989.4e12
    assert known.find_device("L4").peak == 121e12


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100-80GB-SXM"),
        ("a100 80gb pcie", "A100-80GB-PCIe"),
        ("RTX 4090", "RTX-4090"),
        ("GeForce RTX 3090", "RTX-3090"),
        ("H100", "H100-SXM"),
        ("H100 PCIe", "H100-PCIe"),
        ("Apple M2 Max", "Apple-M2Max"),
        ("M3 Max (30-core GPU)", "Apple-M3Max"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM"),
        ("RTX 4090 24GB", "RTX-4090"),
        ("AMD EPYC 9654", "EPYC-Genoa-12ch"),
        ("TPUv5e", "TPU-v5e"),
    ],
)
def test_devices_are_found_in_other_spellings(spelling, name):
    assert known.find_device(spelling).name == name


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("llama-3.1-8b", "Llama-3-8B"),
        ("Meta-Llama-3-8B", "Llama-3-8B"),
        ("Llama 2 70B", "Llama-2-70B"),
        ("Llama-2-7b-chat-hf", "Llama-2-7B"),
        ("mistralai/Mistral-7B-v0.1", "Mistral-7B"),
        ("Llama-3.1-405B-Instruct", "Llama-3.1-405B"),
        ("tiiuae/falcon-40b", "Falcon-40B"),
    ],
)
def test_models_are_found_in_other_spellings(spelling, name):
    assert known.find_model(spelling).name == name


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("8xA100-80GB-SXM(330W cap)", (8, "A100-80GB-SXM", "330W cap")),
        ("Apple-M1(8gpu)", (1, "Apple-M1", "8gpu")),
        (" 2 x H100 ", (2, "H100", "")),
        ("L4", (1, "L4", "")),
        ("H100 x8", (8, "H100", "")),
        ("4 A100", (4, "A100", "")),
        ("80 GB H100", (1, "80 GB H100", "")),
        ("H100 (TP=2)", (2, "H100", "")),
        ("RTX 4090", (1, "RTX 4090", "")),
    ],
)
def test_hardware_is_read_as_count_device_and_note(text, parts):
    assert known.read_hardware(text) == parts


@pytest.mark.parametrize(
    "other",
    [
        "M1 Pro",
        "M4 Ultra",
        "RTX PRO 6000 Blackwell",
        "H100 NVL",
        "H100 94GB",
        "RTX 4090 Laptop",
        "RTX 4080 SUPER",
        "v5e-8",
        "A100 vs H100",
        "DGX H100",
        "RTX 3080 12GB",
        "MI300",
    ],
)
def test_another_variant_is_not_taken_for_the_one_we_know(other):
    with pytest.raises(ValueError, match="unknown device"):
        known.find_device(other)


def test_an_unknown_peak_is_guessed_for_expectations_and_never_bounds():
    ada = known.find_device("RTX 6000 Ada").machine()
    assert ada.peak is None
    assert 50 < ada.guessed_peak / ada.bandwidth < 600
    assert limits_of(ada).guessed_peak is None


def test_unknown_names_list_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown model 'Llama-9': expected one of GPT-2, SmolLM2-135M"):
        known.find_model("Llama-9")
    with pytest.raises(ValueError, match=r"unknown device 'B9000': expected one of A100-40GB-SXM"):
        known.find_device("B9000")


def test_a_dtype_that_the_device_lacks_is_one_line():
    with pytest.raises(ValueError, match=r"A100-80GB-SXM has no sourced rate for float8: try float16"):
        known.find_device("A100-80GB-SXM").machine("float8")


def test_packed_weights_are_multiplied_at_the_16_bit_rate():
    a100 = known.find_device("A100-80GB-SXM")
    assert a100.machine("int4", count=2).peak == 2 * a100.peak


@pytest.mark.parametrize(
    ("word", "bits"),
    [
        ("fp16", 16),
        ("(bf16)", 16),
        ("half", 16),
        ("4bit", 4.25),
        ("AWQ-INT4", 4.25),
        ("int4wo-64", 4.25),
        ("float8wo", 8),
        ("Q4_0", 4.5),
        ("Q8_0", 8.5),
        ("IQ2_XS", 2.6),
        ("exl2-4.0bpw", 4),
        ("q4f16_1", 4.6),
        ("7B", None),
        ("Chat", None),
    ],
)
def test_dtypes_as_people_write_them(word, bits):
    assert bits_of(word) == bits


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Llama-2-7B fp16", ("Llama-2-7B", "fp16")),
        ("Llama-2-7B-fp16", ("Llama-2-7B", "fp16")),
        ("Qwen2.5-32B-Instruct-AWQ", ("Qwen2.5-32B-Instruct", "AWQ")),
        ("Llama-2-7B", ("Llama-2-7B", "")),
        ("Llama-3-8B Q4_K - Medium", ("Llama-3-8B", "Q4_K")),
    ],
)
def test_a_model_and_its_dtype_are_told_apart(text, parts):
    assert split_model(text) == parts


@pytest.mark.parametrize(
    ("text", "cores"),
    [("Apple-M1(8gpu)", 8), ("M3 Max (40-core GPU)", 40), ("M2 30 GPU cores", 30), ("RTX 4090 GPU", None)],
)
def test_gpu_cores_are_read(text, cores):
    assert read_cores(text) == cores
