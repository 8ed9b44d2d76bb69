"""What a `LedgerTable` counts, packs and prints; the browser tests see to its steps."""

import json
import re
from dataclasses import asdict

import pytest
import traitlets
from bs4 import BeautifulSoup, Tag
from cost_examples import COUNTED, LLAMA, SMOLLM2

from prefill_decode.cost import Shape, ledger
from prefill_decode.widgets import LedgerTable
from prefill_decode.widgets.ledger_table import LENGTHS
from prefill_decode.widgets.page_only import for_page


def table(**options) -> LedgerTable:
    return LedgerTable(**{"shapes": COUNTED, **options})


def root_of(widget: LedgerTable) -> Tag:
    markup = for_page(widget._repr_mimebundle_()[0]["text/html"])
    return BeautifulSoup(markup, "html.parser").find(attrs={"data-widget": "ledger-table"})


def cells(root: Tag, row: str) -> list[int]:
    """Return the exact numbers of a row, prefill and decode."""
    exact = root.select(f'tr[data-row="{row}"] .pd-exact')
    return [int(cell.get_text().replace(",", "")) for cell in exact]


# --- numbers


@pytest.mark.parametrize("model", COUNTED)
@pytest.mark.parametrize("n", [1, 4096, 131_072])
def test_every_number_is_the_ledgers(model, n):
    shape, dtype = COUNTED[model]
    root = root_of(table(model=model, n=n))
    both = [ledger(shape, n, n, dtype=dtype), ledger(shape, 1, n + 1, dtype=dtype)]
    assert cells(root, "pairs") == [counted.pairs for counted in both]
    assert cells(root, "dense") == [counted.dense_pairs for counted in both]
    for kind in ("flops", "bytes"):
        parts = [asdict(getattr(counted, kind)) for counted in both]
        for part in parts[0]:
            assert cells(root, f"{kind}-{part}") == [entry[part] for entry in parts]
        assert cells(root, f"{kind}-total") == [sum(entry.values()) for entry in parts]
    read = [[counted.bytes.weights, counted.bytes.kv_read, counted.bytes.kv_written] for counted in both]
    assert cells(root, "bytes-memory") == [sum(entry) for entry in read]
    told = ("prefill-pairs", "decode-pairs", "prefill-flops", "decode-flops", "weight-bytes", "kv-read")
    assert [int(root[f"data-{name}"]) for name in told] == [
        *(counted.pairs for counted in both),
        *(counted.flops.total for counted in both),
        both[1].bytes.weights,
        both[1].bytes.kv_read,
    ]
    assert (root["data-model"], root["data-n"]) == (model, str(n))


def test_short_forms_and_bars():
    root = root_of(table(n=4096))
    row = root.select_one('tr[data-row="flops-ffn"]')
    assert [cell.get_text() for cell in row.select(".pd-short")] == ["652 GFLOP", "159 MFLOP"]
    flops = ledger(SMOLLM2, 4096, 4096, dtype="float32").flops
    assert row.select_one(".pd-bar")["style"] == f"--pd-v:{flops.ffn / flops.total:.3f}"
    assert root.select_one('tr[data-row="pairs"] .pd-bar')["style"] == "--pd-v:0.500"
    moved = ledger(SMOLLM2, 4096, 4096, dtype="float32").bytes
    share = moved.weights / (moved.weights + moved.kv_read + moved.kv_written)
    assert root.select_one('tr[data-row="bytes-weights"] .pd-bar')["style"] == f"--pd-v:{share:.3f}"
    assert "of the bytes from memory" in root.select_one(".pd-note").get_text()


def test_what_both_phases_read_almost_alike_is_the_bold_sum_and_activations_stand_apart():
    root = root_of(table(n=4096))
    rows = [row["data-row"] for row in root.select("tbody:last-of-type tr[data-row]")]
    assert rows[2:] == ["bytes-kv_written", "bytes-memory", "bytes-activations", "bytes-total"]
    assert [row["data-row"] for row in root.select("tr[data-total]")] == ["flops-total", "bytes-memory"]
    prefill, decode = cells(root, "bytes-memory")
    assert prefill < 1.3 * decode
    names = [root.select_one(f'tr[data-row="bytes-{part}"] th').get_text() for part in ("memory", "activations")]
    assert names == ["from memory: weights and K/V", "activations, if none stays on the chip"]
    assert root.select('tr:is([data-total], [data-row="bytes-activations"], [data-row="bytes-total"]) .pd-bar') == []


@pytest.mark.parametrize(
    ("n", "words"),
    [(1, ("Prefill of 1 token: 1 pair, ", ": 2 pairs, ", "FLOP, about as many.")), (2, ("1.79 times fewer.",))],
)
def test_small_counts_are_said_well(n, words):
    told = root_of(table(n=n)).select_one(".pd-sentence").get_text()
    assert all(part in told for part in words)


def answer(widget: LedgerTable, model: str, name: str) -> tuple[int, str]:
    entry = widget.data["models"][model]["answers"][name]
    assert entry["n"] in widget.data["lengths"]
    return entry["n"], entry["text"]


@pytest.mark.parametrize(
    ("model", "cross", "shown"), [("SmolLM2, float32", 11_676, 16_384), ("Llama-3-8B, 16 bits", 114_516, 131_072)]
)
def test_where_the_cache_outweighs_the_weights(model, cross, shown):
    shape, dtype = COUNTED[model]
    before, after = (ledger(shape, 1, n + 1, dtype=dtype).bytes for n in (cross - 1, cross))
    assert before.kv_read <= before.weights < after.kv_read
    n, text = answer(table(), model, "cache")
    assert (n, f"From {cross:,} cached tokens on" in text) == (shown, True)
    assert f"adds its own and reads {cross + 1:,}, {after.kv_read:,} bytes of cache" in text
    assert text.endswith(f"The slider stands at {shown:,}, its nearest place.")
    assert cross == before.weights // shape.kv_bytes(1, dtype)  # up to so many entries read, the weights are more
    root = root_of(table(model=model))
    assert root.select_one('[data-text="cross-at"]').get_text() == f"from {cross:,} cached tokens on"


def test_the_slider_stands_at_the_nearest_place_by_ratio():
    lengths = (1, 10_000, 13_800)  # 11,676 is nearer to the second, though the last is the first to show the crossing
    assert answer(table(lengths=lengths), "SmolLM2, float32", "cache")[0] == 10_000
    assert answer(table(lengths=(1, 11_676)), "SmolLM2, float32", "cache")[1].endswith("for a batch sooner.")


def test_where_attention_passes_the_feed_forward():
    _, text = answer(table(), "Llama-3-8B, 16 bits", "attention")
    decode, prefill = (int(number.replace(",", "")) for number in re.findall(r"n = ([\d,]+) on", text))
    for n, rows in ((decode, lambda n: (1, n + 1)), (prefill, lambda n: (n, n))):
        before, after = (ledger(LLAMA, *rows(length)).flops for length in (n - 1, n))
        assert before.scores + before.values <= before.ffn
        assert after.scores + after.values > after.ffn


def test_what_a_dense_kernel_computes_in_vain():
    n, text = answer(table(), "SmolLM2, float32", "dense")
    assert n == 4096
    assert f"{4096 * 4096:,} pairs, of which the mask throws {4096 * 4095 // 2:,} away, 50.0 %" in text


def test_what_changes_from_n_to_2n():
    n, text = answer(table(), "SmolLM2, float32", "double")
    factor = ledger(SMOLLM2, 2 * n, 2 * n).flops.total / ledger(SMOLLM2, n, n).flops.total
    assert f"FLOPs × {factor:.2f}. Decode" in text
    assert text.endswith("cache read × 2.00. Weights × 1.00 in both.")


def test_a_crossing_outside_of_the_picture_is_not_drawn():
    root = root_of(table(lengths=(1, 8, 64)))
    assert root.select_one('[data-place="cross"]')["visibility"] == "hidden"
    assert answer(table(lengths=(1, 8, 64)), "SmolLM2, float32", "cache")[0] == 64


@pytest.mark.parametrize("lengths", [(1,), (3, 5, 700), LENGTHS])
def test_every_place_lies_in_the_picture(lengths):
    for n in lengths:
        root = root_of(table(lengths=lengths, n=n))
        for name in ("now-cache", "cross"):
            place = root.select_one(f'[data-place="{name}"]')
            assert all(0 <= float(place[key][:-1]) <= 100 for key in ("cx", "cy"))
        points = root.select_one('[data-place="cache-line"]')["points"].split()
        assert len(points) == len(lengths)
        assert all(0 <= float(share) <= 100 for point in points for share in point.split(","))


# --- the three forms


def test_mimebundle_holds_the_live_view_the_picture_and_a_short_text():
    bundle, _ = table()._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"}
    assert bundle["text/plain"] == "LedgerTable(2 models, 18 lengths, opens on SmolLM2, float32, n = 4096)"


def test_equal_input_gives_equal_bytes():
    assert len({table()._repr_mimebundle_()[0]["text/html"] for _ in range(2)}) == 1


def test_traits_in_the_page_are_those_of_the_widget():
    widget = table(n=64)
    script = root_of(widget).find("script", type="application/json").string
    assert json.loads(script) == {"data": widget.data, "model": "SmolLM2, float32", "n": 64}
    assert "application/json" not in widget.markup


def test_the_saved_picture_follows_the_widget():
    widget = table()
    widget.n = 8
    assert root_of(widget)["data-n"] == "8"


def test_table_is_real_and_says_what_each_ledger_leaves_out():
    root = root_of(table())
    groups = [head.get_text(" ") for head in root.select("th[scope=rowgroup]")]
    assert len(groups) == 4
    assert all("Leaves out" in head for head in groups)
    assert root.select("th:not([scope]), [id]") == []
    assert root.select_one("table > caption").get_text() == "Four ledgers of SmolLM2, float32, one sequence"
    assert root.select_one("svg[role=img] > title").get_text() == root.select_one("svg[role=img]")["aria-label"]


def test_controls_wait_for_a_script():
    root = root_of(table())
    controls = root.select("button, select, input")
    assert len(controls) == 4 + 2
    assert all(control.find_parent(hidden=True) for control in controls)


def test_names_are_text_and_nothing_is_foreign():
    name = '</script><b>"&</b>'
    widget = LedgerTable({name: COUNTED["SmolLM2, float32"]})
    root = root_of(widget)
    assert root["data-model"] == name
    assert json.loads(root.find("script").string)["model"] == name
    assert root.select_one("[data-model-name]").get_text() == name
    assert [option.get_text() for option in root.select("option")] == [name]
    assert "http" not in widget._repr_mimebundle_()[0]["text/html"]


# --- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shapes": {}}, "got 0 models and 18 lengths"),
        ({"lengths": ()}, "got 2 models and 0 lengths"),
        ({"lengths": (4, 2)}, "lengths = (4, 2): expected whole numbers of at least 1, each larger"),
        ({"lengths": (0, 2)}, "lengths = (0, 2): expected whole numbers"),
        ({"lengths": (1, 2.5)}, "lengths = (1, 2.5): expected whole numbers"),
        ({"model": "GPT-9"}, "unknown model 'GPT-9': expected one of SmolLM2, float32, Llama-3-8B"),
        ({"n": 3}, "n = 3: expected one of the lengths 1, 2, 4"),
        ({"shapes": {"x": (SMOLLM2, "float7")}}, "model 'x': unknown dtype 'float7'"),
        (
            {"shapes": {"x": (Shape(8, 1, 1, 1, 8, 8, 8, latent_kv=4), "float16")}},
            "model 'x': a shape with a latent cache",
        ),
    ],
)
def test_bad_input_is_one_clear_line(options, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        table(**options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "value"), [("n", 3), ("model", "GPT-9")])
def test_a_wrong_value_from_the_kernel_is_refused(name, value):
    widget = table()
    with pytest.raises(traitlets.TraitError, match="expected one of"):
        setattr(widget, name, value)
    assert (widget.n, widget.model) == (4096, "SmolLM2, float32")
