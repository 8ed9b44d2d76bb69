"""Fixtures shared by all tests: the two sets of weights, loaded once."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from prefill_decode import smollm2, toy

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def toy_model():
    return toy.load()[0]


@pytest.fixture(scope="session")
def toy_tokenizer():
    return toy.load()[1]


@pytest.fixture(scope="session")
def loaded():
    return smollm2.load()


@pytest.fixture(scope="session")
def real_model(loaded):
    return loaded[0]


@pytest.fixture(scope="session")
def real_model64(loaded):
    """The same weights, computed in float64."""
    return dataclasses.replace(loaded[0], dtype=np.dtype(np.float64))


@pytest.fixture(scope="session")
def tokenizer(loaded):
    return loaded[1]


def reference_cases():
    """Reference generations of the real model, made by transformers/torch in float32."""
    return json.loads((Path(__file__).parent / "data" / "smollm2.json").read_text("utf-8"))["cases"]
