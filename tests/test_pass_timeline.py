"""What a `PassTimeline` computes, checks and prints; the browser tests see to the rest."""

import gzip
import json
import re
from statistics import median

import numpy as np
import pytest
from bs4 import BeautifulSoup
from timeline_fixture import CHUNKS, H100, LAYERS, LLAMA, PROMPT, REQUESTS, STEPS, TOKENS, runs, timeline
from traitlets import TraitError

from prefill_decode.cost import Constants, Request, simulate
from prefill_decode.widgets.page_only import WRAPPED, for_page
from prefill_decode.widgets.pass_timeline_schedule import number
from prefill_decode.widgets.pass_timeline_stall import LANE

NEWCOMER = 2
ARRIVAL = 0.1


def soup_of(widget) -> BeautifulSoup:
    return BeautifulSoup(for_page(widget._repr_mimebundle_()[0]["text/html"]), "html.parser")


def root_of(widget) -> dict:
    return soup_of(widget).find(attrs={"data-widget": True}).attrs


def scenario_of(widget, name) -> dict:
    return next(each for each in widget.data["stall"]["scenarios"] if each["name"] == name)


@pytest.fixture(scope="module")
def widget():
    return timeline()


# --- one request


def test_layers_of_a_pass_follow_each_other_and_a_choice_ends_it(widget):
    plain, slow = widget.data["schedule"]["variants"]
    assert plain["done"] == "3 6 9 12 13  15 17 19 21 22  24 26 28 30 31".split()
    assert slow["done"] == "3 15 18 21 22  24 32 34 36 37  39 47 49 51 52".split()
    assert [plain["passes"], slow["passes"]] == [["13", "9", "9"], ["22", "15", "15"]]
    assert [(each["ttft"], each["tpot"]) for each in (plain, slow)] == [("13", "9"), ("22", "15")]
    assert plain["formulas"] == ["4 layers × 3 + choice 1", "4 layers × 2 + choice 1"]
    assert slow["formulas"] == ["3 layers × 3 + slow layer 12 + choice 1", "3 layers × 2 + slow layer 8 + choice 1"]
    assert (plain["width"], slow["width"]) == (round(100 * 31 / 52, 3), 100)


def test_all_prompt_tokens_of_a_layer_are_ready_at_the_same_time(widget):
    cells = soup_of(widget).select("td[data-layer]")
    assert len(cells) == LAYERS * (len(TOKENS) - 1)
    ready = {(int(cell["data-layer"]), int(cell["data-position"])): cell for cell in cells}
    for layer in range(LAYERS):
        assert {ready[layer, i].get_text() for i in range(PROMPT)} == {str(3 * (layer + 1))}
        assert {ready[layer, i]["data-at"] for i in range(PROMPT)} == {str(layer + 1)}
        assert [ready[layer, i].get_text() for i in (PROMPT, PROMPT + 1)] == [str(t + 2 * layer) for t in (15, 24)]
    assert {cell["data-phase"] for cell in cells if int(cell["data-position"]) < PROMPT} == {"prefill"}
    assert {cell["data-phase"] for cell in cells if int(cell["data-position"]) >= PROMPT} == {"decode"}


def test_the_last_layer_is_on_top_and_choices_stand_above_it(widget):
    table = soup_of(widget).select_one(".pd-layers")
    assert [row.th.get_text() for row in table.select("tbody tr")] == ["layer 3", "layer 2", "layer 1", "layer 0"]
    assert [cell.get_text() for cell in table.select(".pd-chosen")] == ["·on", "·a", "·mat"]
    assert [cell.get_text() for cell in table.select("tfoot th[scope=col]")] == ["The", "·cat", "·sat", "·on", "·a"]
    known = table.select("tfoot th[data-at]")  # a chosen token starts a column from its choice on
    assert [cell["data-at"] for cell in known] == ["5", "10"]


def test_sentences_say_what_happens_with_its_numbers(widget):
    sentences = [re.sub("<.*?>", "", text) for text in widget.data["schedule"]["variants"][0]["sentences"]]
    assert len(sentences) == STEPS + 1
    assert sentences[0] == "Nothing is computed yet: 3 prompt tokens below layer 0."
    assert (
        sentences[1]
        == "Prefill, pass 1: layer 0 of all 3 prompt tokens at once is ready at 3 ms; layer 1 waits for it."
    )
    assert sentences[4].endswith("layer 3 of all 3 prompt tokens at once is ready at 12 ms; now the head can choose.")
    assert sentences[5] == "Prefill, pass 1: “·on” is chosen. Here TTFT ends: 4 layers × 3 + choice 1 = 13 ms."
    assert sentences[7] == "Decode, pass 2: layer 1 of “·on” alone is ready at 17 ms; layer 2 waits for it."
    assert sentences[10].startswith("Decode, pass 2: “·a” is chosen after all layers again, for one token. TPOT = 4 ")
    slow = widget.data["schedule"]["variants"][1]["sentences"]
    assert "layer 1 of all 3 prompt tokens at once, 4 times as long as another, is ready at 15 ms" in slow[2]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (223.4, "223"),
        (1234.5, "1,234"),
        (19.96, "20"),
        (7.145, "7.14"),
        (3.2, "3.2"),
        (0.3, "0.3"),
        (0.00421, "0.0042"),
    ],
)
def test_numbers_have_about_three_digits(value, text):
    assert number(value) == text


# --- several requests


def test_numbers_are_those_of_the_simulations(widget):
    for run, scenario in zip(runs(), widget.data["stall"]["scenarios"], strict=True):
        wait = 1e3 * max(run.largest_gap(i, since=ARRIVAL) for i in (0, 1))
        assert float(scenario["gapMs"]) == pytest.approx(wait, abs=1e-6)
        assert scenario["row"] == [
            number(wait),
            number(1e3 * (run.tpot(0) + run.tpot(1)) / 2),
            number(1e3 * run.ttft(NEWCOMER)),
            f"{len(run.prompt_passes(NEWCOMER))} × 15",
        ]
        assert scenario["gap"]["text"] == f"longest gap {number(wait)} ms"
        assert scenario["ttft"]["text"] == f"TTFT {number(1e3 * run.ttft(NEWCOMER))} ms"


def test_places_are_shares_of_one_time_axis(widget):
    stall = widget.data["stall"]
    (zero, none), (tick, words) = stall["ticks"][:2]
    assert (none, stall["arrival"]) == ("0", zero)
    per_cent = (tick - zero) / float(words)  # a millisecond
    for run, scenario in zip(runs(), stall["scenarios"], strict=True):
        bars = [bar for bar in scenario["bars"] if bar[1]]
        passes = run.prompt_passes(NEWCOMER)
        assert len(bars) == len(passes)
        assert bars[0][0] == pytest.approx(zero + per_cent * 1e3 * (passes[0].start - ARRIVAL), abs=0.02)
        assert sum(width for _, width in bars) == pytest.approx(
            per_cent * 1e3 * sum(p.seconds for p in passes), abs=0.5
        )
        assert scenario["gap"]["to"] - scenario["gap"]["from"] == pytest.approx(
            per_cent * float(scenario["gapMs"]), abs=0.02
        )
        assert scenario["ttft"]["to"] - zero == pytest.approx(per_cent * 1e3 * run.ttft(NEWCOMER), abs=0.02)
        seen = [x for x in scenario["dots"][0] if 0 <= x <= 100]
        left = ARRIVAL - zero / per_cent / 1e3
        assert len(seen) == sum(left <= time <= left + 0.1 / per_cent for time in run.times(0))
        assert scenario["gap"]["to"] in seen


def test_every_scenario_has_as_many_dots_and_bars_and_waits_less_than_the_one_before(widget):
    scenarios = widget.data["stall"]["scenarios"]
    assert [each["name"] for each in scenarios] == ["whole", "2048", "512", "128"]
    assert len({tuple(map(len, each["dots"])) for each in scenarios}) == 1
    assert {len(each["bars"]) for each in scenarios} == {64}
    waits = [float(each["gapMs"]) for each in scenarios]
    assert waits == sorted(waits, reverse=True)
    ends = [each["ttft"]["to"] for each in scenarios]
    assert ends == sorted(ends)


def test_a_stall_before_the_arrival_is_not_the_newcomer_s():
    requests = (Request(0, 512, 90), Request(0.05, 8192, 60), Request(0.35, 1024, 9))
    stall = runs((None, 512), requests)
    shown = timeline(stall=stall).data["stall"]["scenarios"][0]
    assert float(shown["gapMs"]) == pytest.approx(1e3 * stall[0].largest_gap(1, since=0.35), abs=1e-6)
    assert float(shown["gapMs"]) < 1e3 * stall[0].largest_gap(0) / 4


def test_brackets_stand_in_the_lane_that_they_measure(widget):
    scenario = scenario_of(widget, "whole")
    assert (scenario["gap"]["top"], scenario["ttft"]["top"]) == (0, 2 * LANE)


def test_the_usual_wait_is_the_median(widget):
    whole = runs([None])[0]
    usual = median([*whole.gaps(0), *whole.gaps(1)])
    assert f"; {number(1e3 * usual)} ms is usual" in scenario_of(widget, "whole")["sentence"]


def test_the_newcomer_is_who_arrives_last_in_whatever_order():
    turned = timeline(stall=runs(requests=REQUESTS[::-1]))
    assert turned.data["stall"]["scenarios"] == timeline().data["stall"]["scenarios"]


def test_questions_answer_with_their_numbers(widget):
    answers = {each["ask"]: each["answer"] for each in widget.data["questions"]}
    assert "the same 4 layers once: 4 × 3 ms" in answers["Does a longer prompt add layers?"]
    assert "TTFT 13 → 22 ms, TPOT 9 → 15 ms" in answers["A slow layer: who pays?"]
    whole, small = scenario_of(widget, "whole")["row"], scenario_of(widget, "128")["row"]
    assert f"{whole[0]} ms without a token" in answers["Who waits for the newcomer’s prompt?"]
    cost = answers["What does a smaller chunk cost?"]
    assert "In chunks of 128 the weights are read 64 times, 961 GB instead of 15 GB" in cost
    assert f"{small[2]} ms for its first token instead of {whole[2]} ms" in cost


def test_words_that_would_be_cut_stand_at_the_end_of_what_they_measure(widget):
    gap = scenario_of(widget, "128")["gap"]
    assert (gap["anchor"], gap["words"]) == ("end", gap["to"])
    assert scenario_of(widget, "whole")["gap"]["anchor"] == "middle"


def test_numbers_of_ticks_stay_in_the_picture():
    requests = (Request(0, 512, 160), Request(0.02, 1024, 160), Request(0.1, 9216, 20))
    ticks = soup_of(timeline(stall=runs(requests=requests))).select(".pd-lanes text.pd-small")
    assert float(ticks[-1]["x"][:-1]) > 97
    assert [tick["text-anchor"] for tick in ticks] == ["middle"] * (len(ticks) - 1) + ["end"]


def test_every_column_of_the_numbers_has_an_owner(widget):
    owners, columns = soup_of(widget).select(".pd-numbers thead tr")
    owned = [owner.get_text() for owner in owners.select("th") for _ in range(int(owner["colspan"]))]
    named = [column.get_text() for column in columns.select("th")][1:]
    assert list(zip(owned, named, strict=True)) == [
        ("others", "longest gap, ms"),
        ("others", "their TPOT, ms"),
        ("newcomer", "TTFT, ms"),
        ("newcomer", "weights read, GB"),
    ]


def test_why_the_mean_falls_is_the_reason(widget):
    whole, *_, small = runs()
    passes = small.prompt_passes(NEWCOMER)
    shared, usual = sum(each.seconds for each in passes), median([*whole.gaps(0), *whole.gaps(1)])
    separate = whole.prompt_passes(NEWCOMER)[0].seconds + (len(passes) - 1) * usual
    told = widget.data["stall"]["why"]
    assert f"64 such passes take {number(1e3 * shared)} ms; one with the whole prompt and 63 without it" in told
    assert f"take {number(1e3 * separate)} ms." in told
    saved = (whole.tpot(0) - small.tpot(0)) * (REQUESTS[0].new_tokens - 1)
    assert saved == pytest.approx(separate - shared, rel=0.1)  # nothing else makes their answers end sooner


def test_a_mean_that_does_not_fall_needs_no_reason():
    slow = Constants(0.6, 0.7, overhead=20e-6, prefill_overhead=2e-3)  # each pass with a piece of a prompt is dear
    stall = [simulate(LLAMA, H100, slow, REQUESTS, chunk=chunk) for chunk in (None, 128)]
    widget = timeline(stall=stall)
    assert widget.data["stall"]["why"] == ""
    assert soup_of(widget).select(".pd-side .pd-note") == []


def test_questions_begin_with_a_capital(widget):
    assert all(each["ask"][0].isupper() for each in widget.data["questions"])


# --- the picture


def test_mimebundle_holds_the_live_view_the_picture_and_a_short_text(widget):
    bundle, _ = widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/plain"] == repr(widget)
    assert (
        repr(widget)
        == "PassTimeline(3 prompt + 3 new tokens, 4 layers; whole, chunks of 2,048, chunks of 512, chunks of 128)"
    )


def test_root_tells_the_state(widget):
    told = {name: value for name, value in root_of(widget).items() if name.startswith("data-")}
    assert told == {
        "data-widget": "pass-timeline",
        "data-steps": "15",
        "data-step": "15",
        "data-phase": "decode",
        "data-layer": "choice",
        "data-pass": "3",
        "data-ttft-ms": "13",
        "data-tpot-ms": "9",
        "data-slow": "0",
        "data-scenario": "whole",
        "data-largest-gap-ms": scenario_of(widget, "whole")["gapMs"],
    }
    other = root_of(timeline(slow=True, scenario="512"))
    assert [other[f"data-{name}"] for name in ("slow", "ttft-ms", "tpot-ms", "scenario")] == ["1", "22", "15", "512"]


def test_without_scripts_pictures_numbers_and_sources_are_there_and_no_control(widget):
    seen = BeautifulSoup(WRAPPED.sub("", widget._repr_mimebundle_()[0]["text/html"]), "html.parser")
    assert seen.select("button, input, select, label") == []
    assert [row.get_text(" ") for row in seen.select(".pd-numbers tbody tr")] == [
        f"{each['label']} {' '.join(each['row'])}" for each in widget.data["stall"]["scenarios"]
    ]
    text = seen.get_text(" ")
    for part in ("Round numbers", "Simulated: Llama-3-8B on one H100", "4 layers × 3 + choice 1", "TTFT 225 ms"):
        assert part in text
    assert len(seen.select("svg[role=img] circle")) == sum(map(len, scenario_of(widget, "whole")["dots"]))


def test_traits_in_the_page_are_the_traits_of_the_widget(widget):
    traits = json.loads(soup_of(widget).select_one("script[type='application/json']").string)
    assert traits == json.loads(
        json.dumps({name: getattr(widget, name) for name in ("data", "step", "slow", "scenario")})
    )


def test_live_markup_is_the_picture_without_its_traits(widget):
    page = soup_of(widget)
    page.select_one("script").decompose()
    assert str(BeautifulSoup(widget.markup, "html.parser")) == str(page)
    assert "<script" not in widget.markup


def test_nothing_foreign_no_ids_and_not_much(widget):
    markup = widget._repr_mimebundle_()[0]["text/html"]
    assert not re.search(r"https?:|src=|href=|url\(|\bid=|nan|inf\b", markup, flags=re.IGNORECASE)
    assert len(gzip.compress(markup.encode())) < 10_000


def test_equal_input_gives_equal_bytes(widget):
    assert timeline()._repr_mimebundle_()[0]["text/html"] == widget._repr_mimebundle_()[0]["text/html"]


def test_markup_is_text_everywhere():
    bad = ["<script>x</script>", "</table>", "\"'", "&lt;", "\u202eab", "\ud800"]
    soup = soup_of(timeline(tokens=bad, source="<i>a</i>", stall_source="<u>b</u>"))
    assert len(soup.select("script")) == 1
    assert soup.select("i, u, bdi *") == []
    assert soup.select("tfoot th[scope=col]")[1].get_text() == "</table>"
    soup.encode("utf-8")


def test_numbers_of_numpy_are_taken():
    assert timeline(prefill_layer_ms=np.float32(3), layers=np.int64(4)).data["schedule"]["variants"][0]["ttft"] == "13"


def test_a_prompt_of_one_token_and_one_more():
    small = timeline(tokens=["a", " b", " c"], prompt_len=1, layers=1, slow_layer=0)
    assert len(soup_of(small).select("td[data-layer]")) == 2
    assert small.data["schedule"]["variants"][1]["formulas"][0] == "slow layer 12 + choice 1"
    assert "the one prompt token" in small.data["schedule"]["variants"][0]["sentences"][1]


# --- bad input


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"prompt_len": 0}, "prompt_len = 0: expected a whole number from 1 to 8"),
        ({"prompt_len": 5}, "new tokens (tokens without the prompt) = 1: expected a whole number from 2 to 6"),
        ({"tokens": ["x"] * 11, "prompt_len": 6}, "tokens = 11: expected a whole number from 3 to 10"),
        ({"layers": 30}, "layers = 30: expected a whole number from 1 to 12"),
        ({"slow_layer": 4}, "slow_layer = 4: expected a whole number from 0 to 3"),
        ({"prefill_layer_ms": 0}, "prefill_layer_ms = 0: expected milliseconds, above 0"),
        ({"decode_layer_ms": float("inf")}, "decode_layer_ms = inf: expected milliseconds"),
        ({"choose_ms": float("nan")}, "choose_ms = nan: expected milliseconds"),
        ({"slow_factor": 1}, "slow_factor = 1: expected more than 1"),
        ({"stall": runs([None])}, "stall has the chunks [None]: expected None (whole) once and one or more"),
        ({"stall": runs([512, 128])}, "stall has the chunks [512, 128]: expected None"),
        ({"stall": runs([None, 512, 512])}, "stall has the chunks [None, 512, 512]: expected None"),
        ({"stall": []}, "stall has the chunks []: expected None"),
        ({"stall": runs([None]) + runs([512], REQUESTS[1:])}, "the simulations of stall serve different requests"),
        ({"stall": runs([None, 9], [Request(0, 9, 2)])}, "stall serves 1 requests: expected 2 to 5"),
        (
            {"stall": runs([None, 9], [Request(0, 9, 2), Request(5, 9, 2)])},
            "with whole, a request gets no token after the last arrival: give it more new tokens",
        ),
    ],
)
def test_bad_input_gets_one_line(options, line):
    with pytest.raises(ValueError, match=re.escape(line)) as error:
        timeline(**options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("step", 16, "step = 16: expected 0 to 15"),
        ("step", -1, "step = -1: expected 0 to 15"),
        ("scenario", "64", "scenario = '64': expected one of whole, 2048, 512, 128"),
    ],
)
def test_a_state_that_does_not_exist_is_refused(widget, name, value, line):
    with pytest.raises(TraitError, match=re.escape(line)):
        setattr(widget, name, value)
    assert CHUNKS[0] is None
    assert getattr(widget, name) in (15, "whole")
