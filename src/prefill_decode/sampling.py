"""Choosing the next token: from logits to a distribution that can be looked at, and from it to one token.

Each step changes logits (``sampling_steps``); it is shown as the softmax of what it leaves: 0 for a token removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from .generate import greedy
from .sampling_settings import check_setting, checked_ids, checked_order
from .sampling_steps import CHANGES, penalised, softmax

OFF = 1e-3  # from 1, for the sum of shares that were rounded to 16 bits

# In which order engines apply the steps; each step sees what the ones before left.
ORDERS = {
    "transformers": ("temperature", "top_k", "top_p", "min_p"),
    "vllm": ("temperature", "min_p", "top_k", "top_p"),
    "llama.cpp": ("top_k", "top_p", "min_p", "temperature"),
}


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

    Raises
    ------
    ValueError
        If the value is out of its range, or ``softmax`` refuses the logits; so for every step, too.
    """
    return _after("temperature", logits, value)


def top_k(logits: np.ndarray, k: int) -> np.ndarray:
    """Keep the k likeliest tokens (Fan et al. 2018); of equal ones the lower ids.

    Raises
    ------
    ValueError
        If k is no whole number of at least 1, or ``softmax`` refuses the logits.
    """
    return _after("top_k", logits, k)


def top_p(logits: np.ndarray, value: float) -> np.ndarray:
    """Keep the nucleus: the fewest likeliest tokens that have at least ``value`` together (Holtzman et al. 2020).

    The token that crosses the value belongs to the nucleus, so one is always left; 1 keeps all.

    Raises
    ------
    ValueError
        If the value is not more than 0 and at most 1, or ``softmax`` refuses the logits.
    """
    return _after("top_p", logits, value)


def min_p(logits: np.ndarray, value: float) -> np.ndarray:
    """Keep tokens that have at least ``value`` times the likeliest one's probability; 0 keeps all.

    Raises
    ------
    ValueError
        If the value is not 0 to 1, or ``softmax`` refuses the logits.
    """
    return _after("min_p", logits, value)


def repetition_penalty(logits: np.ndarray, seen: Iterable[int], value: float) -> np.ndarray:
    """Make tokens less likely that were seen: positive logits are divided by ``value``, negative ones multiplied.

    Unlike the other steps it depends on where the logits' zero lies, so it belongs before them.

    Raises
    ------
    ValueError
        If the value is not above 0 or takes a logit beyond float64, something seen is no token, or ``softmax`` refuses
        the logits.
    """
    check_setting("repetition_penalty", value)
    greedy(logits)  # refuses what no token can be chosen from
    return softmax(penalised(np.asarray(logits, np.float64), checked_ids(seen), value))


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

    Raises
    ------
    ValueError
        If p is no distribution, or u out of its range.
    """
    check_setting("u", u)
    p = np.asarray(p)
    if p.dtype.kind not in "fiu" or p.ndim != 1 or not p.size:
        raise ValueError(f"p is {p.dtype} {p.shape}: expected a distribution [V], one share a token")
    total = np.cumsum(p, dtype=np.float64)
    if not (p.min() >= 0 and abs(total[-1] - 1) <= OFF):
        raise ValueError(f"p adds up to {total[-1]:g}, its least share is {p.min():g}: expected 1, and at least 0")
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
        Of ``np.random.default_rng``, at least 0: one uniform number a token.

    Attributes
    ----------
    settings : dict
        The arguments that make such a sampler again, all but ``seen``.
    seen : list of int
        The tokens of ``seen``, then those chosen.

    Raises
    ------
    ValueError
        If a value is out of its range, the order names something else, a step stands twice, or what was seen is no
        token.
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
        values = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
        order = checked_order(order, values)
        check_setting("seed", seed)
        for name, value in {**values, "repetition_penalty": repetition_penalty}.items():
            if value is not None:
                check_setting(name, value)
        self.values = {name: values[name] for name in order if values[name] is not None}
        self.penalty = repetition_penalty
        self.seen = checked_ids(seen)
        self.settings = {**values, "order": order, "repetition_penalty": repetition_penalty, "seed": seed}
        self._rng = np.random.default_rng(seed)

    def trail(self, logits: np.ndarray) -> dict[str, np.ndarray]:
        """Return the distribution [V] at the start ("softmax") and after each step, in order."""
        trail = {"softmax": softmax(logits)}
        logits = np.asarray(logits, np.float64)
        if self.penalty is not None:
            logits = penalised(logits, self.seen, self.penalty)
            trail["repetition_penalty"] = softmax(logits)
        for name, value in self.values.items():
            logits = CHANGES[name](logits, value)
            trail[name] = softmax(logits)
        return trail

    def distribution(self, logits: np.ndarray) -> np.ndarray:
        """Return the distribution [V] from which the token is drawn."""
        return list(self.trail(logits).values())[-1]

    def __call__(self, logits: np.ndarray) -> int:
        """Choose a token; uses one uniform number, whatever the steps."""
        token = draw(self.distribution(logits), self._rng.random())
        self.seen.append(token)
        return token


def _after(step: str, logits: np.ndarray, value: float) -> np.ndarray:
    """Return the distribution after one step, its value and the logits checked."""
    check_setting(step, value)
    greedy(logits)  # refuses what no token can be chosen from
    return softmax(CHANGES[step](np.asarray(logits, np.float64), value))
