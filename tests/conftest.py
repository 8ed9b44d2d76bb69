"""Fixtures shared by all tests: the two sets of weights, loaded once."""

import dataclasses

import numpy as np
import pytest

from prefill_decode import smollm2, toy


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
