"""Sections about what more data, or another method, would do on rows that were held out."""

from __future__ import annotations

import math
from collections.abc import Iterator

from neverworse.projection.words import count
from neverworse.report._charts_methods import comparison_chart, curve_chart
from neverworse.report._html import Markup, table, tag
from neverworse.report._pieces import drawing, legend, side_by_side
from neverworse.report._words import MISSING, decimal, exact, name, number, signed
from neverworse.study._study import Curve, MethodFacts, Study

TITLES = {"unlabeled": "More unlabeled rows?", "labeled": "More labels?"}


def curves(study: Study) -> Iterator[Markup]:
    """Yield learning curves over unlabeled rows and over labeled ones."""
    yield tag(
        "p",
        "Labeled rows are held out in turn and predicted by models that have not seen them. "
        "Ribbons are two standard errors wide on either side. These are estimates, no part of the "
        "guarantee.",
    )
    for curve in (study.unlabeled_curve, study.labeled_curve):
        if curve is not None:
            yield from _curve(curve)


def _curve(curve: Curve) -> Iterator[Markup]:
    other = "labeled" if curve.rows == "unlabeled" else "unlabeled"
    methods = [line.method for line in curve.lines]
    yield tag("h3", TITLES[curve.rows])
    yield tag("p", curve.words)
    yield legend(methods)
    yield side_by_side(
        drawing(curve_chart(curve, "error"), f"{curve.rows}-error"),
        drawing(curve_chart(curve, "loss"), f"{curve.rows}-loss"),
    )
    yield table(
        f"Error, and quadratic loss per row, ± one standard error. "
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
                *(_plus_minus(line.error[k], line.error_se[k]) for line in curve.lines),
                *(_plus_minus(line.loss[k], line.loss_se[k]) for line in curve.lines),
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
        "Lines are two standard errors long on either side. In the second chart, methods on the "
        "left of 0 do better than the supervised one; where a line reaches 0, it may be chance.",
    )
    yield side_by_side(
        drawing(comparison_chart(found.methods, "error"), "methods-error"),
        drawing(comparison_chart(found.methods, "difference"), "methods-difference"),
    )
    yield table(
        "Methods, ± one standard error. Differences are from the supervised method, on the same "
        "folds.",
        ["Method", "Guarantee", "Error", "Difference", "p", "Quadratic loss", "Seconds"],
        [_method(each) for each in found.methods],
        numbers_from=2,
        kind="sortable",
    )


def _method(each: MethodFacts) -> list[object]:
    is_baseline = each.method.lower() == "supervised"
    return [
        name(each.method),
        tag("span", each.guarantee, class_="wide"),
        _plus_minus(each.error, each.error_se),
        MISSING if is_baseline else _plus_minus(each.difference, each.difference_se, sign=True),
        MISSING if each.p_value is None else exact(each.p_value, number(each.p_value, 2)),
        MISSING if each.loss is None else _plus_minus(each.loss, each.loss_se),
        exact(each.seconds, number(each.seconds, 2)),
    ]


def _plus_minus(value: float, error: float | None, *, sign: bool = False) -> Markup:
    shown = signed(decimal(value)) if sign else decimal(value)
    if error is not None and math.isfinite(error):
        shown += f" ± {decimal(error)}"
    return exact(value, shown)
