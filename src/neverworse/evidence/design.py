"""Which rows to label for training: I-optimal design, one row after another.

With A = X'SX + αP of the labeled rows and M = E'SE of all rows, least squares weights have the
covariance σ²A⁻¹, and the scores of all rows together the variance σ² tr(MA⁻¹). The label of one
more row u with the weight s lowers that by σ² s u'A⁻¹MA⁻¹u / (1 + s u'A⁻¹u). No label is needed to
know this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.utils import check_array

from neverworse._typing import Indices, Mask, Vector
from neverworse._words import number, printed
from neverworse.estimators import (
    LeastSquaresClassifierCV,
    checked_weights,
    find_unlabeled,
    in_memory,
    is_lazy,
    lazy_rows,
)
from neverworse.evidence.greedy_design import Design, PerRow, pick_rows
from neverworse.projection import LARGEST_GRAM, moments
from neverworse.rows import DenseRows, Rows, as_rows, single_threaded_blas


@dataclass(frozen=True)
class LabelSuggestions:
    """Rows to label next, best first.

    Attributes
    ----------
    rows : array of int, of shape (n,)
        Positions in X.
    decrease : array of shape (n,)
        By how much each label is expected to lower the mean squared error of the scores on all
        rows, when those before are known. Of several classes, the sum over classes.
    variance : float
        What is to be lowered: the part of that error that comes from having few labels.
    alpha : float
        The ridge penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import suggest_labels
    >>> X = np.linspace(-1, 1, 21)[:, None]
    >>> y = np.where(np.arange(21) == 9, 0, np.where(np.arange(21) == 11, 1, -1))
    >>> suggest_labels(X, y, 2).rows  # the ends say most about a line
    array([ 0, 20])
    """

    rows: Indices
    decrease: Vector
    variance: float
    alpha: float

    def summary(self) -> str:
        """Return the suggestions as a sentence for people."""
        n, total = len(self.rows), float(self.decrease.sum())
        return printed(
            f"Labels of these {n:,} rows are expected to lower the mean squared error of the "
            f"scores on all rows by {number(total)}: {total / self.variance:.0%} of what it has "
            "from having few labels."
        )


@single_threaded_blas()
def suggest_labels(
    X: Any,
    y: Any,
    n: int = 10,
    *,
    alpha: float | str = "loo",
    fit_intercept: bool = True,
    sample_weight: Any = None,
    missing_label: Any = "auto",
) -> LabelSuggestions:
    r"""Suggest rows whose labels help least squares most, for training.

    Greedy I-optimal design: each row in turn lowers the expected squared error of the scores on
    *all* rows most, given those before. The expectation is that of a linear model with equal noise,
    and depends on rows, not on labels, so that the rows may be labeled in one go. For a fair
    comparison of classifiers, rows have to be drawn at random instead: see `SequentialAudit`.

    Parameters
    ----------
    X : array-like, sparse matrix, Dask collection, or X of `neverworse.rows.open_parquet`
        Labeled and unlabeled rows.
    y : array-like of shape (n_samples,)
        Labels of two or more classes, and a marker for rows without one.
    n : int, default=10
        How many rows to suggest.
    alpha : "loo" or float, default="loo"
        Ridge penalty; "loo" chooses it by leave-one-out, as `LeastSquaresClassifierCV` does.
    fit_intercept : bool, default=True
    sample_weight : array-like of shape (n_samples,), optional
        Not negative. Rows of weight zero are not suggested.
    missing_label : "auto" or scalar, default="auto"
        What marks unlabeled rows in y, as in `LeastSquaresClassifier`.

    Returns
    -------
    suggestions : LabelSuggestions
        Rows and the expected decrease by each. Fewer than `n` if no more are unlabeled.

    See Also
    --------
    SequentialAudit : Labels for deciding between classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import suggest_labels
    >>> X = np.array([[0.0], [0.1], [1.0], [1.1], [5.0], [0.5]])
    >>> y = np.array([0, 0, 1, 1, -1, -1])
    >>> suggest_labels(X, y, 1).rows
    array([4])
    """
    if not isinstance(n, (int, np.integer)) or n < 1:
        raise ValueError(f"n={n!r} has to be a positive number of rows.")
    penalties = None if alpha == "loo" else [alpha]
    tuned = LeastSquaresClassifierCV(
        penalties, fit_intercept=fit_intercept, missing_label=missing_label
    ).fit(X, y, sample_weight)
    if is_lazy(X):
        rows = lazy_rows(tuned, X, reset=False)
    else:
        rows = as_rows(check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32]))
    unlabeled = find_unlabeled(in_memory(y), missing_label)
    weights = None
    if sample_weight is not None:
        weights = checked_weights(in_memory(sample_weight), rows.n_rows)
    usable = unlabeled if weights is None else unlabeled & (weights > 0.0)
    if not usable.any():
        raise ValueError("y has no unlabeled row (of positive weight) that could be suggested.")
    design = _design(rows, unlabeled, weights, tuned.alpha_, fit_intercept)
    picked, gains = pick_rows(design, min(int(n), int(usable.sum())))
    total = float(rows.n_rows if weights is None else weights.sum())
    noise = float(tuned.loo_brier_[np.flatnonzero(tuned.alphas_ == tuned.alpha_)[0]])
    unit = noise / total
    return LabelSuggestions(picked, gains * unit, float(design.moment.sum()) * unit, tuned.alpha_)


def _design(
    rows: Rows,
    unlabeled: Mask,
    weights: Vector | None,
    alpha: float,
    fit_intercept: bool,
) -> Design:
    """Return the design with the labels that are there."""
    if rows.n_columns > rows.n_rows and rows.n_rows <= LARGEST_GRAM:
        rows = _in_row_space(rows)
    if rows.n_columns > LARGEST_GRAM:
        raise ValueError(
            f"X has {rows.n_columns:,} columns, and suggestions take an n_features x n_features "
            f"matrix, of at most {LARGEST_GRAM:,}. Reduce them first, for example with "
            "sklearn.decomposition.TruncatedSVD."
        )
    sums = moments(rows, weights, centre=fit_intercept)
    rows, varies = sums.rows, sums.varies
    scale = np.where(varies, 1.0 / np.sqrt(np.where(varies, sums.spread, 1.0)), 0.0)
    labeled = np.flatnonzero(~unlabeled)
    s = np.ones(len(labeled)) if weights is None else weights[labeled]
    known = (rows.take(labeled) - sums.mean) * scale
    size = int(varies.sum()) + fit_intercept
    all_rows, penalty = np.zeros((size, size)), np.zeros(size)
    d = int(varies.sum())
    all_rows[:d, :d] = (sums.gram * np.outer(scale, scale))[np.ix_(varies, varies)]
    penalty[:d] = alpha * scale[varies] ** 2
    known = known[:, varies]
    if fit_intercept:
        all_rows[d, d] = sums.total
        known = np.column_stack([known, np.ones(len(known))])
    a = (known * s[:, None]).T @ known + np.diag(penalty)
    try:
        moment, basis = linalg.eigh(all_rows, a)
    except linalg.LinAlgError:
        raise ValueError(
            f"With alpha={alpha:.3g}, the {len(labeled)} labeled rows do not determine the "
            "weights. Pass a larger alpha, or 'loo'."
        ) from None
    transform = np.zeros((rows.n_columns, size))
    transform[varies] = scale[varies, None] * basis[:d]
    shift = -(sums.mean @ transform)
    if fit_intercept:
        shift = shift + basis[d]
    each = np.ones(rows.n_rows) if weights is None else weights
    free = PerRow(np.where(unlabeled, each, 0.0))
    return Design(rows, transform, shift, np.maximum(moment, 0.0), free)


def _in_row_space(rows: Rows) -> Rows:
    """Return fewer columns with the same products of rows: as many as there are rows."""
    values, vectors = linalg.eigh(rows.kernel(np.zeros(rows.n_columns)))
    kept = values > np.finfo(float).eps * len(values) * max(float(values[-1]), 0.0)
    return DenseRows(np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept])))
