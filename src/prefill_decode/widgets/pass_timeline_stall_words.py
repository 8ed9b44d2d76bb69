"""Scene two of a `PassTimeline` in words: a sentence for each scenario, the questions, and why a mean falls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prefill_decode.widgets.pass_timeline_schedule import count, number

if TYPE_CHECKING:
    from prefill_decode.widgets.pass_timeline_stall import Stall


def sentence(stall: Stall, whole: Stall) -> str:
    """Return what a scenario shows, with its numbers."""
    tokens = f"{stall.run.requests[stall.newcomer].prompt_len:,} tokens"
    if stall is whole:
        return (
            f"Whole: the newcomer’s {tokens} take one pass, and everybody waits for it. The others get no token for"
            f" {number(stall.gap_ms)} ms; {number(stall.usual_ms)} ms is usual. Their TPOT, a mean, is"
            f" {number(stall.tpot_ms)} ms and hides it."
        )
    return (
        f"In chunks of {stall.run.chunk:,}: {count(stall.reads, 'pass', 'passes')} take a piece of the {tokens} and the"
        f" others’ newest tokens. Their longest gap is {number(stall.gap_ms)} ms instead of {number(whole.gap_ms)} ms;"
        f" the newcomer’s first token comes after {number(stall.ttft_ms)} ms instead of {number(whole.ttft_ms)} ms."
    )


def stall_questions(stalls: Sequence[Stall]) -> list[dict]:
    """Return the questions of this scene, each with the scenario that answers it and the answer."""
    whole, small = stalls[0], stalls[-1]
    return [
        {
            "ask": "Who waits for the newcomer’s prompt?",
            "scene": "stall",
            "set": {"scenario": whole.name},
            "answer": f"Whoever decodes: {number(whole.gap_ms)} ms without a token instead of"
            f" {number(whole.usual_ms)} ms, though their own prompts were done long ago. The newcomer itself waits"
            f" {number(whole.ttft_ms)} ms.",
        },
        {
            "ask": "What does a smaller chunk cost?",
            "scene": "stall",
            "set": {"scenario": small.name},
            "answer": f"In chunks of {small.run.chunk:,} the weights are read {small.reads:,} times,"
            f" {number(small.reads * small.read_gb)} GB instead of {number(whole.read_gb)} GB, and the newcomer waits"
            f" {number(small.ttft_ms)} ms for its first token instead of {number(whole.ttft_ms)} ms. The others’"
            f" longest gap falls to {number(small.gap_ms)} ms.",
        },
    ]


def why_tpot_falls(stalls: Sequence[Stall]) -> str:
    """Say why the others' mean TPOT is lower with the smallest chunks, if it is."""
    whole, small = stalls[0], stalls[-1]
    shared = 1e3 * sum(each.seconds for each in small.run.prompt_passes(small.newcomer))
    separate = whole.pass_ms + (small.reads - 1) * whole.usual_ms
    if not (small.tpot_ms < whole.tpot_ms and shared < separate):
        return ""
    return (
        f"Why the others’ TPOT gets a little lower with small chunks: a pass reads the weights once for the chunk and"
        f" for their tokens. {small.reads:,} such passes take {number(shared)} ms; one with the whole prompt and"
        f" {small.reads - 1:,} without it would take {number(separate)} ms."
    )
