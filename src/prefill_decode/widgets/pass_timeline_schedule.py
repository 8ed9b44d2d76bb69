"""Scene one of a `PassTimeline`: which layer of which tokens is ready when, with the words for every step."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from prefill_decode.widgets.attention_grid_data import shown
from prefill_decode.widgets.attention_grid_panels import token

MOST_LAYERS, MOST_TOKENS, MOST_NEW = 12, 10, 6  # what is drawn stays legible on a phone


@dataclass(frozen=True)
class Schedule:
    """One legal order: a whole layer of the prompt at a time, a choice, then one token through all layers, and so on.

    Attributes
    ----------
    tokens : tuple of str
        As shown: prompt tokens, then the chosen ones.
    prompt_len, layers : int
    prefill_layer_ms, decode_layer_ms, choose_ms : float
    slow_layer : int
    slow_factor : float
    """

    tokens: tuple[str, ...]
    prompt_len: int
    layers: int
    prefill_layer_ms: float
    decode_layer_ms: float
    choose_ms: float
    slow_layer: int
    slow_factor: float

    def __post_init__(self) -> None:
        new = len(self.tokens) - self.prompt_len
        _check_within("prompt_len", self.prompt_len, 1, MOST_TOKENS - 2)
        _check_within("new tokens (tokens without the prompt)", new, 2, MOST_NEW)  # TPOT needs a second one
        _check_within("tokens", len(self.tokens), 3, MOST_TOKENS)
        _check_within("layers", self.layers, 1, MOST_LAYERS)
        _check_within("slow_layer", self.slow_layer, 0, self.layers - 1)
        for name in ("prefill_layer_ms", "decode_layer_ms", "choose_ms"):
            if not 0 < getattr(self, name) < 1e9:
                raise ValueError(f"{name} = {getattr(self, name)}: expected milliseconds, above 0")
        if not 1 < self.slow_factor <= 100:
            raise ValueError(f"slow_factor = {self.slow_factor}: expected more than 1 and at most 100")

    @property
    def passes(self) -> int:
        """One for the prompt, one for each further token."""
        return len(self.tokens) - self.prompt_len

    @property
    def steps(self) -> int:
        """A step a layer of a pass, and one for the choice of its token."""
        return self.passes * (self.layers + 1)

    def place(self, step: int) -> tuple[int, int]:
        """Return the pass and the layer of a step, both from 0; the layer after the last is the choice."""
        return divmod(step - 1, self.layers + 1)

    def ms(self, slow: bool) -> list[float]:
        """Return what each step takes."""
        return [self._ms(*self.place(step), slow) for step in range(1, self.steps + 1)]

    def _ms(self, number: int, layer: int, slow: bool) -> float:
        if layer == self.layers:
            return self.choose_ms
        once = self.decode_layer_ms if number else self.prefill_layer_ms
        return once * (self.slow_factor if slow and layer == self.slow_layer else 1)

    def pass_ms(self, number: int, slow: bool) -> float:
        """Return what a pass takes with its choice: TTFT for pass 0, TPOT for every other."""
        return sum(self._ms(number, layer, slow) for layer in range(self.layers + 1))


def _check_within(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most or value != int(value):
        raise ValueError(f"{name} = {value}: expected a whole number from {least} to {most}")


def number(value: float) -> str:
    """Return a positive number with about three digits, no exponent and no trailing zeros."""
    if value >= 100:
        return f"{value:,.0f}"
    places = 1 if value >= 10 else 2 if value >= 0.1 else 4
    return f"{value:.{places}f}".rstrip("0").rstrip(".")


def exact(value: float) -> str:
    """Return milliseconds for the root's attributes, to the nanosecond."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def schedule_data(schedule: Schedule) -> dict:
    """Return what the page needs: for both states of "Slow layer" every time and sentence as text."""
    return {
        "steps": schedule.steps,
        "layers": schedule.layers,
        "promptLen": schedule.prompt_len,
        "tokens": schedule.tokens,
        "slowLayer": schedule.slow_layer,
        "slowFactor": number(schedule.slow_factor),
        "variants": [_variant(schedule, slow) for slow in (False, True)],
    }


def _variant(schedule: Schedule, slow: bool) -> dict:
    ms = schedule.ms(slow)
    done = [sum(ms[: i + 1]) for i in range(len(ms))]
    ttft, tpot = schedule.pass_ms(0, slow), schedule.pass_ms(1, slow)
    return {
        "ms": [round(value, 6) for value in ms],
        "done": [number(value) for value in done],  # ms from the start
        "passes": [number(schedule.pass_ms(i, slow)) for i in range(schedule.passes)],
        "grow": [round(schedule.pass_ms(i, slow), 6) for i in range(schedule.passes)],
        "width": round(100 * done[-1] / sum(schedule.ms(True)), 3),  # one scale for both states
        "ttft": exact(ttft),
        "tpot": exact(tpot),
        "formulas": [
            _formula(schedule, schedule.prefill_layer_ms, slow),
            _formula(schedule, schedule.decode_layer_ms, slow),
        ],
        "sentences": [
            _start(schedule),
            *(_sentence(schedule, step, done[step - 1], slow) for step in range(1, len(ms) + 1)),
        ],
    }


def _formula(schedule: Schedule, once: float, slow: bool) -> str:
    fast = schedule.layers - slow
    parts = [f"{count(fast, 'layer')} × {number(once)}"] if fast else []
    parts += [f"slow layer {number(once * schedule.slow_factor)}"] if slow else []
    return f"{' + '.join(parts)} + choice {number(schedule.choose_ms)}"


def _start(schedule: Schedule) -> str:
    return f"Nothing is computed yet: {count(schedule.prompt_len, 'prompt token')} below layer 0."


def _sentence(schedule: Schedule, step: int, done: float, slow: bool) -> str:
    index, layer = schedule.place(step)
    if layer == schedule.layers:
        return _choice_sentence(schedule, index, slow)
    whose = f"“{token(schedule.tokens[schedule.prompt_len + index - 1])}” alone" if index else _prompt(schedule)
    late = f", {number(schedule.slow_factor)} times as long as another," * (slow and layer == schedule.slow_layer)
    waits = f"layer {layer + 1} waits for it" if layer + 1 < schedule.layers else "now the head can choose"
    phase = "Decode" if index else "Prefill"
    return f"{phase}, pass {index + 1}: layer {layer} of {whose}{late} is ready at {number(done)} ms; {waits}."


def _choice_sentence(schedule: Schedule, index: int, slow: bool) -> str:
    chosen = f"“{token(schedule.tokens[schedule.prompt_len + index])}” is chosen"
    once = schedule.decode_layer_ms if index else schedule.prefill_layer_ms
    total = f"{_formula(schedule, once, slow)} = {number(schedule.pass_ms(index, slow))} ms"
    if index:
        return f"Decode, pass {index + 1}: {chosen} after all layers again, for one token. TPOT = {total}."
    return f"Prefill, pass 1: {chosen}. Here TTFT ends: {total}."


def _prompt(schedule: Schedule) -> str:
    return f"all {schedule.prompt_len} prompt tokens at once" if schedule.prompt_len > 1 else "the one prompt token"


def count(value: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun, in the plural where it is not one."""
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"


def schedule_questions(schedule: Schedule) -> list[dict]:
    """Return the questions of this scene, each with the state that answers it and the answer."""
    (ttft, slow_ttft), (tpot, slow_tpot) = (
        [number(schedule.pass_ms(index, slow)) for slow in (False, True)] for index in (0, 1)
    )
    layers, once = schedule.layers, number(schedule.prefill_layer_ms)
    return [
        {
            "ask": "Does a longer prompt add layers?",
            "scene": "schedule",
            "set": {"step": layers, "slow": False},
            "answer": f"No. All prompt tokens, here {schedule.prompt_len}, go through the same {count(layers, 'layer')}"
            f" once: {layers} × {once} ms. A longer prompt makes each blue row wider and slower; it adds no row.",
        },
        {
            "ask": "Where does TTFT end?",
            "scene": "schedule",
            "set": {"step": layers + 1, "slow": False},
            "answer": f"At the choice after the last layer of prefill: {ttft} ms. Every further token pays all"
            f" {count(layers, 'layer')} again: {tpot} ms.",
        },
        {
            "ask": "A slow layer: who pays?",
            "scene": "schedule",
            "set": {"step": schedule.steps, "slow": True},
            "answer": f"Everybody, in every pass. Layer {schedule.slow_layer} takes"
            f" {number(schedule.slow_factor)} times as long: TTFT {ttft} → {slow_ttft} ms, TPOT {tpot} → {slow_tpot}"
            " ms. Tokens of a layer run side by side; layers wait for each other.",
        },
    ]


def schedule_of(tokens: Sequence[str], **sizes: float) -> Schedule:
    """Return the schedule of tokens as the page shows them, all sizes as plain numbers."""
    checked = Schedule(tuple(shown(text) for text in tokens), **sizes)
    plain = {name: int(sizes[name]) for name in ("prompt_len", "layers", "slow_layer")}
    return replace(checked, **{name: float(value) for name, value in sizes.items()} | plain)
