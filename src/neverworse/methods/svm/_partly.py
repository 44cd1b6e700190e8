"""Support vector machines on rows of which only some are labeled."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from neverworse._typing import Indices, Vector
from neverworse.methods.svm._design import Design
from neverworse.methods.svm._hinge import Hinges
from neverworse.methods.svm._local import System
from neverworse.methods.svm._newton import Solution, minimise, objective
from neverworse.projection.solver.budget import Budget

# The tolerance of solutions that are only stages on the way to others.
ROUGH = 1e-6


@dataclass(frozen=True)
class PartlyLabeled:
    r"""The objective of the weights, once the unlabeled rows are given soft labels p.

    .. math::

        \frac{\alpha}{2} \lVert w \rVert^2 + \sum_i c_i \ell(y_i f_i)
        + v \sum_j c_j \left( p_j \ell(f_j) + (1 - p_j) \ell(-f_j) \right),
        \qquad \ell(t) = \tfrac12 \max(0, 1 - t)^2

    Attributes
    ----------
    design : Design
        Of all rows.
    system : System
    labeled : Hinges
        Weights c of the labeled rows; zeros for all others.
    unlabeled : array of int
        The unlabeled rows that have a weight.
    costs : array of shape (n_unlabeled,)
        Their weights c.
    start : Solution
        The supervised weights.
    tol : float
    budget : Budget
    """

    design: Design
    system: System
    labeled: Hinges
    unlabeled: Indices
    costs: Vector
    start: Solution
    tol: float
    budget: Budget

    def solve(
        self, soft: Vector, weight: float, start: Solution | None, rough: float = 0.0
    ) -> Solution:
        """Return the best weights for soft labels p and the weight v of the unlabeled rows.

        If they are only a stage on the way to others, `rough` is a larger tolerance for them.
        """
        # Divided by v, the objective changes with v in the penalty and the few labeled rows only,
        # so that the system remembers what it knows of the unlabeled rows.
        design, hinges = self._divided(soft, weight)
        tol = max(self.tol, rough)
        found = minimise(design, hinges, self.system, self.budget, tol, start)
        return replace(found, value=weight * found.value)

    def value(self, solution: Solution, soft: Vector, weight: float) -> float:
        """Return the objective of a solution that was found for other labels or weights."""
        divided = self._divided(soft, weight)
        return weight * objective(*divided, solution.parameters, solution.margins)

    def _divided(self, soft: Vector, weight: float) -> tuple[Design, Hinges]:
        positive, negative = self.labeled.positive / weight, self.labeled.negative / weight
        positive[self.unlabeled] = self.costs * soft
        negative[self.unlabeled] = self.costs * (1.0 - soft)
        design = replace(self.design, penalty=self.design.penalty / weight)
        return design, Hinges(positive, negative)

    def scores(self, solution: Solution) -> Vector:
        """Return the scores of the unlabeled rows."""
        return solution.margins.scores[self.unlabeled]

    def preference(self, scores: Vector) -> Vector:
        """Return how much more a positive label of each unlabeled row costs than a negative one."""
        up, down = np.maximum(1.0 - scores, 0.0), np.maximum(1.0 + scores, 0.0)
        return 0.5 * self.costs * (up - down) * (up + down)
