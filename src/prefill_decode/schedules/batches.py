"""Several prompts in one pass over one array: padded to equal lines, or packed end to end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..model import Model, check_ids, forward
from .masks import PAD, Rows, check_lengths, packed_rows, padded_rows

PAD_ID = 0  # any token would do: no real row reads a pad


def padded_batch(model: Model, prompts: Sequence[Sequence[int]], side: str) -> list[np.ndarray]:
    """Run prompts of different lengths in one pass, filled up with pads to one length.

    Parameters
    ----------
    model : Model
    prompts : sequence of sequences of int
        At least one, none empty.
    side : {"left", "right"}
        Where the pads stand.

    Returns
    -------
    list of ndarray, [n_i, V]
        The logits of every real position, one array a prompt.

    Raises
    ------
    ValueError
        If the batch or a prompt is empty, an id is no token, or the side is another word.

    Notes
    -----
    An engine holds lines as a dimension, [B, n]; here they are B · n rows whose mask is block-diagonal, so that
    the decoder is the same. Rows and logits are the engine's; its kernels never meet the pairs across lines.
    """
    prompts = _checked(model, prompts)
    return _one_pass(model, prompts, padded_rows([len(prompt) for prompt in prompts], side))


def packed_batch(model: Model, prompts: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """Run prompts end to end in one pass, without pads: parameters, result and errors as in ``padded_batch``."""
    prompts = _checked(model, prompts)
    return _one_pass(model, prompts, packed_rows([len(prompt) for prompt in prompts]))


def _checked(model: Model, prompts: Sequence[Sequence[int]]) -> list[np.ndarray]:
    prompts = [np.asarray(prompt) for prompt in prompts]
    flat = next((i for i, prompt in enumerate(prompts) if prompt.ndim != 1), None)
    if flat is not None:
        raise ValueError(f"prompt {flat} is {prompts[flat]}: expected a sequence of token ids for each prompt")
    check_lengths([len(prompt) for prompt in prompts])
    return [check_ids(model.config, prompt) for prompt in prompts]


def _one_pass(model: Model, prompts: list[np.ndarray], rows: Rows) -> list[np.ndarray]:
    ids = np.full(len(rows.prompt), PAD_ID)
    ids[rows.prompt != PAD] = np.concatenate(prompts)
    logits = forward(model, ids, positions=rows.positions, mask=rows.mask)  # [n, V]
    return [logits[rows.of(i)] for i in range(len(prompts))]
