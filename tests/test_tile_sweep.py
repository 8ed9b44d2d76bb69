"""What a `TileSweep` computes, checks and prints; the browser tests see to the rest."""

import gzip
import json
import re
from itertools import pairwise

import numpy as np
import pytest
from bs4 import BeautifulSoup
from tile_sweep_fixture import LABELS, MEMORIES, D, N, arrays, tile_sweep
from traitlets import TraitError

from prefill_decode.tiled import (
    SlowMemory,
    Tiles,
    standard_accesses,
    standard_attention,
    sweep,
    tiled_accesses,
    tiled_attention,
)
from prefill_decode.widgets.page_only import WRAPPED, for_page
from prefill_decode.widgets.tile_sweep_data import memory_of
from prefill_decode.widgets.tile_sweep_words import decimals, ratio, scale

ORDERS = ("keys", "queries")
CHOICES = [(fast, order) for fast in MEMORIES for order in ORDERS]


def soup_of(widget) -> BeautifulSoup:
    return BeautifulSoup(for_page(widget._repr_mimebundle_()[0]["text/html"]), "html.parser")


def told_of(widget, fast, order) -> dict:
    return memory_of(widget.data, fast)["orders"][order]


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def tiles_of(fast: int) -> Tiles:
    return Tiles.for_memory(fast, D, N)


@pytest.fixture(scope="module")
def widget():
    return tile_sweep()


# --- the sweep


@pytest.mark.parametrize(("fast", "order"), CHOICES)
def test_every_visit_has_the_numbers_of_a_sweep(widget, fast, order):
    memory, told, tiles = memory_of(widget.data, fast), told_of(widget, fast, order), tiles_of(fast)
    visits = [each for each in sweep(*arrays(), tiles, outer=order) if each.partial is not None]
    assert told["steps"] == len(visits) == len(told["tiles"]) - 1
    met = [0] * N
    for step, visit in enumerate(visits, 1):
        place = [visit.rows.start // tiles.queries, visit.keys.start // tiles.keys]
        assert told["tiles"][step] == place
        assert told["at"][place[0]][place[1]] == step
        for i in range(max(visit.rows.start, visit.keys.start), visit.rows.stop):
            maximum, total, output, _ = memory["known"][i][met[i]]
            met[i] += 1
            own = [part[0, 0, i - visit.rows.start] for part in vars(visit.partial).values()]
            assert [maximum, total, output] == [decimals(own[0]), decimals(own[1]), [decimals(x) for x in own[2]]]
    assert met == [len(row) for row in memory["known"]]


@pytest.mark.parametrize(("fast", "order"), CHOICES)
def test_accesses_are_those_of_the_sweep_when_the_skipped_tiles_of_a_step_are_passed(widget, fast, order):
    told, tiles, slow = told_of(widget, fast, order), tiles_of(fast), SlowMemory()
    visits = list(sweep(*arrays(), tiles, slow=slow, outer=order))
    by_tile = {(v.rows.start // tiles.queries, v.keys.start // tiles.keys): i for i, v in enumerate(visits)}
    assert set(by_tile) == {(r, c) for r, row in enumerate(told["at"]) for c, _ in enumerate(row)}
    assert (told["reads"][0], told["writes"][0], told["skipped"][0]) == (0, 0, 0)
    for step in range(1, told["steps"] + 1):
        passed = [i for (r, c), i in by_tile.items() if told["at"][r][c] <= step]
        assert len(passed) == max(passed) + 1  # all tiles up to here, none after
        last = visits[max(passed)]
        assert (told["reads"][step], told["writes"][step]) == (last.reads, last.writes)
        assert told["skipped"][step] == sum(visits[i].partial is None for i in passed)
    assert told["total"] == told["reads"][-1] + told["writes"][-1] == slow.accesses
    assert told["total"] == tiled_accesses(N, D, tiles, outer=order)


@pytest.mark.parametrize("fast", MEMORIES)
def test_the_last_outputs_are_those_of_attention(widget, fast):
    shown = [[number(x) for x in row[-1][2]] for row in memory_of(widget.data, fast)["known"]]
    for exact in (standard_attention(*arrays()), tiled_attention(*arrays(), tiles_of(fast))):
        np.testing.assert_allclose(shown, exact[0], rtol=0, atol=0.005 + 1e-9)


@pytest.mark.parametrize("fast", MEMORIES)
def test_m_and_l_are_those_of_all_keys_of_a_row(widget, fast):
    q, k, _ = arrays()
    for i, row in enumerate(memory_of(widget.data, fast)["known"]):
        scores = q[0, i] @ k[0, : i + 1].T / D**0.5
        assert number(row[-1][0]) == pytest.approx(scores.max(), abs=0.00501)
        assert number(row[-1][1]) == pytest.approx(np.exp(scores - scores.max()).sum(), abs=0.00501)


def test_factors_say_how_far_a_maximum_grew(widget):
    for fast in MEMORIES:
        for row in memory_of(widget.data, fast)["known"]:
            assert row[0][3] == ""  # nothing was known before
            for (old, *_), (new, *_, factor) in pairwise(row):
                grew = number(new) - number(old)
                assert grew >= 0
                if grew == 0:
                    assert float(factor) == pytest.approx(1, abs=0.011)
                elif factor != "<0.01":
                    assert float(factor) == pytest.approx(np.exp(-grew), abs=0.016)
                else:
                    assert np.exp(-grew) < 0.011


def test_scores_are_scaled_and_later_keys_have_none(widget):
    q, k, _ = arrays()
    scores = q[0] @ k[0].T / D**0.5
    assert [len(row) for row in widget.data["scores"]] == list(range(1, N + 1))
    for i, row in enumerate(widget.data["scores"]):
        np.testing.assert_allclose([number(x) for x in row], scores[i, : i + 1], rtol=0, atol=0.00501)


def test_standard_attention_has_three_phases(widget):
    slow = SlowMemory()
    standard_attention(*arrays(), slow=slow)
    assert widget.data["standard"] == sum(widget.data["phases"]) == slow.accesses == standard_accesses(N, D)
    assert widget.data["phases"] == [2 * N * D + N * N, 2 * N * N, N * N + 2 * N * D]


def test_small_memory_costs_more_than_standard_and_large_memory_less(widget):
    totals = [told_of(widget, fast, "keys")["total"] for fast in MEMORIES]
    assert totals == sorted(totals, reverse=True)
    assert totals[0] > widget.data["standard"] > totals[-1]
    assert widget.data["longest"] == totals[0]
    by_memory = " · ".join(f"{fast} → {total}" for fast, total in zip(MEMORIES, totals, strict=True))
    assert soup_of(widget).select_one("[data-text=ends]").get_text() == f"At the end, by M: {by_memory}"


def test_what_skipping_saves_is_told(widget):
    for fast, order in CHOICES:
        whole = tiled_accesses(N, D, tiles_of(fast), outer=order, skip=False)
        end = told_of(widget, fast, order)["end"]
        assert end.startswith(f"This choice ends at {told_of(widget, fast, order)['total']:,}: ")
        skips = told_of(widget, fast, order)["skipped"][-1] > 0
        assert (f"Without skipping it would end at {whole:,}: " in end) == skips
        assert end.endswith("It skips nothing.") != skips


# --- words


def test_sentences_say_what_happens_with_its_numbers(widget):
    told, known = told_of(widget, 24, "keys"), memory_of(widget.data, 24)["known"]
    sentences = told["sentences"]
    assert len(sentences) == told["steps"] + 1 == 16
    assert sentences[0].startswith("Nothing is read yet: 10 queries and 10 keys lie in slow memory.")
    assert sentences[1] == (
        "Step 1 of 15: queries 0–1 meet keys 0–1. The first keys of rows 0–1: nothing to correct. Rows 0–1 are final."
        f" {told['reads'][1]} reads, {told['writes'][1]} writes so far; standard attention makes 520."
    )
    assert "1 tile of later keys is skipped." in sentences[6]
    for step in range(1, 16):
        row_tile, key_tile = told["tiles"][step]
        factors = {i: known[i][key_tile][3].lstrip("<") for i in (2 * row_tile, 2 * row_tile + 1)}
        assert f"{told['reads'][step]} reads, {told['writes'][step]} writes so far" in sentences[step]
        pattern = r"Row (\d+): maximum (\S+) → (\S+), so what it knew is scaled by (less than )?([\d.]+)[.;]"
        scaled = re.search(pattern, sentences[step])
        if scaled:
            i = int(scaled[1])
            assert scaled.group(2, 3) == (known[i][key_tile - 1][0], known[i][key_tile][0])
            assert scaled[5] == factors[i] == min(factors.values())
        elif key_tile:
            assert set(factors.values()) == {"1.00"}
            assert "No maximum grew: factor 1." in sentences[step]


def test_sentences_name_every_row_that_is_scaled():
    q, k, _ = arrays(12, 4, 7)
    widget = tile_sweep(arrays=arrays(12, 4, 7), memories=(48,), memory=48, labels=None)
    told, scores = told_of(widget, 48, "keys"), q[0] @ k[0].T
    numbers = set()
    for (row, column), sentence in zip(told["tiles"][1:], told["sentences"][1:], strict=True):
        rows = range(3 * row, 3 * row + 3)
        grown = [
            i
            for i in rows
            if column and scores[i, 3 * column : min(3 * column + 3, i + 1)].max() > scores[i, : 3 * column].max()
        ]
        scaled = re.search(
            r"Row (\d+): maximum .*?by (?:less than )?\d\.\d\d(?:; rows? ([\d, and]+) (?:is|are) scaled, too)?\.",
            sentence,
        )
        named = [] if scaled is None else [int(scaled[1]), *map(int, re.findall(r"\d+", scaled[2] or ""))]
        assert sorted(named) == grown
        assert ("No maximum grew" in sentence) == (column > 0 and not grown)
        numbers.add(len(grown))
    assert numbers >= {0, 1, 2, 3}


def test_questions_lead_to_what_they_ask_for(widget):
    loses, holds, skips, larger, other = widget.data["questions"]
    assert loses["set"] == {"memory": 12, "order": "keys", "step": 55}
    total = told_of(widget, 12, "keys")["total"]
    assert "1 key × 1 query, and what a row knows" in loses["answer"]
    assert f"With keys staying {total:,} accesses, {ratio(total, 520)} (520)" in loses["answer"]
    assert f"; with queries staying {told_of(widget, 12, 'queries')['total']:,}. " in loses["answer"]
    assert holds["set"]["memory"] == 120
    assert "From M = 109 on, more than 4 d (n − 1), one tile holds all 10 keys" in holds["answer"]
    assert (Tiles.for_memory(108, D, N).keys, Tiles.for_memory(109, D, N).keys) == (9, 10)
    assert skips["set"]["memory"] == 24
    assert "10 of 25" in skips["answer"]
    assert other["set"] == {"memory": 24, "order": "queries", "step": 15}
    keys, queries = (told_of(widget, 24, order) for order in ORDERS)
    assert f"Writes: {N * D} instead of {keys['writes'][-1]}." in other["answer"]
    assert f"Reads: {queries['reads'][-1]} instead of {keys['reads'][-1]};" in other["answer"]
    pattern = r"Row (\d+).* from (\S+) to (\S+)\. .* here (?:less than )?(\S+), before"
    row, old, new, factor = re.search(pattern, larger["answer"]).groups()
    told, known = told_of(widget, 24, "keys"), memory_of(widget.data, 24)["known"]
    row_tile, before = told["tiles"][larger["set"]["step"]]
    i = int(row)
    assert i // 2 == row_tile
    assert (old, new, factor) == (known[i][before - 1][0], known[i][before][0], known[i][before][3].lstrip("<"))
    assert factor == min(each[3].lstrip("<") for row in known for each in row[1:])


def test_questions_where_nothing_of_the_kind_happens():
    flat = np.zeros((1, 3, 4))
    widget = tile_sweep(arrays=(flat, flat, flat), memories=(64,), memory=64, labels=None)
    loses, holds, skips, larger, _ = (each["answer"] for each in widget.data["questions"])
    assert loses.startswith("Not here, even with M = 64. With keys staying ")
    assert "one tile holds all 3 keys, and all queries with them." in holds
    assert skips.startswith("None here")
    assert larger.startswith("No row meets a larger score here")
    some = tile_sweep(memories=(12, 24)).data["questions"][1]["answer"]
    assert some.startswith("None of these does. M = 24 comes nearest: 2 keys × 2 queries.")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: decimals(-0.004), "0.00"),
        (lambda: decimals(-1.256), "−1.26"),
        (lambda: scale(1.0), "1.00"),
        (lambda: scale(0.0099), "<0.01"),
        (lambda: ratio(10, 10), "as many as standard"),
        (lambda: ratio(21, 10), "2.10 times as many as standard"),
        (lambda: ratio(4, 10), "0.400 of standard"),
    ],
)
def test_numbers_in_words(call, text):
    assert call() == text


# --- the picture


def test_rows_and_keys_count_from_0_as_everywhere(widget):
    soup, numbers = soup_of(widget), [str(i) for i in range(N)]
    grid = ".pd-grid thead th > span", ".pd-grid tbody th > span"
    assert [[head.get_text() for head in soup.select(heads)] for heads in grid] == [numbers] * 2
    assert [head.get_text() for head in soup.select(".pd-rows tbody th")] == numbers


@pytest.mark.parametrize(("fast", "order"), CHOICES)
def test_the_finished_picture(fast, order):
    widget, tiles = tile_sweep(memory=fast, order=order), tiles_of(fast)
    soup, told = soup_of(widget), told_of(widget, fast, order)
    for i, row in enumerate(soup.select(".pd-grid tbody tr")):
        for j, cell in enumerate(row.select("td")):
            tile = [i // tiles.queries, j // tiles.keys]
            later = tile[1] * tiles.keys > min((tile[0] + 1) * tiles.queries, N) - 1
            now = tile == told["tiles"][-1]
            assert cell["data-state"] == ("skipped" if later else "now" if now else "done")
            assert cell.get_text() == (widget.data["scores"][i][j] if now and j <= i else "")
            assert cell.has_attr("data-masked") == (j > i)
    assert [row.select("td")[-1].get_text() for row in soup.select(".pd-rows tbody tr")] == ["✓"] * N
    outputs = [[number(x.get_text()) for x in row.select("td")[3:-1]] for row in soup.select(".pd-rows tbody tr")]
    np.testing.assert_allclose(outputs, standard_attention(*arrays())[0], rtol=0, atol=0.00501)


def test_root_tells_the_state(widget):
    root = soup_of(widget).find(attrs={"data-widget": True})
    told = told_of(widget, 24, "keys")
    assert {name: value for name, value in root.attrs.items() if name.startswith("data-")} == {
        "data-widget": "tile-sweep",
        "data-steps": "15",
        "data-step": "15",
        "data-memory": "24",
        "data-order": "keys",
        "data-reads": str(told["reads"][-1]),
        "data-writes": str(told["writes"][-1]),
        "data-accesses": str(told["total"]),
        "data-standard": "520",
        "data-skipped": "10",
    }


def test_bars_have_one_scale(widget):
    widths = [float(re.search(r"[\d.]+", part["style"])[0]) for part in soup_of(widget).select(".pd-bar [data-part]")]
    told, longest = told_of(widget, 24, "keys"), widget.data["longest"]
    numbers = [told["reads"][-1], told["writes"][-1], told["total"], *widget.data["phases"]]
    assert widths == [round(100 * each / longest, 2) for each in numbers]


def test_phases_of_standard_attention_name_all_that_they_read_and_write(widget):
    line = soup_of(widget).select(".pd-line")[1].get_text()
    phases = "160 (read Q, K, write A) + 200 (read A, write W) + 160 (read W, V, write O)"
    assert line == f"standard: 520 = {phases}"


def test_the_rule_of_a_tile_is_told_once(widget):
    text = soup_of(widget).get_text()
    assert (
        text.count("⌈M/4d⌉ keys; as many query rows, but at most d, so that a tile of scores fits, too. Here d = 3.")
        == 1
    )


def test_options_name_m_and_its_tile(widget):
    soup = soup_of(widget)
    assert [option.get_text() for option in soup.select("select[name=memory] option")] == [
        "M = 12: 1 key × 1 query",
        "M = 24: 2 keys × 2 queries",
        "M = 37: 4 keys × 3 queries",
        "M = 48: 4 keys × 3 queries",
        "M = 120: 10 keys × 3 queries",
    ]
    assert [option["value"] for option in soup.select("select[name=order] option")] == list(ORDERS)


def test_mimebundle_holds_the_live_view_the_picture_and_a_short_text(widget):
    bundle, _ = widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/plain"] == repr(widget) == "TileSweep(10 positions × 3 numbers; M = 12, 24, 37, 48, 120)"


def test_the_picture_is_the_same_twice_and_holds_the_traits(widget):
    assert widget._repr_mimebundle_()[0]["text/html"] == tile_sweep()._repr_mimebundle_()[0]["text/html"]
    traits = json.loads(soup_of(widget).select_one('script[type="application/json"]').string)
    assert set(traits) == {"data", "memory", "order", "step"}
    assert traits["data"] == json.loads(json.dumps(widget.data))


def test_the_live_markup_has_its_controls_and_no_data(widget):
    assert "<script" not in widget.markup
    assert 'data-act="play"' in widget.markup


def test_notebook_viewers_see_no_control(widget):
    left = WRAPPED.sub("", widget._repr_mimebundle_()[0]["text/html"])
    assert not re.search("<(button|input|select)", left)


def test_labels_are_text(widget):
    assert [cell.bdi.get_text() for cell in soup_of(widget).select(".pd-grid tbody th")] == [
        text.replace(" ", "·") for text in LABELS
    ]
    assert soup_of(tile_sweep(labels=None)).select(".pd-grid bdi") == []


def test_it_is_small_and_asks_nobody():
    large = tile_sweep(arrays=arrays(16, 4), memories=(16, 32, 48, 64, 96, 128, 192, 256), memory=64, labels=None)
    html = large._repr_mimebundle_()[0]["text/html"]
    assert len(gzip.compress(html.encode())) < 20_000
    assert "http" not in html
    assert " id=" not in html


def test_float32_is_taken_as_it_is():
    single = tuple(each.astype(np.float32) for each in arrays())
    assert tile_sweep(arrays=single).data["standard"] == 520


# --- bad input


def cut(n: int = N, d: int = D, heads: int = 1) -> np.ndarray:
    return np.zeros((heads, n, d))


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"memories": (11, 24)}, "M = 11 numbers hold no tile of 10 positions of width 3: give at least 4 d"),
        ({"memories": ()}, "memories = []: expected 1 to 8 sizes, rising"),
        ({"memories": (24, 12)}, "memories = [24, 12]: expected 1 to 8 sizes, rising"),
        ({"memories": (24, 24)}, "memories = [24, 24]: expected 1 to 8 sizes, rising"),
        ({"memories": range(24, 33)}, "expected 1 to 8 sizes, rising"),
        ({"memories": (12.5, 24)}, "memories = [12.5, 24]: expected whole numbers"),
        ({"memory": 25}, "memory = 25: expected one of 12, 24, 37, 48, 120"),
        ({"order": "rows"}, 'order = \'rows\': expected "keys" or "queries"'),
        ({"labels": ["a"]}, "1 labels for 10 rows: give one for each"),
        ({"arrays": (cut(17),) * 3}, "q has 17 rows: expected 1 to 16, give fewer"),
        ({"arrays": (cut(d=5),) * 3}, "q has 5 numbers in a row: expected 1 to 4, give fewer"),
        ({"arrays": (cut(0),) * 3}, "q has 0 rows: expected 1 to 16"),
        ({"arrays": (cut(heads=2),) * 3}, "expected one head, [1, n, d] for each"),
        ({"arrays": (cut(4), cut(5), cut(5))}, "q (1, 4, 3), k (1, 5, 3), v (1, 5, 3): expected one head"),
        ({"arrays": (cut()[0],) * 3}, "expected one head, [1, n, d] for each"),
        ({"arrays": (cut() + 5, cut() + 5, cut())}, "scores reach 43.3: expected sizes below 10, scale q or k"),
        ({"arrays": (cut(), cut(), cut() + 12)}, "values reach 12: expected sizes below 10, scale v"),
        ({"arrays": (cut() * np.nan, cut(), cut())}, "scores reach nan: expected sizes below 10"),
    ],
)
def test_bad_input_gets_one_line(options, line):
    with pytest.raises(ValueError, match=re.escape(line)) as error:
        tile_sweep(**options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("step", 16, "step = 16: expected 0 to 15"),
        ("step", -1, "step = -1: expected 0 to 15"),
        ("memory", 13, "memory = 13: expected one of 12, 24, 37, 48, 120"),
        ("order", "x", 'order = \'x\': expected "keys" or "queries"'),
    ],
)
def test_a_state_that_does_not_exist_is_refused(name, value, line):
    widget = tile_sweep()
    with pytest.raises(TraitError, match=re.escape(line)):
        setattr(widget, name, value)
    assert (widget.memory, widget.order, widget.step) == (24, "keys", 15)


def test_a_choice_with_fewer_steps_is_shown_at_its_end():
    widget = tile_sweep()
    widget.memory = 120
    assert widget.step == 4
    widget.memory = 12
    assert widget.step == 4
