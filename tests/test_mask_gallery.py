"""What a `MaskGallery` counts, says and refuses; the browser tests see to the rest."""

import gzip
import re

import numpy as np
import pytest
from bs4 import BeautifulSoup
from traitlets import TraitError

from prefill_decode.schedules.masks import PAD
from prefill_decode.widgets import MaskGallery
from prefill_decode.widgets.mask_gallery_cases import FREE, MaskCase, Pass, Place, own
from prefill_decode.widgets.mask_gallery_data import Question
from prefill_decode.widgets.mask_gallery_examples import BLOCK, TABLE, WINDOW, N, gallery, standard_cases
from prefill_decode.widgets.page_only import for_page

NAMES = ["causal", "chunks", "left-padded", "right-padded", "packed", "paged", "window"]
SEQUENCE = [f"a{i}" for i in range(8)]
# What stands at rows and columns, written out by hand: a letter and a position, "–" a pad, "/" nothing.
LEFT = "a0 a1 a2 a3 a4 – – b0 b1 b2 – – – c0 c1".split()
RIGHT = "a0 a1 a2 a3 a4 b0 b1 b2 – – c0 c1 – – –".split()
PACKED = "a0 a1 a2 a3 a4 b0 b1 b2 c0 c1".split()
MEMORY = "b0 b1 a2 a3 a6 a7 / / a0 a1 a4 a5".split()  # blocks of 2: another's, page 1, page 3, free, page 0, page 2
LABELS = {
    "causal": (SEQUENCE, SEQUENCE),
    "chunks": (SEQUENCE, SEQUENCE),
    "left-padded": (LEFT, LEFT),
    "right-padded": (RIGHT, RIGHT),
    "packed": (PACKED, PACKED),
    "paged": (SEQUENCE, MEMORY),
    "window": (SEQUENCE, SEQUENCE),
}
# pairs allowed, what n(n+1)/2 says, what a dense kernel computes, rows that are pads
COUNTS = {
    "causal": (36, 36, 64, 0),
    "chunks": (36, 36, 3 * 3 + 3 * 6 + 2 * 8, 0),
    "left-padded": (24, 3 * 15, 3 * 5 * 5, 5),
    "right-padded": (24, 3 * 15, 3 * 5 * 5, 5),
    "packed": (24, 55, 100, 0),
    "paged": (36, 36, 8 * 8, 0),  # the table names 4 of 6 blocks
    "window": (26, 36, 64, 0),
}


@pytest.fixture(scope="module")
def widget() -> MaskGallery:
    return gallery()


@pytest.fixture(scope="module")
def soup(widget) -> BeautifulSoup:
    return BeautifulSoup(for_page(widget._repr_mimebundle_()[0]["text/html"]), "html.parser")


def expected(name: str, row: str, key: str) -> tuple[str, str]:
    """Return state and reason of a cell by the rule, from nothing but the labels."""
    if key == "/":
        return "unused", "a free block"
    if name == "paged" and key[0] == "b":
        return "unused", "a block of another sequence"
    if row == "–":
        return "pad", "the row is a pad"
    if key == "–":
        return "pad", "a pad"
    if row[0] != key[0]:
        return "masked", "another prompt"
    back = int(row[1:]) - int(key[1:])
    if back < 0:
        return "masked", "comes later"
    if name == "window" and back >= 4:
        return "masked", "outside the window of 4 keys"
    return "allowed", "same prompt, earlier" if back else "its own key"


def count_pairs(name: str) -> int:
    """Count allowed pairs one by one."""
    rows, columns = LABELS[name]
    return sum(expected(name, row, key)[0] == "allowed" for row in rows for key in columns)


def case_of(mask=None, **changed) -> MaskCase:
    """Return a case of 2 rows and 3 keys, one decode pass after a cached key; `changed` breaks it."""
    mask = np.array([[1, 1, 0], [1, 1, 1]], bool) if mask is None else mask
    given = {"name": "two", "title": "Two", "rows": own(0, 3)[1:], "columns": own(0, 3), "bands": [("prompt a", 3)]}
    return MaskCase(**{**given, "mask": mask, "note": "Two rows.", **changed})


# --- the seven cases


def test_labels_are_those_of_the_layout(soup):
    for name, (rows, columns) in LABELS.items():
        table = soup.select_one(f"[data-mask={name}] .pd-mask")
        assert [cell.get_text() for cell in table.select("tbody th[scope=row]")] == rows
        assert [cell.get_text() for cell in table.select("thead th[scope=col]")] == [*columns, "keys"]


@pytest.mark.parametrize("name", NAMES)
def test_state_and_reason_of_every_cell_are_those_of_the_rule(widget, soup, name):
    rows, columns = LABELS[name]
    cells = soup.select(f"[data-mask={name}] td[data-q]")
    assert len(cells) == len(rows) * len(columns)
    data, reasons = widget.data["cases"][name], widget.data["reasons"]
    for cell in cells:
        q, k = int(cell["data-q"]), int(cell["data-k"])
        state, why = expected(name, rows[q], columns[k])
        assert cell["data-state"] == state, (q, k)
        verb = "reads" if state == "allowed" else "may not read"
        assert reasons[int(data["why"][q][k], 36)] == f"row {{row}} {verb} key {{key}}: {why}", (q, k)


@pytest.mark.parametrize("name", NAMES)
def test_counts_are_those_of_a_plain_count(widget, soup, name):
    data, (rows, columns) = widget.data["cases"][name], LABELS[name]
    told = data["allowed"], data["formula"], data["dense"], data["wastedRows"]
    assert told == COUNTS[name]
    assert told[0] == count_pairs(name) == data["pairs"][-1]
    assert (told[3], data["steps"]) == (rows.count("–"), len(rows))
    by_row = [sum(expected(name, row, key)[0] == "allowed" for key in columns) for row in rows]
    assert np.diff(data["pairs"]).tolist() == by_row
    assert [int(cell.get_text()) for cell in soup.select(f"[data-mask={name}] td.pd-read")] == by_row


def test_a_pass_brackets_its_rows_and_later_keys_are_not_there(soup):
    table = soup.select_one("[data-mask=chunks] .pd-mask")
    assert [cell.get_text() for cell in table.select("[scope=rowgroup]")] == [
        "pass 1: 3 rows",
        "pass 2: 3 rows",
        "pass 3: 2 rows",
    ]
    absent = {(int(cell["data-q"]), int(cell["data-k"])) for cell in table.select("[data-absent]")}
    assert absent == {(q, k) for q in range(8) for k in range(8) if k >= min(8, 3 * (q // 3 + 1))}
    assert not soup.select("[data-mask]:not([data-mask=chunks]) [data-absent]")


def test_rows_and_keys_of_a_prompt_are_outlined(soup):
    edges = {
        (cell["data-q"], cell["data-k"]): cell["data-edge"] for cell in soup.select("[data-mask=packed] [data-edge]")
    }
    assert edges["0", "0"] == "tl"
    assert edges["4", "4"] == "br"
    assert edges["5", "5"] == "tl"
    assert edges["9", "9"] == "br"
    assert len(edges) == 16 + 8 + 4  # the rims of squares of 5, 3 and 2


def test_bands_name_what_the_columns_are(soup):
    def bands(name: str) -> list[str]:
        return [cell.get_text() for cell in soup.select(f"[data-mask={name}] thead [scope=colgroup]")]

    assert bands("paged") == ["other", "page 1", "page 3", "free", "page 0", "page 2"]
    assert [bands("paged").index(f"page {page}") for page in range(4)] == list(TABLE)
    assert bands("packed") == ["prompt a", "prompt b", "prompt c"]


def test_thumbnails_fill_the_cells_that_are_allowed(soup):
    for name, figure in zip(NAMES, soup.select("figure"), strict=True):
        rows, columns = LABELS[name]
        filled = np.zeros((len(rows), len(columns)), bool)
        for x, y, width in re.findall(r"M(\d+) (\d+)h(\d+)v1", figure.select_one(".pd-allowed")["d"]):
            filled[int(y), int(x) : int(x) + int(width)] = True
        assert filled.tolist() == [[expected(name, row, key)[0] == "allowed" for key in columns] for row in rows]
        hatched = np.zeros_like(filled)
        for x, y in re.findall(r"M(\d+) (\d+)l1-1", figure.select_one(".pd-hatched")["d"]):
            hatched[int(y) - 1, int(x)] = True
        other = ("pad", "unused")
        assert hatched.tolist() == [[expected(name, row, key)[0] in other for key in columns] for row in rows]
        assert figure.select_one("span").get_text() == f"{count_pairs(name)} pairs"
        assert figure.select_one("small").get_text() == f"n(n+1)/2: {COUNTS[name][1]}"


# --- words


@pytest.mark.parametrize(
    ("name", "step", "sentence"),
    [
        ("causal", 0, "No row has run yet: 8 rows, 8 keys. The mask says which row may read which key."),
        ("causal", 1, "One pass: row a0 reads 1 key, a0. 1 pair so far."),
        ("causal", 2, "One pass: row a1 reads 2 keys, a0 and a1. 3 pairs so far."),
        ("chunks", 5, "Pass 2 of 3, a3 to a5 together: row a4 reads 5 keys, a0 to a4. 15 pairs so far."),
        (
            "left-padded",
            6,
            "One pass: row 5 is a pad; it runs through all layers and reads nothing. 15 pairs so far.",
        ),
        (
            "packed",
            10,
            "One pass: row c1 reads 2 keys, c0 and c1. All 10 rows have run: 24 pairs; n(n+1)/2 of 10 rows says 55.",
        ),
        (
            "right-padded",
            15,
            "One pass: row 14 is a pad; it runs through all layers and reads nothing. All 15 rows have run: 24 pairs;"
            " n(n+1)/2 of 3 lines of 5 rows says 45.",
        ),
        ("paged", 5, "One pass: row a4 reads 5 keys, a0 to a4. 15 pairs so far."),
        ("window", 7, "One pass: row a6 reads 4 keys, a3 to a6. 22 pairs so far."),
    ],
)
def test_a_sentence_says_what_a_row_reads(widget, name, step, sentence):
    assert widget.data["cases"][name]["sentences"][step] == sentence


def test_every_step_has_a_sentence_of_its_own(widget):
    for name, (rows, _) in LABELS.items():
        sentences = widget.data["cases"][name]["sentences"]
        assert len(set(sentences)) == len(sentences) == len(rows) + 1


def test_answers_have_the_numbers_of_their_case(widget):
    window, packed, pad, page, chunks = widget.data["questions"]
    assert (window["case"], window["cell"]) == ("window", [7, 0])
    assert "it drops 10 of 36 pairs" in window["answer"]
    assert "10 · 11 / 2 = 55, but the prompts have 15 + 6 + 3 = 24 pairs" in packed["answer"]
    assert "5 of 15 rows" in pad["answer"]
    assert "24 as when packed" in pad["answer"]
    assert "3 · 5² = 75 pairs, where the prompts alone take 5² + 3² + 2² = 38." in pad["answer"]
    assert "Rows a4 to a7: page 2 holds a4 and a5 and lies in block 5. They read 1 + 2 + 2 + 2 = 7" in page["answer"]
    assert "3 passes compute 6 + 15 + 15 = 36 pairs" in chunks["answer"]


def test_notes_have_the_numbers_of_their_case(soup):
    notes = {name: soup.select_one(f"[data-mask={name}] .pd-note").get_text() for name in NAMES}
    assert "1 + 2 + … + 8 = 36 pairs" in notes["causal"]
    assert "6 + 15 + 15 = 36 pairs" in notes["chunks"]
    assert "9 + 18 + 16 pairs" in notes["chunks"]
    for side in ("left", "right"):
        assert "15 + 6 + 3" in notes[f"{side}-padded"]
        assert "our decoder lays them end to end in one array of 15 rows" in notes[f"{side}-padded"]
    assert "only the blocks of the table, 8 × 8 pairs: it never touches free blocks" in notes["paged"]
    assert "15 + 6 + 3 = 24 pairs" in notes["packed"]
    assert "26 pairs instead of 36" in notes["window"]


def test_ledger(soup):
    def lines(name: str) -> list[str]:
        return [cell.get_text().strip() for cell in soup.select(f"[data-mask={name}] .pd-ledger td")]

    padded = ["15 of 15 5 are pads", "24", "45 3 lines of 5 · 6 / 2", "75 3 lines of 5 × 5", "51 68%"]
    assert lines("left-padded") == lines("right-padded") == padded
    assert lines("packed") == ["10 of 10 no pads", "24", "55 10 · 11 / 2", "100 10 × 10", "76 76%"]
    assert lines("chunks") == ["8 of 8 no pads", "36", "36 8 · 9 / 2", "43 3 × 3 + 3 × 6 + 2 × 8", "7 16%"]
    assert lines("paged") == ["8 of 8 no pads", "36", "36 8 · 9 / 2", "64 8 × 8", "28 44%"]


# --- masks of others


def test_a_decode_row_reads_the_cache():
    case = case_of(np.ones((1, 3), bool), rows=[Place(0, 2)], passes=[Pass(1, 3)])
    assert (case.allowed, case.formula, case.dense) == (3, 1, 3)
    assert case.reason(0, 2) == "its own key"
    assert [case.state(0, k) for k in range(3)] == ["allowed"] * 3


def test_a_mask_that_contradicts_its_places_is_called_a_mistake():
    upper_left = case_of(np.tri(2, 3, dtype=bool))  # 2 queries, the last of 3 positions
    assert upper_left.reason(0, 1) == "a mistake, its own key"
    assert upper_left.state(0, 1) == "masked"
    assert case_of(np.ones((2, 3), bool)).reason(0, 2) == "a mistake, comes later"
    read = case_of(np.ones((2, 3), bool), columns=[Place(PAD), Place(0, 1), Place(FREE)])
    assert [read.reason(0, k) for k in (0, 2)] == ["a mistake, a pad", "a mistake, a free block"]


def test_it_makes_do_with_one_case_and_no_question():
    widget = MaskGallery([case_of()])
    soup = BeautifulSoup(widget.markup, "html.parser")
    assert soup.find(attrs={"data-widget": True})["data-pairs"] == "5"
    assert not soup.select("[data-ask]")


def test_words_of_others_are_text():
    case = case_of(title="<b>&", note="<i>", bands=[("<u>", 3)])
    soup = BeautifulSoup(MaskGallery([case], [Question("<s>?", "two", "<p>", (0, 0))]).markup, "html.parser")
    assert not soup.select("i, u, s")
    assert soup.select_one("figcaption b").get_text() == "<b>&"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: case_of(np.ones((2, 3))), "the mask of 'two' is float64 [2, 3]: expected bool [rows, keys]"),
        (lambda: case_of(np.ones(3, bool)), "the mask of 'two' is bool [3]: expected bool [rows, keys]"),
        (lambda: case_of(np.ones((0, 3), bool)), "the mask of 'two' is bool [0, 3]: expected bool [rows, keys]"),
        (lambda: case_of(rows=own(0, 3)), "'two' has 3 rows: expected 2, as its mask has"),
        (lambda: case_of(columns=own(0, 2)), "'two' has 2 columns: expected 3, as its mask has"),
        (lambda: case_of(bands=[("a", 4)]), "'two' has 4 columns under bands: expected 3, as its mask has"),
        (lambda: case_of(passes=[Pass(1, 3)]), "'two' has 1 rows in passes: expected 2, as its mask has"),
        (
            lambda: case_of(passes=[Pass(1, 1), Pass(1, 3)]),
            "pass 1 of 'two' reads beyond its 1 keys: give it more or mask them",
        ),
        (
            lambda: case_of(passes=[Pass(2, 4)]),
            "pass 1 of 'two' has 2 rows and 4 keys: expected 1 row or more and 1 to 3 keys",
        ),
        (
            lambda: case_of(passes=[Pass(2, 3), Pass(0, 3)]),
            "pass 2 of 'two' has 0 rows and 3 keys: expected 1 row or more and 1 to 3 keys",
        ),
        (
            lambda: case_of(lines=2),
            "'two' has 2 lines, a mask [2, 3] and 1 passes: expected one pass, as many keys as rows, and lines of one"
            " length",
        ),
        (
            lambda: case_of(np.tri(2, dtype=bool), rows=own(0, 2), columns=own(0, 2), bands=[("a", 2)], lines=2),
            "'two' has pairs between its 2 lines: mask them or give it one line",
        ),
        (lambda: MaskGallery([]), "the gallery has no cases: give at least one MaskCase"),
        (lambda: MaskGallery([case_of(), case_of()]), "cases are called two, two: give each a name of its own"),
        (lambda: MaskGallery([case_of()], case="x"), "case = 'x': expected one of two"),
        (
            lambda: MaskGallery([case_of()], [Question("Why?", "x", "So.", (0, 0))]),
            "'Why?' is about the case 'x': expected one of two",
        ),
        (
            lambda: MaskGallery([case_of()], [Question("Why?", "two", "So.", (2, 0))]),
            "'Why?' points at cell (2, 0): expected one of a mask [2, 3]",
        ),
    ],
)
def test_bad_arguments_are_told_in_one_line(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()


# --- the widget


def test_it_opens_on_a_case_with_all_rows_run(soup):
    root = soup.find(attrs={"data-widget": True})
    told = {name: value for name, value in root.attrs.items() if name.startswith("data-")}
    assert told == {
        "data-widget": "mask-gallery",
        "data-case": "causal",
        "data-step": "8",
        "data-steps": "8",
        "data-pairs": "36",
        "data-allowed": "36",
        "data-dense": "64",
        "data-formula": "36",
        "data-wasted-rows": "0",
    }
    opened = MaskGallery(standard_cases(), case="left-padded")
    assert (opened.step, repr(opened)) == (15, "MaskGallery(7 masks, shows left-padded)")


def test_state_that_does_not_exist_is_refused():
    widget = gallery()
    with pytest.raises(TraitError, match="case = 'x': expected one of causal, chunks"):
        widget.case = "x"
    with pytest.raises(TraitError, match="step = 9: expected 0 to 8, the rows of 'causal'"):
        widget.step = 9


def test_another_case_has_run_as_far():
    widget = gallery()
    widget.case = "packed"
    assert widget.step == 10
    widget.step = 9
    widget.case = "window"
    assert widget.step == 8
    widget.step = 3
    widget.case = "left-padded"
    assert widget.step == 3


def test_it_is_printed_the_same_each_time_and_is_small(widget):
    first, second = (gallery()._repr_mimebundle_()[0] for _ in range(2))
    assert first["text/html"] == second["text/html"]
    assert first["text/plain"] == "MaskGallery(7 masks, shows causal)"
    assert len(gzip.compress(first["text/html"].encode())) < 20_000
    assert not re.search("https?:", first["text/html"])


def test_a_viewer_without_scripts_shows_the_finished_mask_and_no_control(widget):
    markup = re.sub(r"<script.*?</script>", "", widget._repr_mimebundle_()[0]["text/html"], flags=re.S)
    seen = BeautifulSoup(markup, "html.parser")
    assert not seen.select("button, input")
    assert [section["data-mask"] for section in seen.select("[data-mask]")] == ["causal"]
    assert [len(row.find_all("td", string="1", attrs={"data-q": True})) for row in seen.select("[data-row]")] == [
        *range(1, N + 1)
    ]
    assert len(seen.select("figure svg")) == 7


def test_the_example_is_that_of_the_labels():
    assert (N, BLOCK, WINDOW) == (8, 2, 4)
    assert [case.name for case in standard_cases()] == NAMES
