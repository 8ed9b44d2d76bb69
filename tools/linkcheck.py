"""Ask every link of the pages that leads to another host (`make linkcheck`), with Sphinx's linkcheck builder.

Not part of the tests: other hosts have their bad days. Links within the book are a matter of `make test`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "_build" / "linkcheck" / "output.json"
# Hosts that most sources are on: if neither answers, there is no network, and every link would look broken.
KNOWN = ("https://doi.org/", "https://arxiv.org/")
# A custom builder, since Jupyter Book writes what it calls linkcheck into the site.
BUILD = ("build", ".", "--builder", "custom", "--custom-builder", "linkcheck", "-q")


def main() -> None:
    """Check the links and name those that do not lead anywhere."""
    if not any(map(answers, KNOWN)):
        raise SystemExit(f"No network: none of {', '.join(KNOWN)} answers. No link was checked.")
    print("Asking every link to another host, some minutes; notebooks that changed are run first", flush=True)
    links = [link for link in ask() if link["uri"].startswith("http")]
    wrong = [link for link in links if link["status"] in ("broken", "timeout")]
    for link in wrong:
        print(f"{link['filename']}:{link['lineno']}: {link['uri']}: {link['info'][:120]}")
    print(f"{len(links)} links, {len(wrong)} of them lead nowhere")
    raise SystemExit(bool(wrong))


def ask() -> list[dict]:
    """Let Sphinx ask every link and return what it found, one entry a link."""
    REPORT.unlink(missing_ok=True)
    command = (str(Path(sys.executable).with_name("jupyter-book")), *BUILD)
    environment = {**os.environ, "MODEL": "0"}  # nobody reads the site that is made on the way
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if not REPORT.exists():
        raise SystemExit(f"{built.stderr}\nThe book was not read: the lines above say where")
    return [json.loads(line) for line in REPORT.read_text("utf-8").splitlines()]


def answers(address: str) -> bool:
    """Say whether a host answers at all, be it with an error."""
    try:
        urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=10).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
