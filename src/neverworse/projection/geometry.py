"""The loss, the constraint set and the distance of one projection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
from scipy import linalg

from neverworse._typing import Matrix, Scalars, Vector
from neverworse.projection.coordinates.choice import Coordinates, choose_coordinates
from neverworse.projection.coordinates.gram import EPS
from neverworse.projection.coordinates.kernel import RowSpaceWhitening
from neverworse.projection.coordinates.matrix_free import WeightSpace, distance_basis
from neverworse.projection.coordinates.moments import NonFiniteError
from neverworse.projection.labels import TrainingRows
from neverworse.projection.problem import (
    Projection,
    Sample,
    Solution,
    Start,
    Wanted,
    residual_sums,
    sample_of,
    score_supervised,
    squared_sizes,
)
from neverworse.projection.solver.hinges import StreamedHinges
from neverworse.projection.solver.working_set import draw, is_small, working_set_size
from neverworse.projection.weights import Weights
from neverworse.rows import Rows, as_rows
from neverworse.rows._chunk_state import ChunkState, add_pairs

Distance = Literal["all", "labeled", "unlabeled", "euclidean"] | Matrix


class Geometry:
    """The loss, the constraint set and the distance of one projection.

    Labels are measured in units of the widest range of an unknown label, so that soft labels lie
    in [0, 1] for the solver whatever the unit of the target is.

    Parameters
    ----------
    training : TrainingRows
    supervised : Weights
        What is projected.
    distance : {"all", "labeled", "unlabeled", "euclidean"} or array of shape (k, n_columns)
    alpha : float
        Ridge penalty of the loss.
    fit_intercept : bool

    Attributes
    ----------
    name : str
        Of the distance.
    guaranteed : bool
        Whether a projection in this distance is never worse.
    transductive : bool
        Whether labeled rows play no part in the loss.
    weights : array of shape (n_rows,) or None
        Of the rows in the loss.
    hinge_weights : array of shape (n_rows,)
        Weights of the unlabeled rows, times the range of their label; zero for all others.
    unit : float
        The widest range.
    whitening : Whitening, RowSpaceWhitening or WeightSpace
        Coordinates of the weights.
    placed, scored : ChunkState
        What is known about the labels, and supervised scores, where the rows are.
    """

    def __init__(
        self,
        training: TrainingRows,
        supervised: Weights,
        distance: Distance,
        alpha: float,
        fit_intercept: bool,
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
        self.weights = training.labels.weights
        if self.transductive:
            self.weights = training.labels.weights_where(training.labels.unlabeled)
        also = None
        if self.transductive:  # the supervised weights depend on the labeled rows
            also = training.labels.weights_where(~training.labels.unlabeled) > 0.0
        self.whitening = choose_coordinates(
            training.rows, self.weights, self.alpha, fit_intercept, also
        )
        row_labels = replace(training.labels.of_rows(self.weights), hinge=self.hinge_weights)
        self.placed = self.whitening.rows.scatter(row_labels)
        wanted = self._wanted()
        self.scored, self._linear, self._first = self._supervised_scores(wanted)
        self._sample = None
        if len(wanted.indices):
            self._sample = Sample(wanted.indices, np.concatenate(self.scored.map(sample_of)))

    def _wanted(self) -> Wanted:
        """Return the sample that the solver will start with, where taking it would take a pass."""
        rows, whitening = self.whitening.rows, self.whitening
        none = Wanted(np.empty(0, np.intp))
        if rows.random_access or not whitening.takes_rows:
            return none
        n_unlabeled = int(np.count_nonzero(self.hinge_weights))
        n_classes = self.supervised.coef.size // self.supervised.coef.shape[-1]
        rank = whitening.rank + 1  # with totals there is one more coordinate
        if is_small(n_classes * rank, rank, n_unlabeled):
            return none
        size = working_set_size(n_classes * rank, rank, n_unlabeled)
        return Wanted(draw(self.hinge_weights, size))

    def _supervised_scores(
        self, wanted: Wanted
    ) -> tuple[ChunkState, Vector, tuple[Vector, Scalars]]:
        """Return the supervised scores, c = H w_sup - E'Sy in these coordinates, U'Sq and Σ s q.

        Unknown labels enter c with their smallest value. Labels q are those nearest to the scores.
        """
        w, whitening = self.supervised, self.whitening
        scored = whitening.rows.keep(
            score_supervised, w.coef, w.intercept, known=(wanted,), kept=(self.placed,)
        )
        summed, total = scored.reduce(residual_sums, add_pairs)
        summed = summed.reshape(2, *w.coef.shape)
        total = np.asarray(total).reshape(2, *w.coef.shape[:-1])
        linear = whitening.adjoint(summed[0], total[0]) + whitening.adjoint_coef(
            self.alpha * w.coef
        )
        return scored, linear / self.unit, (whitening.adjoint(summed[1], total[1]), total[1])

    @property
    def start(self) -> Start:
        """The soft labels that would reproduce the supervised scores, allowed or not."""
        return Start(self.scored, self.training.labels)

    def problem(self, stop: Callable[[], bool]) -> Projection | None:
        """Return the dual problem, in coordinates in which its distance is Euclidean.

        None if `stop` says True before these are known.
        """
        if self.guaranteed or not self.whitening.rank:
            return self.problem_in_all_rows()
        if isinstance(self.whitening, WeightSpace):
            at_points = self._problem_at_points(self.whitening, stop)
            return None if at_points is None else self._with_totals(at_points)
        values, vectors = linalg.eigh(self._quadratic_form())
        largest = float(values.max(initial=0.0))
        kept = values > len(values) * 16 * EPS * largest
        rotation = vectors[:, kept] * np.sqrt(values[kept] / largest)
        problem = self._problem(self.whitening.rotated(rotation), rotation)
        return self._with_totals(problem)

    def problem_in_all_rows(self) -> Projection:
        """Return the dual problem in the distance of the loss itself."""
        problem = self._problem(self.whitening)
        if isinstance(self.whitening, WeightSpace):
            problem = replace(problem, length=self._length())
        return self._with_totals(problem)

    def _problem(self, coordinates: Coordinates, basis: Matrix | None = None) -> Projection:
        """Return the dual problem in coordinates of the directions in `basis`, or of all."""
        first, total = self._first
        return Projection(
            coordinates,
            self._linear if basis is None else self._linear @ basis,
            first if basis is None else first @ basis,
            total,
            self.hinge_weights,
            self.placed,
            self.start,
            self.training.labels.shape,
            sample=self._sample,
        )

    def _length(self) -> float:
        """Return a bound of the length of c: that of w_sup in H, and of the labels."""
        coef = self.supervised.coef
        of_scores, of_labels = self.scored.reduce(squared_sizes, add_pairs, also=(self.placed,))
        scored = of_scores + self.alpha * float(np.vdot(coef, coef))
        return float(np.sqrt(scored) + np.sqrt(of_labels)) / self.unit

    def _problem_at_points(self, space: WeightSpace, stop: Callable[[], bool]) -> Projection | None:
        """Return the dual problem in the directions that the points of the distance leave."""
        points: Rows
        weights = None
        name = repr(self.distance) if isinstance(self.distance, str) else "an array"
        if not isinstance(self.distance, str):
            points = as_rows(self.distance)
        elif self.distance == "labeled":
            points, _, weights = self.training.labeled()
        else:
            raise ValueError(
                f"distance='euclidean' takes a matrix of columns by columns, and X has "
                f"{space.rows.n_columns:,} columns. Use distance='all', or fewer columns (for "
                "example by sklearn.decomposition.TruncatedSVD)."
            )
        found = distance_basis(space, points, weights, self.fit_intercept, name, stop)
        if found is None:
            return None
        return self._problem(*found)

    def _with_totals(self, problem: Projection) -> Projection:
        totals = self.training.labels.free_totals()
        return problem if totals is None else problem.with_totals(totals.scaled(1.0 / self.unit))

    def _quadratic_form(self) -> Matrix:
        """Return T'D'DT for the distance D."""
        whitening = self.whitening
        assert not isinstance(whitening, WeightSpace)
        if isinstance(whitening, RowSpaceWhitening):
            return self._form_in_row_space(whitening)
        if isinstance(self.distance, str):
            if self.distance == "labeled":
                rows, _, weights = self.training.labeled()
                return whitening.quadratic_form(rows, weights, self.fit_intercept)
            basis = whitening.to_weights(np.eye(whitening.rank))
            columns = np.column_stack([basis.coef, basis.intercept])
            return columns @ columns.T
        try:
            return whitening.quadratic_form(as_rows(self.distance), None, self.fit_intercept)
        except NonFiniteError:
            raise ValueError(
                "The values of distance are so large that their squares overflow. Rescale the "
                "array; a factor makes no difference to the projection."
            ) from None

    def _form_in_row_space(self, whitening: RowSpaceWhitening) -> Matrix:
        """Return the same, from the whitened rows."""
        if not isinstance(self.distance, str):
            return whitening.quadratic_form(self.distance, self.fit_intercept)
        if self.distance == "euclidean":
            return whitening.euclidean_form()
        weights = self.training.labels.weights_where(~self.training.labels.unlabeled)
        labeled = np.flatnonzero(weights)
        return whitening.form_of_rows(labeled, weights[labeled])

    def direction(self, problem: Projection, solution: Solution) -> Weights:
        """Return the projected less the supervised weights."""
        z = solution.z if problem.totals is None else solution.z[..., :-1]
        if self.guaranteed:
            if solution.value <= problem.floor:
                z = np.zeros_like(z)
        else:
            x = np.zeros((*solution.q.shape[:-1], len(self.hinge_weights)))
            x[..., self.training.labels.unlabeled] = solution.q
            hinges = StreamedHinges(self.whitening, self.hinge_weights)
            z = hinges.adjoint(x * self.hinge_weights) - self._linear
            floor = self.problem_in_all_rows().floor
            half = 0.5 * float(np.vdot(z, z))
            if isinstance(self.whitening, WeightSpace):
                raised = self.whitening.solve(z, 0.0).x
                z, half = raised, 0.5 * float(np.vdot(z, raised))
            if half <= floor:
                z = np.zeros_like(z)
        return self.whitening.to_weights(self.unit * z)

    def multiplier(self, problem: Projection, solution: Solution) -> Scalars | None:
        """Return by how much restricted totals shift all scores in the worst labeling."""
        if problem.totals is None or not self.guaranteed:
            return None
        size = float(problem.whitening.offset[-1])
        shift: Vector = self.unit * size * solution.z[..., -1]
        return shift
