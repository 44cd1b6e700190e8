"""The rows of all tables: Table 1 as Markdown and LaTeX, and what the report has beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from neverworse._words import MINUS
from neverworse.experiments._analysis import BETTER, WORSE, count_marks, n_tests, published
from neverworse.experiments._findings import MEASURES, as_text, totals
from neverworse.experiments.report.figures import CURVE_METHODS, ROBUSTNESS_METHODS, TIMING_METHODS
from neverworse.pages import Markup

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
        _markdown_table(head, rows),
        "## Beside the published table",
        SAID.format(source=published()["source"]),
        _markdown_table(COMPARED, list(comparison(cells, MARKDOWN)), numbers_from=2),
        f"## {TOTALS}",
        _markdown_table(WINS, list(wins(cells))),
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


def _markdown_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], numbers_from: int | None = None
) -> str:
    """Return a table; columns from `numbers_from` on are aligned to the right."""
    n_left = len(head) if numbers_from is None else numbers_from
    rule = ["---"] * n_left + ["---:"] * (len(head) - n_left)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))
