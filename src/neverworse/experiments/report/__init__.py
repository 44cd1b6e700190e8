"""``report.html``, Table 1 and all other files: what came out, beside what was published."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy
import sklearn

import neverworse
from neverworse._files import write_whole
from neverworse._words import MINUS, count
from neverworse.experiments import _findings as findings
from neverworse.experiments._analysis import (
    BETTER,
    ROUNDING,
    WORSE,
    count_marks,
    n_tests,
    published,
)
from neverworse.experiments._experiments import EXPERIMENTS
from neverworse.experiments._findings import MEASURES, as_text, totals
from neverworse.experiments._methods import PROTOCOLS
from neverworse.experiments.report import figures
from neverworse.experiments.report.figures import CURVE_METHODS, ROBUSTNESS_METHODS, TIMING_METHODS
from neverworse.pages import Markup, picture, render

if TYPE_CHECKING:
    from neverworse.experiments._reproduction import Reproduction

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
    packages = {"NumPy": np, "SciPy": scipy, "scikit-learn": sklearn, "pandas": pd}
    others = (f", {name} {package.__version__}" for name, package in packages.items())
    start = f"neverworse {neverworse.__version__}, Python {platform.python_version()}"
    return start + "".join(others)


@dataclass(frozen=True)
class Circumstances:
    """When, where and how results were made: what was typed and how long it took, if known."""

    command: str | None = None
    took: str | None = None
    date: str = field(default_factory=_today)
    machine: str = field(default_factory=_machine)
    versions: str = field(default_factory=_versions)


def save(
    results: Reproduction, out: str | Path, *, command: str | None = None, took: str | None = None
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


def _contents(results: Reproduction, circumstances: Circumstances) -> Iterator[tuple[str, bytes]]:
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
        made = {
            "command": circumstances.command and f"`{circumstances.command}`",
            "seed": str(results.plan.seed),
            "versions": circumstances.versions,
            "date": circumstances.date,
            "took": circumstances.took and f"{circumstances.took}, without repeats stored before",
        }
        found = results.measurements["evidence"], results.summaries["evidence"]
        yield "evidence.md", findings.evidence_page(*found, made).encode()
    yield REPORT, write_report(results, drawings, circumstances).encode()


def write_report(
    results: Reproduction, drawings: dict[str, figures.Drawing], circumstances: Circumstances
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
        tables=sys.modules[__name__],
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


def _headline(results: Reproduction) -> Iterator[tuple[str, list[str], str | None]]:
    """Yield what matters most, each with a mood: the guarantee, Table 1, and the curves."""
    moods = {True: "good", False: "bad", None: None}
    holds = findings.guarantee_holds(results.guarantees)
    if holds is not None:
        title = "The guarantee holds." if holds else "The guarantee is violated."
        yield title, findings.guarantee_sentences(results.guarantees), moods[holds]
    cells = results.summaries.get("table")
    if cells is not None:
        yield "Table 1", [findings.agreement_sentence(cells)], moods[_all_agree(cells)]
        found = totals(cells)
        counts = ", ".join(
            f"{total.method} {as_text(total.ours)} (published: {as_text(total.published)})".replace(
                " ", "\N{NO-BREAK SPACE}"
            )
            for total in found
        )
        few = findings.too_few_repeats(cells)
        same = not few and not any(total.differences for total in found)
        yield TOTALS, [f"{counts}.", *([few] if few else [])], "good" if same else None
    if "curves" in results.measurements:
        yield "Learning curves", [findings.claims_sentence(results.measurements["curves"])], None
    if "evidence" in results.measurements:
        pair = results.measurements["evidence"], results.summaries["evidence"]
        yield "Evidence", [findings.evidence_sentence(*pair)], None
    if list(results.measurements) == ["timing"]:
        yield "A part of the paper", ["This run has training times only."], None


def _all_agree(cells: pd.DataFrame) -> bool | None:
    """Return whether all cells agree; None if only those do not of which that is known."""
    compared = findings.comparable(cells)
    far = compared[~compared["agrees"].astype(bool)]
    if compared.empty or (len(far) and findings.is_known_exception(far).all()):
        return None
    return far.empty


def _run(results: Reproduction) -> Iterator[tuple[str, str]]:
    for name, measured in results.measurements.items():
        repeats, as_published = measured["repeat"].nunique(), EXPERIMENTS[name].repeats
        is_same = repeats == as_published or not EXPERIMENTS[name].published
        of = "" if is_same else f" (published: {as_published})"
        datasets = ", ".join(measured["dataset"].unique())
        yield EXPERIMENTS[name].title, f"{count(repeats, 'repeat')}{of} on {datasets}"


# How to write what is significantly better or worse.
MARKDOWN = {"": "{}", BETTER: "**{}**", WORSE: "<u>{}</u>"}
LATEX = {"": "{}", BETTER: r"\textbf{{{}}}", WORSE: r"\underline{{{}}}"}
HTML = {"": Markup("{}"), BETTER: Markup("<b>{}</b>"), WORSE: Markup("<u>{}</u>")}
Marks = Mapping[str, str]

COLUMNS = ("Supervised", "Self-Learning", "ICLS", "Projection", "SVM", "TSVM")
COMPARED = ("Dataset", "Method", "Ours", "Published", "Difference", "z", "Within 3")
WINS = ("Method", "Ours", "Published", "Data sets that differ")
TOTALS = "Win / draw / loss"
CAPTION = (
    "Error in ten-fold cross-validation, mean and standard deviation over {repeats}. {bold} and "
    "{underlined}: significantly better or worse than the supervised counterpart (one-sided "
    "Wilcoxon signed-rank tests, family-wise error rate 0.05, {correction}, for the {tests} tests "
    "of the paper)."
)
SAID = (
    "z is the difference in standard errors of both means, with the rounding of the published "
    "one. Published: {source}"
)


def to_markdown(cells: pd.DataFrame, correction: str) -> str:
    """Return Table 1, and then each cell beside the published one."""
    head, *rows = table_one(cells, MARKDOWN)
    parts = [
        "# Table 1",
        _caption(cells, correction, MARKDOWN),
        findings.markdown_table(head, rows),
        "## Beside the published table",
        SAID.format(source=published()["source"]),
        findings.markdown_table(COMPARED, list(comparison(cells, MARKDOWN)), numbers_from=2),
        f"## {TOTALS}",
        findings.markdown_table(WINS, list(wins(cells))),
    ]
    return "\n\n".join(parts) + "\n"


def to_latex(cells: pd.DataFrame, correction: str) -> str:
    """Return Table 1 as a LaTeX table that needs no packages."""
    head, *rows = (" & ".join(row) + r" \\" for row in table_one(cells, LATEX, r"$\pm$"))
    names = _columns(cells)
    n_squares = sum(name not in ("SVM", "TSVM") for name in names)
    lines = [
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{_caption(cells, correction, LATEX)}}}",
        rf"\begin{{tabular}}{{|l|{'l' * n_squares}|{'l' * (len(names) - n_squares)}|}}",
        r"\hline",
        head,
        r"\hline",
        *rows[:-1],
        r"\hline",
        rows[-1],
        r"\hline",
        r"\end{tabular}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def table_one(cells: pd.DataFrame, marks: Marks, plus_minus: str = "±") -> Iterator[list[str]]:
    """Yield the titles of Table 1, a row for each data set, and the totals."""
    names = _columns(cells)
    yield ["Dataset", *names]
    for dataset, found in cells.groupby("dataset", sort=False):
        of_method = found.set_index("method").to_dict(orient="index")
        row = [of_method[name] for name in names]
        written = (
            marks[c["mark"]].format(mean_and_sd(c["mean"], c["sd"], plus_minus)) for c in row
        )
        yield [dataset, *written]
    counts = count_marks(cells)
    yield [TOTALS, *(as_text(counts[name]) if name in counts else "" for name in names)]


def comparison(cells: pd.DataFrame, marks: Marks) -> Iterator[list[str]]:
    """Yield for each cell what `COMPARED` says."""
    for cell in cells.to_dict(orient="records"):
        ours = mean_and_sd(cell["mean"], cell["sd"], "±", 3)
        theirs = mean_and_sd(cell["published"], cell["published_sd"], "±")
        yield [
            cell["dataset"],
            cell["method"],
            marks[cell["mark"]].format(ours),
            marks[cell["published_mark"]].format(theirs),
            signed(cell["difference"], 3),
            signed(cell["z"], 1),
            "" if np.isnan(cell["z"]) else "yes" if cell["agrees"] else "no",
        ]


def wins(cells: pd.DataFrame) -> Iterator[list[str]]:
    """Yield for each method what `WINS` says."""
    for total in totals(cells):
        named = ", ".join(total.differences) or "none"
        yield [total.method, as_text(total.ours), as_text(total.published), named]


def higher_losses(summary: pd.DataFrame) -> Iterator[list[str]]:
    """Yield in how many repeats each method has a higher loss, for each data set and for all."""
    for dataset, found in summary.groupby("dataset", sort=False):
        yield [dataset, *_higher(found)]
    yield [HTML[BETTER].format("All"), *map(HTML[BETTER].format, _higher(summary))]


def _higher(summary: pd.DataFrame) -> Iterator[str]:
    sums = summary.groupby("method").agg({"higher": "sum", "repeats": "sum", "worst": "max"})
    for higher, repeats, worst in sums.loc[list(ROBUSTNESS_METHODS)].itertuples(index=False):
        yield f"{higher} of {repeats}; {_ratio(worst)}"


def _ratio(value: float) -> str:
    """Write a ratio so that what is below 1 never looks like 1, nor the reverse."""
    if value == 1.0 or abs(value - 1.0) >= 5e-4:
        return f"{value:.3f}" if value < 100 else f"{value:.3g}"
    return f"1 {'+' if value > 1.0 else MINUS} {abs(value - 1.0):.0e}"


def ends_of_curves(summary: pd.DataFrame) -> Iterator[list[str]]:
    """Yield error and loss of all methods at the largest number of unlabeled rows."""
    for dataset, found in summary.groupby("dataset", sort=False):
        largest = found["n_unlabeled"].max()
        last = found[found["n_unlabeled"] == largest]
        for measure, name in MEASURES.items():
            values = last[last["measure"] == measure].set_index("method")
            means = (values.loc[method] for method in CURVE_METHODS)
            cells = (mean_and_sd(v["mean"], v["standard_error"], "±", 4) for v in means)
            yield [f"{dataset}, {largest} rows", name, *cells]


def times(summary: pd.DataFrame) -> Iterator[list[str]]:
    """Yield relative times and seconds of both methods for each size, beside the published one."""
    paper = published()["timing"]
    for size, found in summary.groupby("n_unlabeled"):
        cells = [f"{size:,}"]
        of_method = found.set_index("method")
        for name in TIMING_METHODS:
            cell = of_method.loc[name]
            cells.append(mean_and_sd(cell["ratio"], cell["standard_error"], "±", 1))
            cells.append(f"{cell['seconds']:.3g}")
        cells.append(f"{found['repeats'].max():.0f}")
        cells.append(f"{paper['Projection']:g}" if size == paper["n_unlabeled"] else "")
        yield cells


def mean_and_sd(mean: float, sd: float, plus_minus: str, decimals: int = 2) -> str:
    """Write a mean with its standard deviation, which a single repeat does not have."""
    text = f"{mean:.{decimals}f}"
    return text if np.isnan(sd) else f"{text} {plus_minus} {sd:.{decimals}f}"


def signed(value: float, decimals: int) -> str:
    """Write a number with its sign, and with a proper minus; nothing for NaN."""
    if np.isnan(value):
        return ""
    text = f"{value:+.{decimals}f}"
    return text[1:] if float(text) == 0.0 else text.replace("-", MINUS)


def _columns(cells: pd.DataFrame) -> list[str]:
    return [name for name in COLUMNS if name in set(cells["method"])]


def _caption(cells: pd.DataFrame, correction: str, marks: Marks) -> str:
    n_repeats = int(cells["repeats"].max())
    return CAPTION.format(
        repeats="a single repeat" if n_repeats == 1 else f"{n_repeats} repeats",
        correction=correction.capitalize(),
        tests=n_tests(),
        bold=marks[BETTER].format("Bold"),
        underlined=marks[WORSE].format("underlined"),
    )
