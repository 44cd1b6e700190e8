"""Random problems with several classes, bounds of labels and class priors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neverworse import ProjectedLeastSquaresClassifier
from tests.exact import ExactLosses
from tests.rationals import fill, label_ranges

MOST_STEPS = 3000  # of Newton's method; ordinary problems take a tenth of a hundredth


@dataclass
class Restricted:
    """A problem of `tests.problems` with more classes, bounds of labels or a class prior.

    Attributes
    ----------
    X, y, weights, settings
        As in `tests.problems.Problem`; y holds codes of `n_classes` classes and -1.
    bounds : array or None
        As `label_bounds`.
    shares : array of shape (n_classes, 2) or None
        Bounds of the shares of all classes among the unlabeled rows.
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    settings: dict
    n_classes: int
    bounds: np.ndarray | None = None
    shares: np.ndarray | None = None

    @property
    def unlabeled(self):
        return self.y == -1

    def fit(self, **more):
        prior = self.shares
        if prior is not None and self.n_classes == 2:
            prior = tuple(prior[1])
        # A solver that never ends would be found by its steps, not by a clock.
        given = {"class_prior": prior, "max_iter": MOST_STEPS, **self.settings, **more}
        clf = ProjectedLeastSquaresClassifier(**given)
        return clf.fit(self.X, self.y, sample_weight=self.weights, label_bounds=self.bounds)

    def exact(self, clf):
        return ExactLosses.of(clf, self.X, *self.ranges(), self.weights, self.shares)

    def ranges(self):
        return label_ranges(self.y, self.n_classes, self.bounds)

    def s(self):
        return np.ones(len(self.y)) if self.weights is None else self.weights

    def float_bounds(self):
        """Lower and upper bounds as arrays of shape (n_classes, n)."""
        lower, upper = self.ranges()
        return lower.floats().T, upper.floats().T

    def open(self):
        """Which rows are unlabeled: not fixed by their bounds either, and of some weight."""
        lower, upper = self.float_bounds()
        return (upper > lower).any(axis=0) & (self.s() > 0)

    def random_labels(self, rng):
        """Labels of all rows within their bounds, of shape (n_classes, n): corners and others."""
        lower, upper = (bound.T for bound in self.float_bounds())
        labels, others = (fill(rng.normal(size=lower.shape), lower, upper) for _ in range(2))
        part = np.where(rng.random(len(labels)) < 0.3, rng.random(len(labels)), 0.0)
        return (labels + part[:, None] * (others - labels)).T


def with_classes(problem, rng, n_classes):
    """Replace the two classes of a problem by more, each with a labeled row of some weight."""
    n, y = len(problem.y), problem.y.copy()
    n_classes = min(n_classes, n - 1)
    signal = np.asarray(problem.X, dtype=float)
    signal = (signal - signal.mean(axis=0)) / (signal.std(axis=0) + 1e-300)
    scores = rng.normal(size=(n_classes, signal.shape[1])) @ signal.T
    truth = (rng.uniform(0, 2) * scores + rng.normal(size=(n_classes, n))).argmax(axis=0)
    labeled = np.flatnonzero(y != -1)
    missing = n_classes - len(labeled)
    if missing > 0:
        labeled = np.r_[labeled, np.flatnonzero(y == -1)[:missing]]
    labeled = rng.permutation(labeled)
    truth[labeled[:n_classes]] = rng.permutation(n_classes)
    y[:] = -1
    y[labeled] = truth[labeled]
    weights = None if problem.weights is None else problem.weights.copy()
    if weights is not None:
        first = labeled[:n_classes]
        weights[first] = np.maximum(weights[first], 0.1)
    return Restricted(problem.X, y, weights, dict(problem.settings), n_classes)


def with_bounds(problem, rng, share=0.6):
    """Restrict the labels of some unlabeled rows: intervals, sets of classes, soft labels."""
    n, k = len(problem.y), problem.n_classes
    bounds = np.full((n, k, 2), np.nan)
    for j in np.flatnonzero((problem.y == -1) & (rng.random(n) < share)):
        kind = rng.integers(4)
        if kind == 0 and k > 2:  # one of some classes
            excluded = rng.permutation(k)[: rng.integers(1, k - 1)]
            bounds[j, excluded, 1] = 0.0
        elif kind == 1 and rng.random() < 0.4:  # a soft label, in numbers that add up exactly
            parts = rng.multinomial(64, np.ones(k) / k) / 64
            bounds[j] = parts[:, None]
        else:
            at = rng.dirichlet(np.ones(k))
            lower = at - rng.uniform(0.02, 0.5, k)
            upper = at + rng.uniform(0.02, 0.5, k)
            bounds[j] = np.column_stack([np.maximum(lower, 0), np.minimum(upper, 1)])
            bounds[j][rng.random((k, 2)) < 0.2] = np.nan
    problem.bounds = bounds if k > 2 else bounds[:, 1]
    return problem


def with_shares(problem, rng):
    """Restrict the shares of classes to an interval, sometimes a point, that can be met."""
    problem.shares = None
    seen = problem.open()
    if not seen.any():
        return problem
    s = problem.s()[seen]
    labels = sum(problem.random_labels(rng)[:, seen] for _ in range(8)) / 8
    shares = labels @ s / s.sum()
    if rng.random() < 0.3:  # a point: numbers that add up exactly
        shares = np.round(shares * 2**40) / 2**40
        largest = shares.argmax()
        shares[largest] -= shares.sum() - 1.0
        problem.shares = np.column_stack([shares, shares])
        return problem
    around = rng.uniform(0.001, rng.choice([0.01, 0.2]), (2, problem.n_classes))
    low, high = np.maximum(shares - around[0], 0.0), np.minimum(shares + around[1], 1.0)
    if rng.random() < 0.3:
        free = rng.random(problem.n_classes) < 0.5
        low[free], high[free] = 0.0, 1.0
    if problem.n_classes == 2:  # the second class says it all
        low[0], high[0] = 1.0 - high[1], 1.0 - low[1]
    problem.shares = np.column_stack([low, high])
    return problem
