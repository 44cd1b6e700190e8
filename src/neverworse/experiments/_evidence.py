"""What evidence is worth: safe stacking and the sequential audit beside what they are made of.

This experiment is not one of the paper's. Labels of its data sets are hidden at random, and Brier
scores and errors on the rows without label are compared with those of a tuned baseline.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from neverworse._typing import AnyArray, Matrix
from neverworse._words import count, percent
from neverworse.estimators import (
    LabeledRows,
    LeastSquaresClassifierCV,
    ProjectedLeastSquaresClassifier,
)
from neverworse.evidence import (
    SequentialAudit,
    default_candidates,
    find_step,
    fit_to_rows,
    labeled_folds,
    moved,
    out_of_fold,
)

BASELINE = "baseline"
SIZES = (40, 100, 200)  # labels
LARGEST_SHARE = 0.7  # of the rows that may be labeled, so that some are left to speak of
MOST_QUESTIONS = 40  # labels that a sequential audit may ask for
LEVEL, N_FOLDS = 0.95, 5
ROUNDING = 1e-9  # relative: losses that differ by less may be equal
STACKED = {  # how steps are found: combine, control_variate
    "safe stacking": ("joint", False),
    "safe stacking, best": ("best", False),
    "safe stacking, control variates": ("joint", True),
}
EACH = "Brier score of each data set, relative, and the share of repeats in which it is worse"
ABOUT = """\
Labels of data sets are hidden at random, but for 40, 100 or 200 of them, and all methods are
compared on the rows without label with a baseline: least squares with a penalty by leave-one-out.
Ratios are those of Brier scores and errors to the baseline's. “Worse” is the share of repeats in
which the Brier score is higher than the baseline's, “more errors” the share in which the error
is. All numbers are means over {repeats}, and then over data sets. A sequential audit compares the
candidate that cross-validation picks with the baseline, with at most {most} new labels."""
COLUMNS = {
    "brier_ratio": "Brier score, relative",
    "worse": "worse",
    "error_ratio": "errors, relative",
    "more_errors": "more errors",
}


def measure(X: Matrix, y: AnyArray, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Hide all but 40, 100 and 200 labels, and measure everything on the rows without."""
    order = rng.permutation(len(y))
    # Two of each class come first: every fit without a fold has to know both.
    first = np.concatenate([order[y[order] == label][:2] for label in (0, 1)])
    order = np.concatenate([first, order[~np.isin(order, first)]])
    seed = int(rng.integers(2**31))
    return [
        {"method": method, "n_labeled": n, **measured}
        for n in SIZES
        if n <= LARGEST_SHARE * len(y)
        for method, measured in _measured(X, y, np.sort(order[:n]), seed)
    ]


def _measured(
    X: Matrix, y: AnyArray, labeled: AnyArray, seed: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    known = np.full(len(y), -1)
    known[labeled] = y[labeled]
    unlabeled = known == -1
    rows = LabeledRows.split(X, known, -1, None)
    named = [(BASELINE, LeastSquaresClassifierCV()), *default_candidates(rows, seed)]

    def fit(seen: LabeledRows) -> list[Any]:
        return [fit_to_rows(name, model, seen) for name, model in named]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what counts is the loss
        folds = labeled_folds(rows, N_FOLDS, seed)
        found = out_of_fold(named, rows, folds, fit, "predict_proba")
        baseline, *models = fit(rows)
        projected = ProjectedLeastSquaresClassifier(missing_label=-1).fit(X, known)
    candidates = [(name, model) for (name, _), model in zip(named[1:], models, strict=True)]
    tried = {BASELINE: baseline, "projection": projected, **dict(candidates)}
    for name, (combine, control) in STACKED.items():
        step = find_step(found, LEVEL, combine, control, "Brier score")
        tried[name] = moved(baseline, candidates, step.steps, "predict_proba")
        if name == "safe stacking":
            gains = -step.differences.mean(axis=0)
    best = int(np.argmax(gains))
    picked = models[best] if gains[best] > 0.0 else baseline
    tried["picked by cross-validation"] = picked
    asked = {}
    for loss, name in (("error", "sequential audit, errors"), ("brier", "sequential audit, Brier")):
        tried[name], asked[name] = baseline, 0
        if picked is not baseline:
            audit = SequentialAudit(baseline, picked, X[unlabeled], loss=loss, random_state=seed)
            while audit.verdict_ == "undecided" and audit.n_labels_ < MOST_QUESTIONS:
                questions = audit.next()
                audit.record(questions, y[unlabeled][questions])
            tried[name], asked[name] = audit.model_, audit.n_labels_
    for name, model in tried.items():
        brier = np.mean((model.predict_proba(X[unlabeled])[:, 1] - y[unlabeled]) ** 2)
        error = np.mean(model.predict(X[unlabeled]) != y[unlabeled])
        yield name, {"brier": float(brier), "error": float(error), "asked": asked.get(name, 0)}


def summarised(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return for each number of labels, method and data set how it compares with the baseline.

    "brier_ratio" and "error_ratio" are means over repeats of the ratios; "worse" and "more_errors"
    are the shares of repeats in which Brier score and error are higher than the baseline's. The
    data set "mean" has the means over all others.
    """
    by = ["dataset", "repeat", "n_labeled"]
    base = measurements.loc[measurements["method"] == BASELINE, [*by, "brier", "error"]]
    base = base.rename(columns={"brier": "brier_base", "error": "error_base"})
    joined = measurements[measurements["method"] != BASELINE].merge(base, on=by)
    brier, error = joined["brier"], joined["error"]
    # A baseline without errors cannot be divided by: then, as many errors are a ratio of 1.
    floor = 1e-12
    numbers = joined.assign(
        brier_ratio=brier / joined["brier_base"],
        worse=1.0 * (brier > joined["brier_base"] * (1.0 + ROUNDING)),
        error_ratio=(error + floor) / (joined["error_base"] + floor),
        more_errors=1.0 * (error > joined["error_base"]),
    )
    keys, wanted = ["n_labeled", "method", "dataset"], [*COLUMNS, "asked"]
    each = numbers.groupby(keys, sort=False)[wanted].mean()
    means = each.groupby(keys[:2], sort=False).mean()
    means = pd.concat({"mean": means}, names=["dataset"]).reorder_levels(keys)
    return pd.concat([each, means]).reset_index()


def table(summary: pd.DataFrame, n_labeled: int) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of the means over data sets, for a number of labels."""
    part = summary[(summary["dataset"] == "mean") & (summary["n_labeled"] == n_labeled)]
    rows = [
        [
            one.method,
            f"{one.brier_ratio:.3f}",
            f"{one.worse:.1%}",
            f"{one.error_ratio:.3f}",
            f"{one.more_errors:.1%}",
            f"{one.asked:.0f}" if one.asked else "",
        ]
        for one in part.itertuples()
    ]
    return ["method", *COLUMNS.values(), "new labels"], rows


def by_dataset(summary: pd.DataFrame, n_labeled: int) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of each data set: ratios of Brier scores, and how often it is worse."""
    part = summary[summary["n_labeled"] == n_labeled]
    head = ["data set", *dict.fromkeys(part["method"])]
    return head, [
        [name, *(f"{one.brier_ratio:.3f} ({percent(one.worse)})" for one in cells.itertuples())]
        for name, cells in part.groupby("dataset", sort=False)
    ]


def sentence(measurements: pd.DataFrame, summary: pd.DataFrame) -> str:
    """Return what matters most."""
    means = summary[(summary["dataset"] == "mean") & (summary["method"] == "safe stacking")]
    said = [
        f"with {one.n_labeled} labels {one.brier_ratio:.3f} of the baseline's, and higher in "
        f"{one.worse:.1%} of the repeats"
        for one in means.itertuples()
    ]
    repeats = count(measurements["repeat"].nunique(), "repeat")
    n_sets = count(measurements["dataset"].nunique(), "data set")
    return f"Brier score of safe stacking, {repeats} on {n_sets}: {'; '.join(said)}."


def about(measurements: pd.DataFrame) -> str:
    """Return what was measured, and how often."""
    repeats = count(measurements["repeat"].nunique(), "repeat")
    return ABOUT.format(repeats=repeats, most=MOST_QUESTIONS)


def to_markdown(
    measurements: pd.DataFrame, summary: pd.DataFrame, made: dict[str, str | None]
) -> str:
    """Return all tables as a page of Markdown, with what they depend on."""
    parts = [
        "# What evidence is worth",
        about(measurements),
        "Written by `neverworse reproduce evidence`:",
        "\n".join(f"- {title}: {text}" for title, text in made.items() if text),
    ]
    for n in summary["n_labeled"].unique():
        part = measurements[measurements["n_labeled"] == n]
        n_draws = len(part[["dataset", "repeat"]].drop_duplicates())
        n_sets = count(part["dataset"].nunique(), "data set")
        known = percent(1.96 * float(np.sqrt(0.05 * 0.95 / n_draws)))
        parts += [
            f"## {n} labels",
            f"{count(n_draws, 'draw')} on {n_sets}: a share of 5 % is known to about ±{known}.",
            _markdown(*table(summary, n)),
            f"{EACH}:",
            _markdown(*by_dataset(summary, n)),
        ]
    return "\n\n".join(parts) + "\n"


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
