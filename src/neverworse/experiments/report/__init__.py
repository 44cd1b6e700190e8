"""The files of a reproduction: ``report.html``, Table 1, figures and numbers."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

from neverworse._words import count, number
from neverworse.experiments import _analysis as analysis
from neverworse.experiments import _findings as findings
from neverworse.experiments._analysis import BETTER, WORSE, count_marks, n_tests
from neverworse.experiments._experiments import EXPERIMENTS
from neverworse.experiments._findings import TOTALS, as_text, markdown_table
from neverworse.experiments._methods import PROTOCOLS
from neverworse.experiments._reproduction import Reproduction
from neverworse.experiments.report import figures
from neverworse.experiments.report.figures import ROBUSTNESS_METHODS
from neverworse.pages import Markup, picture, render


def circumstances(
    results: Reproduction, command: str | None = None, took: str | None = None
) -> dict[str, str]:
    """Return how, when and where the results were computed."""
    packages = ("neverworse", "numpy", "scipy", "scikit-learn", "pandas")
    versions = [f"Python {platform.python_version()}"]
    versions += [f"{name} {version(name)}" for name in packages]
    known = {
        "Last command": command,
        "Seed": str(results.plan.seed),
        "Versions": ", ".join(versions),
        "Machine": f"{platform.platform()}, {count(os.cpu_count() or 1, 'core')}",
        "Date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "Took": took and f"{took}, not counting repeats that were stored before",
    }
    return {title: text for title, text in known.items() if text}


def contents(results: Reproduction, made: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of all files: numbers, figures, tables, and the report."""
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
        yield "table1.md", to_markdown(cells, correction).encode()
        yield "table1.tex", to_latex(cells, correction).encode()
    if "evidence" in results.summaries:
        found = results.measurements["evidence"], results.summaries["evidence"]
        yield "evidence.md", findings.evidence_page(*found, made).encode()
    yield "report.html", write_report(results, drawings, made).encode()


def write_report(
    results: Reproduction, drawings: dict[str, figures.Drawing], made: dict[str, str]
) -> str:
    """Return the report as one HTML page that needs nothing else."""
    return render(
        "neverworse.experiments.report",
        "report.html",
        results=results,
        made=made,
        cutoff=PROTOCOLS["code"].cutoff,
        published=analysis.published(),
        run=list(_run(results)),
        pictures={name: _picture(drawing) for name, drawing in drawings.items()},
        figures=figures,
        findings=findings,
        tables=sys.modules[__name__],
        analysis=analysis,
    )


def _picture(drawing: figures.Drawing) -> dict[str, Any]:
    """Return the arguments of the macro `picture`, with the image embedded."""
    width, height = (round(96 * inches) for inches in drawing.figure.get_size_inches())
    source = picture(figures.render(drawing.figure, "png"))
    told = {"description": drawing.description, "caption": drawing.title}
    return {"source": source, "width": width, "height": height, **told}


def _run(results: Reproduction) -> Iterator[tuple[str, str]]:
    for name, measured in results.measurements.items():
        experiment, names = EXPERIMENTS[name], ", ".join(measured["dataset"].unique())
        of = f" (published: {experiment.repeats})" if experiment.published else ""
        yield experiment.title, f"{findings.n_repeats(measured)}{of} on {names}"


# Formats for numbers that are significantly better or worse.
MARKDOWN = {"": "{}", BETTER: "**{}**", WORSE: "<u>{}</u>"}
LATEX = {"": "{}", BETTER: r"\textbf{{{}}}", WORSE: r"\underline{{{}}}"}
HTML = {"": Markup("{}"), BETTER: Markup("<b>{}</b>"), WORSE: Markup("<u>{}</u>")}
Marks = Mapping[str, str]

COLUMNS = ("Supervised", "Self-Learning", "ICLS", "Projection", "SVM", "TSVM")
CAPTION = (
    "Error in ten-fold cross-validation, mean and standard deviation over {repeats}. {bold} and "
    "{underlined}: significantly better or worse than the supervised counterpart (one-sided "
    "Wilcoxon signed-rank tests, family-wise error rate 0.05, {correction}, for the {tests} tests "
    "of the paper)."
)


def to_markdown(cells: pd.DataFrame, correction: str) -> str:
    """Return Table 1 as in the paper."""
    head, *rows = table_one(cells, MARKDOWN)
    caption = _caption(cells, correction, MARKDOWN)
    return f"# Table 1\n\n{caption}\n\n{markdown_table(head, rows)}\n"


def to_latex(cells: pd.DataFrame, correction: str) -> str:
    """Return Table 1 as a LaTeX table, for documents that use the package booktabs."""
    head, *rows = table_one(cells, LATEX, r"$\pm$")
    return (
        pd.DataFrame(rows, columns=head)
        .style.hide(axis="index")
        .to_latex(
            column_format="l" * len(head),
            position_float="centering",
            hrules=True,
            caption=_caption(cells, correction, LATEX),
            environment="table*",
        )
    )


def table_one(cells: pd.DataFrame, marks: Marks, plus_minus: str = "±") -> Iterator[list[str]]:
    """Yield the titles of Table 1, a row for each data set, and the totals."""
    yield ["Dataset", *COLUMNS]
    texts = (mean_and_sd(mean, sd, plus_minus) for mean, sd in cells[["mean", "sd"]].to_numpy())
    marked = [marks[mark].format(text) for mark, text in zip(cells["mark"], texts, strict=True)]
    wide = cells.assign(text=marked).pivot(index="dataset", columns="method", values="text")
    for dataset in cells["dataset"].unique():
        yield [dataset, *wide.loc[dataset, list(COLUMNS)]]
    counts = count_marks(cells)
    yield [TOTALS, *(as_text(counts[name]) if name in counts else "" for name in COLUMNS)]


def numbers(summary: pd.DataFrame) -> Iterator[list[str]]:
    """Yield the rows of a summary as text."""
    for row in summary.itertuples(index=False):
        yield [number(each, 3) if isinstance(each, float) else str(each) for each in row]


def higher_losses(summary: pd.DataFrame) -> Iterator[list[str]]:
    """Yield in how many repeats each method has a higher loss, for each data set and for all."""
    together = pd.concat([summary, summary.assign(dataset="All")])
    for dataset, found in together.groupby("dataset", sort=False):
        sums = found.groupby("method").agg({"higher": "sum", "repeats": "sum", "worst": "max"})
        chosen = sums.loc[list(ROBUSTNESS_METHODS)].itertuples(index=False)
        yield [dataset, *(f"{higher} of {n}; {worst:.4g}" for higher, n, worst in chosen)]


def mean_and_sd(mean: float, sd: float, plus_minus: str = "±") -> str:
    """Format a mean with its standard deviation; a single repeat has none."""
    return f"{mean:.2f}" if np.isnan(sd) else f"{mean:.2f} {plus_minus} {sd:.2f}"


def _caption(cells: pd.DataFrame, correction: str, marks: Marks) -> str:
    return CAPTION.format(
        repeats=count(int(cells["repeats"].max()), "repeat"),
        correction=correction.capitalize(),
        tests=n_tests(),
        bold=marks[BETTER].format("Bold"),
        underlined=marks[WORSE].format("underlined"),
    )
