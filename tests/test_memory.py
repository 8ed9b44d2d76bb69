"""Peak memory: what is held at once counts, what was let go of does not."""

import numpy as np
import pytest

from prefill_decode.memory import peak_bytes


def test_the_worst_moment_counts():
    def two_after_each_other():
        np.zeros(10**6)
        np.zeros(10**6)

    def two_at_once():
        return np.zeros(10**6), np.zeros(10**6)

    assert peak_bytes(two_after_each_other) == pytest.approx(8e6, rel=0.01)
    assert peak_bytes(two_at_once) == pytest.approx(16e6, rel=0.01)


def test_measuring_ends_with_an_error_too():
    with pytest.raises(ZeroDivisionError):
        peak_bytes(lambda: 1 / 0)
    assert peak_bytes(lambda: np.zeros(10**6)) == pytest.approx(8e6, rel=0.01)
