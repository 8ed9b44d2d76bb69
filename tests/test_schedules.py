"""Every route gives the logits of one full pass."""

import numpy as np
import pytest

from prefill_decode.model import Trace, forward
from prefill_decode.schedules import last_layer_for_one_row, prefill_then_decode

IDS = [1, 9, 3, 13, 8, 2]


@pytest.mark.parametrize("split", range(1, 7))
def test_prefill_then_decode(toy_model, split):
    assert np.abs(prefill_then_decode(toy_model, IDS, split) - forward(toy_model, IDS)).max() < 1e-12


def test_a_mask_is_used_row_by_row(toy_model):
    late = np.tri(6, k=-1, dtype=bool)
    rows = prefill_then_decode(toy_model, IDS, 4, late)
    assert np.abs(rows - forward(toy_model, IDS, mask=late)).max() < 1e-12
    assert np.abs(rows - forward(toy_model, IDS)).max() > 1


@pytest.mark.parametrize("split", [0, 7])
def test_a_split_outside_the_prompt_is_named(toy_model, split):
    with pytest.raises(ValueError, match="give 1 to 6"):
        prefill_then_decode(toy_model, IDS, split)


def test_the_last_layer_needs_one_query(toy_model):
    trace = Trace()
    full = forward(toy_model, IDS, trace=trace)
    assert np.abs(last_layer_for_one_row(toy_model, trace.hidden[-2]) - full[-1]).max() < 1e-12
