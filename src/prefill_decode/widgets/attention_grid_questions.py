"""Questions of an `AttentionGrid`: what each shows, checked against the phrase that it is asked of."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class GridQuestion:
    """A question, its answer in plain words, and what to look at.

    Attributes
    ----------
    ask, answer : str
    head : tuple, optional
        Labels of layer and head; the first named head without it.
    step : int, optional
        Rows that are shown, 0 to T; all without it.
    without_cache : bool
    """

    ask: str
    answer: str
    head: tuple[object, object] | None = None
    step: int | None = None
    without_cache: bool = False


def question_data(questions: Sequence[GridQuestion], phrase: dict) -> list[dict]:
    """Return what travels of questions, with indices in the place of labels.

    Raises
    ------
    ValueError
        If a question points at a head or a step that the phrase does not have.
    """
    return [_packed(question, phrase) for question in questions]


def _packed(question: GridQuestion, phrase: dict) -> dict:
    layer, head = phrase["open"]
    if question.head is not None:
        labels = [str(label) for label in question.head]
        if labels[0] not in phrase["layers"] or labels[1] not in phrase["heads"]:
            raise ValueError(f"{question.ask!r} points at head {question.head}: expected labels of a layer and a head")
        layer, head = phrase["layers"].index(labels[0]), phrase["heads"].index(labels[1])
    step = phrase["steps"] if question.step is None else question.step
    if not 0 <= step <= phrase["steps"]:
        raise ValueError(f"{question.ask!r} points at step {step}: expected 0 to {phrase['steps']}")
    shown = {"layer": layer, "head": head, "step": step, "withoutCache": question.without_cache}
    return {"ask": question.ask, "answer": question.answer, **shown}
