"""The comparison of all schedules: it sees what runs, and a route that is wrong shows."""

from dataclasses import replace

import numpy as np
import pytest

from prefill_decode.attention import attention
from prefill_decode.generate import generate
from prefill_decode.model import forward
from prefill_decode.schedules.compare import CountingKernel, Route, Work, all_routes, compare

PROMPTS = [[1, 9, 3, 13, 8, 2, 1, 9, 3], [4, 5, 6], [7, 8, 9, 10, 11]]


@pytest.fixture(scope="module")
def rows(toy_model):
    return {row.schedule: row for row in compare(toy_model, all_routes(PROMPTS, every_size=True))}


def test_every_schedule_gives_the_oracles_logits(rows):
    assert len(rows) == 10
    assert all(row.difference < 1e-12 for row in rows.values())


def test_every_size_is_tried(rows):
    tried = [row.tried for row in rows.values()]
    assert tried == [1, 9, 9, 9, 9, 1, 1, 1, 9, 9]


def test_the_work_is_what_the_passes_say(rows):
    assert rows["full pass (the oracle)"].work == Work([9], [45])
    assert rows["prefill of 4, then decode"].work == Work([4, 1, 1, 1, 1, 1], [10, 5, 6, 7, 8, 9])
    assert rows["prefill in chunks of 4"].work == Work([4, 4, 1], [10, 26, 9])
    assert rows["padded on the left"].work == Work([27], [45 + 6 + 15])
    assert rows["padded on the right"].work == Work([27], [45 + 6 + 15])
    assert rows["packed"].work == Work([17], [45 + 6 + 15])
    assert rows["prefix cache: 6, then all 9 tokens"].work.rows == [6, 5]  # of 6, one block of 4 is found


def test_rows_are_counted_as_the_loop_counts_them(toy_model):
    work = Work()
    counted = replace(toy_model, attend=CountingKernel(attention, toy_model.config.n_layers, work))
    passes = generate(counted, PROMPTS[0], 5).passes
    assert (work.rows, work.pairs) == ([p.n_queries for p in passes], [p.pairs for p in passes])


def test_a_wrong_route_shows(toy_model):
    ids = PROMPTS[0]
    shifted = Route("no token reads itself", [0], lambda model, _: [(ids, 0, forward(model, ids, mask=LATE))])
    late = Route("rows of other positions", [0], lambda model, _: [(ids, 1, forward(model, ids)[:-1])])
    assert all(row.difference > 0.1 for row in compare(toy_model, [shifted, late]))


LATE = np.tri(9, k=-1, dtype=bool)


def test_on_the_real_model(real_model64, tokenizer):
    prompts = [tokenizer.encode(text) for text in ("one two three one two three", "Once upon", "The")]
    found = compare(real_model64, all_routes(prompts, every_size=False, new_tokens=3))
    assert all(row.difference < 1e-10 for row in found)
