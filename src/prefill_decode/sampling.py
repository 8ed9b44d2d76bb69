"""Choosing the next token: from logits to a distribution that can be looked at, and from it to one token."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from .config import is_whole

# In which order engines apply the steps; each step sees what the ones before left.
ORDERS = {
    "transformers": ("temperature", "top_k", "top_p", "min_p"),
    "vllm": ("temperature", "min_p", "top_k", "top_p"),
    "llama.cpp": ("top_k", "top_p", "min_p", "temperature"),
}


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return the distribution of logits [V]: positive shares that add up to 1; ``-inf`` gets 0.

    Raises
    ------
    ValueError
        If a logit is NaN or +inf, or all are ``-inf``.
    """
    logits = np.asarray(logits, np.float64)
    if logits.ndim != 1 or not logits.size:
        raise ValueError(f"logits are {logits.shape}: expected one a token of the vocabulary, [V]")
    if np.isnan(logits).any() or np.isposinf(logits).any():
        raise ValueError("the logits hold nan or inf: the model's output is broken, no token can be chosen")
    if np.isneginf(logits).all():
        raise ValueError("all tokens are filtered away: loosen the filters, one token at least must be left")
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def temperature(logits: np.ndarray, value: float) -> np.ndarray:
    """Divide the logits by a temperature: below 1 the likely become likelier, above 1 all become more alike.

    Parameters
    ----------
    logits : ndarray, [V]
    value : float
        At least 0; 0 is greedy, all on the largest logit, of bitwise equal ones on the lowest id.

    Returns
    -------
    ndarray, [V]
        A distribution; so for every step of this module.
    """
    if not 0 <= value < np.inf:
        raise ValueError(f"temperature = {value}: expected 0 (greedy) or more")
    p = softmax(logits)  # also checks them
    if value == 0:
        return np.eye(1, len(p), int(np.argmax(logits)))[0]
    logs = _logs(p)
    with np.errstate(over="ignore"):  # a tiny temperature leaves the likeliest ones alone
        return softmax((logs - logs.max()) / value)


def top_k(logits: np.ndarray, k: int) -> np.ndarray:
    """Keep the k likeliest tokens (Fan et al. 2018); of equal ones the lower ids."""
    if not is_whole(k) or k < 1:
        raise ValueError(f"top_k = {k}: expected a whole number of at least 1")
    p = softmax(logits)
    return _kept(p, _ranked(p)[:k])


def top_p(logits: np.ndarray, value: float) -> np.ndarray:
    """Keep the nucleus: the fewest likeliest tokens that have at least ``value`` together (Holtzman et al. 2020).

    The token that crosses the value belongs to the nucleus, so one is always left.
    """
    if not 0 < value <= 1:
        raise ValueError(f"top_p = {value}: expected more than 0 and at most 1")
    p = softmax(logits)
    ranked = _ranked(p)
    before = np.cumsum(p[ranked]) - p[ranked]  # what likelier tokens have together
    return _kept(p, ranked[before < value])


def min_p(logits: np.ndarray, value: float) -> np.ndarray:
    """Keep tokens that have at least ``value`` times the likeliest one's probability."""
    if not 0 <= value <= 1:
        raise ValueError(f"min_p = {value}: expected 0 to 1")
    p = softmax(logits)
    return _kept(p, np.flatnonzero(p >= value * p.max()))


def repetition_penalty(logits: np.ndarray, seen: Iterable[int], value: float) -> np.ndarray:
    """Make tokens less likely that were seen: positive logits are divided by ``value``, negative ones multiplied.

    Unlike the other steps it depends on where the logits' zero lies, so it belongs before them.
    """
    _check_penalty(value)
    logits = np.array(logits, np.float64)
    ids = np.unique(np.fromiter(seen, int))
    outside = ids[(ids < 0) | (ids >= len(logits))]
    if outside.size:
        raise ValueError(f"token {outside[0]} was seen, the logits are those of {len(logits)} tokens: one does not fit")
    logits[ids] = np.where(logits[ids] > 0, logits[ids] / value, logits[ids] * value)
    return softmax(logits)


STEPS: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "temperature": temperature,
    "top_k": top_k,
    "top_p": top_p,
    "min_p": min_p,
}


def draw(p: np.ndarray, u: float) -> int:
    """Return the token at which the sum of probabilities, in the order of ids, passes ``u`` (inverse CDF).

    Parameters
    ----------
    p : ndarray, [V]
        A distribution.
    u : float
        From 0 to 1, 1 excluded: one uniform number decides.
    """
    if not 0 <= u < 1:
        raise ValueError(f"u = {u}: expected 0 or more and less than 1")
    total = np.cumsum(p)
    # the sum may end a rounding short of 1; the last token with a share takes the rest
    return int(np.searchsorted(total, min(u, np.nextafter(total[-1], 0)), side="right"))


class Sampler:
    """Choose tokens by several steps in a stated order; pass it to ``generate`` as ``sample``.

    Parameters
    ----------
    temperature, top_k, top_p, min_p : float, int, float, float, optional
        What is None is left out; a temperature of None is 1.
    order : sequence of str
        Of these names; default that of the transformers library.
    repetition_penalty : float, optional
        Applied first, to what was seen.
    seen : iterable of int
        Tokens of the prompt, for the penalty; chosen ones are added.
    seed : int
        Of ``np.random.default_rng``: one uniform number a token.

    Raises
    ------
    ValueError
        If a value is out of its range, the order names something else, or a step stands twice.
    """

    def __init__(
        self,
        *,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        order: Sequence[str] = ORDERS["transformers"],
        repetition_penalty: float | None = None,
        seen: Iterable[int] = (),
        seed: int = 0,
    ) -> None:
        if sorted(order) != sorted(STEPS):
            raise ValueError(f"order = {list(order)}: expected each of {', '.join(STEPS)} once")
        values = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
        self.values = {name: values[name] for name in order if values[name] is not None}
        self.penalty = repetition_penalty
        self.seen = list(seen)
        self._rng = np.random.default_rng(seed)
        for name, value in self.values.items():
            STEPS[name](np.zeros(1), value)  # a value out of range is named now, not at the first token
        if repetition_penalty is not None:
            _check_penalty(repetition_penalty)

    def trail(self, logits: np.ndarray) -> dict[str, np.ndarray]:
        """Return the distribution [V] at the start ("softmax") and after each step, in order."""
        trail = {"softmax": softmax(logits)}
        if self.penalty is not None:
            trail["repetition_penalty"] = p = repetition_penalty(logits, self.seen, self.penalty)
            logits = _logs(p)
        for name, value in self.values.items():
            trail[name] = p = STEPS[name](logits, value)
            logits = _logs(p)
        return trail

    def distribution(self, logits: np.ndarray) -> np.ndarray:
        """Return the distribution [V] from which the token is drawn."""
        return list(self.trail(logits).values())[-1]

    def __call__(self, logits: np.ndarray) -> int:
        """Choose a token; uses one uniform number, whatever the steps."""
        token = draw(self.distribution(logits), self._rng.random())
        self.seen.append(token)
        return token


def _check_penalty(value: float) -> None:
    if not 0 < value < np.inf:
        raise ValueError(f"repetition_penalty = {value}: expected more than 0; 1 changes nothing")


def _logs(p: np.ndarray) -> np.ndarray:
    """Return logits of a distribution, for the next step: ``-inf`` where nothing is left."""
    with np.errstate(divide="ignore"):
        return np.log(p)


def _ranked(p: np.ndarray) -> np.ndarray:
    """Return ids, the likeliest first; of bitwise equal ones the lower id first."""
    return np.argsort(-p, kind="stable")


def _kept(p: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Return the distribution of the tokens kept."""
    kept = np.zeros_like(p)
    kept[ids] = p[ids]
    return kept / kept.sum()
