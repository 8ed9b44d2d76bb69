"""What a `Roofline` sends to the page: a few coefficients a model and a device, and the ends of its axes."""

import math
from collections.abc import Mapping

from prefill_decode.cost import DTYPES, Constants, Shape

DTYPE_LABELS = {"float16": "16 bits", "int8": "int8 weights", "int4": "int4 weights", "float32": "32 bits"}
LONGEST_PROMPT, LARGEST_BATCH = 131_072, 4096
HEADROOM = 0.9  # decades above the highest roof, for a label

Devices = Mapping[str, Mapping[str, object]]
Told = str | Mapping[str, str | None] | None  # of all devices, or of each


def roofline_data(
    shapes: Mapping[str, Shape],
    devices: Devices,
    constants: Constants | Mapping[str, Constants],
    *,
    new_tokens: int,
    judged: Told,
    classes: Told,
) -> dict:
    """Return plain JSON values; every number that JavaScript computes with is one of them.

    Raises
    ------
    ValueError
        If there is no model or no device, or a device lacks what a roof needs.
    """
    if not shapes or not devices:
        raise ValueError(f"got {len(shapes)} models and {len(devices)} devices: a roofline needs at least one of each")
    if new_tokens < 2:
        raise ValueError(f"new_tokens = {new_tokens}: expected at least 2, or nothing is decoded")
    data = {
        "models": {name: _coefficients(name, shape) for name, shape in shapes.items()},
        "devices": {name: _device(name, device, constants, judged, classes) for name, device in devices.items()},
        "dtypes": {
            name: {
                "label": label,
                "weight": DTYPES[name].weight_bits,
                "value": DTYPES[name].value_bits,
                "rate": DTYPES[name].arithmetic,
            }
            for name, label in DTYPE_LABELS.items()
        },
        "newTokens": new_tokens,
    }
    return {**data, "axes": _axes(data)}


def _coefficients(name: str, shape: Shape) -> dict:
    """Return what the FLOPs and bytes of any pass are made of: see `cost.ledger`, whose equal is proved in a test."""
    if shape.latent_kv is not None:
        raise ValueError(f"model {name!r}: the FLOPs of a latent cache are not counted here, leave it out")
    head = shape.matrices["head"]
    return {
        "row": 2 * (sum(shape.matrices.values()) - head),
        "pair": 4 * shape.layers * shape.heads * shape.d_head,
        "head": 2 * head,
        "read": shape.params_read,
        "stored": shape.params,
        "kv": shape.kv_numbers,
        "layers": shape.layers,
    }


def _device(
    name: str,
    device: Mapping[str, object],
    constants: Constants | Mapping[str, Constants],
    judged: Told,
    classes: Told,
) -> dict:
    missing = [key for key in ("peak", "bandwidth", "memory") if not device.get(key)]
    if missing:
        raise ValueError(f"device {name!r} has no {' and no '.join(missing)}: a roof needs them, leave it out")
    if not isinstance(constants, Constants) and name not in constants:
        raise ValueError(f"no constants for device {name!r}: give one for all, or one for each of the devices")
    reached = constants if isinstance(constants, Constants) else constants[name]
    rates = {"float16": device["peak"], "float32": device.get("float32_peak")}
    return {
        "rates": {arithmetic: rate for arithmetic, rate in rates.items() if rate},
        "bandwidth": device["bandwidth"],
        "memory": device["memory"],
        "compute": reached.compute,
        "reach": reached.memory,
        "overhead": reached.overhead,
        "prefillOverhead": reached.prefill_overhead,
        "judged": _judged(name, judged),
        "class": _told("classes", name, classes) or "as given, of no class",
    }


def _told(what: str, name: str, texts: Told) -> str | None:
    """Return what the texts of an argument say of a device."""
    if texts is None or isinstance(texts, str):
        return texts
    if name not in texts:
        raise ValueError(f"{what} says nothing of device {name!r}: give a text, or None where there is none")
    return texts[name]


def _judged(name: str, judged: Told) -> str:
    """Return how far the expected times of a device were off, in words."""
    if judged is None:
        return "not judged on measurements"
    told = _told("judged", name, judged)
    return "nothing like it was measured: constants borrowed" if told is None else f"on measurements: {told}"


def _axes(data: dict) -> dict:
    """Return both ends of both axes in powers of ten; they hold every point that the controls can reach."""
    intensities = [
        intensity
        for model in data["models"].values()
        for dtype in data["dtypes"].values()
        for intensity in _extremes(model, dtype)
    ]
    lowest, highest = math.floor(math.log10(min(intensities))), math.ceil(math.log10(max(intensities)))
    slowest = min(device["bandwidth"] for device in data["devices"].values()) * 10.0**lowest
    fastest = max(rate for device in data["devices"].values() for rate in device["rates"].values())
    return {
        "x": [lowest, max(highest, lowest + 4)],
        "y": [math.floor(math.log10(slowest)), round(math.log10(fastest) + HEADROOM, 3)],
    }


def _extremes(model: dict, dtype: dict) -> tuple[float, float]:
    """Return the FLOPs a byte of the shortest decode pass, of the longest, and of the largest prefill."""
    weights, entry = model["read"] * dtype["weight"] / 8, model["kv"] * dtype["value"] / 8
    n, batch = LONGEST_PROMPT, LARGEST_BATCH

    def intensity(batch: int, rows: int, keys: int, pairs: int) -> float:
        flops = batch * (rows * model["row"] + pairs * model["pair"] + model["head"])
        return flops / (weights + batch * keys * entry)

    return (
        intensity(1, 1, 1, 1),
        intensity(1, 1, n + 1, n + 1),
        intensity(batch, 1, n + 1, n + 1),
        intensity(batch, n, n, n * (n + 1) // 2),
    )
