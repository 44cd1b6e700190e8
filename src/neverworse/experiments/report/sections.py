"""The parts of ``report.html``, one for each experiment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from neverworse.experiments import _analysis, _claims
from neverworse.experiments._drawing import Drawing
from neverworse.experiments._figure_html import figure
from neverworse.experiments.report.figures import CURVE_METHODS
from neverworse.experiments._findings import (
    MAMMOGRAPHY,
    as_text,
    is_known_exception,
    too_few_repeats,
    totals,
)
from neverworse.experiments._published import published
from neverworse.experiments._reproduction import Reproduction
from neverworse.experiments._robustness_figures import PLACES, ROBUSTNESS_METHODS
from neverworse.experiments.report.tables import COLUMNS, comparison, mean_and_sd
from neverworse.study.report._html import Markup, table, tag, text

MARKS = {
    _analysis.BETTER: lambda content: tag("b", content),
    _analysis.WORSE: lambda content: tag("u", content),
    "": text,
}
Drawings = dict[str, Drawing]


def robustness(reproduction: Reproduction, drawings: Drawings) -> Iterator[Markup]:
    """Yield Figure 1 for both kinds of rows, and counts."""
    summary = reproduction.summaries["robustness"]
    paper = published()["guarantees"]["robustness"]
    yield tag(
        "p",
        "The loss of each method relative to its supervised counterpart's, quadratic or, for TSVM, "
        "squared hinge. The theorem says that the ratio of Projection is at most 1 on labeled and "
        "unlabeled rows; it says nothing about the others, or about test rows. In the published "
        f"run, {paper['higher']} of {paper['fits']} ratios of Projection were higher, because the "
        "solver stopped early.",
    )
    yield figure(drawings["figure1"])
    for rows, name in (("training", "robustness"), ("test", "robustness-test")):
        yield figure(drawings[name])
        chosen = summary[summary["rows"] == rows]
        yield table(
            f"In how many repeats the loss on {PLACES[rows]} is higher than the supervised "
            f"counterpart's, by more than rounding errors (a fraction of {_analysis.ROUNDING:g}), "
            "and the largest ratio",
            ["Dataset", *ROBUSTNESS_METHODS],
            _counts(chosen, reproduction.measurements["robustness"]["dataset"].unique()),
        )


def _counts(summary: pd.DataFrame, datasets: Iterable[str]) -> Iterator[list[object]]:
    found = summary.set_index(["dataset", "method"])
    for dataset in datasets:
        cells = [found.loc[(dataset, name)] for name in ROBUSTNESS_METHODS]
        yield [
            dataset,
            *(f"{c['higher']:.0f} of {c['repeats']:.0f}; {_ratio(c['worst'])}" for c in cells),
        ]
    sums = summary.groupby("method").agg({"higher": "sum", "repeats": "sum", "worst": "max"})
    every = [sums.loc[name] for name in ROBUSTNESS_METHODS]
    yield [
        tag("b", "All"),
        *(
            tag("b", f"{c['higher']:.0f} of {c['repeats']:.0f}; {_ratio(c['worst'])}")
            for c in every
        ),
    ]


def _ratio(value: float) -> str:
    """Write a ratio so that what is below 1 never looks like 1, nor the reverse."""
    if value == 1.0 or abs(value - 1.0) >= 5e-4:
        return f"{value:.3f}" if value < 100 else f"{value:.3g}"
    sign = "+" if value > 1.0 else "\N{MINUS SIGN}"
    return f"1 {sign} {abs(value - 1.0):.0e}"


def curves(reproduction: Reproduction, drawings: Drawings) -> Iterator[Markup]:
    """Yield Figure 2, the ends of its curves, and the claims of the text."""
    yield tag(
        "p",
        "Means over repeats; ribbons are two standard errors wide on either side. USM was measured "
        "too and is in the CSV files; as in the paper it is not drawn.",
    )
    yield figure(drawings["curves"])
    yield table(
        "The claims of the paper's text, checked. Differences are repeat by repeat, ± one "
        "standard error. An effect is there beyond three of them; there is none to be seen where "
        "the ribbons overlap, provided that three standard errors are less than "
        f"{_claims.RESOLUTION:g}; otherwise a claim is undecided. Where a curve is said to turn, "
        "it is judged from the earlier size at which its mean is lowest, which favours a rise. "
        f"Little: less than {_claims.LITTLE:g} of what is gained on Supervised.",
        ["Dataset", "The paper says", "Measured", "Outcome"],
        [
            [claim.dataset, _wide(claim.text), _wide(claim.evidence), _word(claim)]
            for claim in _claims.check(reproduction.measurements["curves"])
        ],
        numbers_from=9,
    )
    yield table(
        "The ends of the curves: mean ± standard error for the largest number of unlabeled rows",
        ["Dataset", "Measure", *CURVE_METHODS],
        _ends(reproduction.summaries["curves"]),
    )


def _ends(summary: pd.DataFrame) -> Iterator[list[object]]:
    for dataset, found in summary.groupby("dataset", sort=False):
        largest = found["n_unlabeled"].max()
        last = found[found["n_unlabeled"] == largest]
        for measure, name in _claims.NAMES.items():
            values = last[last["measure"] == measure].set_index("method")
            means = (values.loc[method] for method in CURVE_METHODS)
            cells = (mean_and_sd(v["mean"], v["standard_error"], "±", 4) for v in means)
            yield [f"{dataset}, {largest} rows", name, *cells]


def _wide(content: str) -> Markup:
    """Return text that stays readable where the page is narrow."""
    return tag("span", content, class_="wide")


def _word(claim: _claims.Claim) -> Markup:
    moods = {"agrees": "good-word", "differs": "bad-word", "undecided": None}
    return tag("span", claim.verdict, class_=moods[claim.verdict])


def table_one(reproduction: Reproduction, _: Drawings) -> Iterator[Markup]:
    """Yield Table 1 as in the paper, and each of its numbers beside the published one."""
    cells = reproduction.summaries["table"]
    names = [name for name in COLUMNS if name in set(cells["method"])]
    counts = _analysis.totals(cells)
    rows: list[list[object]] = []
    for dataset, found in cells.groupby("dataset", sort=False):
        of_method = found.set_index("method").to_dict(orient="index")
        row = [of_method[name] for name in names]
        rows.append([dataset, *(_marked(c["mark"], c["mean"], c["sd"], 2) for c in row)])
    rows.append(
        [
            tag("b", "Win / draw / loss"),
            *(as_text(counts[name]) if name in counts else "" for name in names),
        ]
    )
    yield tag(
        "p",
        "Error, mean ± standard deviation over repeats. ",
        tag("b", "Bold"),
        " and ",
        tag("u", "underlined"),
        ": significantly better or worse than the supervised counterpart (one-sided Wilcoxon "
        f"signed-rank tests, corrected for the {_analysis.n_tests()} tests of the paper).",
    )
    few = too_few_repeats(cells)
    if few:
        yield tag("p", few)
    yield table("Table 1", ["Dataset", *names], rows)
    yield table(
        "Wins, draws and losses beside the published ones, on the same data sets",
        ["Method", "Ours", "Published", "Data sets that differ"],
        [
            [t.method, _together(t.ours), _together(t.published), _names(t.differences)]
            for t in totals(cells)
        ],
        numbers_from=9,
    )
    if reproduction.plan.protocol == "code" and is_known_exception(cells).any():
        yield tag("p", MAMMOGRAPHY)
    yield table(
        "Each cell beside the published one. z: the difference in standard errors of both means, "
        "with the rounding of the published one",
        ["Dataset", "Method", "Ours", "Published", "Difference", "z", "Within 3"],
        [
            [*row[:-1], tag("span", row[-1], class_="bad-word") if row[-1] == "no" else row[-1]]
            for row in comparison(cells, MARKS)
        ],
        numbers_from=2,
    )


def _marked(mark: str, mean: float, sd: float, decimals: int) -> Markup:
    return MARKS[mark](mean_and_sd(mean, sd, "±", decimals))


def _together(counts: tuple[int, int, int]) -> str:
    """Write wins, draws and losses on one line."""
    return as_text(counts).replace(" ", "\N{NO-BREAK SPACE}")


def _names(differences: tuple[object, ...]) -> str:
    return ", ".join(map(str, differences)) or "none"


def timing(reproduction: Reproduction, drawings: Drawings) -> Iterator[Markup]:
    """Yield the training times, relative and in seconds."""
    summary = reproduction.summaries["timing"]
    paper = published()["timing"]
    yield tag(
        "p",
        "Training time relative to the supervised counterpart's (Supervised for Projection, SVM "
        "for TSVM): 200 labeled rows of two Gaussians in 100 dimensions, and growing numbers of "
        f"unlabeled ones. The paper stopped at {paper['n_unlabeled']} unlabeled rows, where "
        f"Projection took {paper['Projection']:g} times as long.",
    )
    yield figure(drawings["timing"])
    yield table(
        "Mean ratio ± standard error over repeats, and median of the seconds",
        ["Unlabeled rows", "Projection", "seconds", "TSVM", "seconds", "Repeats", "Published"],
        _times(summary),
    )


def _times(summary: pd.DataFrame) -> Iterator[list[object]]:
    paper = published()["timing"]
    for size, found in summary.groupby("n_unlabeled"):
        cells: list[object] = [f"{size:,}"]
        of_method = found.set_index("method")
        for name in ("Projection", "TSVM"):
            cell = of_method.loc[name]
            margin = cell["standard_error"]
            cells.append(f"{cell['ratio']:.1f}" + ("" if np.isnan(margin) else f" ± {margin:.1f}"))
            cells.append(f"{cell['seconds']:.3g}")
        cells.append(f"{found['repeats'].max():.0f}")
        cells.append(f"{paper['Projection']:g}" if size == paper["n_unlabeled"] else "")
        yield cells
