"""Measure, and write the record: ``python -m benchmarks``, or only some parts: ``python -m benchmarks decode``."""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from benchmarks import record
from benchmarks.measure import CannotMeasureError

PARTS = ("loading", "memory", "machine", "decode", "unpack", "peers", "widget", "twin", "weight", "notebooks", "build")


def main() -> None:
    """Run the parts in order; write after each, so that an interrupted run keeps what it has."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure, and write the record.")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all without one")
    parser.add_argument("--check", action="store_true", help="only say whether there are such parts")
    given = parser.parse_args()
    asked = given.parts
    if unknown := set(asked) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}: expected some of {', '.join(PARTS)}")
    if given.check:
        return
    unmeasured = []
    run = record.conditions(load_average=os.getloadavg()[0])
    for part in PARTS:
        if not asked or part in asked:
            print(f"{part} …", flush=True)
            try:
                record.write(part, importlib.import_module(f"benchmarks.{part}").measure(), run)
            except CannotMeasureError as error:
                unmeasured.append(part)
                print(f"{part} keeps its old numbers: {error}", file=sys.stderr)
    print(f"written: {record.RESULTS.relative_to(record.HERE.parent)}")
    sys.exit(1 if unmeasured else 0)


if __name__ == "__main__":
    main()
