"""The one function that prints differences."""

import numpy as np
import pytest

from prefill_decode import check


def test_a_small_difference_is_named_by_its_bound():
    assert check.below(np.array([1.0, 2.0]), np.array([1.0, 2.0 + 4e-13]), 1e-12) == "below 1e-12"


def test_a_large_difference_is_an_error():
    with pytest.raises(AssertionError, match=r"the largest difference is 2\.0e-12, expected below 1e-12"):
        check.below(np.array([0.0]), np.array([2e-12]), 1e-12)
    with pytest.raises(AssertionError):
        check.below(np.array([np.nan]), np.array([0.0]), 1e-12)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="cannot be compared"):
        check.below(np.zeros(2), np.zeros((2, 1)), 1e-12)
