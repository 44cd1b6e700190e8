"""Random problems of every kind that the guarantee has to survive."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from neverworse import ProjectedLeastSquaresClassifier, ProjectedLeastSquaresRegressor
from tests.exact import ExactLosses
from tests.rationals import Rationals, label_ranges

KINDS = (
    "gaussian",
    "few labels",
    "many labels",
    "one unlabeled",
    "binary features",
    "duplicate rows",
    "ties",
    "rank deficient",
    "constant column",
    "wide scales",
    "far from zero",
    "nearly collinear",
    "outliers",
    "float32",
    "fewer rows than columns",
)


PENALTIES = (0.0, 0.1, 10.0, "loo")
CONSTRAINT_PENALTIES = ("same", 0.0, 0.1, 10.0)


@dataclass
class Problem:
    X: Any
    y: Any  # 0, 1, and -1 where unlabeled
    weights: Any = None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def unlabeled(self):
        return self.y == -1

    def weights_or(self, ones):
        return ones if self.weights is None else self.weights

    def fit(self, **more):
        clf = ProjectedLeastSquaresClassifier(**{**self.settings, **more})
        return clf.fit(self.X, self.y, sample_weight=self.weights)

    def exact(self, clf):
        return ExactLosses.of(clf, self.X, *label_ranges(self.y, 2), self.weights)


def make_problem(kind: str, rng: np.random.Generator) -> Problem:
    d = int(rng.integers(1, 6))
    n_labeled = int(rng.integers(d + 2, 3 * d + 6))
    n_unlabeled = int(rng.integers(2, 40))
    if kind == "few labels":
        n_labeled = int(rng.integers(2, d + 2))
    elif kind == "many labels":
        n_labeled = int(rng.integers(30, 60))
    elif kind == "one unlabeled":
        n_unlabeled = 1
    elif kind == "fewer rows than columns":
        d, n_labeled, n_unlabeled = int(rng.integers(8, 14)), 3, 3
    n = n_labeled + n_unlabeled
    truth = rng.permutation(np.arange(n) % 2)
    X = rng.normal(size=(n, d)) + rng.uniform(0, 2) * truth[:, None]
    if kind == "binary features":
        X = (rng.random((n, d)) < rng.uniform(0.2, 0.8, d)).astype(float)
    elif kind == "duplicate rows":
        X = X[rng.integers(0, max(2, n // 4), n)]
    elif kind == "ties":
        X = rng.integers(-1, 2, (n, d)).astype(float)
    elif kind == "rank deficient":
        X = np.column_stack([X, X @ rng.integers(-2, 3, d), X[:, :1]])
    elif kind == "constant column":
        X = np.column_stack([X, np.full(n, rng.normal())])
    elif kind == "wide scales":
        X = X * 10.0 ** rng.integers(-6, 7, d)
    elif kind == "far from zero":
        X = X + 10.0 ** rng.uniform(3, 9, d)
    elif kind == "nearly collinear":
        X = np.column_stack([X, X[:, 0] + 10.0 ** rng.uniform(-9, -4) * rng.normal(size=n)])
    elif kind == "outliers":
        X[rng.integers(0, n, 2)] *= 10.0 ** rng.uniform(1, 5)
    elif kind == "float32":
        X = X.astype(np.float32)
    y = truth.copy()
    first, second = np.flatnonzero(truth == 0), np.flatnonzero(truth == 1)
    keep = np.r_[first[:1], second[:1]]
    others = rng.permutation(np.setdiff1d(np.arange(n), keep))
    y[others[n_labeled - 2 :]] = -1
    weights = None
    if rng.random() < 0.3:
        weights = rng.uniform(0.1, 3.0, n)
        weights[others[rng.random(len(others)) < 0.1]] = 0.0
    settings = {
        "alpha": PENALTIES[rng.integers(len(PENALTIES))],
        "constraint_alpha": CONSTRAINT_PENALTIES[rng.integers(len(CONSTRAINT_PENALTIES))],
        "fit_intercept": bool(rng.random() < 0.8),
    }
    return Problem(X, y, weights, settings)


def distances(rng: np.random.Generator, d: int) -> list[Any]:
    return ["all", "labeled", "unlabeled", "euclidean", rng.normal(size=(d + 2, d))]


def with_cancelling_duplicates(X: Any, rng: np.random.Generator, large: float) -> Any:
    """Return X as a sparse matrix in which large entries of opposite sign surround each number."""
    n, d = X.shape
    size = large * rng.random((n, d))
    parts = np.stack([size, X, -size], axis=2)
    order = rng.permuted(np.tile(np.arange(3 * d), (n, 1)), axis=1)
    data = np.take_along_axis(parts.reshape(n, -1), order, axis=1).ravel()
    return sparse.csr_array((data, (order // 3).ravel(), np.arange(n + 1) * 3 * d), (n, d))


# Regression


@dataclass
class Regression:
    """Rows with bounds of their targets; equal ones where the target is known."""

    X: Any
    lower: Any
    upper: Any
    weights: Any = None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def y(self):
        return np.where(self.unlabeled, np.nan, self.lower)

    @property
    def unlabeled(self):
        return self.lower < self.upper

    def fit(self, **more):
        reg = ProjectedLeastSquaresRegressor(**{**self.settings, **more})
        bounds = np.column_stack([self.lower, self.upper])
        return reg.fit(self.X, self.y, sample_weight=self.weights, target_bounds=bounds)

    def exact(self, reg):
        ends = (Rationals.of(bound[:, None]) for bound in (self.lower, self.upper))
        return ExactLosses.of(reg, self.X, *ends, self.weights)


REGRESSION_KINDS = (
    "common range",
    "own bounds",
    "targets of size 1e-6",
    "targets of size 1e6",
    "targets around 1e6",
    "widths from 1e-6 to 1e6",
    "features far from zero",
    "features of wide scales",
    "rank deficient",
    "weights",
    "penalty",
    "chosen penalty",
    "no intercept",
    "few labels",
    "targets at the bounds",
    "fewer rows than columns",
)


def make_regression(kind, rng):
    d = int(rng.integers(1, 6))
    n_labeled, n_unlabeled = int(rng.integers(d + 2, 3 * d + 4)), int(rng.integers(1, 35))
    if kind == "few labels":
        n_labeled = int(rng.integers(1, d + 2))
    elif kind == "fewer rows than columns":
        d, n_labeled, n_unlabeled = int(rng.integers(8, 14)), 3, 3
    n = n_labeled + n_unlabeled
    X = rng.normal(size=(n, d))
    target = X @ rng.normal(size=d) + rng.normal(size=n)
    if kind == "targets at the bounds":
        target = np.clip(target, -1.0, 1.0)
    known = rng.permutation(n) < n_labeled
    # Narrower than the targets would need: then there is something to improve.
    lower, upper = np.full(n, -0.7), np.full(n, 0.7)
    if kind in ("own bounds", "widths from 1e-6 to 1e6"):
        size = 0.3 if kind == "own bounds" else 10.0 ** rng.uniform(-6, 6, n)
        lower = target - size * rng.random(n)
        upper = target + size * rng.random(n)
    scale = {"targets of size 1e-6": 1e-6, "targets of size 1e6": 1e6}.get(kind, 1.0)
    offset = 1e6 if kind == "targets around 1e6" else 0.0
    lower, upper = (scale * np.where(known, target, bound) + offset for bound in (lower, upper))
    if kind == "features far from zero":
        X = X + 10.0 ** rng.uniform(3, 8, d)
    elif kind == "features of wide scales":
        X = X * 10.0 ** rng.integers(-6, 7, d)
    elif kind == "rank deficient":
        X = np.column_stack([X, X @ rng.integers(-2, 3, d), X[:, :1], np.full(n, rng.normal())])
    weights = None
    if kind == "weights" or rng.random() < 0.2:
        weights = rng.uniform(0.1, 3.0, n)
        weights[rng.random(n) < 0.1] = 0.0
        weights[np.flatnonzero(known)[:2]] = 1.0
    penalised = kind == "penalty" or rng.random() < 0.2
    chosen = {
        "alpha": float(rng.choice([0.1, 10.0])) if penalised else 0.0,
        "constraint_alpha": float(rng.choice([0.1, 10.0])) if penalised else 0.0,
        "fit_intercept": kind != "no intercept",
    }
    if kind == "chosen penalty":
        chosen |= {"alpha": "loo", "constraint_alpha": "same"}
    return Regression(X, lower, upper, weights, chosen)
