"""The texts, the places and the root's attributes that a `Reading` turns into; `roofline.js` writes the same."""

from __future__ import annotations

import math

from prefill_decode.widgets.quantities import count, digits, duration, memory, percent, plain, short
from prefill_decode.widgets.roofline_numbers import Choice, PassReading, Reading

PLOT_HEIGHT = 300  # px, as in roofline.css: labels keep their distance in pixels, everything else is a share
LINE = 16  # px
NAME_FOOT = 28  # px from the flat roof down: there words over the slope are clear of a name over the roof
NARROW = 0.29  # what the words of the limit take of the narrowest picture


def attributes(choice: Choice, reading: Reading) -> dict[str, str]:
    """Return the root's data attributes without their `data-`."""
    return {
        "model": choice.model,
        "device": choice.device,
        "dtype": choice.dtype,
        "prompt-len": str(choice.prompt_len),
        "batch": str(choice.batch),
        "prefill-bound": reading.prefill.bound,
        "decode-bound": reading.decode.bound,
        "prefill-intensity": plain(reading.prefill.counted.intensity),
        "decode-intensity": plain(reading.decode.counted.intensity),
        "ttft-ms": plain(reading.request.ttft * 1000),
        "tpot-ms": plain(reading.request.tpot * 1000),
        "ridge": plain(reading.prefill.ridge),
    }


def texts(data: dict, choice: Choice, reading: Reading) -> dict[str, str]:
    """Return what stands in every element that has a `data-text`."""
    return {
        "caption": _caption(data, choice),
        **_device_texts(data, choice),
        **_pass_texts("prefill", reading.prefill, choice.batch * choice.prompt_len),
        **_pass_texts("decode", reading.decode, choice.batch),
        **_ridge_texts(reading),
        **_request_texts(data, choice, reading),
        **_memory_texts(choice, reading),
        "reached": _reached(data, choice),
        "sentence": sentence(choice, reading),
    }


def prompts(choice: Choice) -> str:
    """Return how many prompts of how many tokens."""
    tokens = f"{count(choice.prompt_len)} token{'s' * (choice.prompt_len != 1)}"
    return f"{count(choice.batch)} prompt{'s' * (choice.batch != 1)} of {tokens}"


def _caption(data: dict, choice: Choice) -> str:
    label, each = data["dtypes"][choice.dtype]["label"], " each" * (choice.batch > 1)
    new = f"{count(data['newTokens'])} new tokens{each}"
    return f"{choice.model} on {choice.device} · {label} · {prompts(choice)}, {new}"


def _device_texts(data: dict, choice: Choice) -> dict[str, str]:
    device, rate = data["devices"][choice.device], data["dtypes"][choice.dtype]["rate"]
    return {
        "peak": f"{short(device['rates'][rate], 'FLOP/s')} in {data['dtypes'][rate]['label']}",
        "bandwidth": short(device["bandwidth"], "B/s"),
        "memory": short(device["memory"], "B"),
        "class": device["class"],
    }


def _pass_texts(phase: str, reading: PassReading, rows: int) -> dict[str, str]:
    moved = reading.counted.bytes
    values = {
        "rows": count(rows),
        "flops": short(reading.counted.flops.total, "FLOP"),
        "weights": short(moved.weights, "B"),
        "read": short(moved.kv_read, "B"),
        "written": short(moved.kv_written, "B"),
        "intensity": digits(reading.counted.intensity),
        "bound": reading.bound,
        "least": duration(reading.least.seconds),
        "about": duration(reading.about.seconds),
        "name": f"{phase}: {reading.bound} binds",
        "at": f"{digits(reading.counted.intensity)} FLOP per byte",
    }
    return {f"{phase}-{name}": value for name, value in values.items()}


def _ridge_texts(reading: Reading) -> dict[str, str]:
    prompt, batch = reading.prompt_at_ridge, reading.batch_at_ridge
    limit = digits(reading.decode_limit)
    few = "" if batch is None or batch <= reading.largest_batch else f", {count(reading.largest_batch)} fit"
    return {
        "ridge": f"ridge: {digits(reading.prefill.ridge)} FLOP/byte",
        "ridge-prompt": "no prompt reaches it" if prompt is None else f"= prompt of {_tokens(prompt)}",
        "prompt-at-ridge": "none up to 131,072" if prompt is None else f"{_tokens(prompt)}, batch 1",
        "batch-at-ridge": f"never: {limit} at most" if batch is None else f"{count(batch)} requests{few}",
        "limit-name": "batch → ∞:",
        "limit-at": limit,
    }


def _tokens(number: int) -> str:
    return f"{count(number)} token{'s' * (number != 1)}"


def _request_texts(data: dict, choice: Choice, reading: Reading) -> dict[str, str]:
    request, batch = reading.request, choice.batch
    return {
        "ttft": duration(request.ttft),
        "ttft-least": duration(reading.prefill.least.seconds),
        "tpot": duration(request.tpot),
        "tpot-least": duration(reading.request_least.tpot),
        "rate": f"{digits(1 / request.tpot)} tokens/s",
        "rate-all": f"{digits(batch / request.tpot)} tokens/s",
        "whole": duration(request.seconds),
        "whole-least": duration(reading.request_least.seconds),
    }


def _memory_texts(choice: Choice, reading: Reading) -> dict[str, str]:
    used, largest = reading.weights + reading.cache, reading.largest_batch
    such = f"{count(largest)} such request{'s' * (largest != 1)}"
    verdict = "fits" if reading.fits else "does not fit"
    sizes = f"weights {short(reading.weights, 'B')} + cache {short(reading.cache, 'B')} = {short(used, 'B')}"
    unfit = (
        f"Does not fit: {sizes}, the device has {short(reading.memory, 'B')}."
        f" {f'At most {such} fit' if largest else 'Not even one such request fits'}; the times are those of a larger"
        " memory."
    )
    return {
        "memory-weights": short(reading.weights, "B"),
        "memory-cache": memory(reading.cache),
        "memory-all": f"{short(used, 'B')} of {short(reading.memory, 'B')}: {verdict}",
        "largest": such if largest else "not even one such request",
        "weights-read": "all that are stored" if reading.reads_all else "without the looked-up embedding",
        "unfit": "" if reading.fits else unfit,
    }


def _reached(data: dict, choice: Choice) -> str:
    device, layers = data["devices"][choice.device], data["models"][choice.model]["layers"]
    waits = [digits(1000 * layers * device[name]) for name in ("prefillOverhead", "overhead")]
    return (
        f"“About” counts on {digits(100 * device['compute'])} % of the peak, {digits(100 * device['reach'])} % of the"
        f" bandwidth and {waits[0]} ms of overhead in prefill and {waits[1]} ms in a decode pass; {device['judged']}."
    )


def sentence(choice: Choice, reading: Reading) -> str:
    """Return what is said of a choice, with its numbers."""
    prefill, decode = reading.prefill, reading.decode
    side = "above" if prefill.bound == "compute" else "below"
    rows = f"{count(choice.batch)} token{'s, one a request' * (choice.batch > 1)}"
    return (
        f"Prefill of {prompts(choice)}: {digits(prefill.counted.intensity)} FLOP per byte, {side} the ridge of"
        f" {digits(prefill.ridge)}, so {prefill.bound} binds: {duration(prefill.least.seconds)} at least."
        f" Decode of {rows}: {digits(decode.counted.intensity)} FLOP per byte, so {decode.bound} binds:"
        f" {duration(decode.least.seconds)} at least."
    )


def places(data: dict, choice: Choice, reading: Reading, *, peak: float, bandwidth: float) -> dict[str, dict[str, str]]:
    """Return the attributes of every element that has a `data-place`: shares of the picture, distances in pixels."""
    (x0, x1), (y0, y1) = data["axes"]["x"], data["axes"]["y"]

    def x(intensity: float) -> float:
        return (math.log10(intensity) - x0) / (x1 - x0)

    def y(rate: float) -> float:
        return (y1 - math.log10(rate)) / (y1 - y0)

    def at(intensity: float) -> tuple[float, float]:
        return x(intensity), y(min(peak, bandwidth * intensity))

    ridge, flat = x(reading.prefill.ridge), y(peak)
    prefill, decode, limit = (
        at(value)
        for value in (reading.prefill.counted.intensity, reading.decode.counted.intensity, reading.decode_limit)
    )
    return {
        "slope": {"x1": "0%", "y1": percent(y(bandwidth * 10.0**x0)), "x2": percent(ridge), "y2": percent(flat)},
        "flat": {"x1": percent(ridge), "y1": percent(flat), "x2": "100%", "y2": percent(flat)},
        "zone": {"x": percent(ridge), "width": percent(1 - ridge)},
        "ridge-line": {"x1": percent(ridge), "x2": percent(ridge)},
        "ridge-label": {"x": percent(ridge), "text-anchor": _anchor(ridge)},
        "memory-side": {"x": percent(ridge), "visibility": "visible" if ridge > 0.25 else "hidden"},
        "compute-side": {"x": percent(ridge), "visibility": "visible" if ridge < 0.66 else "hidden"},
        "prefill-drop": _drop(*prefill),
        "decode-drop": _drop(*decode),
        "limit-drop": _drop(*limit),
        "prefill-point": {"x": percent(prefill[0]), "y": percent(prefill[1])},
        "decode-point": {"cx": percent(decode[0]), "cy": percent(decode[1])},
        "limit-point": {"cx": percent(limit[0]), "cy": percent(limit[1])},
        **_limit_label(limit, prefill[0], decode[0], (ridge, flat)),
        **_labels(prefill, decode, ridge, flat),
        "room": {"style": f"--pd-weights:{percent(_share(reading, reading.weights))};"
                          f"--pd-cache:{percent(_share(reading, reading.cache))};"
                          f"--pd-has:{percent(_share(reading, reading.memory))}"},
    }  # fmt: skip


def _share(reading: Reading, part: float) -> float:
    return part / max(reading.memory, reading.weights + reading.cache)


def _drop(x: float, y: float) -> dict[str, str]:
    return {"x1": percent(x), "y1": percent(y), "x2": percent(x)}


def _labels(
    prefill: tuple[float, float], decode: tuple[float, float], ridge: float, flat: float
) -> dict[str, dict[str, str]]:
    """Place both names: to the right of a point on the slope, else above the flat roof and below it."""
    gap = (decode[1] - prefill[1]) * PLOT_HEIGHT
    prefill_high, decode_high = (_is_high(x, ridge) for x, _ in (prefill, decode))
    down = max(0, round(2 * LINE - gap)) if gap > -2 * LINE and not prefill_high and not decode_high else 0
    return {
        **(_label_at("prefill", prefill[0], flat, -27) if prefill_high else _label_beside("prefill", prefill, 8)),
        **(_label_at("decode", decode[0], flat, 28) if decode_high else _label_beside("decode", decode, 8 + down)),
    }


def _limit_label(
    limit: tuple[float, float], prefill: float, decode: float, corner: tuple[float, float]
) -> dict[str, dict[str, str]]:
    """Place the limit's two lines: over the roof where it is free, else at the foot, on the side of more room."""
    (x, y), (ridge, flat) = limit, corner
    end = max(x, NARROW)  # of the words: to the left of it they have room
    slope = y + (flat - y) * (end - x) / (ridge - x or 1)
    by_name = _is_high(prefill, ridge) and end > _over(prefill) - NARROW and (slope - flat) * PLOT_HEIGHT < NAME_FOOT
    if end <= ridge and not by_name:
        return _two_lines("limit", slope, -24, {"x": percent(end), "dx": "-9", "text-anchor": "end"})
    if x > ridge and not _is_high(prefill, ridge):
        return _label_at("limit", x, flat, -27)
    lines = (0.0, prefill, decode, ridge, 1.0)
    left, right = min(x - line for line in lines if line <= x), min((line - x for line in lines if line > x), default=1)
    anchor = "start" if x < NARROW or (left < right and x <= 1 - NARROW) else "end"
    return _two_lines("limit", 1, -24, {"x": percent(x), "dx": "-5" if anchor == "end" else "5", "text-anchor": anchor})


def _anchor(x: float) -> str:
    return "start" if x < 0.36 else "end" if x > 0.7 else "middle"


def _is_high(x: float, ridge: float) -> bool:
    return x > ridge - 0.12


def _over(x: float) -> float:
    """Return where a name over the flat roof has its middle: over its point as far as the picture is wide enough."""
    return max(0.3, min(0.72, x))


def _label_beside(phase: str, point: tuple[float, float], down: int) -> dict[str, dict[str, str]]:
    return _two_lines(phase, point[1], down, {"x": percent(point[0]), "dx": "13", "text-anchor": "start"})


def _label_at(phase: str, x: float, y: float, down: int) -> dict[str, dict[str, str]]:
    """Place a label at the height of the flat roof, over its point as far as the picture is wide enough."""
    return _two_lines(phase, y, down, {"x": percent(_over(x)), "dx": "0", "text-anchor": "middle"})


def _two_lines(phase: str, y: float, down: int, where: dict[str, str]) -> dict[str, dict[str, str]]:
    lines = {"name": down, "at": down + LINE}
    return {f"{phase}-{line}": {**where, "y": percent(y), "dy": str(dy)} for line, dy in lines.items()}
