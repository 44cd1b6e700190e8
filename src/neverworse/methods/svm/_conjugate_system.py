"""Newton steps by conjugate gradients, for so many columns that a matrix would be too large."""

from __future__ import annotations

import numpy as np

from neverworse._typing import Vector
from neverworse.methods.svm._chosen import choose, squares_of
from neverworse.methods.svm._design import Design
from neverworse.methods.svm._local import LocalModel
from neverworse.rows import SparseRows

# A sparse matrix is cut down to the rows with curvature if that leaves out so many.
FEW = 0.7
# Conjugate gradients stop when the residual is so much smaller than at the start. Steps beyond the
# first few are nearly at the optimum, where an inexact one would only be taken again.
FIRST_ACCURACY, ACCURACY, N_FIRST = 0.03, 1e-4, 3
MOST_ITERATIONS = 1000


class ConjugateSystem:
    """Multiplies with the second derivative of the objective, and never forms it.

    Parameters
    ----------
    design : Design
    """

    def __init__(self, design: Design) -> None:
        self._design = design
        self._n_steps = 0

    def fresh(self) -> ConjugateSystem:
        """See `System.fresh`."""
        return ConjugateSystem(self._design)

    def step(self, model: LocalModel) -> Vector:
        """See `System.step`; preconditioned with the diagonal."""
        self._n_steps += 1
        accuracy = FIRST_ACCURACY if self._n_steps <= N_FIRST else ACCURACY
        design, curvature = self._active(model)
        inverse = 1.0 / _diagonal(design, curvature, model.penalty)
        step, residual = np.zeros_like(model.gradient), -model.gradient
        scaled = inverse * residual
        direction, size = scaled, float(residual @ scaled)
        enough = accuracy**2 * size
        for _ in range(MOST_ITERATIONS):
            if size <= enough:
                break
            image = _product(design, curvature, direction) + model.penalty * direction
            length = size / float(direction @ image)
            step += length * direction
            residual -= length * image
            scaled = inverse * residual
            last, size = size, float(residual @ scaled)
            direction = scaled + (size / last) * direction
        return step

    def _active(self, model: LocalModel) -> tuple[Design, Vector]:
        """Leave out rows without curvature, if that is worth a copy of the others."""
        design, active = self._design, model.active
        if not isinstance(design.rows, SparseRows) or len(active) > FEW * design.rows.n_rows:
            return design, model.curvature
        return design.with_rows(choose(design.rows, active)), model.curvature[active]


def _product(design: Design, curvature: Vector, direction: Vector) -> Vector:
    """Return the second derivative of the loss times a direction."""
    weights = design.weights(direction)
    _, summed, total = design.rows.scores_and_sum(
        weights.coef, weights.intercept, lambda scores, rows: curvature[rows] * scores
    )
    return design.gather(summed, float(total))


def _diagonal(design: Design, curvature: Vector, penalty: Vector) -> Vector:
    """Return the diagonal of the second derivative of the objective."""
    diagonal = squares_of(design.rows, curvature)
    if design.fit_intercept:
        total, centre = float(curvature.sum()), design.centre
        sums = design.rows.weighted_sum(curvature)
        diagonal = diagonal - centre * (2.0 * sums - total * centre)
        diagonal = np.append(np.maximum(diagonal, 0.0), total)
    diagonal = diagonal + penalty
    diagonal[diagonal == 0.0] = 1.0  # the intercept, where no row has curvature
    return diagonal
