"""Table 1 in the paper's form, and beside the published one, as Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from neverworse.experiments import _analysis
from neverworse.experiments._findings import as_text, totals
from neverworse.experiments._published import published

Write = Callable[[str], str]
Row = Sequence[str]

COLUMNS = ("Supervised", "Self-Learning", "ICLS", "Projection", "SVM", "TSVM")
MARKDOWN_MARKS: dict[str, Write] = {
    _analysis.BETTER: lambda text: f"**{text}**",
    _analysis.WORSE: lambda text: f"<u>{text}</u>",
    "": lambda text: text,
}
LATEX_MARKS: dict[str, Write] = {
    _analysis.BETTER: lambda text: rf"\textbf{{{text}}}",
    _analysis.WORSE: lambda text: rf"\underline{{{text}}}",
    "": lambda text: text,
}
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
    """Return Table 1, and then each cell beside the published one.

    Parameters
    ----------
    cells : DataFrame
        As `neverworse.experiments._published.compare_table` returns it.
    correction : {"bonferroni", "holm"}
    """
    names = _columns(cells)
    caption = _caption(cells, correction, "**Bold**", "<u>underlined</u>")
    rows = [[name, *_row(cells, name, names, MARKDOWN_MARKS, "±")] for name in _datasets(cells)]
    rows.append(["Win / draw / loss", *_totals_row(cells, names)])
    parts = [
        "# Table 1",
        caption,
        _markdown_table(["Dataset", *names], rows),
        "## Beside the published table",
        SAID.format(source=published()["source"]),
        _markdown_table(
            ["Dataset", "Method", "Ours", "Published", "Difference", "z", "Within 3"],
            comparison(cells, MARKDOWN_MARKS),
            numbers_from=2,
        ),
        "## Win / draw / loss",
        _markdown_table(["Method", "Ours", "Published", "Data sets that differ"], _wins(cells)),
    ]
    return "\n\n".join(parts) + "\n"


def to_latex(cells: pd.DataFrame, correction: str) -> str:
    """Return Table 1 as a LaTeX table that needs no packages."""
    names = _columns(cells)
    n_squares = sum(name not in ("SVM", "TSVM") for name in names)
    caption = _caption(cells, correction, r"\textbf{Bold}", r"\underline{underlined}")
    rows = [
        [_escape(name), *_row(cells, name, names, LATEX_MARKS, r"$\pm$")]
        for name in _datasets(cells)
    ]
    lines = [
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{caption}}}",
        rf"\begin{{tabular}}{{|l|{'l' * n_squares}|{'l' * (len(names) - n_squares)}|}}",
        r"\hline",
        _latex_row(["Dataset", *names]),
        r"\hline",
        *map(_latex_row, rows),
        r"\hline",
        _latex_row(["Win / draw / loss", *_totals_row(cells, names)]),
        r"\hline",
        r"\end{tabular}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def comparison(cells: pd.DataFrame, marks: Mapping[str, Write]) -> list[Row]:
    """Return for each cell: data set, method, ours, published, difference, z and whether within 3.

    Parameters
    ----------
    cells : DataFrame
    marks : mapping
        How to write what is better or worse.
    """
    rows: list[Row] = []
    for cell in cells.to_dict(orient="records"):
        within = "" if np.isnan(cell["z"]) else "yes" if cell["agrees"] else "no"
        rows.append(
            [
                cell["dataset"],
                cell["method"],
                marks[cell["mark"]](mean_and_sd(cell["mean"], cell["sd"], "±", 3)),
                marks[cell["published_mark"]](
                    mean_and_sd(cell["published"], cell["published_sd"], "±")
                ),
                signed(cell["difference"], 3),
                signed(cell["z"], 1),
                within,
            ]
        )
    return rows


def mean_and_sd(mean: float, sd: float, plus_minus: str, decimals: int = 2) -> str:
    """Write a mean with its standard deviation, which a single repeat does not have."""
    text = f"{mean:.{decimals}f}"
    return text if np.isnan(sd) else f"{text} {plus_minus} {sd:.{decimals}f}"


def signed(value: float, decimals: int) -> str:
    """Write a number with its sign, and with a proper minus; nothing for NaN."""
    if np.isnan(value):
        return ""
    text = f"{value:+.{decimals}f}"
    return text[1:] if float(text) == 0.0 else text.replace("-", "\N{MINUS SIGN}")


def _row(
    cells: pd.DataFrame, dataset: str, names: Sequence[str], marks: Mapping[str, Write], pm: str
) -> list[str]:
    """Return the cells of a data set as text."""
    of_method = cells[cells["dataset"] == dataset].set_index("method").to_dict(orient="index")
    return [
        marks[cell["mark"]](mean_and_sd(cell["mean"], cell["sd"], pm))
        for cell in (of_method[name] for name in names)
    ]


def _totals_row(cells: pd.DataFrame, names: Sequence[str]) -> list[str]:
    counts = _analysis.totals(cells)
    return [as_text(counts[name]) if name in counts else "" for name in names]


def _wins(cells: pd.DataFrame) -> list[Row]:
    return [
        [
            total.method,
            as_text(total.ours),
            as_text(total.published),
            ", ".join(map(str, total.differences)) or "none",
        ]
        for total in totals(cells)
    ]


def _columns(cells: pd.DataFrame) -> list[str]:
    return [name for name in COLUMNS if name in set(cells["method"])]


def _datasets(cells: pd.DataFrame) -> list[str]:
    return list(cells["dataset"].unique())


def _caption(cells: pd.DataFrame, correction: str, bold: str, underlined: str) -> str:
    n_repeats = int(cells["repeats"].max())
    return CAPTION.format(
        repeats="a single repeat" if n_repeats == 1 else f"{n_repeats} repeats",
        correction=correction.capitalize(),
        tests=_analysis.n_tests(),
        bold=bold,
        underlined=underlined,
    )


def _markdown_table(head: Row, rows: Sequence[Row], numbers_from: int | None = None) -> str:
    """Return a table; columns from `numbers_from` on are aligned to the right."""
    n_left = len(head) if numbers_from is None else numbers_from
    rule = ["---"] * n_left + ["---:"] * (len(head) - n_left)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


def _latex_row(row: Row) -> str:
    return " & ".join(row) + r" \\"


def _escape(text: str) -> str:
    return text.replace("_", r"\_").replace("&", r"\&").replace("%", r"\%")
