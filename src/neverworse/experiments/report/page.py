"""``report.html`` and the files beside it: everything that came out, and what was published."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy
import sklearn

import neverworse
from neverworse._files import write_whole
from neverworse._words import count
from neverworse.experiments import _findings as findings
from neverworse.experiments._analysis import ROUNDING, Results, n_tests, published
from neverworse.experiments._experiments import EXPERIMENTS
from neverworse.experiments._methods import PROTOCOLS
from neverworse.experiments.report import figures, tables
from neverworse.pages import Markup, picture, render

REPORT = "report.html"
# Bytes of a figure as vectors; drawing more points than fit takes a browser longer than pixels.
LARGEST_SVG = 500_000
CODE = Markup("<code>{}</code>")


def _today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _machine() -> str:
    """Return the processor, of which Python knows no name on Linux, and the operating system."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = (names[0] if names else platform.processor()) or "unknown processor"
    cores = count(os.cpu_count() or 1, "core")
    return f"{processor}, {cores}, {platform.system()} {platform.machine()}"


def _versions() -> str:
    """Return the versions of what results depend on."""
    packages = {"NumPy": np, "SciPy": scipy, "scikit-learn": sklearn, "pandas": pd}
    found = {"neverworse": neverworse.__version__, "Python": platform.python_version()}
    found |= {name: package.__version__ for name, package in packages.items()}
    return ", ".join(f"{name} {version}" for name, version in found.items())


@dataclass(frozen=True)
class Circumstances:
    """When, where and how results were made: what was typed and how long it took, if known."""

    command: str | None = None
    took: str | None = None
    date: str = field(default_factory=_today)
    machine: str = field(default_factory=_machine)
    versions: str = field(default_factory=_versions)


def save(
    results: Results, out: str | Path, *, command: str | None = None, took: str | None = None
) -> list[Path]:
    """Write measurements, summaries, figures, tables and the report; return their paths.

    Every file is complete at any time: one that is there already is replaced at once.
    """
    paths = []
    for name, content in _contents(results, Circumstances(command, took)):
        path = Path(out) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, lambda file, content=content: file.write(content))  # type: ignore[misc]
        paths.append(path)
    return paths


def _contents(results: Results, circumstances: Circumstances) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of files."""
    for folder in ("measurements", "summaries"):
        for name, frame in getattr(results, folder).items():
            # With every digit, so that reading it gives the same numbers.
            yield f"{folder}/{name}.csv", frame.to_csv(index=False, lineterminator="\n").encode()
    drawings = figures.draw(results)
    for name, drawing in drawings.items():
        for kind in figures.FORMATS:
            yield f"figures/{name}.{kind}", figures.render(drawing.figure, kind)
    if "table" in results.summaries:
        cells, correction = results.summaries["table"], results.correction
        yield "table1.md", tables.to_markdown(cells, correction).encode()
        yield "table1.tex", tables.to_latex(cells, correction).encode()
    yield REPORT, write_report(results, drawings, circumstances).encode()


def write_report(
    results: Results, drawings: dict[str, figures.Drawing], circumstances: Circumstances
) -> str:
    """Return the report as one HTML page that needs nothing else."""
    return render(
        "neverworse.experiments.report",
        "report.html",
        results=results,
        circumstances=circumstances,
        cutoff=PROTOCOLS["code"].cutoff,
        published=published(),
        headline=list(_headline(results)),
        run=list(_run(results)),
        pictures={name: _picture(drawing) for name, drawing in drawings.items()},
        code=CODE.format,
        figures=figures,
        findings=findings,
        tables=tables,
        n_tests=n_tests(),
        rounding=ROUNDING,
    )


def _picture(drawing: figures.Drawing) -> dict[str, Any]:
    """Return a figure that is part of the page itself: vectors, or pixels if these are many."""
    content, kind = figures.render(drawing.figure, "svg"), "svg+xml"
    if len(content) > LARGEST_SVG:
        content, kind = figures.render(drawing.figure, "png"), "png"
    width, height = (round(96 * inches) for inches in drawing.figure.get_size_inches())
    return {
        "source": picture(content, kind),
        "description": drawing.description,
        "caption": drawing.title,
        "width": width,
        "height": height,
    }


def _headline(results: Results) -> Iterator[tuple[str, list[str], str | None]]:
    """Yield what matters most, each with a mood: the guarantee, Table 1, and the curves."""
    moods = {True: "good", False: "bad", None: None}
    holds = findings.guarantee_holds(results.guarantees)
    if holds is not None:
        title = "The guarantee holds." if holds else "The guarantee is violated."
        yield title, findings.guarantee_sentences(results.guarantees), moods[holds]
    cells = results.summaries.get("table")
    if cells is not None:
        yield "Table 1", [findings.agreement_sentence(cells)], moods[_all_agree(cells)]
        totals = findings.totals(cells)
        counts = ", ".join(
            f"{total.method} {findings.as_text(total.ours)} "
            f"(published: {findings.as_text(total.published)})".replace(" ", "\N{NO-BREAK SPACE}")
            for total in totals
        )
        few = findings.too_few_repeats(cells)
        same = not few and not any(total.differences for total in totals)
        yield tables.TOTALS, [f"{counts}.", *([few] if few else [])], "good" if same else None
    if "curves" in results.measurements:
        yield "Learning curves", [findings.claims_sentence(results.measurements["curves"])], None
    if list(results.measurements) == ["timing"]:
        yield "A part of the paper", ["This run has training times only."], None


def _all_agree(cells: pd.DataFrame) -> bool | None:
    """Return whether all cells agree; None if only those do not of which that is known."""
    compared = findings.comparable(cells)
    far = compared[~compared["agrees"].astype(bool)]
    if compared.empty or (len(far) and findings.is_known_exception(far).all()):
        return None
    return far.empty


def _run(results: Results) -> Iterator[tuple[str, str]]:
    """Yield for each experiment how often it was repeated, and on what."""
    for name, measured in results.measurements.items():
        repeats, as_published = measured["repeat"].nunique(), EXPERIMENTS[name].repeats
        of = "" if repeats == as_published else f" (published: {as_published})"
        datasets = ", ".join(measured["dataset"].unique())
        yield EXPERIMENTS[name].title, f"{count(repeats, 'repeat')}{of} on {datasets}"
