"""`PassTimeline`: what waits for what. Layers over tokens in one request; a long prompt among several requests."""

from collections.abc import Sequence
from pathlib import Path

import anywidget
import traitlets

from prefill_decode.cost import Simulation
from prefill_decode.widgets.modules import module
from prefill_decode.widgets.page_only import for_page
from prefill_decode.widgets.pass_timeline_html import picture, root
from prefill_decode.widgets.pass_timeline_schedule import schedule_data, schedule_of, schedule_questions
from prefill_decode.widgets.pass_timeline_stall import stall_data, stalls_of
from prefill_decode.widgets.pass_timeline_stall_words import stall_questions

HERE = Path(__file__).parent


class PassTimeline(anywidget.AnyWidget):
    """Step through the passes of one request, a layer at a time, and watch a long prompt stall other requests.

    Parameters
    ----------
    tokens : sequence of str, length P + m
        At most 10: prompt tokens and 2 to 6 chosen tokens, raw; the last one has no column.
    prompt_len : int
        P, the number of prompt tokens.
    layers : int
        Rows that are drawn, 1 to 12; each may stand for several layers if `source` says so.
    prefill_layer_ms, decode_layer_ms : float
        What a row takes for the whole prompt, and for one token.
    choose_ms : float
        Head and choice of a token.
    slow_layer : int
        The row that "Slow layer" slows down, counted from 0.
    slow_factor : float
        How many times as long it takes then.
    stall : sequence of Simulation
        The same requests with whole prompts and with chunks of one or more sizes. The one that arrives last is the
        newcomer.
    source, stall_source : str
        Where the times of each scene come from: a model, or a record of which machine.
    slow : bool
        Whether it opens with the slow layer.
    scenario : str, optional
        "whole" or the size of a chunk, to open with; "whole" without it.

    Raises
    ------
    ValueError
        For sizes or times out of range, and simulations that cannot be compared.
    """

    _esm = module("pass_timeline")
    _css = (HERE / "theme.css").read_text("utf-8") + (HERE / "pass_timeline.css").read_text("utf-8")

    data = traitlets.Dict().tag(sync=True)
    markup = traitlets.Unicode().tag(sync=True)
    step = traitlets.Int().tag(sync=True)
    slow = traitlets.Bool(False).tag(sync=True)
    scenario = traitlets.Unicode("whole").tag(sync=True)

    def __init__(
        self,
        tokens: Sequence[str],
        prompt_len: int,
        layers: int,
        *,
        prefill_layer_ms: float,
        decode_layer_ms: float,
        choose_ms: float,
        slow_layer: int,
        slow_factor: float = 4.0,
        stall: Sequence[Simulation],
        source: str,
        stall_source: str,
        slow: bool = False,
        scenario: str = "whole",
    ) -> None:
        schedule = schedule_of(
            tokens,
            prompt_len=prompt_len,
            layers=layers,
            prefill_layer_ms=prefill_layer_ms,
            decode_layer_ms=decode_layer_ms,
            choose_ms=choose_ms,
            slow_layer=slow_layer,
            slow_factor=slow_factor,
        )
        stalls = stalls_of(stall)
        data = {
            "schedule": schedule_data(schedule),
            "stall": stall_data(stalls),
            "questions": schedule_questions(schedule) + stall_questions(stalls),
            "source": source,
            "stallSource": stall_source,
        }
        super().__init__(data=data, step=schedule.steps, slow=slow, scenario=scenario)
        self.markup = for_page(root(data, slow=slow, scenario=scenario))

    @traitlets.validate("step")
    def _check_step(self, proposal: dict) -> int:
        steps = self.data["schedule"]["steps"]
        if not 0 <= proposal["value"] <= steps:
            raise traitlets.TraitError(f"step = {proposal['value']}: expected 0 to {steps}")
        return proposal["value"]

    @traitlets.validate("scenario")
    def _check_scenario(self, proposal: dict) -> str:
        names = [each["name"] for each in self.data["stall"]["scenarios"]]
        if proposal["value"] not in names:
            raise traitlets.TraitError(f"scenario = {proposal['value']!r}: expected one of {', '.join(names)}")
        return proposal["value"]

    def __repr__(self) -> str:
        schedule, scenarios = self.data["schedule"], self.data["stall"]["scenarios"]
        new = len(schedule["tokens"]) - schedule["promptLen"]
        return (
            f"PassTimeline({schedule['promptLen']} prompt + {new} new tokens, {schedule['layers']} layers; "
            f"{', '.join(each['label'] for each in scenarios)})"
        )

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict, dict]:
        formats, metadata = super()._repr_mimebundle_(**kwargs)
        markup = picture(self.data, slow=self.slow, scenario=self.scenario)
        return {**formats, "text/plain": repr(self), "text/html": markup}, metadata
