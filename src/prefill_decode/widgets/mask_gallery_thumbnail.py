"""A mask as a small picture: a cell is a unit, so that masks side by side have one scale."""

import html
from itertools import groupby

from prefill_decode.widgets.mask_gallery_cases import MaskCase

UNIT = 6  # pixels a cell, where no style says more


def thumbnail(case: MaskCase) -> str:
    """Return an SVG: what rows read is filled, pads and unused blocks are hatched, passes are ruled."""
    n_rows, n_keys = case.mask.shape
    rules = "".join(f"M0 {start}h{n_keys}" for start in case.starts[1:])
    label = f"{html.escape(case.title)}: {case.allowed} of {n_rows * n_keys} cells are filled"
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {n_keys} {n_rows}" width="{n_keys * UNIT}"'
        f' height="{n_rows * UNIT}" style="--pd-keys:{n_keys}"><path class="pd-allowed" d="{_filled(case)}"></path>'
        f'<path class="pd-hatched" d="{_hatched(case)}"></path><path class="pd-rule" d="{rules}"></path>'
        f'<rect width="{n_keys}" height="{n_rows}"></rect></svg>'
    )


def _filled(case: MaskCase) -> str:
    runs = []
    for q, row in enumerate(case.mask):
        for allowed, cells in groupby(range(len(row)), key=row.__getitem__):
            first, *others = cells
            if allowed:
                runs.append(f"M{first} {q}h{len(others) + 1}v1h-{len(others) + 1}z")
    return "".join(runs)


def _hatched(case: MaskCase) -> str:
    n_rows, n_keys = case.mask.shape
    cells = ((q, k) for q in range(n_rows) for k in range(n_keys) if case.state(q, k) in ("pad", "unused"))
    return "".join(f"M{k} {q + 1}l1-1" for q, k in cells)
