"""What the tests compare with, and where the repository is."""

import json
from pathlib import Path

ROOT = Path(__file__).parent.parent


def reference_cases():
    """Reference generations of the real model, made by transformers/torch in float32."""
    return json.loads((ROOT / "tests" / "data" / "smollm2.json").read_text("utf-8"))["cases"]
