"""Baseline and candidates on labels that they have not seen: fold by fold."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing

from neverworse._typing import AnyArray, Indices, Matrix
from neverworse.estimators import LabeledRows
from neverworse.evidence.candidates import BASELINE, Named, Response, scores_of_model, targets
from neverworse.evidence.confident_step import OutOfFold


def labeled_folds(rows: LabeledRows, given: Any, random_state: Any) -> list[Indices]:
    """Return the labeled rows of each fold, as positions among all rows.

    Parameters
    ----------
    rows : LabeledRows
    given : int, splitter or iterable
    random_state : int, RandomState instance or None
        For a number of folds.
    """
    labeled = np.flatnonzero(~rows.unlabeled)
    codes = rows.codes[labeled]
    if isinstance(given, Integral):
        cv = StratifiedKFold(given, shuffle=True, random_state=random_state)
    else:
        cv = check_cv(given, codes, classifier=True)
    with warnings.catch_warnings():
        # A class with fewer rows than folds is in every fit nevertheless, as is checked below.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        folds = [test for _, test in cv.split(_safe_indexing(rows.X, labeled), codes)]
    tested = np.bincount(np.concatenate(folds), minlength=len(labeled))
    if not tested.all():
        raise ValueError(
            f"cv={given!r} never tests {np.sum(tested == 0)} of the {len(labeled)} labeled "
            "rows. Pass a splitter that tests every row, such as StratifiedKFold."
        )
    for number, fold in enumerate(folds, start=1):
        left = np.bincount(np.delete(codes, fold), minlength=len(rows.classes))
        if not left.all():
            raise ValueError(
                f"Fold {number} of {len(folds)} has all labels of the class "
                f"{rows.classes[int(np.argmin(left))]!r}, so that no classifier can be fitted "
                "without it. Label more rows of that class, or pass another cv."
            )
    return [labeled[fold] for fold in folds]


def out_of_fold(
    named: Named,
    rows: LabeledRows,
    folds: list[Indices],
    fit: Callable[[LabeledRows], list[Any]],
    response: Response,
    control_variate: bool,
) -> tuple[OutOfFold, Matrix]:
    """Fit everything without the labels of each fold, and compare on them.

    Parameters
    ----------
    named : list of (str, classifier)
        The baseline first.
    rows : LabeledRows
    folds : list of arrays of int
        Positions of labeled rows; each is in one of them or more.
    fit : callable
        Returns all classifiers, fitted to rows of which some have hidden labels.
    response : {"predict_proba", "score"}
    control_variate : bool

    Returns
    -------
    found : OutOfFold
    differences : array of shape (n_labeled, n_candidates)
        Loss of each candidate less that of the baseline.
    """
    labeled = np.flatnonzero(~rows.unlabeled)
    unlabeled = np.flatnonzero(rows.unlabeled)
    n, k = len(labeled), len(named) - 1
    products, differences, controls = (np.zeros((n, k)) for _ in range(3))
    gram, control_means, tested = np.zeros((k, k)), np.zeros(k), np.zeros(n)
    n_tested = sum(map(len, folds))
    for number, fold in enumerate(folds, start=1):
        hidden = rows.unlabeled.copy()
        hidden[fold] = True
        seen = LabeledRows(rows.X, rows.classes, rows.codes, hidden, rows.weights)
        try:
            models = fit(seen)
        except Exception as failure:
            failure.add_note(
                f"This was fold {number} of {len(folds)}, whose {len(fold)} labels were hidden. A "
                "candidate has to bear fits to fewer labels: leave it out, or label more rows."
            )
            raise
        g, t = _compared(named, models, rows.X, fold, response)
        error = targets(rows.codes[fold], len(rows.classes)) - g
        at = np.searchsorted(labeled, fold)
        products[at] += np.einsum("cn,kcn->nk", error, t)
        differences[at] += np.einsum("kcn,kcn->nk", t, t - 2.0 * error)
        controls[at] += np.einsum("kcn,cn->nk", t, t.mean(axis=0))
        tested[at] += 1.0
        where = unlabeled if len(unlabeled) else fold
        if len(unlabeled):
            t = _compared(named, models, rows.X, unlabeled, response)[1]
        weights = np.ones(len(where)) if rows.weights is None else rows.weights[where]
        share = len(fold) / n_tested / weights.sum()
        gram += share * np.einsum("n,kcn,lcn->kl", weights, t, t, optimize=True)
        control_means += share * np.einsum("n,kcn,cn->k", weights, t, t.mean(axis=0))
    controlled = control_variate and len(unlabeled) > 0
    found = OutOfFold(
        [name for name, _ in named[1:]],
        products / tested[:, None],
        gram,
        len(unlabeled),
        None if rows.weights is None else rows.weights[labeled],
        controls / tested[:, None] if controlled else None,
        control_means if controlled else None,
    )
    return found, differences / tested[:, None]


def _compared(
    named: Named, models: list[Any], X: Any, where: Indices, response: Response
) -> tuple[Matrix, AnyArray]:
    """Return scores of the baseline on some rows, and differences of all candidates from it."""
    X = _safe_indexing(X, where)
    g, *others = (
        scores_of_model(called(name), model, X, response, len(where))
        for (name, _), model in zip(named, models, strict=True)
    )
    return g, np.stack(others) - g


def called(name: str) -> str:
    """Return what messages call a classifier."""
    return name if name == BASELINE else f"candidate {name!r}"
