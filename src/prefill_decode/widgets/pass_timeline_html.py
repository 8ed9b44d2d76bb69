"""The picture of a `PassTimeline` as HTML. It is the only renderer: the script changes attributes and texts of it."""

import html
import json

from prefill_decode.widgets.pass_timeline_schedule_html import schedule_scene
from prefill_decode.widgets.pass_timeline_stall_html import stall_scene

# The two ignore classes keep MathJax away from tokens such as "$".
ROOT_CLASS = "pd-timeline tex2jax_ignore mathjax_ignore"
ROOT_LABEL = "Passes, layers and time"


def picture(data: dict, *, slow: bool, scenario: str) -> str:
    """Return the root element at the last step, with the traits that a page needs in place of a kernel."""
    traits = {"data": data, "step": data["schedule"]["steps"], "slow": slow, "scenario": scenario}
    text = json.dumps(traits, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return root(data, slow=slow, scenario=scenario, first=f'<script type="application/json">{text}</script>')


def root(data: dict, *, slow: bool, scenario: str, first: str = "") -> str:
    """Return the root element at the last step; ``first`` comes before the scenes."""
    schedule, stall = data["schedule"], data["stall"]
    variant = schedule["variants"][slow]
    chosen = next(each for each in stall["scenarios"] if each["name"] == scenario)
    attributes = {
        "steps": schedule["steps"],
        "step": schedule["steps"],
        "phase": "decode",
        "layer": "choice",
        "pass": len(variant["passes"]),
        "ttft-ms": variant["ttft"],
        "tpot-ms": variant["tpot"],
        "slow": int(slow),
        "scenario": scenario,
        "largest-gap-ms": chosen["gapMs"],
    }
    told = "".join(f' data-{name}="{value}"' for name, value in attributes.items())
    return (
        f'<div data-widget="pass-timeline" class="{ROOT_CLASS}" role="group" aria-label="{ROOT_LABEL}"{told}>'
        f"{first}{schedule_scene(data, slow, _questions(data, 'schedule'))}"
        f"{stall_scene(data, chosen, _questions(data, 'stall'))}</div>"
    )


def _questions(data: dict, scene: str) -> str:
    buttons = "".join(
        f'<button type="button" data-question="{i}">{html.escape(question["ask"])}</button>'
        for i, question in enumerate(data["questions"])
        if question["scene"] == scene
    )
    return f'<div class="pd-questions"><span>Try:</span>{buttons}</div>'
