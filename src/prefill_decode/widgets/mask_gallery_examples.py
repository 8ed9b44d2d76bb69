"""The seven masks of a `MaskGallery` for a small example: 8 tokens, or prompts of 5, 3 and 2; and questions on them."""

from prefill_decode.attention import causal_mask, causal_pairs
from prefill_decode.schedules.masks import Rows, packed_rows, padded_rows, paged_mask, window_mask
from prefill_decode.widgets.mask_gallery import MaskGallery
from prefill_decode.widgets.mask_gallery_cases import FREE, LETTERS, MaskCase, Pass, Place, own
from prefill_decode.widgets.mask_gallery_data import Question

N, CHUNK, WINDOW = 8, 3, 4
LENGTHS = (5, 3, 2)
# Where the pages of the sequence lie among the blocks of memory; block 0 is another sequence's, block 3 is free.
BLOCK, TABLE, OTHERS, BLOCKS = 2, (4, 1, 5, 2), 0, 6
TRIANGLES = [causal_pairs(length, length) for length in LENGTHS]


def gallery() -> MaskGallery:
    """Return the gallery of the seven cases with its questions."""
    return MaskGallery(standard_cases(), standard_questions())


def standard_cases() -> list[MaskCase]:
    """Return causal, chunked, left- and right-padded, packed, paged and window."""
    return [_causal(), _chunks(), _padded("left"), _padded("right"), _packed(), _paged(), _window()]


def _causal() -> MaskCase:
    note = (
        f"One sequence: each row reads itself and what is before it, 1 + 2 + … + {N} = {causal_pairs(N, N)} pairs."
        " This triangle is what n(n+1)/2 counts."
    )
    return MaskCase("causal", "Causal", causal_mask(N, N), own(0, N), own(0, N), [("prompt a", N)], note)


def _chunks() -> MaskCase:
    starts = range(0, N, CHUNK)
    passes = [Pass(min(CHUNK, N - start), min(start + CHUNK, N)) for start in starts]
    bands = [(f"chunk {i}", each.rows) for i, each in enumerate(passes, 1)]
    note = (
        f"The same triangle cut into bands: {_sum(causal_pairs(*each) for each in passes)} = {causal_pairs(N, N)}"
        " pairs. A pass reads the keys of earlier ones from the cache. Later keys are not there yet, so a dense kernel"
        f" computes {_sum(each.rows * each.keys for each in passes)} pairs."
    )
    return MaskCase("chunks", "Chunks", causal_mask(N, N), own(0, N), own(0, N), bands, note, passes)


def _padded(side: str) -> MaskCase:
    rows, longest = padded_rows(LENGTHS, side), max(LENGTHS)
    lines, pads = len(LENGTHS), len(LENGTHS) * longest - sum(LENGTHS)
    order = " Within a line, causal order alone hides them." if side == "right" else ""
    note = (
        f"{pads} pads: rows that run, columns that nobody reads.{order} Pairs are those of the prompts,"
        f" {_sum(TRIANGLES)}. Engines hold lines as a dimension and count line by line; our decoder lays them end to"
        f" end in one array of {lines * longest} rows."
    )
    bands = [(f"line {LETTERS[i]}", longest) for i in range(lines)]
    name, title = f"{side}-padded", f"{side.title()}-padded"
    return MaskCase(name, title, rows.mask, _places(rows), _places(rows), bands, note, lines=lines)


def _packed() -> MaskCase:
    rows = packed_rows(LENGTHS)
    note = (
        f"{len(LENGTHS)} small triangles on a diagonal, no pads: {_sum(TRIANGLES)} = {sum(TRIANGLES)} pairs."
        " Between prompts, all is masked."
    )
    bands = [(f"prompt {LETTERS[i]}", length) for i, length in enumerate(LENGTHS)]
    return MaskCase("packed", "Packed", rows.mask, _places(rows), _places(rows), bands, note)


def _paged() -> MaskCase:
    held = {OTHERS: ("other", own(1, BLOCK))}
    held |= {block: (f"page {page}", own(0, N)[page * BLOCK :][:BLOCK]) for page, block in enumerate(TABLE)}
    blocks = [held.get(block, ("free", [Place(FREE)] * BLOCK)) for block in range(BLOCKS)]
    columns = [place for _, places in blocks for place in places]
    bands = [(heading, BLOCK) for heading, _ in blocks]
    note = (
        f"Columns are blocks 0 to {BLOCKS - 1} of memory. Pages only move them: the same {causal_pairs(N, N)} pairs,"
        f" read through the page table. A kernel for pages reads only the blocks of the table, {N} × {N} pairs: it"
        " never touches free blocks and those of others."
    )
    mask = paged_mask(N, N, TABLE, BLOCK, BLOCKS)
    return MaskCase("paged", "Paged", mask, own(0, N), columns, bands, note)


def _window() -> MaskCase:
    mask = window_mask(N, N, WINDOW)
    note = (
        f"A row reads at most {WINDOW} keys: {mask.sum()} pairs instead of {causal_pairs(N, N)}. Pairs are dropped, so"
        " the result changes: an approximation, or another architecture."
    )
    return MaskCase("window", "Window", mask, own(0, N), own(0, N), [("prompt a", N)], note, window=WINDOW)


def standard_questions() -> list[Question]:
    """Return what readers may ask of the standard cases, with the numbers of these."""
    cases = {case.name: case for case in standard_cases()}
    packed, padded, chunks = cases["packed"], cases["left-padded"], cases["chunks"]
    page = [k for k, place in enumerate(cases["paged"].columns) if place in own(0, N)[2 * BLOCK : 3 * BLOCK]]
    readers = cases["paged"].mask[:, page].sum(axis=1)  # [L, S] -> [L]
    rows = [own(0, N)[q].label for q in range(N) if readers[q]]
    bands = [chunks.mask[i : i + each.rows].sum() for i, each in zip(chunks.starts, chunks.passes, strict=True)]
    return [
        Question(
            "Which of these change the result?",
            "window",
            f"Only the window: it drops {cases['causal'].allowed - cases['window'].allowed} of"
            f" {cases['causal'].allowed} pairs, so row a{N - 1} no longer reads a0. In the other six every row reads"
            " exactly the keys it reads alone, and its logits stay the same.",
            (N - 1, 0),
        ),
        Question(
            "Where does n(n+1)/2 say too much?",
            "packed",
            f"Where rows belong to several prompts: {len(packed.rows)} · {len(packed.rows) + 1} / 2 ="
            f" {packed.formula}, but the prompts have {_sum(TRIANGLES)} = {packed.allowed} pairs. Take the formula for"
            " each prompt, then add.",
            (5, 4),
        ),
        Question(
            "What does a pad cost?",
            "left-padded",
            f"A row through all layers: {padded.wasted_rows} of {len(padded.rows)} rows compute what nobody reads. No"
            f" pair is added, {padded.allowed} as when packed; but a dense kernel computes {padded.lines} ·"
            f" {max(LENGTHS)}² = {padded.dense} pairs, where the prompts alone take"
            f" {_sum(f'{length}²' for length in LENGTHS)} = {sum(length**2 for length in LENGTHS)}.",
            (7, 5),
        ),
        Question(
            "Who reads page 2?",
            "paged",
            f"Rows {rows[0]} to {rows[-1]}: page 2 holds {_labels(cases['paged'], page)} and lies in block {TABLE[2]}."
            f" They read {_sum(count for count in readers if count)} = {readers.sum()} of its keys, as many as if it"
            " lay in order.",
            (N - 1, page[0]),
        ),
        Question(
            "Do chunks compute other pairs?",
            "chunks",
            f"No: {len(bands)} passes compute {_sum(bands)} = {chunks.allowed} pairs, the same ones. Row a3 runs in"
            f" pass 2 and reads a0 to a2 from the cache. What chunks cost is the weights, read {len(bands)} times.",
            (3, 0),
        ),
    ]


def _places(rows: Rows) -> list[Place]:
    return [Place(int(prompt), int(at)) for prompt, at in zip(rows.prompt, rows.positions, strict=True)]


def _labels(case: MaskCase, columns: list[int]) -> str:
    return " and ".join(case.columns[k].label for k in columns)


def _sum(parts) -> str:
    return " + ".join(map(str, parts))
