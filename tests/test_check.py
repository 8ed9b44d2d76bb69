"""The function that prints differences, and the exercises."""

import re

import numpy as np
import pytest
from reference import ROOT

from prefill_decode import check

EXERCISES = {name for name, value in vars(check).items() if getattr(value, "__qualname__", "").startswith("exercise.")}


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


@pytest.mark.parametrize("name", sorted(EXERCISES))
@pytest.mark.parametrize("answer", [None, "no", -1, [1, 2, 3, 4, 5], {}, np.nan, [[...]]], ids=repr)
def test_an_exercise_never_raises_and_takes_no_wrong_answer(capsys, name, answer):
    getattr(check, name)(answer)
    told = capsys.readouterr().out
    assert told.startswith("Not yet. ")
    assert told.count("\n") == 1


@pytest.mark.parametrize("name", sorted(EXERCISES))
def test_an_exercise_waits_for_an_answer(capsys, name):
    getattr(check, name)(...)
    assert capsys.readouterr().out == "Not answered yet.\n"


def solutions():
    """Yield the name of each exercise with the folded solution below its cell."""
    import json

    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        for cell, following in zip(cells, [*cells[1:], None], strict=True):
            asked = re.match(r"answer = \.\.\.\ncheck\.(\w+)\(answer\)$", "".join(cell["source"]))
            if asked:
                yield asked[1], "".join(following["source"])


def test_every_exercise_is_asked_once_and_has_a_folded_solution():
    asked = [name for name, _ in solutions()]
    assert sorted(asked) == sorted(EXERCISES)


@pytest.mark.parametrize(
    ("name", "markdown"), list(solutions()), ids=lambda value: value if value.isidentifier() else ""
)
def test_the_folded_solution_is_right(capsys, name, markdown):
    assert markdown.startswith("<details>\n<summary>Solution</summary>\n")
    code = re.search(r"```python\n(.*?)```", markdown, re.DOTALL)[1]
    scope = {}
    exec(code, scope)
    getattr(check, name)(scope["answer"])
    assert capsys.readouterr().out.startswith("Right. ")
