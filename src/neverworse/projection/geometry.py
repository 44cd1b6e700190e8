"""The loss, the constraint set and the distance of one projection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, reduce
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from neverworse._typing import AnyArray, Mask, Matrix, Vector
from neverworse.projection.coordinates import Coordinates, Points, Weights, suited
from neverworse.projection.coordinates.gram import (
    NonFiniteError,
    column_moments,
    is_few_rows,
    whiten,
)
from neverworse.projection.coordinates.kernel import row_space, whiten_row_space
from neverworse.projection.coordinates.matrix_free import weight_coordinates
from neverworse.projection.labels import (
    Few,
    Scored,
    TrainingRows,
    score_supervised,
    side_by_side,
)
from neverworse.projection.solver.problem import DualSolution, Projection, StreamedHinges
from neverworse.projection.solver.working_set import draw, is_small, working_set_size
from neverworse.rows import Rows, add_pairs, as_rows

Distance = Literal["all", "labeled", "unlabeled", "euclidean"] | Matrix


def choose_coordinates(
    rows: Rows, weights: Vector | None, alpha: float, fit_intercept: bool, also: Mask | None
) -> Coordinates:
    """Return coordinates for the loss of these rows with these weights (ones if None).

    The supervised weights may depend on other rows as well, marked in `also`.
    """
    used = np.ones(rows.n_rows, bool) if weights is None else weights > 0.0
    kind = suited(rows, int(np.count_nonzero(used if also is None else used | also)))
    if kind == "kernel":
        space = row_space(rows, weights, fit_intercept, also)
        # Without penalty, eigenvalues that can hardly be told from zero count as much as others.
        if not (space.doubtful and alpha == 0.0 and is_few_rows(rows, weights)):
            return whiten_row_space(space, weights, alpha, fit_intercept)
    if kind == "matrix-free":
        sums = column_moments(rows, weights, centre=fit_intercept)
        return weight_coordinates(sums, weights, alpha, fit_intercept)
    return whiten(rows, weights, alpha, fit_intercept)


class Geometry:
    """The loss, the constraint set and the distance of one projection.

    Labels are measured in units of the widest range of an unknown label, so that soft labels lie
    in [0, 1] for the solver whatever the unit of the target is.
    """

    name: str  # of the distance
    guaranteed: bool  # whether a projection in this distance is never worse
    transductive: bool  # whether labeled rows play no part in the loss
    weights: Vector | None  # (n_rows,): of the rows in the loss
    # (n_rows,): weights of the unlabeled rows, times the range of their label; zero for all others
    hinge_weights: AnyArray
    unit: float  # the widest range
    coordinates: Coordinates  # of the weights, for the loss
    # What is known about the labels (`Labels`), and supervised scores (`Scored`): where rows are
    labels: Any
    scored: Any

    def __init__(
        self,
        training: TrainingRows,
        supervised: Weights,
        distance: Distance,
        alpha: float,
        fit_intercept: bool,
        factored: bool = True,  # whether more than products with the Gram matrix will be needed
    ) -> None:
        self.training = training
        self.supervised = supervised
        self.distance = distance
        self.alpha = float(alpha)
        self.fit_intercept = fit_intercept
        self.name = distance if isinstance(distance, str) else "user's matrix"
        self.guaranteed = self.name in ("all", "unlabeled")
        self.hinge_weights = training.labels.hinge_weights()
        self.unit = float(training.labels.width[self.hinge_weights > 0.0].max(initial=0.0)) or 1.0
        if self.unit != 1.0:
            self.hinge_weights = self.hinge_weights / self.unit
        # The transductive variant drops the labeled rows from everything but the start.
        self.transductive = self.name == "unlabeled" and bool(self.hinge_weights.any())
        self.weights, also = training.labels.weights, None
        if self.transductive:
            self.weights = training.labels.weights_where(training.labels.unlabeled)
            # The supervised weights depend on the labeled rows.
            also = training.labels.weights_where(~training.labels.unlabeled) > 0.0
        loss = (self.weights, self.alpha, fit_intercept)
        if factored:
            self.coordinates = choose_coordinates(training.rows, *loss, also)
        else:
            sums = column_moments(training.rows, self.weights, centre=fit_intercept)
            self.coordinates = weight_coordinates(sums, *loss)
        row_labels = replace(training.labels, weights=self.weights, totals=None, unit=self.unit)
        rows, self._wanted = self.coordinates.rows, self._wanted_sample()
        self.labels = rows.scatter(row_labels)
        weights = supervised.coef, supervised.intercept
        known, kept = (self._wanted,), (self.labels,)
        found, self.scored = rows.keep(score_supervised, *weights, known=known, kept=kept)
        summed, total, copies = zip(*found, strict=True)
        self._sums, self._copies = (sum(summed), sum(total)), copies

    def _wanted_sample(self) -> Few:
        """Return the sample that the solver will start with, where taking it would take a pass."""
        n_unlabeled = int(np.count_nonzero(self.hinge_weights))
        rank = self.coordinates.rank + 1  # with totals there is one more coordinate
        size = (len(self.supervised.coef) * rank, rank, n_unlabeled)
        at_hand = self.coordinates.rows.random_access or not self.coordinates.whitens_copies
        if at_hand or is_small(*size):
            return Few()
        return Few(draw(self.hinge_weights, working_set_size(*size)))

    @cached_property
    def _base(self) -> Projection:
        """The dual problem in the distance of the loss itself, without restricted totals.

        Its linear term is c = H w_sup - E'Sy, where unknown labels y are as small as they may be.
        """
        w, coordinates = self.supervised, self.coordinates
        (summed, total), n = self._sums, len(w.coef)
        linear = coordinates.adjoint(summed[:n], total[:n])
        linear = linear + coordinates.adjoint_coef(self.alpha * w.coef)
        return Projection(
            coordinates,
            linear / self.unit,
            coordinates.adjoint(summed[n:], total[n:]),
            total[n:],
            self.hinge_weights,
            self.training.labels,
            self.labels,
            self.scored,
            length=None if coordinates.is_whitened else self._length(),
            sample=self._wanted.indices,
            copies=self._copies,
        )

    def _length(self) -> float:
        """Return a bound of the length of c: that of w_sup in H, and of the labels."""
        coef, kept = self.supervised.coef, (self.scored, self.labels)
        sizes = self.coordinates.rows.map_state(Scored.squared_sizes, kept)
        of_scores, of_labels = reduce(add_pairs, sizes)
        scored = of_scores + self.alpha * float(np.vdot(coef, coef))
        return float(np.sqrt(scored) + np.sqrt(of_labels)) / self.unit

    def supervised_scores(self) -> Matrix:
        rows = self.coordinates.rows
        return side_by_side(rows.map_state(attrgetter("scores"), (self.scored,)), rows.n_rows)

    def problem_in_all_rows(self) -> Projection:
        return self._with_totals(self._base)

    def problem(self, stop: Callable[[], bool]) -> Projection | None:
        """Return the dual problem, in coordinates in which its distance is Euclidean.

        None if `stop` says True before these are known.
        """
        if self.guaranteed or not self.coordinates.rank:
            return self.problem_in_all_rows()
        try:
            found = self.coordinates.in_distance(self._points(), stop)
        except NonFiniteError:
            raise ValueError(
                "The values of distance are so large that their squares overflow. Rescale the "
                "array; a factor makes no difference to the projection."
            ) from None
        if found is None:
            return None
        coordinates, basis = found
        linear, first = self._base.linear @ basis, self._base.first @ basis
        changed = replace(self._base, coordinates=coordinates, linear=linear, first=first)
        return self._with_totals(replace(changed, length=None))

    def _points(self) -> Points:
        if not isinstance(self.distance, str):
            return Points("an array", as_rows(self.distance), with_one=self.fit_intercept)
        if self.distance == "euclidean":
            return Points(repr(self.distance), None)
        rows, _, weights = self.training.labeled()
        labels = self.training.labels
        in_table = labels.weights_where(~labels.unlabeled)
        return Points(repr(self.distance), rows, weights, in_table, self.fit_intercept)

    def _with_totals(self, problem: Projection) -> Projection:
        totals = self.training.labels.free_totals()
        return problem if totals is None else problem.with_totals(totals.scaled(1.0 / self.unit))

    def direction(self, problem: Projection, solution: DualSolution) -> Weights:
        z = solution.z if problem.totals is None else solution.z[:, :-1]
        value, floor = solution.value, problem.floor
        if not self.guaranteed:
            z, value = self._nearest_in_all_rows(solution.q)
            floor = self.problem_in_all_rows().floor
        if value <= floor:
            z = np.zeros_like(z)
        return self.coordinates.to_weights(self.unit * z)

    def _nearest_in_all_rows(self, q: Matrix) -> tuple[Matrix, float]:
        """Return the point of soft labels, and half its squared distance in the loss itself."""
        hinges = StreamedHinges(self.coordinates, self.hinge_weights)
        x = self._base.of_all_rows(q)
        primal = hinges.adjoint(x * self.hinge_weights) - self._base.linear
        z = self.coordinates.solve(primal, 0.0).x
        return z, 0.5 * float(np.vdot(z, primal))

    def multiplier(self, problem: Projection, solution: DualSolution) -> Vector | None:
        """Return by how much restricted totals shift all scores in the worst labeling."""
        if problem.totals is None or not self.guaranteed:
            return None
        size = float(problem.coordinates.offset[-1])
        return self.unit * size * solution.z[:, -1]
