"""Rows to label for training: greedy I-optimal design.

With A = X'SX + αP of the labeled rows and M = E'SE of all rows, least squares weights have the
covariance σ²A⁻¹, and the scores of all rows the total variance σ² tr(MA⁻¹). The label of one more
row u with the weight s lowers that by σ² s u'A⁻¹MA⁻¹u / (1 + s u'A⁻¹u), whatever the label is.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.utils import check_array

from neverworse._typing import Indices, Mask, Matrix, Vector
from neverworse._words import documented_like, number, printed
from neverworse.estimators import (
    LeastSquaresClassifierCV,
    checked_weights,
    find_unlabeled,
    in_memory,
    is_lazy,
    lazy_rows,
)
from neverworse.projection import LARGEST_GRAM, moments
from neverworse.rows import Rows, as_rows, map_in_threads, single_threaded_blas

# Each batch of rows is picked from a pool: the rows with the largest decrease before it.
POOL_BYTES, POOL_ROWS = 2**22, 64  # the size of their coordinates, but at least this many rows
BATCH = 32


@dataclass(frozen=True)
class LabelSuggestions:
    """Rows to label next, best first: what `suggest_labels` returns; see there."""

    rows: Indices
    decrease: Vector
    variance: float
    alpha: float

    def summary(self) -> str:
        """Return the expected gain as a sentence."""
        n, total = len(self.rows), float(self.decrease.sum())
        return printed(
            f"Labels of these {n:,} rows are expected to lower the mean squared error of the "
            f"scores on all rows by {number(total)}: {total / self.variance:.0%} of the part that "
            "is due to having few labels."
        )


@documented_like(LeastSquaresClassifierCV, LeastSquaresClassifierCV.fit)
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
    r"""Suggest rows whose labels would help the training of least squares most.

    Greedy I-optimal design: each row in turn lowers the expected squared error of the scores on
    *all* rows most, given those before. That depends on rows, not on labels, so all suggested rows
    can be labeled at once. To compare classifiers, rows must be drawn at random instead.

    Parameters
    ----------
    X : array-like, sparse matrix, Dask collection, or X of `neverworse.rows.open_parquet`
        Labeled and unlabeled rows.
    {y}
    n : int, default=10
        Number of rows to suggest.
    alpha : "loo" or float, default="loo"
        Ridge penalty; "loo" chooses it by leave-one-out, as `LeastSquaresClassifierCV` does.
    {fit_intercept, sample_weight, missing_label}

    Returns
    -------
    suggestions : LabelSuggestions
        With `rows`, positions in X, best first, fewer than `n` if fewer rows are unlabeled;
        `decrease`, the expected decrease of the mean squared error of the scores on all rows by
        each label, given those before (summed over classes if there are more than two);
        `variance`, the part of that error that is due to having few labels; `alpha`, the ridge
        penalty; and ``summary()``, the expected gain as a sentence.

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
        raise ValueError(f"n={n!r} must be a positive integer.")
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
    each = np.ones(rows.n_rows) if weights is None else weights
    n_usable = np.count_nonzero(each[unlabeled])
    if not n_usable:
        raise ValueError("y has no unlabeled row (of positive weight) that could be suggested.")
    if rows.n_columns > LARGEST_GRAM:
        raise ValueError(
            f"X has {rows.n_columns:,} columns, but suggest_labels needs a Gram matrix of the "
            f"columns, with at most {LARGEST_GRAM:,}. Reduce them first, for example with "
            "sklearn.decomposition.TruncatedSVD."
        )
    sums = moments(rows, weights, centre=fit_intercept)
    picked, gains, variance = _pick(
        sums, unlabeled, each, tuned.alpha_, fit_intercept, min(int(n), int(n_usable))
    )
    noise = float(tuned.loo_brier_[np.flatnonzero(tuned.alphas_ == tuned.alpha_)[0]])
    unit = noise / float(each.sum())
    return LabelSuggestions(picked, gains * unit, variance * unit, tuned.alpha_)


def _pick(
    sums: Any, unlabeled: Mask, weights: Vector, alpha: float, fit_intercept: bool, n: int
) -> tuple[Indices, Vector, float]:
    """Return picked rows, the decrease of the variance by each, and the variance before.

    One pass per batch finds the pool, in coordinates in which A is the identity and M is diagonal.
    """
    rows, varies = sums.rows, sums.varies
    scale = 1.0 / np.sqrt(sums.spread[varies])
    gram = sums.gram[np.ix_(varies, varies)] * np.outer(scale, scale)
    penalty = alpha * scale**2
    if fit_intercept:
        gram, penalty = linalg.block_diag(gram, sums.total), np.append(penalty, 0.0)
    a, free = np.diag(penalty), np.where(unlabeled, weights, 0.0)
    new = np.flatnonzero(~unlabeled)
    picked: list[int] = []
    gains: list[float] = []
    variance = 0.0
    while len(picked) < n:
        known = (rows.take(new) - sums.mean)[:, varies] * scale
        if fit_intercept:
            known = np.column_stack([known, np.ones(len(known))])
        a += (known * weights[new, None]).T @ known
        try:
            moment, basis = linalg.eigh(gram, a)
        except linalg.LinAlgError:
            raise ValueError(
                f"With alpha={alpha:.3g}, the {len(new)} labeled rows do not determine the "
                "weights. Pass a larger alpha, or 'loo'."
            ) from None
        moment = np.maximum(moment, 0.0)
        variance = variance or float(moment.sum())
        transform = np.zeros((rows.n_columns, len(moment)))
        transform[varies] = scale[:, None] * basis[: len(scale)]
        shift = basis[len(scale) :].sum(axis=0) - sums.mean @ transform
        parts = rows.fold(_decreases, operator.add, transform, shift, moment, known=[free])
        size = min(int(np.count_nonzero(free)), max(POOL_ROWS, POOL_BYTES // (8 * len(shift))))
        pool = np.sort(np.argpartition(-np.concatenate(parts), size - 1)[:size])
        u = (rows.take(pool) @ transform + shift) * np.sqrt(free[pool])[:, None]
        chosen, decreases = _best(u, moment, min(BATCH, n - len(picked)))
        picked.extend(pool[chosen])
        gains.extend(decreases)
        new = np.sort(pool[chosen])
        free[new] = 0.0
    return np.array(picked, dtype=np.intp), np.array(gains), variance


def _decreases(
    rows: Rows, transform: Matrix, shift: Vector, moment: Vector, free: Vector
) -> list[Vector]:
    """Return the decrease by each row of a chunk, -1 for rows that are not free."""
    sums = np.column_stack([np.ones(len(moment)), moment])

    def of_block(lo: int) -> Vector:
        weights = free[lo : lo + rows.block_rows]
        v = rows.block(lo, lo + len(weights)) @ transform
        v += shift
        v *= v
        leverage, influence = (v @ sums).T * weights
        return np.where(weights > 0.0, influence / (1.0 + leverage), -1.0)

    found = map_in_threads(of_block, range(0, rows.n_rows, rows.block_rows))
    return [np.concatenate([np.empty(0), *found])]


def _best(u: Matrix, moment: Vector, n: int) -> tuple[Indices, Vector]:
    """Return n rows with coordinates u, each the best given those before, and their decreases."""
    inverse = np.eye(len(moment))
    leverage, influence = np.sum(u**2, axis=1), u**2 @ moment
    chosen, gains = np.empty(n, dtype=np.intp), np.empty(n)
    for turn in range(n):
        decrease = influence / (1.0 + leverage)
        decrease[chosen[:turn]] = -1.0
        best = int(np.argmax(decrease))
        chosen[turn], gains[turn] = best, decrease[best]
        factor, direction = 1.0 / (1.0 + leverage[best]), inverse @ u[best]
        image = moment * direction
        p, q = u @ direction, u @ (inverse @ image)
        leverage -= factor * p**2
        influence += factor * p * (factor * (direction @ image) * p - 2.0 * q)
        inverse -= factor * np.outer(direction, direction)
    return chosen, gains
