"""Rows of features that are computed from other rows whenever these are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from neverworse._typing import Indices, Matrix, Scalars, Vector
from neverworse.rows._base import DenseRows, Rows
from neverworse.rows._blocks import Weigh

TINY = 1e-80  # smaller features are set to zero: their squares would underflow


@dataclass(frozen=True)
class FeatureMap:
    """Features of rows: values of functions, times the inverse of a triangular matrix L'."""

    function: Callable[[Matrix], Matrix]  # from rows to `n_features` values each; can be pickled
    n_features: int
    lower: Matrix | None = None  # (n_features, n_features): L. None: the features are the values

    def __call__(self, block: Matrix) -> Matrix:
        """Return the features of a block of rows."""
        if not len(block):  # scikit-learn's kernels refuse no rows
            return np.empty((0, self.n_features))
        values = self.combined(self.function(block))
        values[np.abs(values) < TINY] = 0.0
        return values

    def combined(self, values: Vector) -> Vector:
        """Return features (or sums of them), given the values (or sums of these)."""
        if self.lower is None:
            return values
        # Not by an inverse: scores of features and of values would differ by rounding errors times
        # a condition number.
        return linalg.solve_triangular(self.lower, values.T, lower=True, check_finite=False).T

    def coef_of_values(self, coef: Vector) -> Vector:
        """Return coefficients of the values that give the same scores as these of the features."""
        solved = linalg.solve_triangular(
            self.lower, coef.T, trans="T", lower=True, check_finite=False
        )
        return np.ascontiguousarray(solved.T)


class FeatureRows(Rows):
    """Features of rows in memory, computed block by block.

    Linear functions of features are linear functions of the values: scores and weighted sums need
    no triangular solve. The rows themselves have no shift.
    """

    def __init__(self, base: Rows, features: FeatureMap, shift: Vector | None = None) -> None:
        super().__init__(base.n_rows, features.n_features, shift)
        self._base = base
        self._features = features

    def block(self, start: int, stop: int) -> Matrix:
        return self._less_shift(self._features(self._base.block(start, stop)))

    def take(self, indices: Indices) -> Matrix:
        return self._less_shift(self._features(self._base.take(indices)))

    def shifted(self, shift: Vector | None) -> FeatureRows:
        return FeatureRows(self._base, self._features, shift)

    def weighted_sum(self, weights: Vector) -> Vector:
        if self._features.lower is None:
            return super().weighted_sum(weights)
        summed = self._features.combined(self._values.weighted_sum(weights))
        return self._shifted_sum(summed, weights.sum(axis=-1))

    def _pass(self, coef: Vector, intercept: Scalars, weigh: Weigh | None) -> tuple[Any, ...]:
        features = self._features
        if features.lower is None:
            return super()._pass(coef, intercept, weigh)
        scores, *sums = self._values._pass(features.coef_of_values(coef), intercept, weigh)
        if sums:
            summed, total = sums
            sums = [self._shifted_sum(features.combined(summed), total), total]
        return scores, *sums

    @property
    def _values(self) -> FeatureRows:
        """The values that the features are combinations of, as rows."""
        return FeatureRows(self._base, replace(self._features, lower=None))

    def _shifted_sum(self, summed: Vector, total: Vector) -> Vector:
        return summed if self.shift is None else summed - np.multiply.outer(total, self.shift)


class TrapezoidRows(DenseRows):
    """Rows of a permuted lower trapezoid: their Gram matrix takes a third of the time."""

    def __init__(self, lower: Matrix, order: Indices) -> None:
        np.copyto(lower, 0.0, where=np.abs(lower) < TINY)
        rows = np.empty(lower.shape)
        rows[order] = lower
        super().__init__(rows)
        self.lower = lower
        self.order = order

    def gram(self, weights: Vector | None = None) -> tuple[Matrix, Vector]:
        if weights is not None:
            return super().gram(weights)
        rank = self.lower.shape[1]
        half, _ = lapack.dlauum(self.lower[:rank], lower=1)
        gram = np.tril(half) + np.tril(half, -1).T
        rest = self.lower[rank:]
        return gram + rest.T @ rest, self.lower.sum(axis=0)
