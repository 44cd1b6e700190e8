"""Newton steps with a factor of the Gram matrix of the rows within the margin."""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from neverworse._typing import Indices, Matrix, Vector
from neverworse.methods.svm._chosen import gram_of
from neverworse.methods.svm._design import Design
from neverworse.methods.svm._local import LocalModel
from neverworse.projection.coordinates.gram import EPS

# The Gram matrix is corrected where that takes fewer rows than to add it up again.
FEW_CHANGED = 0.5
# A factor of the Gram matrix is good enough as long as its condition number (columns brought to
# equal length) leaves some digits. Beyond, orthogonal factors of the rows, unless there are many.
WELL_CONDITIONED = 1e-10
MOST_NUMBERS = 2**22


class GramSystem:
    """Keeps the Gram matrix of the rows with curvature, corrected for those that change.

    Parameters
    ----------
    design : Design
    gram, sums : arrays
        Σ h x x' and Σ h x over the centred rows x.
    curvature : array of shape (n_rows,)
        The h of these sums.
    """

    def __init__(self, design: Design, gram: Matrix, sums: Vector, curvature: Vector) -> None:
        self._design = design
        self._start = gram, sums, curvature
        self._gram, self._sums, self._curvature = gram, sums, curvature
        self._penalty = design.penalty
        self._factor: _Factor | None = None

    def fresh(self) -> GramSystem:
        """See `System.fresh`."""
        return GramSystem(self._design, *self._start)

    def step(self, model: LocalModel) -> Vector:
        """See `System.step`."""
        self._update(model)
        if self._factor is None or not np.array_equal(model.penalty, self._penalty):
            self._factor = _Factor(self._matrix(model.penalty), model.penalty)
            self._penalty = model.penalty
        factor = self._factor
        if factor.is_accurate or len(model.active) * len(model.penalty) > MOST_NUMBERS:
            return factor.solve(-model.gradient)
        return _orthogonal_step(self._design, model, factor.scale)

    def _update(self, model: LocalModel) -> None:
        changed = np.flatnonzero(model.curvature != self._curvature)
        if not changed.size:
            return
        if len(changed) < FEW_CHANGED * len(model.active):
            difference = model.curvature[changed] - self._curvature[changed]
            for sign in (1.0, -1.0):
                these = sign * difference > 0.0
                gram, sums = self._moments(changed[these], abs(difference[these]))
                self._gram, self._sums = self._gram + sign * gram, self._sums + sign * sums
        else:
            self._gram, self._sums = self._moments(model.active, model.curvature[model.active])
        self._curvature, self._factor = model.curvature, None

    def _moments(self, indices: Indices, weights: Vector) -> tuple[Matrix, Vector]:
        """Return the sums over some of the centred rows."""
        gram, sums = gram_of(self._design.rows, indices, weights)
        centre, total = self._design.centre, float(weights.sum())
        cross = np.outer(sums - 0.5 * total * centre, centre)
        return gram - cross - cross.T, sums - total * centre

    def _matrix(self, penalty: Vector) -> Matrix:
        """Return the second derivative of the objective."""
        design, d = self._design, self._design.rows.n_columns
        if not design.fit_intercept:
            return self._gram + np.diag(penalty)
        matrix = np.empty((d + 1, d + 1))
        matrix[:d, :d] = self._gram
        matrix[:d, d] = matrix[d, :d] = self._sums
        matrix[design.idle] = matrix[:, design.idle] = 0.0
        matrix[d, d] = self._curvature.sum()
        matrix[np.diag_indices_from(matrix)] += penalty
        return matrix


class _Factor:
    """A triangular factor of a positive definite matrix, with columns brought to one scale.

    Parameters
    ----------
    matrix : array of shape (n, n)
        Overwritten.
    smallest : array of shape (n,)
        What its diagonal is at least, but for rounding errors.
    """

    def __init__(self, matrix: Matrix, smallest: Vector) -> None:
        diagonal = np.maximum(np.diag(matrix), smallest)
        diagonal[diagonal == 0.0] = 1.0  # the intercept, where no row has curvature
        self.scale = 1.0 / np.sqrt(diagonal)
        matrix *= np.outer(self.scale, self.scale)
        # Where floating point does not see the penalty, columns that depend on each other make the
        # matrix singular, or worse. What is added is not more than its rounding errors.
        added, failed = 0.0, True
        while failed:
            matrix[np.diag_indices_from(matrix)] = 1.0 + added
            self._triangle, failed = lapack.dpotrf(matrix, lower=0)
            added = max(10.0 * added, len(matrix) * EPS)
        rcond, _ = lapack.dpocon(self._triangle, np.abs(matrix).sum(axis=0).max(), uplo="U")
        self.is_accurate = rcond > WELL_CONDITIONED

    def solve(self, right: Vector) -> Vector:
        """Solve the linear system."""
        solution, _ = lapack.dpotrs(self._triangle, self.scale * right, lower=0)
        solved: Vector = self.scale * solution
        return solved


def _orthogonal_step(design: Design, model: LocalModel, scale: Vector) -> Vector:
    """Solve as a least squares problem, which does not square the condition number.

    The step brings each active row to its margin, and the parameters to zero, as far as possible.
    """
    root = np.sqrt(model.curvature[model.active])
    block = design.take(model.active) * root[:, None]
    penalties = np.sqrt(model.penalty)
    matrix = np.vstack([block, np.diag(penalties)]) * scale
    target = np.concatenate([-model.slope[model.active] / root, -penalties * model.parameters])
    solution = linalg.lstsq(matrix, target, cond=EPS, lapack_driver="gelsy", check_finite=False)[0]
    step: Vector = scale * solution
    return step
