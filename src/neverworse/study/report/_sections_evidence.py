"""Sections about what more data, or another method, would do on rows that were held out."""

from __future__ import annotations

from collections.abc import Iterator

from neverworse.projection.words import count
from neverworse.study._study import Curve, Estimate, MethodFacts, Study
from neverworse.study.report._charts_methods import curve_chart, estimates_chart
from neverworse.study.report._html import Markup, table, tag
from neverworse.study.report._pieces import drawing, legend, side_by_side
from neverworse.study.report._words import estimate, exact, name, number

TITLES = {"unlabeled": "More unlabeled rows?", "labeled": "More labels?"}


def curves(study: Study) -> Iterator[Markup]:
    """Yield learning curves over unlabeled rows and over labeled ones."""
    yield tag(
        "p",
        "Labeled rows are held out in turn and predicted by models that have not seen them. "
        "Ribbons are 95 % intervals. These are estimates, no part of the guarantee.",
    )
    for curve in (study.unlabeled_curve, study.labeled_curve):
        if curve is not None:
            yield from _curve(curve)


def _curve(curve: Curve) -> Iterator[Markup]:
    other = "labeled" if curve.rows == "unlabeled" else "unlabeled"
    methods = [line.method for line in curve.lines]
    yield tag("h3", TITLES[curve.rows])
    yield tag("p", curve.words)
    if curve.rows == "unlabeled" and len({(line.error, line.loss) for line in curve.lines}) == 1:
        return  # both models are the same at every size
    yield legend(methods)
    yield side_by_side(
        drawing(curve_chart(curve, "error"), f"{curve.rows}-error"),
        drawing(curve_chart(curve, "loss"), f"{curve.rows}-loss"),
    )
    yield table(
        f"Error, and squared loss per row, with 95 % intervals. "
        f"{count(curve.n_other, f'{other} row')} in training; {count(curve.n_repeats, 'repeat')}.",
        [
            f"{curve.rows.capitalize()} rows",
            *(
                tag("span", name(method), f", {measure}")
                for measure in ("error", "loss")
                for method in methods
            ),
        ],
        [
            [
                exact(size),
                *(estimate(line.error[k]) for line in curve.lines),
                *(estimate(line.loss[k]) for line in curve.lines),
            ]
            for k, size in enumerate(curve.sizes)
        ],
    )


def comparison(study: Study) -> Iterator[Markup]:
    """Yield the comparison of methods."""
    found = study.comparison
    if found is None:
        return
    repeated = f", {count(found.n_repeats, 'time')}" if found.n_repeats > 1 else ""
    yield tag("p", found.words)
    yield tag(
        "p",
        f"Cross-validation in {found.n_folds} folds{repeated}: labeled rows are held out in turn; "
        f"every fit has the other labeled rows and {count(found.n_unlabeled, 'unlabeled row')}. "
        "Lines are 95 % intervals; those of differences allow for training folds that overlap, and "
        "those of further methods for how many of them are tried. Methods on the left of 0 do "
        "better than the supervised one; where a line reaches 0, it may be chance.",
    )
    charts = [
        drawing(
            estimates_chart(
                [(each.method, each.numbers.error) for each in found.methods],
                "error on held-out rows",
                reference=found.baseline.error.value,
            ),
            "methods-error",
            tag("span", "The line is the error of always answering ", name(found.majority), "."),
        )
    ]
    differences = [
        (each.method, each.error_difference)
        for each in found.methods
        if each.error_difference is not None
    ]
    if any(each != Estimate(0.0, 0.0, 0.0) for _, each in differences):
        chart = estimates_chart(differences, "Δ error vs. supervised", reference=0.0)
        charts.append(drawing(chart, "methods-difference"))
    yield side_by_side(*charts)
    yield table(
        "Methods, with 95 % intervals. Δ is the difference from the supervised method, on the same "
        "folds.",
        [
            "Method",
            "Error",
            "Δ error",
            "AUC",
            "Brier score",
            "Δ Brier score",
            "Seconds",
            "Guarantee",
        ],
        [_method(each) for each in found.methods],
        numbers_from=1,
        kind="sortable",
    )
    for failed, why in found.failures.items():
        yield tag("p", "Left out, because its fit failed: ", name(failed), f". {why}")


def _method(each: MethodFacts) -> list[object]:
    return [
        name(each.method),
        estimate(each.numbers.error),
        estimate(each.error_difference, sign=True),
        estimate(each.numbers.auc),
        estimate(each.numbers.brier),
        estimate(each.brier_difference, sign=True),
        exact(each.seconds, number(each.seconds, 2)),
        tag("span", each.guarantee, class_="wide"),
    ]
