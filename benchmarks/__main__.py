"""Measure, and write the record: ``python -m benchmarks``, or only some parts: ``python -m benchmarks decode``."""

from __future__ import annotations

import argparse
import importlib
import os

from benchmarks import record

# Peaks of memory come first: on Linux that of a process counts that of the one it was started from.
PARTS = ("loading", "memory", "machine", "decode", "unpack", "widget", "build")


def main() -> None:
    """Run the parts in order; write after each, so that an interrupted run keeps what it has."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure, and write the record.")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all without one")
    asked = parser.parse_args().parts
    if unknown := set(asked) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}: expected some of {', '.join(PARTS)}")
    run = record.conditions(load_average=os.getloadavg()[0])
    for part in PARTS:
        if not asked or part in asked:
            print(f"{part} …", flush=True)
            record.write(part, importlib.import_module(f"benchmarks.{part}").measure(), run)
    print(f"written: {record.RESULTS.relative_to(record.HERE.parent)}")


if __name__ == "__main__":
    main()
