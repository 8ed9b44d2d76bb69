"""What a `Roofline` says in its picture; the browser tests hold its module against the same cost model."""

import json
import re

import pytest
import traitlets
from bs4 import BeautifulSoup, Tag
from cost_examples import CONSTANTS, DEVICES, EACH, LLAMA, SHAPES

from prefill_decode.cost import IDEAL, Machine, Shape, largest_batch, ledger, request_time
from prefill_decode.widgets import Roofline
from prefill_decode.widgets.page_only import for_page
from prefill_decode.widgets.roofline_numbers import batch_at_ridge, prompt_at_ridge

H100 = Machine(989.4e12, 3.35e12)


def roofline(**options) -> Roofline:
    return Roofline(**{"shapes": SHAPES, "devices": DEVICES, "constants": CONSTANTS, **options})


def root_of(widget: Roofline) -> Tag:
    markup = for_page(widget._repr_mimebundle_()[0]["text/html"])
    return BeautifulSoup(markup, "html.parser").find(attrs={"data-widget": "roofline"})


def text_of(root: Tag, name: str) -> str:
    return root.select_one(f'[data-text="{name}"]').get_text()


# --- numbers


def test_root_says_what_the_cost_model_says():
    root = root_of(roofline(prompt_len=700, batch=3))
    asked = {"prompt_len": 700, "batch": 3, "new_tokens": 128}
    expected = request_time(LLAMA, H100, CONSTANTS, **asked)
    assert (root["data-model"], root["data-device"], root["data-dtype"]) == ("Llama-3-8B", "H100 SXM", "float16")
    assert (root["data-prompt-len"], root["data-batch"]) == ("700", "3")
    assert (root["data-prefill-bound"], root["data-decode-bound"]) == ("compute", "memory")
    for name, value in {
        "data-prefill-intensity": ledger(LLAMA, 700, 700, batch=3).intensity,
        "data-decode-intensity": ledger(LLAMA, 1, 701, batch=3).intensity,
        "data-ttft-ms": expected.ttft * 1000,
        "data-tpot-ms": expected.tpot * 1000,
        "data-ridge": H100.ridge,
    }.items():
        assert float(root[name]) == pytest.approx(value, rel=1e-5)


def test_a_short_prompt_is_memory_bound_in_prefill_too():
    root = root_of(roofline(prompt_len=5, constants=IDEAL))
    assert (root["data-prefill-bound"], text_of(root, "prefill-intensity")) == ("memory", "4.72")
    assert float(root["data-ttft-ms"]) == pytest.approx(float(root["data-tpot-ms"]), rel=0.001)


def test_the_ridge_is_told_in_tokens():
    root = root_of(roofline())
    assert text_of(root, "ridge") == "ridge: 295 FLOP/byte"
    assert text_of(root, "ridge-prompt") == "= prompt of 317 tokens"
    assert [root_of(roofline(prompt_len=n))["data-prefill-bound"] for n in (316, 317)] == ["memory", "compute"]


@pytest.mark.parametrize("dtype", ["float16", "int8", "int4"])
@pytest.mark.parametrize("model", SHAPES)
def test_no_shorter_prompt_reaches_the_ridge(model, dtype):
    n = prompt_at_ridge(SHAPES[model], H100.ridge, dtype)
    intensities = [ledger(SHAPES[model], k, k, dtype=dtype).intensity for k in (n - 1, n)]
    assert intensities[0] < H100.ridge <= intensities[1]


def test_a_ridge_out_of_reach_and_one_below_everything():
    assert prompt_at_ridge(LLAMA, 1e9, "float16") is None
    assert prompt_at_ridge(LLAMA, 0.5, "float16") == 1
    assert batch_at_ridge(LLAMA, 0.5, "float16", 1000) == 1


@pytest.mark.parametrize("n", [1, 5, 300, 1000])
def test_no_smaller_batch_reaches_the_ridge(n):
    batch = batch_at_ridge(SHAPES["GPT-2"], 90, "int8", n) or batch_at_ridge(SHAPES["GPT-2"], 2, "int8", n)
    ridge = 90 if batch_at_ridge(SHAPES["GPT-2"], 90, "int8", n) else 2
    intensities = [
        ledger(SHAPES["GPT-2"], 1, n + 1, batch=b, dtype="int8").intensity for b in (max(1, batch - 1), batch)
    ]
    assert intensities[1] >= ridge
    assert batch == 1 or intensities[0] < ridge


def test_a_batch_that_never_becomes_compute_bound():
    root = root_of(roofline(prompt_len=8192, batch=58))
    assert text_of(root, "batch-at-ridge") == "never: 18.0 at most"
    assert (text_of(root, "limit-name"), text_of(root, "limit-at")) == ("batch → ∞:", "18.0")
    assert ledger(LLAMA, 1, 8193, batch=10**9).intensity == pytest.approx(17.98, abs=0.01)


def test_memory_and_what_does_not_fit():
    largest = largest_batch(LLAMA, entries=8192 + 127, dtype="float16", memory=80e9)
    fits, unfit = (root_of(roofline(prompt_len=8192, batch=batch)) for batch in (largest, largest + 1))
    assert (text_of(fits, "largest"), text_of(fits, "unfit")) == (f"{largest} such requests", "")
    assert text_of(fits, "memory-weights") == "16.1 GB"
    assert text_of(unfit, "memory-all") == "80.4 GB of 80.0 GB: does not fit"
    assert text_of(unfit, "unfit").startswith(
        "Does not fit: weights 16.1 GB + cache 64.3 GB = 80.4 GB, the device has 80.0"
    )


def test_int4_weights_speed_up_what_memory_binds():
    before, after = (root_of(roofline(dtype=dtype, constants=IDEAL)) for dtype in ("float16", "int4"))
    assert float(before["data-tpot-ms"]) / float(after["data-tpot-ms"]) > 3.5
    assert before["data-ttft-ms"] == after["data-ttft-ms"]


def test_constants_may_differ_by_device():
    slow, fast = (root_of(roofline(constants=EACH, device=name)) for name in ("H100 SXM", "A100"))
    assert "50.0 % of the peak, 90.0 % of the bandwidth and 0 ms" in text_of(slow, "reached")
    assert "60.0 % of the peak, 80.0 % of the bandwidth and 0.960 ms of overhead in prefill and 0.320 ms" in text_of(
        fast, "reached"
    )


def rows_of(root: Tag, table: str) -> dict[str, str]:
    rows = root.select(f"table.{table} tbody tr")
    return {row.th.contents[0].get_text(): row.td.get_text() for row in rows}


def test_the_device_tells_what_the_bound_is_computed_from():
    assert rows_of(root_of(roofline(classes="compiled engine on GPU with HBM")), "pd-device") == {
        "peak, dense": "989 TFLOP/s in 16 bits",
        "bandwidth": "3.35 TB/s",
        "memory": "80.0 GB",
        "constants": "compiled engine on GPU with HBM",
    }


def test_the_peak_told_is_the_one_that_the_dtype_computes_at():
    peaks = [text_of(root_of(roofline(device="A100", dtype=dtype)), "peak") for dtype in ("int4", "float32")]
    assert peaks == ["312 TFLOP/s in 16 bits", "19.5 TFLOP/s in 32 bits"]


def test_the_class_of_the_constants_may_differ_by_device_and_have_no_name():
    classes = dict.fromkeys(DEVICES, "an engine on <b>a</b> GPU") | {"A100": None}
    told = [text_of(root_of(roofline(classes=classes, device=name)), "class") for name in ("H100 SXM", "A100")]
    assert told == ["an engine on <b>a</b> GPU", "as given, of no class"]
    assert text_of(root_of(roofline()), "class") == "as given, of no class"


def test_that_the_new_tokens_are_fixed_is_said_beside_the_controls():
    assert root_of(roofline()).select_one(".pd-controls .pd-note").get_text() == "New tokens: 128 a request, fixed."
    told = root_of(roofline(new_tokens=2000)).select_one(".pd-controls .pd-note").get_text()
    assert told == "New tokens: 2,000 a request, fixed."


def test_the_error_of_the_expected_times_is_told():
    assert "on measurements: median error 14 %, n = 41." in text_of(
        root_of(roofline(judged="median error 14 %, n = 41")), "reached"
    )
    assert "not judged on measurements." in text_of(root_of(roofline()), "reached")


def test_the_error_may_differ_by_device_and_be_unknown():
    judged = dict.fromkeys(DEVICES) | {"H100 SXM": "median error 14 %", "Slow chip": "<b>9 %</b>"}
    told = {name: text_of(root_of(roofline(judged=judged, device=name)), "reached") for name in DEVICES}
    assert told["H100 SXM"].endswith("; on measurements: median error 14 %.")
    assert told["Slow chip"].endswith("; on measurements: <b>9 %</b>.")
    assert told["A100"].endswith("; nothing like it was measured: constants borrowed.")


def test_two_sizes_of_weights_have_two_names():
    root = root_of(roofline())
    assert root.select_one(".pd-memory tbody tr").get_text(" ") == "weights stored, input embedding included 16.1 GB"
    read = root.select_one('.pd-passes tr[data-row="weights"]')
    assert read.get_text(" ") == "weights read without the looked-up embedding 15.0 GB 15.0 GB"
    assert text_of(root_of(roofline(model="SmolLM2-135M")), "weights-read") == "all that are stored"


def test_not_even_one_fits():
    root = root_of(roofline(device="Slow memory"))
    assert text_of(root, "largest") == "not even one such request"
    assert "Not even one such request fits; the times are" in text_of(root, "unfit")


@pytest.mark.parametrize("model", SHAPES)
@pytest.mark.parametrize("batch", [1, 4096])
@pytest.mark.parametrize("prompt_len", [1, 131_072])
def test_every_point_lies_in_the_picture(model, batch, prompt_len):
    for device, dtype in (("H100 SXM", "int4"), ("Slow memory", "float32"), ("Slow chip", "float16")):
        root = root_of(roofline(model=model, device=device, dtype=dtype, batch=batch, prompt_len=prompt_len))
        for name, keys in {"prefill-point": "xy", "decode-point": ("cx", "cy"), "limit-point": ("cx", "cy")}.items():
            shares = [float(root.select_one(f'[data-place="{name}"]')[key][:-1]) for key in keys]
            assert all(0 <= share <= 100 for share in shares)
        assert not re.search(r"\b(inf|nan|Infinity|NaN)\b|-\d", root.select_one(".pd-side").get_text())


# --- the three forms


def test_mimebundle_holds_the_live_view_the_picture_and_a_short_text():
    bundle, _ = roofline()._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"}
    assert bundle["text/plain"] == "Roofline(3 models, 4 devices, opens on Llama-3-8B, H100 SXM)"


def test_equal_input_gives_equal_bytes():
    assert len({roofline()._repr_mimebundle_()[0]["text/html"] for _ in range(2)}) == 1


def test_traits_in_the_page_are_those_of_the_widget_and_small():
    widget = roofline(prompt_len=9)
    script = root_of(widget).find("script", type="application/json").string
    traits = json.loads(script)
    assert traits["data"] == widget.data
    assert {name: traits[name] for name in ("model", "prompt_len", "batch")} == {
        "model": "Llama-3-8B", "prompt_len": 9, "batch": 1,
    }  # fmt: skip
    assert len(script) < 3000
    assert "application/json" not in widget.markup


def test_the_saved_picture_follows_the_widget():
    widget = roofline()
    widget.prompt_len = 5
    assert root_of(widget)["data-prompt-len"] == "5"


def test_controls_wait_for_a_script():
    soup = root_of(roofline())
    controls = soup.select("button, select, input")
    assert len(controls) == 3 + 2 * 2 + 5
    assert all(control.find_parent(hidden=True) for control in controls)
    bare = re.sub(r"<script.*?</script>", "", roofline()._repr_mimebundle_()[0]["text/html"], flags=re.S)
    assert not re.search("<(button|select|input)", bare)


def test_tables_and_picture_are_real_and_named():
    root = root_of(roofline())
    assert [caption.get_text() for caption in root.select("table > caption")] == [
        "Memory",
        "The device",
        "One pass",
        "The request",
    ]
    assert root.select("th:not([scope])") == []
    svg = root.select_one('svg[role="img"][aria-label]')
    assert svg.select_one("title").get_text() == svg["aria-label"]
    assert svg.select_one("desc").get_text() == text_of(root, "sentence")
    assert root.select("[id]") == []


def test_nothing_foreign_and_names_are_text():
    name = '</script><b>"&</b>'
    widget = Roofline({name: LLAMA}, {name: DEVICES["A100"]}, CONSTANTS, judged="<i>x</i>")
    root = root_of(widget)
    assert root["data-model"] == name
    assert len(root.select("script")) == 1
    assert root.select("b, i:not(.pd-room i)") == []
    assert [option.get_text() for option in root.select("select[name=model] option")] == [name]
    assert "http" not in widget._repr_mimebundle_()[0]["text/html"]


# --- bad input


@pytest.mark.parametrize(("name", "value"), [("batch", 0), ("prompt_len", -1), ("model", "x"), ("dtype", "float32")])
def test_a_wrong_value_from_the_kernel_is_refused(name, value):
    widget = roofline()
    with pytest.raises(traitlets.TraitError, match=r"expected one of|has no rate|expected a whole number"):
        setattr(widget, name, value)
    assert getattr(widget, name) == {"batch": 1, "prompt_len": 2048, "model": "Llama-3-8B", "dtype": "float16"}[name]


def test_device_and_dtype_may_change_together():
    widget = roofline()
    widget.set_state({"device": "A100", "dtype": "float32"})
    assert root_of(widget)["data-dtype"] == "float32"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shapes": {}}, "got 0 models and 4 devices"),
        ({"devices": {}}, "got 3 models and 0 devices"),
        ({"model": "GPT-9"}, "unknown model 'GPT-9': expected one of Llama-3-8B, SmolLM2-135M, GPT-2"),
        ({"device": "B9"}, "unknown device 'B9': expected one of H100 SXM"),
        ({"dtype": "float8"}, "unknown dtype 'float8': expected one of float16, int8, int4, float32"),
        ({"dtype": "float32"}, "device 'H100 SXM' has no rate in float32"),
        ({"prompt_len": 0}, "prompt_len = 0: expected a whole number from 1 to 131,072"),
        ({"batch": 4097}, "batch = 4097: expected a whole number from 1 to 4,096"),
        ({"batch": 1.5}, "batch = 1.5: expected a whole number"),
        ({"new_tokens": 1}, "new_tokens = 1: expected at least 2"),
        (
            {"devices": {"M2": {"peak": None, "bandwidth": 1e11, "memory": 8e9}}},
            "device 'M2' has no peak: a roof needs",
        ),
        ({"judged": {"A100": "4 %"}}, "judged says nothing of device 'H100 SXM': give a text, or None"),
        ({"classes": {"A100": "x"}}, "classes says nothing of device 'H100 SXM': give a text, or None"),
        ({"constants": {"A100": CONSTANTS}}, "no constants for device 'H100 SXM'"),
        ({"shapes": {"V2": Shape(8, 1, 1, 1, 8, 8, 8, latent_kv=4)}}, "model 'V2': the FLOPs of a latent cache"),
    ],
)
def test_bad_input_is_one_clear_line(options, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        roofline(**options)
    assert "\n" not in str(caught.value)
