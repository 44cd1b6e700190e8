"""A million unlabeled rows of proteins, wherever they are: ``secstr.py --help``.

Every measurement runs in a process of its own. See docs/datasets.md for where the data come from.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import alone
import machine
from secstr_fits import BACKENDS, METHODS, N_ALL, fit_one

# Methods that take too long for more unlabeled rows than these: a minute or two for all of them.
LARGEST = {"TSVM": 100_000}
LIMIT = 120.0  # seconds for one measurement, with loading; what takes longer is ended


@dataclass(frozen=True)
class Plan:
    """What is fitted.

    Attributes
    ----------
    labeled, unlabeled : tuple of int
        Numbers of rows, for all methods in memory.
    backends : tuple of (int, int, tuple of str)
        Numbers of labeled and unlabeled rows, and methods, for rows wherever they are.
    """

    labeled: tuple[int, ...]
    unlabeled: tuple[int, ...]
    backends: tuple[tuple[int, int, tuple[str, ...]], ...]


EVERYWHERE = ("supervised", "projection", "ICLS")
# ICLS makes dozens of passes here: minutes for all rows from a Parquet file.
FULL = Plan(
    (100, 1_000, 10_000),
    (100, 1_000, 10_000, 100_000, N_ALL),
    ((1_000, 100_000, EVERYWHERE), (1_000, N_ALL, ("projection",))),
)
QUICK = Plan((100, 1_000), (1_000, 5_000), ((1_000, 5_000, EVERYWHERE),))


def main(argv=None):
    """Measure, and print tables in Markdown."""
    parser = argparse.ArgumentParser(description="SecStr: 1,189,472 unlabeled rows.")
    parser.add_argument("--quick", action="store_true", help="at most 5,000 unlabeled rows")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=[*TABLES])
    parser.add_argument("--alpha", type=float, default=0.0, help="penalty (default: 0)")
    parser.add_argument("--split", type=int, default=0, help="of the book's ten (default: 0)")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for one measurement")
    parser.add_argument("--folder", type=Path, help="for temporary files")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.one:
        print(json.dumps(fit_one(**json.loads(arguments.one))))
        return 0
    plan = QUICK if arguments.quick else FULL
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="neverworse-") as folder:
        common = {"alpha": arguments.alpha, "split": arguments.split, "folder": folder}
        start = time.perf_counter()
        parts = [TABLES[name](plan, common, arguments.limit) for name in arguments.tables]
        minutes = (time.perf_counter() - start) / 60
    where = f"Measured in {minutes:.1f} minutes on {machine.describe()}."
    print(*parts, _notes(plan, arguments), where, sep="\n\n")
    return 0


def _notes(plan, arguments):
    """Return what the numbers are, and what was left out for time."""
    fit = (
        f"One fit each, to split {arguments.split} of the book's ten, with a penalty of "
        f"{arguments.alpha:g} for least squares. Errors are those on the labeled rows that are not "
        "in the split. Passes are readings of all rows; methods that copy the labeled rows out and "
        "read only these make none."
    )
    limit = f"A fit that takes more than {arguments.limit:g} s, with loading, is ended."
    notes = [fit, limit]
    if "methods" in arguments.tables:
        notes += [
            f"Not run, for time: {method} with more than {most:,} unlabeled rows."
            for method, most in LARGEST.items()
            if most < max(plan.unlabeled)
        ]
    if "backends" in arguments.tables:
        in_memory = [method for method in METHODS if method not in EVERYWHERE]
        notes.append(f"Not run, because they need all rows in memory: {', '.join(in_memory)}.")
        for n_labeled, n_unlabeled, methods in plan.backends:
            left_out = ", ".join(method for method in EVERYWHERE if method not in methods)
            if left_out:
                notes.append(
                    f"Not run, for time: {left_out}, {n_labeled:,} + {n_unlabeled:,} rows."
                )
    return "\n".join(f"- {note}" for note in notes)


def _methods_table(plan, common, limit):
    """Return errors and seconds of all methods, on sparse rows in memory."""
    cell = "method: error, seconds, passes, peak of the fit (MB)"
    header = ["labeled", cell, *(f"{n:,} unlabeled" for n in plan.unlabeled)]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for n_labeled, method in product(plan.labeled, METHODS):
        cells = []
        for n_unlabeled in plan.unlabeled:
            if n_unlabeled > LARGEST.get(method, N_ALL):
                cells.append("not run")
                continue
            if cells and METHODS[method].ignores_unlabeled:
                cells.append("the same")
                continue
            found = _measured(method, "sparse", n_labeled, n_unlabeled, common, limit)
            cells.append(
                f"{found['error']:.4f}, {found['seconds']:.2f}, {found['passes']:.0f}, "
                f"{found['peak'] / 1e6:,.0f}"
                if found
                else f"> {limit:g} s"
            )
        lines.append(f"| {n_labeled:,} | {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _backends_table(plan, common, limit):
    """Return what a fit takes, for all places where the rows may be."""
    header = (
        "| rows | where | method | seconds | passes | other readings | data (MB) "
        "| peak of the fit (MB) | peak of a worker (MB) | error |"
    )
    lines = [header, "|---" * 10 + "|"]
    fits = [
        (n_labeled, n_unlabeled, backend, method)
        for n_labeled, n_unlabeled, methods in plan.backends
        for backend, method in product(BACKENDS, methods)
    ]
    for n_labeled, n_unlabeled, backend, method in fits:
        found = _measured(method, backend, n_labeled, n_unlabeled, common, limit)
        start = f"| {n_labeled:,} + {n_unlabeled:,} | {BACKENDS[backend].name} | {method} "
        if found is None:
            lines.append(f"{start}| > {limit:g} |" + " |" * 6)
            continue
        worker = f"{found['worker'] / 1e6:,.0f}" if found["worker"] else ""
        lines.append(
            f"{start}| {found['seconds']:.2f} | {found['passes']:.0f} | {found['others']:.1f} "
            f"| {found['data'] / 1e6:,.0f} | {found['peak'] / 1e6:,.0f} | {worker} "
            f"| {found['error']:.4f} |"
        )
    return "\n".join(lines)


TABLES = {"methods": _methods_table, "backends": _backends_table}


def _measured(method, backend, n_labeled, n_unlabeled, common, limit):
    """Return what one fit took, or None if it took too long."""
    settings = {
        **common,
        "method": method,
        "backend": backend,
        "n_labeled": n_labeled,
        "n_unlabeled": n_unlabeled,
    }
    return _once(json.dumps(settings), limit)


@cache  # both tables have some fits
def _once(settings, limit):
    settings = json.loads(settings)
    rows = f"{settings['n_labeled']:,} labeled, {settings['n_unlabeled']:,} unlabeled rows"
    alone.say(f"{settings['method']}, {settings['backend']}, {rows}")
    try:
        return alone.run(__file__, settings, limit)
    except alone.TookTooLongError:
        return None


if __name__ == "__main__":
    sys.exit(main())
