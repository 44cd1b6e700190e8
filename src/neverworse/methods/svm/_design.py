"""The rows of a linear SVM, and the penalty of its weights."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from neverworse._typing import Indices, Mask, Matrix, Vector
from neverworse.projection import Weights
from neverworse.rows import Rows


@dataclass(frozen=True)
class Design:
    """Scores as a linear function of parameters: the weights, and an intercept behind them.

    The parameters refer to centred rows, which makes the intercept nearly independent of the
    weights. The penalty is that of the weights of the rows as they are: centring does not change
    it, because rows are centred only if the intercept is not penalised.

    Attributes
    ----------
    rows : Rows
        Perhaps shifted.
    centre : array of shape (n_columns,)
        Subtracted from the rows, by algebra.
    idle : array of int
        Columns in which no row differs from the centre: exactly zero once centred.
    penalty : array of shape (n_parameters,)
        The penalty is ½ Σ penalty · parameter².
    fit_intercept : bool
    absent : boolean array of shape (n_rows,), or None
        Rows without weight, whose scores are of no interest and may be anything.
    """

    rows: Rows
    centre: Vector
    idle: Indices
    penalty: Vector
    fit_intercept: bool
    absent: Mask | None

    def scores(self, parameters: Vector) -> Vector:
        """Return the scores of all rows; zero for rows without weight."""
        weights = self.weights(parameters)
        scores = self.rows.scores(weights.coef, weights.intercept)
        if self.absent is not None:
            scores[self.absent] = 0.0
        return scores

    def adjoint(self, slope: Vector) -> Vector:
        """Return the derivative by the parameters, given that by the scores."""
        return self.gather(self.rows.weighted_sum(slope), float(slope.sum()))

    def gather(self, weighted_sum: Vector, total: float) -> Vector:
        """Return the sum over centred rows, given the sum over rows and that of the weights."""
        if not self.fit_intercept:
            return weighted_sum
        centred = weighted_sum - total * self.centre
        centred[self.idle] = 0.0
        return np.append(centred, total)

    def weights(self, parameters: Vector) -> Weights:
        """Return the weights for rows that are neither shifted nor centred."""
        if not self.fit_intercept:
            return Weights(parameters, 0.0)
        coef = parameters[:-1]
        intercept = float(parameters[-1] - coef @ self.centre)
        shift = self.rows.shift
        return Weights(coef, intercept if shift is None else intercept - float(coef @ shift))

    def parameters(self, weights: Weights) -> Vector:
        """Return the parameters that belong to weights."""
        if not self.fit_intercept:
            return weights.coef
        origin = self.centre if self.rows.shift is None else self.centre + self.rows.shift
        return np.append(weights.coef, weights.intercept + weights.coef @ origin)

    def take(self, indices: Indices) -> Matrix:
        """Return some of the centred rows, with a one for the intercept behind them."""
        taken = self.rows.take(indices)
        if not self.fit_intercept:
            return taken
        taken -= self.centre
        taken[:, self.idle] = 0.0
        return np.column_stack([taken, np.ones(len(taken))])

    def with_rows(self, rows: Rows) -> Design:
        """Return the same for some of the rows, all of which have a weight."""
        return replace(self, rows=rows, absent=None)
