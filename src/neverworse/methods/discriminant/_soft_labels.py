r"""What the semi-supervised discriminant classifiers share: the baseline, and soft labels.

The soft labels :math:`q_j` of the rows lie in the simplex, and enter the class sums z linearly,

.. math:: z(q) = z_0 + \sum_j s_j \, q_j \otimes (1, x_j - c) ,

so that the derivative of f(z(q)) with respect to :math:`q_{jk}` is :math:`s_j` times a linear score
:math:`t_{jk}` of the row. A step goes from labels :math:`\bar q` to the points of the simplex that
are nearest to :math:`\bar q_j - t_j / L`, where L bounds the curvature of f and adapts to it. One
pass over the rows gives the scores and the change of z; everything else is done without the rows.

For a convex f, the *gap* :math:`\sum_j s_j (q_j \cdot t_j - \min_k t_{jk})` bounds how far f is
above its minimum; where it is zero, the Karush-Kuhn-Tucker conditions hold.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import special
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from neverworse._accelerated_gradient import accelerated_gradient
from neverworse._budget import Budget
from neverworse._typing import Mask, Matrix, Vector
from neverworse.estimators import copy_input_checks
from neverworse.methods.discriminant._gaussian import GaussianClasses, SingularCovarianceError
from neverworse.methods.discriminant._sample import Family, Sample, one_hot
from neverworse.methods.discriminant._supervised import (
    DiscriminantClassifier,
    LinearDiscriminantClassifier,
)
from neverworse.projection import Labels, Observer, Simplex, TrainingRows

# The bound of the curvature decays with each step, by more where a step met much less curvature,
# and grows where it was exceeded; beyond a total growth, curvature was not the problem.
CURVATURE_DECAY, MAX_CURVATURE_DROP, CURVATURE_GROWTH = 0.95, 0.3, 2.0
MAX_TOTAL_GROWTH = 1e12
VALUE_ROUNDING = 1e-13  # values that are closer, relative to the total weight, cannot be compared
MAX_IDLE_STEPS = 100  # without a smaller value or gap

# Value and derivative at class sums.
Objective = Callable[[Matrix], tuple[float, Matrix]]


@dataclass(frozen=True)
class Problem:
    """What a semi-supervised fit starts from."""

    start: GaussianClasses  # the supervised ones, about the centre of the sample
    sample: Sample  # all rows
    family: Family
    labels: Labels
    observer: Observer | None

    @property
    def posteriors(self) -> Matrix:
        """Probabilities of the classes by the supervised parameters, (n_classes, n_rows)."""
        return posteriors(self.sample.scores(self.start.linear))


class SemiSupervisedDiscriminant(DiscriminantClassifier):
    """Base of discriminant classifiers that start from the supervised one."""

    supervised_: LinearDiscriminantClassifier

    def _fit_training(
        self, training: TrainingRows, family: Family, observer: Observer | None
    ) -> GaussianClasses:
        supervised = LinearDiscriminantClassifier(
            covariance=self.covariance,
            priors=self.priors,
            alpha=self.alpha,
            missing_label=self.missing_label,
        )
        start = supervised._fit_training(training, family)
        supervised._set_model(start)
        supervised.classes_ = self.classes_
        copy_input_checks(self, supervised)
        self.supervised_ = supervised
        labels = training.labels
        weights = self._row_weights(labels)
        sample = Sample.of(training.rows, one_hot(labels), weights, labels.unlabeled)
        centred, family = start.about(sample.centre), replace(family, space=start.space)
        problem = Problem(centred, sample, family, labels, observer)
        if not sample.free.any():
            self._keep(problem)
            return start
        return self._move(problem)

    def _row_weights(self, labels: Labels) -> Vector:
        """Return the weights of all rows in the likelihood."""
        return np.ones(len(labels.width)) if labels.weights is None else labels.weights

    @abstractmethod
    def _move(self, problem: Problem) -> GaussianClasses:
        """Return the classes that all rows give, and set the attributes of the method."""

    def _keep(self, problem: Problem) -> None:
        """Set the attributes of the method where no unlabeled row has a weight."""


class SoftLabelDiscriminant(SemiSupervisedDiscriminant):
    """Base of discriminant classifiers that find soft labels of unlabeled rows, step by step."""

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **SemiSupervisedDiscriminant._parameter_constraints,
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "max_time": [Interval(Real, 0, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    soft_labels_: Vector
    n_iter_: int
    converged_: bool

    def __init__(
        self,
        *,
        covariance: str = "full",
        priors: Any = None,
        alpha: float = 0.0,
        missing_label: Any = "auto",
        tol: float = 1e-6,
        max_iter: int | None = 10000,
        max_time: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.covariance = covariance
        self.priors = priors
        self.alpha = alpha
        self.missing_label = missing_label
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.verbose = verbose

    def _budget(self, observer: Observer | None) -> Budget:
        return Budget(self.max_iter, self.max_time, observer, "iterations")

    def _set_soft_labels(
        self, soft_labels: Matrix, unlabeled: Mask, n_iter: int, converged: bool
    ) -> None:
        """Set what was found, for soft labels of shape (n_classes, n_rows)."""
        found = soft_labels[:, unlabeled]
        self.soft_labels_ = found[1].copy() if len(found) == 2 else np.ascontiguousarray(found.T)
        self.n_iter_ = max(1, n_iter)  # scikit-learn wants at least one
        self.converged_ = converged

    def _keep(self, problem: Problem) -> None:
        self._set_soft_labels(problem.posteriors, problem.labels.unlabeled, 1, True)

    def _warn_unless_converged(self) -> None:
        if not self.converged_:
            warnings.warn(
                f"{type(self).__name__} has not converged after {self.n_iter_} steps. Raise "
                "max_iter, max_time or tol; if that does not help, rescale the features.",
                ConvergenceWarning,
                stacklevel=2,
            )


def posteriors(scores: Matrix) -> Matrix:
    """Return the probabilities of the classes, for scores of shape (n_classes, n_rows)."""
    probabilities: Matrix = special.softmax(scores, axis=0)
    return probabilities


@dataclass(frozen=True)
class Descent:
    """Soft labels, and how good they are."""

    soft_labels: Matrix  # (n_classes, n_rows): of labeled rows, anything
    value: float
    gap: float


def descend(
    objective: Objective, problem: Problem, enough: Callable[[float, float], bool], budget: Budget
) -> Descent:
    """Minimise a smooth function of the class sums, from the supervised probabilities on.

    It ends where ``enough(gap, value)`` says so, or with the budget.
    """
    run, q = _Run(objective, problem.sample, enough, budget), problem.posteriors
    start = _Point.at(objective, q, problem.sample.all_sums(q))
    end = accelerated_gradient(
        run.begin(start),
        step=run.step,
        extrapolate=run.extrapolate,
        uphill=lambda ahead, new, here: bool(np.vdot(ahead.slopes, new.sums - here.sums) > 0.0),
        worse=lambda new, here: new.value > here.value + run.rounding,
        stop=run.stop,
    )
    gaps = _gaps(end.labels, problem.sample.scores(end.slopes))
    return Descent(end.labels, end.value, float(problem.sample.free @ gaps))


@dataclass(frozen=True)
class _Point:
    """Labels with their class sums, and value and derivative there."""

    labels: Matrix
    sums: Matrix
    value: float
    slopes: Matrix

    @classmethod
    def at(cls, objective: Objective, labels: Matrix, sums: Matrix) -> _Point:
        value, slopes = objective(sums)
        return cls(labels, sums, value, slopes)


class _Run:
    """The steps of a descent, the curvature that they meet, and whether they get anywhere."""

    def __init__(
        self,
        objective: Objective,
        sample: Sample,
        enough: Callable[[float, float], bool],
        budget: Budget,
    ) -> None:
        self._objective, self._sample = objective, sample
        self._enough, self._budget = enough, budget
        self._n_unlabeled = int(np.count_nonzero(sample.free))
        self._curvature = self._first = 1.0
        self._gap = self._smallest_gap = self._value = math.inf
        self._idle, self._ended = 0, False
        self.rounding = VALUE_ROUNDING * sample.total

    def begin(self, start: _Point) -> _Point:
        """Bound the curvature such that the label that changes most changes by about one."""
        t = self._sample.scores(start.slopes)[:, self._sample.free > 0.0]
        largest = float(np.ptp(t, axis=0).max())
        self._curvature = self._first = largest if largest > 0.0 else 1.0
        return start

    def stop(self, here: _Point) -> bool:
        """Whether the budget is used up, or steps make no more progress."""
        progress = here.value < self._value - self.rounding
        progress = progress or self._gap < 0.9 * self._smallest_gap
        self._value, self._smallest_gap = here.value, min(self._smallest_gap, self._gap)
        self._idle = 0 if progress else self._idle + 1
        return self._ended or self._idle > MAX_IDLE_STEPS

    def step(self, ahead: _Point) -> _Point | None:
        """Return the end of a step; None if the gap is small enough, or the budget is used up."""
        step = _Step(self._sample, ahead, self._curvature)
        self._gap = step.gap
        self._budget.report("soft labels", self._n_unlabeled, step.gap, abs(ahead.value))
        if self._enough(step.gap, ahead.value):
            return None
        if not self._budget.spend():
            self._ended = True
            return None
        new = step.end(self._objective)
        while not step.fits(new) and self._curvature < MAX_TOTAL_GROWTH * self._first:
            self._curvature *= CURVATURE_GROWTH
            step = _Step(self._sample, ahead, self._curvature)
            new = step.end(self._objective)
        met = max(MAX_CURVATURE_DROP * self._curvature, step.curvature_to(new))
        self._curvature = min(CURVATURE_DECAY * self._curvature, met)
        return new

    def extrapolate(self, here: _Point, before: _Point, momentum: float) -> _Point:
        """Return a point on the line from the one before through this one.

        Labels there may lie outside of the simplex. If they do so by too much for a likelihood to
        exist, it is this point itself.
        """
        sums = here.sums + momentum * (here.sums - before.sums)
        if np.any(sums[:, 0] <= 0.0):
            return here
        labels = here.labels + momentum * (here.labels - before.labels)
        try:
            return _Point.at(self._objective, labels, sums)
        except SingularCovarianceError:
            return here


class _Step:
    """Where labels are heading, and the gap where they come from, by one pass over the rows."""

    def __init__(self, sample: Sample, start: _Point, curvature: float) -> None:
        free, simplex, q = sample.free, Simplex(), start.labels
        gaps, squares = np.empty(len(free)), np.empty(len(free))
        self._labels = np.empty_like(q)

        def weigh(t: Matrix, rows: slice) -> Matrix:
            here = q[:, rows]
            nearest = simplex.project(here - t / curvature)
            move = nearest - here
            gaps[rows] = _gaps(here, t)
            squares[rows] = np.sum(move**2, axis=0)
            self._labels[:, rows] = nearest
            weights: Matrix = free[rows] * move
            return weights

        _, change = sample.scores_and_sums(start.slopes, weigh)
        self._start, self._change, self._curvature = start, change, curvature
        self._square = float(free @ squares)
        self.gap = float(free @ gaps)

    def end(self, objective: Objective) -> _Point:
        """Return where the step ends."""
        return _Point.at(objective, self._labels, self._start.sums + self._change)

    def fits(self, end: _Point) -> bool:
        """Whether the curvature up to the end is bounded as assumed.

        By the values, or by the derivatives where values are too close to be compared.
        """
        start = self._start
        along = float(np.vdot(start.slopes, self._change))
        if end.value <= start.value + along + 0.5 * self._curvature * self._square:
            return True
        return self.curvature_to(end) <= self._curvature

    def curvature_to(self, end: _Point) -> float:
        """Return the curvature up to the end."""
        change = float(np.vdot(end.slopes - self._start.slopes, self._change))
        return change / self._square if self._square > 0.0 else 0.0


def _gaps(labels: Matrix, scores: Matrix) -> Vector:
    """Return for every row by how much another label would lower the scores."""
    gaps: Vector = np.sum(labels * scores, axis=0) - scores.min(axis=0)
    return gaps
