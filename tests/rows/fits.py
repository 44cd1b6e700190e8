"""Fits to compare: the same rows, in memory and from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from neverworse import (
    ICLSClassifier,
    LeastSquaresClassifier,
    ProjectedLeastSquaresClassifier,
    ProjectedLeastSquaresRegressor,
)


@dataclass
class Case:
    estimator: Any
    n_classes: int = 2
    weighted: bool = False
    kind: str = "dense"
    n_rows: int = 12_000
    n_columns: int = 6
    labeled: float = 0.004
    settings: dict[str, Any] = field(default_factory=dict)

    def data(self):
        """X, y and weights."""
        rng = np.random.default_rng(self.n_rows + self.n_columns)
        n, d, k = self.n_rows, self.n_columns, self.n_classes
        truth = rng.integers(0, k, n)
        X = rng.normal(size=(n, d)) + 0.8 * (truth[:, None] == np.arange(d) % k)
        X = X.astype(np.float32)
        if self.kind == "far from zero":
            X += 1000.0
        elif self.kind == "sparse":
            X = sparse.csr_array(np.where(rng.random(X.shape) < 0.3, X, 0.0))
        elif self.kind == "rounded":
            X = np.round(X)
        elif self.kind == "collinear":
            X = np.column_stack([X, X[:, 0] + 1e-6 * rng.normal(size=n).astype(np.float32)])
        elif self.kind == "constant column":
            X = np.column_stack([X, np.full(n, 3.0, np.float32)])
        y = np.where(rng.random(n) < self.labeled, truth, -1)
        y[: 4 * k] = np.arange(4 * k) % k
        if self.estimator is ProjectedLeastSquaresRegressor:
            y = np.where(y == -1, np.nan, y)
        return X, y, rng.integers(0, 4, n).astype(np.float64) if self.weighted else None

    def fit(self, X, y, weights):
        # Without a penalty, unlabeled rows move more.
        settings = {"alpha": 0.0, **self.settings}
        return self.estimator(**settings).fit(X, y, sample_weight=weights)

    def in_memory(self):
        return self.fit(*self.data())


PROJECTED = ProjectedLeastSquaresClassifier
CHOSEN = {"alpha": "loo"}
KERNEL = {"alpha": 0.5, "kernel": "rbf", "gamma": 0.1, "n_components": 20, "random_state": 0}
CASES = {
    "supervised": Case(LeastSquaresClassifier, labeled=0.3),
    "few labels": Case(PROJECTED),
    "many labels": Case(PROJECTED, labeled=0.2),
    "weights": Case(PROJECTED, weighted=True),
    "class prior": Case(PROJECTED, settings={"class_prior": (0.4, 0.45)}),
    "three classes": Case(PROJECTED, n_classes=3),
    "six classes": Case(PROJECTED, n_classes=6, n_columns=9),
    "six classes, rounded": Case(
        PROJECTED, n_classes=6, kind="rounded", n_rows=20_000, n_columns=12, labeled=0.0
    ),
    "six classes, weights": Case(PROJECTED, n_classes=6, n_rows=30_000, weighted=True),
    "three classes, prior": Case(PROJECTED, n_classes=3, settings={"class_prior": "confidence"}),
    "ICLS": Case(ICLSClassifier),
    "unlabeled": Case(PROJECTED, settings={"distance": "unlabeled"}),
    "penalty": Case(PROJECTED, settings={"alpha": 1.0, "constraint_alpha": 2.0}),
    "leave one out": Case(PROJECTED, settings=CHOSEN),
    "leave one out, many labels": Case(PROJECTED, labeled=0.2, settings=CHOSEN),
    "leave one out, three classes": Case(
        PROJECTED, n_classes=3, weighted=True, labeled=0.2, settings=CHOSEN
    ),
    "leave one out, far from zero": Case(
        PROJECTED, kind="far from zero", labeled=0.2, settings=CHOSEN
    ),
    "small": Case(PROJECTED, n_rows=300),
    "far from zero": Case(PROJECTED, kind="far from zero"),
    "collinear": Case(PROJECTED, kind="collinear"),
    "constant column": Case(PROJECTED, kind="constant column"),
    "regression": Case(ProjectedLeastSquaresRegressor, settings={"target_bounds": (0.0, 1.0)}),
    "regression, leave one out": Case(
        ProjectedLeastSquaresRegressor,
        labeled=0.2,
        settings={"target_bounds": (0.0, 1.0), **CHOSEN},
    ),
    "kernel": Case(PROJECTED, n_rows=3000, settings=KERNEL),
    "kernel, leave one out": Case(
        PROJECTED, n_rows=3000, labeled=0.2, settings={**KERNEL, **CHOSEN, "gamma": "loo"}
    ),
}
SPARSE = {
    "sparse": Case(PROJECTED, kind="sparse"),
    "sparse, three classes": Case(PROJECTED, n_classes=3, kind="sparse"),
    "sparse, weights": Case(PROJECTED, weighted=True, kind="sparse"),
    "sparse, leave one out": Case(PROJECTED, labeled=0.2, kind="sparse", settings=CHOSEN),
}


def assert_same_model(found, expected):
    """Same weights and same certificate, but for rounding errors."""
    coef = expected._coef_name
    expected_coef = getattr(expected, coef)
    size = max(1.0, float(np.abs(expected_coef).max()))
    np.testing.assert_allclose(getattr(found, coef), expected_coef, rtol=0, atol=1e-10 * size)
    size = max(1.0, float(np.abs(expected.intercept_).max()))
    np.testing.assert_allclose(found.intercept_, expected.intercept_, rtol=0, atol=1e-10 * size)
    if not hasattr(expected, "certificate_"):
        return
    a, b = found.certificate_, expected.certificate_
    assert (a.holds, a.converged, a.reason) == (b.holds, b.converged, b.reason)
    assert (a.n_labeled, a.n_unlabeled, a.distance) == (b.n_labeled, b.n_unlabeled, b.distance)
    size = max(1e-3, abs(b.worst_case), abs(b.supervised_loss[1]))
    np.testing.assert_allclose(a.worst_case, b.worst_case, rtol=0, atol=1e-9 * size)
    np.testing.assert_allclose(a.best_case, b.best_case, rtol=0, atol=1e-9 * size)
