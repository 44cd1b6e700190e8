"""Measure the speed of neverworse: ``python benchmarks/run.py --help``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import machine
import methods
import solvers
import tables
from cases import CASES
from files import files

ALL = {**CASES, "files": files}


def main(argv=None):
    """Run the benchmarks, print tables in Markdown, and return 1 if a limit was not kept."""
    parser = argparse.ArgumentParser(description="Speed of neverworse, as ratios in one run.")
    names = [*ALL, "methods", "solvers"]
    parser.add_argument("--cases", nargs="+", choices=names, default=names, metavar="CASE")
    parser.add_argument("--repeats", type=int, default=5, help="of everything (default: 5)")
    parser.add_argument("--quick", action="store_true", help="small sizes, where limits say little")
    parser.add_argument("--out", type=Path, help="save the tables in this file as well")
    arguments = parser.parse_args(argv)
    results = []
    for name in arguments.cases:
        if name in ALL:
            _say(name)
            found = ALL[name](arguments.quick, arguments.repeats)
            # The limits are about the full sizes.
            results += [replace(r, limit=None) for r in found] if arguments.quick else found
    parts = []
    if results:
        parts.append(tables.of_results(results))
    kept = all(result.ok != "NO" for result in results)
    if "methods" in arguments.cases:
        rows = methods.compare(methods.SIZES[: 1 if arguments.quick else None], _say)
        parts.append(tables.of_methods(rows))
    if "solvers" in arguments.cases:
        rows = solvers.compare(solvers.SIZES[: 1 if arguments.quick else None], _say)
        parts.append(tables.of_solvers(rows))
        kept = kept and all(row.ok for row in rows)
    parts.append(f"Measured on {machine.describe()}.")
    text = "\n\n".join(parts) + "\n"
    print(text, end="")
    if arguments.out:
        _write_whole(arguments.out, text)
    return 0 if kept or arguments.quick else 1


def _say(text):
    if sys.stderr.isatty():
        print(f"measuring {text} ...", file=sys.stderr)


def _write_whole(path, text):
    """Write under another name first, so that the file is never half written."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.resolve().parent, delete=False
    ) as file:
        file.write(text)
    Path(file.name).replace(path)


if __name__ == "__main__":
    sys.exit(main())
