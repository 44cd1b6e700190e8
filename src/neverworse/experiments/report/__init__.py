"""The files of a reproduction: ``report.html``, Table 1, figures and numbers."""

from __future__ import annotations

import io
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from neverworse import __version__
from neverworse._palette import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY
from neverworse._words import count
from neverworse.experiments import _analysis as analysis
from neverworse.experiments._analysis import BETTER, TOTALS, WORSE, as_text, count_marks, published
from neverworse.experiments._experiments import EXPERIMENTS
from neverworse.experiments._methods import PROTOCOLS, counterpart
from neverworse.pages import Markup, picture
from neverworse.pages import render as render_page

if TYPE_CHECKING:
    from neverworse.experiments._reproduction import Reproduction

ROBUSTNESS_METHODS = ("Self-Learning", "ICLS", "Projection", "TSVM")
CURVE_METHODS = ("Supervised", "Self-Learning", "ICLS", "Projection", "Oracle")
PLACES = {"training": "labeled and unlabeled rows", "test": "test rows"}
HIGHEST_RATIO = 5.0  # where the paper cuts its figure off
RIBBON = 2.0  # standard errors
SETTINGS = {
    "font.size": 8,
    "axes.titlesize": 9,
    "figure.labelsize": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.linewidth": 0.3,
    "grid.color": "#DDDDDD",
    "legend.frameon": False,
}

# Markers and line styles differ as well, for print without colour.
STYLES: dict[str, dict[str, Any]] = {
    "Supervised": {"color": ORANGE, "marker": "s", "linestyle": (0, (6, 2))},
    "Self-Learning": {"color": PURPLE, "marker": "v", "linestyle": (0, (3, 1.5))},
    "ICLS": {"color": SKY, "marker": "D", "linestyle": "solid"},
    "Projection": {"color": BLUE, "marker": "o", "linestyle": "solid"},
    "Oracle": {"color": GREEN, "marker": "^", "linestyle": (0, (6, 2, 1, 2))},
    "TSVM": {"color": GREY, "marker": "x", "linestyle": (0, (1, 1.2))},
}

# Formats for numbers that are significantly better or worse.
MARKDOWN = {"": "{}", BETTER: "**{}**", WORSE: "<u>{}</u>"}
LATEX = {"": "{}", BETTER: r"\textbf{{{}}}", WORSE: r"\underline{{{}}}"}
HTML = {"": Markup("{}"), BETTER: Markup("<b>{}</b>"), WORSE: Markup("<u>{}</u>")}
Marks = Mapping[str, str]

COLUMNS = ("Supervised", "Self-Learning", "ICLS", "Projection", "SVM", "TSVM")


def circumstances(
    results: Reproduction, command: str | None = None, took: str | None = None
) -> dict[str, str]:
    """Return how, when and where the results were computed."""
    packages = ("numpy", "scipy", "scikit-learn", "pandas")
    versions = [f"neverworse {__version__}", f"Python {platform.python_version()}"]
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
    drawings = draw(results)
    for name, drawing in drawings.items():
        yield f"figures/{name}.png", drawing.png
        for kind in ("svg", "pdf"):
            yield f"figures/{name}.{kind}", render(drawing.figure, kind)
    if "table" in results.summaries:
        for name, text in table_files(results.summaries["table"], results.correction).items():
            yield name, text.encode()
    if "evidence" in results.summaries:
        found = results.measurements["evidence"], results.summaries["evidence"]
        yield "evidence.md", analysis.evidence_page(*found, made).encode()
    yield "report.html", write_report(results, drawings, made).encode()


def write_report(results: Reproduction, drawings: dict[str, Drawing], made: dict[str, str]) -> str:
    """Return the report as one HTML page that needs nothing else."""
    run = []
    for name, measured in results.measurements.items():
        experiment, names = EXPERIMENTS[name], ", ".join(measured["dataset"].unique())
        of = f" (published: {experiment.repeats})" if experiment.published else ""
        run.append((experiment.title, f"{analysis.n_repeats(measured)}{of} on {names}"))
    return render_page(
        "neverworse.experiments.report",
        "report.html",
        results=results,
        made=made,
        cutoff=PROTOCOLS["code"].cutoff,
        published=published(),
        run=run,
        pictures={name: _picture(drawing) for name, drawing in drawings.items()},
        tables=sys.modules[__name__],
        analysis=analysis,
    )


def _picture(drawing: Drawing) -> dict[str, Any]:
    """Return the arguments of the macro `picture`, with the image embedded."""
    width, height = (round(96 * inches) for inches in drawing.figure.get_size_inches())
    told = {"description": drawing.description, "caption": drawing.title}
    return {"source": picture(drawing.png), "width": width, "height": height, **told}


def table_files(cells: pd.DataFrame, correction: str) -> dict[str, str]:
    """Return Table 1 as in the paper: in Markdown, and in LaTeX with the package booktabs."""
    caption = (
        "Error in ten-fold cross-validation, mean and standard deviation over "
        f"{analysis.n_repeats(cells)}. Bold and underlined: significantly better or worse than the "
        "supervised counterpart (one-sided Wilcoxon signed-rank tests, family-wise error rate "
        f"0.05, {correction.capitalize()}, for the {analysis.n_tests()} tests of the paper)."
    )
    head, *rows = table_one(cells, MARKDOWN)
    markdown = f"# Table 1\n\n{caption}\n\n{analysis.markdown_table(head, rows)}\n"
    _, *rows = table_one(cells, LATEX, r"$\pm$")
    styled = pd.DataFrame(rows, columns=head).style.hide(axis="index")
    placed = {"position_float": "centering", "environment": "table*", "hrules": True}
    latex = styled.to_latex(column_format="l" * len(head), caption=caption, **placed)
    return {"table1.md": markdown, "table1.tex": latex}


def table_one(cells: pd.DataFrame, marks: Marks, plus_minus: str = "±") -> Iterator[list[str]]:
    """Yield the titles of Table 1, a row for each data set, and the totals."""
    yield ["Dataset", *COLUMNS]
    for dataset, row in cells.set_index("method").groupby("dataset", sort=False):
        texts = []
        for cell in row.loc[list(COLUMNS)].itertuples():
            # A single repeat has no standard deviation.
            spread = "" if np.isnan(cell.sd) else f" {plus_minus} {cell.sd:.2f}"
            texts.append(marks[cell.mark].format(f"{cell.mean:.2f}{spread}"))
        yield [dataset, *texts]
    counts = count_marks(cells)
    yield [TOTALS, *(as_text(counts[name]) if name in counts else "" for name in COLUMNS)]


def higher_losses(summary: pd.DataFrame) -> Iterator[list[str]]:
    """Yield in how many repeats each method has a higher loss, for each data set and for all."""
    together = pd.concat([summary, summary.assign(dataset="All")])
    for dataset, found in together.groupby("dataset", sort=False):
        sums = found.groupby("method").agg({"higher": "sum", "repeats": "sum", "worst": "max"})
        chosen = sums.loc[list(ROBUSTNESS_METHODS)].itertuples(index=False)
        yield [dataset, *(f"{higher} of {n}; {worst:.4g}" for higher, n, worst in chosen)]


@dataclass(frozen=True)
class Drawing:
    """A figure, its title, and a description for readers who cannot see it."""

    figure: Figure
    title: str
    description: str

    @cached_property
    def png(self) -> bytes:
        return render(self.figure, "png")


def draw(results: Reproduction) -> dict[str, Drawing]:
    """Draw all figures of the experiments that were run, by the names of their files."""
    measured, summaries, drawings = results.measurements, results.summaries, {}
    with mpl.rc_context(SETTINGS):
        if "robustness" in measured:
            for name, title, rows in (
                ("figure1", "Figure 1: robustness, with ICLS", "training"),
                ("robustness-test", "Robustness on test rows", "test"),
            ):
                drawings[name] = draw_robustness(measured["robustness"], title, rows)
        for name, make in (("curves", draw_curves), ("timing", draw_timing)):
            if name in summaries:
                drawings[name] = make(summaries[name])
    return drawings


def draw_robustness(measurements: pd.DataFrame, title: str, rows: str) -> Drawing:
    """Draw the losses on training or test rows: a panel for each method, over all data sets."""
    methods = ROBUSTNESS_METHODS
    found = analysis.ratios(measurements, f"{rows}_loss", ["dataset", "repeat"])
    found = found[found["method"].isin(methods)]
    names = list(found["dataset"].unique())
    size = max(6.0, 2.0 + 0.42 * len(names)), 0.8 + 2.0 * len(methods)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(methods), 1, sharex=True, sharey=True)
    for ax, method in zip(axes, methods, strict=True):
        ax.set_title(method)
        of_method = found[found["method"] == method].groupby("dataset")["ratio"]
        for x, name in enumerate(names):
            ratio = of_method.get_group(name)
            jitter = np.random.default_rng(x).uniform(-0.3, 0.3, len(ratio))
            look = STYLES[method] | {"linestyle": "none", "markersize": 3.0, "alpha": 0.7}
            ax.plot(x + jitter, ratio, **look, markeredgewidth=0.7 * (look["marker"] == "x"))
        ax.axhline(1.0, color="black", linewidth=0.8, zorder=3)
        ax.set_ylim(0.0, HIGHEST_RATIO)
    axes[-1].set_xlim(-0.6, len(names) - 0.4)
    axes[-1].set_xticks(range(len(names)), names, rotation=45, ha="right")
    figure.supylabel(f"loss on {PLACES[rows]}, semi-supervised / supervised")
    n_cut = int((found["ratio"] > HIGHEST_RATIO).sum())
    cut = f"Above {HIGHEST_RATIO:g} and cut off: {n_cut} of {len(found)} points."
    figure.supxlabel(cut, size="medium", color=GREY)
    highest = found.loc[found["method"] == "Projection", "ratio"].max()
    return Drawing(
        figure,
        title,
        f"A panel for each of {', '.join(methods)}, with a point for every repeat on each of "
        f"{count(len(names), 'data set')}: the loss on {PLACES[rows]} relative to the supervised "
        f"counterpart's, with a line at 1. The highest ratio of Projection is {highest:.4g}. {cut}",
    )


def draw_curves(summary: pd.DataFrame) -> Drawing:
    """Draw Figure 2: error and loss for growing numbers of unlabeled rows."""
    names = list(summary["dataset"].unique())
    measures = {"error": "classification error", "test_loss": "quadratic loss"}
    figure = Figure(figsize=(max(4.8, 3.2 * len(names)), 5.6), layout="constrained")
    axes = figure.subplots(2, len(names), squeeze=False, sharex="col")
    for column, name in enumerate(names):
        for ax, measure in zip(axes[:, column], measures, strict=True):
            chosen = summary[(summary["dataset"] == name) & (summary["measure"] == measure)]
            for method in CURVE_METHODS:
                found = chosen[chosen["method"] == method].set_index("n_unlabeled")
                mean, margin = found["mean"], RIBBON * found["standard_error"]
                style = STYLES[method]
                ax.plot(mean, **style, linewidth=1.5, markersize=3.5, label=method)
                ribbon = {"color": style["color"], "alpha": 0.2, "linewidth": 0}
                ax.fill_between(mean.index, mean - margin, mean + margin, **ribbon)
            sizes = sorted(chosen["n_unlabeled"].unique())
            ax.set_xscale("log", base=2)
            ax.set_xticks(sizes, [str(size) for size in sizes])
            ax.set_xticks([], minor=True)
            ax.yaxis.set_major_locator(MaxNLocator(6))
        axes[0, column].set_title(name)
        axes[1, column].set_xlabel("unlabeled rows")
    for ax, label in zip(axes[:, 0], measures.values(), strict=True):
        ax.set_ylabel(f"{label} on test rows")
    handles, labels = axes[0, 0].get_legend_handles_labels()  # those of all panels
    figure.legend(handles, labels, ncols=3, loc="outside lower center", handlelength=3.2)
    return Drawing(
        figure,
        "Figure 2: learning curves",
        f"Curves of {', '.join(CURVE_METHODS)} on {', '.join(names)}: classification error "
        "(top) and quadratic loss (bottom) on test rows, for growing numbers of unlabeled rows. "
        "Their ends are in the table below.",
    )


def draw_timing(summary: pd.DataFrame) -> Drawing:
    """Draw the training time, relative to that of the supervised counterpart."""
    paper = published()["timing"]
    stopped, slower = paper["n_unlabeled"], paper["Projection"]
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    ax = figure.add_subplot()
    for name, found in summary.groupby("method", sort=False):
        ratio = found["ratio"]
        # Down to a tenth, should noise be larger than the ratio: the axis has no zero.
        margin = np.minimum(RIBBON * found["standard_error"].fillna(0.0), 0.9 * ratio)
        look = STYLES[name] | {"markersize": 5, "linewidth": 1.5, "capsize": 2}
        label = f"{name} / {counterpart(name)}"
        ax.errorbar(found["n_unlabeled"], ratio, yerr=margin, **look, label=label)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.axvline(stopped, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
    label = f"Projection / Supervised, published: {slower:g} at {stopped}"
    ax.scatter(stopped, slower, marker="*", s=140, color=BLUE, edgecolor="black", label=label)
    ax.yaxis.set_major_formatter("{x:g}\N{MULTIPLICATION SIGN}")
    ax.set_xlabel("unlabeled rows")
    ax.set_ylabel("training time, relative to supervised counterpart")
    ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    last = summary[summary["method"] == "Projection"].iloc[-1]
    return Drawing(
        figure,
        "Training time",
        "Training time relative to the supervised counterpart, on logarithmic axes. At "
        f"{last['n_unlabeled']:,} unlabeled rows Projection takes {last['ratio']:.3g} times as "
        f"long; published were {slower:g} times at {stopped}. All numbers are in the table below.",
    )


def render(figure: Figure, kind: str) -> bytes:
    """Return a figure as the content of a file."""
    file = io.BytesIO()
    with mpl.rc_context(SETTINGS):
        figure.savefig(file, format=kind, dpi=200)
    return file.getvalue()
