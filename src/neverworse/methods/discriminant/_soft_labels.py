r"""Soft labels of unlabeled rows, by expectation maximisation or by projected gradients.

The soft labels :math:`q_j` of the rows lie in the simplex, and enter the class sums z linearly,
:math:`z(q) = z_0 + \sum_j s_j \, q_j \otimes (1, x_j - c)`, so that the derivative of f(z(q)) with
respect to :math:`q_{jk}` is :math:`s_j` times a linear score :math:`t_{jk}` of the row. A step goes
from labels :math:`\bar q` to the points of the simplex nearest to :math:`\bar q_j - t_j / L`, where
L bounds the curvature of f and adapts to it. It takes one pass over the rows.

For a convex f, the *gap* :math:`\sum_j s_j (q_j \cdot t_j - \min_k t_{jk})` bounds how far f is
above its minimum; where it is zero, the Karush-Kuhn-Tucker conditions hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import special

from neverworse._budget import Budget
from neverworse._iterations import accelerated_gradient
from neverworse._typing import Matrix
from neverworse._words import documented_like
from neverworse.estimators import ProjectedLeastSquaresClassifier
from neverworse.methods._base import warn_not_converged
from neverworse.methods.discriminant import _supervised
from neverworse.methods.discriminant._gaussian import (
    GaussianClasses,
    Sample,
    SingularCovarianceError,
    mean_diagonal,
)
from neverworse.projection import Simplex

# The bound of the curvature decays with each step, by more where a step met much less curvature,
# and grows where it was exceeded; beyond a total growth, curvature was not the problem.
CURVATURE_DECAY, MAX_CURVATURE_DROP, CURVATURE_GROWTH = 0.95, 0.3, 2.0
MAX_TOTAL_GROWTH = 1e12
VALUE_ROUNDING = 1e-13  # values that are closer, relative to the total weight, cannot be compared
MAX_IDLE_STEPS = 100  # without a smaller value or gap


@dataclass(eq=False, repr=False, kw_only=True)
class SoftLabelDiscriminant(_supervised.SemiSupervisedDiscriminant):
    """Base of discriminant classifiers that find soft labels of unlabeled rows, step by step."""

    tol: float = 1e-6
    max_iter: int | None = 10000
    max_time: float | None = None
    verbose: int = 0

    def _set_soft_labels(
        self, soft_labels: Matrix, sample: Sample, n_iter: int, converged: bool, warn: bool = True
    ) -> None:
        """Set the attributes for soft labels of shape (n_classes, n_rows)."""
        found = soft_labels[:, sample.labels.unlabeled]
        self.soft_labels_ = np.ascontiguousarray(found[1] if len(found) == 2 else found.T)
        self.n_iter_ = max(1, n_iter)  # scikit-learn expects at least one
        self.converged_ = converged
        if warn and not converged:
            warn_not_converged(
                f"{type(self).__name__} has not converged after {self.n_iter_} steps. Raise "
                "max_iter, max_time or tol; if that does not help, rescale the features."
            )


@documented_like(
    _supervised.LinearDiscriminantClassifier,
    _supervised.MomentConstrainedDiscriminantAnalysis,
    ProjectedLeastSquaresClassifier,
)
@dataclass(eq=False, repr=False, kw_only=True)
class EMDiscriminantAnalysis(SoftLabelDiscriminant):
    r"""Linear discriminant analysis with unlabeled rows, by expectation maximisation.

    Maximises the likelihood of labeled rows with their classes, and of unlabeled rows without,

    .. math:: \sum_{i \text{ labeled}} s_i \log (\pi_{y_i} \mathcal N(x_i; \mu_{y_i}, \Sigma))
              + \sum_{j \text{ unlabeled}} s_j \log \sum_k \pi_k \mathcal N(x_j; \mu_k, \Sigma)
              - \frac{\alpha}{2} N \operatorname{tr} \Sigma^{-1} ,

    with N the sum of all weights s. Every step replaces the missing labels by the probabilities of
    the classes, and the parameters by those of maximum likelihood for these soft labels.

    Nothing is guaranteed: where the classes are not Gaussian, the classifier can become much worse
    than the supervised one.

    Parameters
    ----------
    {covariance, priors, alpha, missing_label}
    tol : float, default=1e-6
        Stop when a step raises the log-likelihood by at most this per unit of weight.
    max_iter : int or None, default=10000
        Maximum number of steps.
    {max_time, verbose}

    Attributes
    ----------
    {classes_, coef_, intercept_, priors_, means_, covariance_, rank_, supervised_}
    soft_labels_ : array of shape (n_unlabeled,) or (n_unlabeled, n_classes)
        Soft labels of unlabeled rows: the share of the second of two classes, or of every class.
    log_likelihood_, log_likelihoods_ : float, array of shape (n_iter_ + 1,)
        The objective at the end, and at the start and after every step; it never decreases.
    n_iter_ : int
        Number of steps.
    converged_ : bool
        Whether `tol` was reached.
    {n_features_in_, feature_names_in_}

    References
    ----------
    Dempster, Laird and Rubin, Journal of the Royal Statistical Society B 39 (1977), 1-38.

    Examples
    --------
    >>> from neverworse.methods import EMDiscriminantAnalysis
    >>> X = [[0.0], [1.0], [4.0], [5.0], [2.2], [9.0]]
    >>> clf = EMDiscriminantAnalysis().fit(X, [0, 0, 1, 1, -1, -1])
    >>> clf.supervised_.predict([[3.0]]), clf.predict([[3.0]])
    (array([1]), array([0]))
    """

    def _move(self, start: GaussianClasses, sample: Sample, budget: Budget) -> GaussianClasses:
        n_unlabeled, model, path = int(np.count_nonzero(sample.free)), start, [-np.inf]
        evidence = np.zeros_like(sample.free)

        def weigh(t: Matrix, rows: slice) -> Matrix:
            evidence[rows] = special.logsumexp(t, axis=0)
            return sample.free[rows] * np.exp(t - evidence[rows])

        while True:
            scores, sums = sample.scores_and_sums(model.linear, weigh)
            known = sample.log_likelihood(model, sample.known)
            path.append(known + float(sample.free @ evidence))
            converged = not n_unlabeled or path[-1] - path[-2] <= self.tol * sample.moments.total
            budget.report("expectation maximisation", n_unlabeled)
            if converged or not budget.spend():
                break
            model = sample.most_likely(sample.known + sums)
        probabilities = special.softmax(scores, axis=0)
        self._set_soft_labels(probabilities, sample, budget.n_iter, converged)
        self.log_likelihood_, self.log_likelihoods_ = path[-1], np.array(path[1:])
        return model


@documented_like(EMDiscriminantAnalysis)
class ImplicitlyConstrainedDiscriminantAnalysis(SoftLabelDiscriminant):
    r"""Linear discriminant analysis with implicit constraints from unlabeled rows.

    Every choice of soft labels q of the unlabeled rows, each in the simplex of the classes, gives
    parameters θ(q): those of maximum likelihood on all rows. Of these, the most likely ones for the
    labeled rows are taken,

    .. math:: \max_q \; \sum_{i \text{ labeled}} s_i \log \left( \pi_{y_i}(q)
              \mathcal N(x_i; \mu_{y_i}(q), \Sigma(q)) \right)
              - \frac{\alpha}{2} \sum_{i \text{ labeled}} s_i \operatorname{tr} \Sigma(q)^{-1} .

    The objective is not concave; projected gradients, from the supervised probabilities on, lead to
    a point that satisfies the Karush-Kuhn-Tucker conditions. Nothing is guaranteed.

    Parameters
    ----------
    {covariance, priors, alpha, missing_label}
    tol : float, default=1e-6
        Stop when, to first order, no soft labels gain more log-likelihood than this per unit of
        weight of the labeled rows.
    {max_iter, max_time, verbose}

    Attributes
    ----------
    {classes_, coef_, intercept_, priors_, means_, covariance_, rank_, supervised_, soft_labels_}
    log_likelihood_ : float
        The objective. At most that of the supervised classifier, which has no constraints.
    {n_iter_, converged_, n_features_in_, feature_names_in_}

    References
    ----------
    Krijthe and Loog, International Conference on Pattern Recognition (2014), 3762-3767.

    Examples
    --------
    >>> from neverworse.methods import ImplicitlyConstrainedDiscriminantAnalysis
    >>> X = [[0.0], [1.0], [4.0], [5.0], [2.2], [9.0]]
    >>> clf = ImplicitlyConstrainedDiscriminantAnalysis().fit(X, [0, 0, 1, 1, -1, -1])
    >>> clf.soft_labels_.round(2)
    array([0.3, 1. ])
    """

    def _move(self, start: GaussianClasses, sample: Sample, budget: Budget) -> GaussianClasses:
        smallest = self.tol * float(sample.known[:, 0].sum())
        objective = partial(labeled_loss, supervised=start, sample=sample)
        descent = SoftLabelDescent(objective, sample, lambda gap, _: gap <= smallest, budget)
        found, gap = descent.run(start)
        self._set_soft_labels(found.labels, sample, budget.n_iter, gap <= smallest)
        sums = sample.all_sums(found.labels)
        self.log_likelihood_ = -objective(sums)[0]
        return sample.most_likely(sums)


def labeled_loss(sums: Matrix, supervised: GaussianClasses, sample: Sample) -> tuple[float, Matrix]:
    """Return the penalised negative log-likelihood of the labeled rows, and its derivative.

    With l_k labeled rows of each class with means m_k, n in all, and their scatter W within the
    classes, it is ½ n log det(2πΣ) + ½ tr Σ⁻¹C - Σ l_k log π_k, where C = W + n α I +
    Σ l_k (m_k - μ_k)(m_k - μ_k)', at the parameters of maximum likelihood for the class sums, by
    which the derivative is taken. `supervised` are those for the labeled rows.
    """
    counts, model = sample.known[:, 0], sample.most_likely(sums)
    total = float(counts.sum())
    precision = model.precision.matrix
    apart = supervised.means - model.means
    # Of a spherical covariance only the trace matters: it is the same.
    scatter = total * supervised.covariance + (apart.T * counts) @ apart
    spread = precision @ scatter
    value = -total * model.constant + 0.5 * float(np.trace(spread))
    value -= float(counts @ np.log(model.priors))
    # Derivatives of the loss by the covariance, and by the means in C.
    by_covariance = 0.5 * (total * precision - spread @ precision)
    if sample.family.spherical:  # its mean diagonal is that of W/N
        by_covariance = mean_diagonal(by_covariance)
    by_covariance /= sample.moments.total
    by_means = -(counts[:, None] * apart) @ precision
    # W/N is the covariance of all rows less Σ n_k μ_k μ_k' / N, and μ_k = M_k / n_k.
    through_covariance = model.means @ by_covariance
    shares = sums[:, 0]
    by_sums = by_means / shares[:, None] - 2.0 * through_covariance
    by_counts = np.sum(through_covariance * model.means, axis=1)
    by_counts -= np.sum(by_means * model.means, axis=1) / shares
    if sample.family.priors is None:
        by_counts -= counts / shares
    return value, np.column_stack([by_counts, by_sums])


@dataclass(frozen=True)
class Point:
    """Labels with their class sums, and value and derivative of the objective there."""

    labels: Matrix  # (n_classes, n_rows): those of labeled rows are not used
    sums: Matrix
    value: float
    slopes: Matrix


@dataclass
class SoftLabelDescent:
    """Minimises a smooth function of the class sums, from the supervised probabilities on.

    Stops if ``enough(gap, value)`` is true, if the budget is used up, or without progress.
    """

    objective: Callable[[Matrix], tuple[float, Matrix]]  # value and derivative at class sums
    sample: Sample
    enough: Callable[[float, float], bool]
    budget: Budget
    gap: float = math.inf
    smallest_gap: float = math.inf
    value: float = math.inf
    idle: int = 0

    def run(self, supervised: GaussianClasses) -> tuple[Point, float]:
        """Return the point where the descent ends, and its gap."""
        sample, rounding = self.sample, VALUE_ROUNDING * self.sample.moments.total
        labels = special.softmax(sample.scores(supervised.linear), axis=0)
        start = self._point(labels, sample.all_sums(labels))
        # Such that the label that changes most changes by about one.
        t = sample.scores(start.slopes)[:, sample.free > 0.0]
        self._curvature = float(np.ptp(t, axis=0).max(initial=0.0)) or 1.0
        self._max_curvature = MAX_TOTAL_GROWTH * self._curvature
        end = accelerated_gradient(
            start,
            step=self._step,
            extrapolate=self._extrapolate,
            uphill=lambda ahead, new, here: bool(np.vdot(ahead.slopes, new.sums - here.sums) > 0.0),
            worse=lambda new, here: new.value > here.value + rounding,
            stop=self._stop,
        )
        self._projected(end)
        return end, self.gap

    def _point(self, labels: Matrix, sums: Matrix) -> Point:
        return Point(labels, sums, *self.objective(sums))

    def _stop(self, here: Point) -> bool:
        """Whether the budget is used up, or steps make no more progress."""
        progress = here.value < self.value - VALUE_ROUNDING * self.sample.moments.total
        progress = progress or self.gap < 0.9 * self.smallest_gap
        self.value, self.smallest_gap = here.value, min(self.smallest_gap, self.gap)
        self.idle = 0 if progress else self.idle + 1
        return self.budget.exhausted or self.idle > MAX_IDLE_STEPS

    def _step(self, ahead: Point) -> Point | None:
        """Return the end of a step; None if the gap is small enough, or the budget is used up."""
        labels, change, square = self._projected(ahead)
        n_unlabeled = int(np.count_nonzero(self.sample.free))
        self.budget.report("soft labels", n_unlabeled, self.gap, abs(ahead.value))
        if self.enough(self.gap, ahead.value) or not self.budget.spend():
            return None
        while True:
            new = self._point(labels, ahead.sums + change)
            turned = float(np.vdot(new.slopes - ahead.slopes, change))
            met = turned / square if square > 0.0 else 0.0
            # By the values, or by the derivatives where values are too close to be compared.
            bound = ahead.value + float(np.vdot(ahead.slopes, change))
            bound += 0.5 * self._curvature * square
            if new.value <= bound or self._curvature >= min(self._max_curvature, met):
                break
            self._curvature *= CURVATURE_GROWTH
            labels, change, square = self._projected(ahead)
        met = max(MAX_CURVATURE_DROP * self._curvature, met)
        self._curvature = min(CURVATURE_DECAY * self._curvature, met)
        return new

    def _extrapolate(self, here: Point, before: Point, momentum: float) -> Point:
        """Return a point ahead of this one; this one itself where that has no likelihood."""
        sums = here.sums + momentum * (here.sums - before.sums)
        if np.any(sums[:, 0] <= 0.0):
            return here
        try:
            return self._point(here.labels + momentum * (here.labels - before.labels), sums)
        except SingularCovarianceError:
            return here

    def _projected(self, start: Point) -> tuple[Matrix, Matrix, float]:
        """Make a projected gradient step, in one pass over the rows; store the gap at its start.

        Returns the labels, the change of the class sums, and the weighted square of that of labels.
        """
        free, simplex, q = self.sample.free, Simplex(), start.labels
        gaps, squares, labels = np.empty(len(free)), np.empty(len(free)), np.empty_like(q)

        def weigh(t: Matrix, rows: slice) -> Matrix:
            labels[:, rows] = simplex.project(q[:, rows] - t / self._curvature)
            move = labels[:, rows] - q[:, rows]
            gaps[rows] = np.sum(q[:, rows] * t, axis=0) - t.min(axis=0)
            squares[rows] = np.sum(move**2, axis=0)
            return free[rows] * move

        _, change = self.sample.scores_and_sums(start.slopes, weigh)
        self.gap = float(free @ gaps)
        return labels, change, float(free @ squares)
