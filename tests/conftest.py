"""Fixtures shared by all tests: the two sets of weights and a browser, each once."""

import dataclasses
import runpy
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import settings
from playwright.sync_api import Browser, sync_playwright
from reference import ROOT

from prefill_decode import smollm2, toy

# No first-run traffic of the browser's own, no GPU in a container.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


# The same examples in every run: what is green here is green elsewhere. Times are for `make bench`.
settings.register_profile("same everywhere", derandomize=True, deadline=None, database=None, max_examples=60)
settings.load_profile("same everywhere")


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


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start one Chromium for the session."""
    chromium = runpy.run_path(str(ROOT / "tools" / "chromium.py"))["find"]()
    if chromium is None:
        pytest.fail("no Chromium found: run 'python tools/chromium.py'", pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()
