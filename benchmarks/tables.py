"""Measurements as tables in Markdown."""

from __future__ import annotations

from methods import REFERENCE


def of_results(results):
    """Return a line for every measured ratio and its limit."""
    lines = ["| case | what | measured | must reach | ok |", "|---|---|---|---|---|"]
    for r in results:
        limit = "" if r.limit is None else f"≤ {r.limit:g}"
        lines.append(f"| {r.case} | {r.what} | {r.measured:.2f} | {limit} | {r.ok} |")
    return "\n".join(lines)


def of_solvers(rows):
    """Return a line for every solver, with a column for every size."""
    sizes = list(dict.fromkeys(row.size for row in rows))
    header = [f"d = {d}, n = {n:,}" for d, n in sizes]
    cells = {}
    for row in rows:
        cells.setdefault(row.solver, []).append(_solved(row))
    return _grid("solver: seconds (relative excess)", header, cells)


def of_methods(rows):
    """Return a line for every semi-supervised method, with a column for every size."""
    sizes = list(dict.fromkeys(row.size for row in rows))
    reference = {row.size: row.seconds for row in rows if row.method == REFERENCE}
    cells = {}
    for row in rows:
        cells.setdefault(row.method, []).append(_fitted(row, reference[row.size]))
    corner = "method: seconds (relative to self-training), error"
    return _grid(corner, [f"n_u = {size:,}" for size in sizes], cells)


def _grid(corner, header, cells):
    lines = [f"| {corner} | {' | '.join(header)} |", "|---" * (len(header) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(values)} |" for name, values in cells.items()]
    return "\n".join(lines)


def _solved(row):
    if row.seconds is None:
        return "skipped"
    return f"{row.seconds:.3g} ({max(row.excess, 0.0):.0e})"


def _fitted(row, reference):
    if row.seconds is None:
        return "not run: n by n matrix"
    return f"{row.seconds:.3g} ({row.seconds / reference:.2g}), {row.error:.3f}"
