"""Projections in the space of a kernel, for problems that numerical software does not like."""

from __future__ import annotations

import warnings
from fractions import Fraction
from unittest.mock import patch

import numpy as np

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.projection import project


def attack(seed):
    """Fit one hostile problem; compare its worst case with the exact number."""
    return checked(seed)[0]


def checked(seed):
    """Return what does not hold (None if all does), and whether anything was improved."""
    X, y, settings = hostile(np.random.default_rng(seed))
    seen = {}

    def watched(training, supervised, **options):
        result = project(training, supervised, **options)
        seen.update(rows=training.rows, before=supervised, after=result.weights)
        return result

    where = ProjectedLeastSquaresClassifier.__module__
    with warnings.catch_warnings(), patch(f"{where}.project", watched):
        warnings.simplefilter("ignore")
        clf = ProjectedLeastSquaresClassifier(**settings).fit(X, y)
    Z = seen["rows"].take(np.arange(len(X)))
    worst = exact_worst_case(Z, y, settings["alpha"], seen["before"], seen["after"])
    if worst > 0 or worst > Fraction(clf.certificate_.worst_case):
        return f"{settings}: the worst case is {float(worst):.3g}", worst < 0
    # What predictions return is what was certified, but for rounding errors, and a warning says
    # how large these may be.
    score = Z @ seen["after"].coef[0] + seen["after"].intercept[0]
    found = clf.decision_function(X) + 0.5
    off = np.abs(found - score).max() / max(1.0, np.abs(score).max())
    allowed = 1e-6 + 100 * np.finfo(float).eps * _size(clf, X) * len(X)
    if off > allowed:
        return f"{settings}: predictions are off by {off:.3g}", worst < 0
    return None, worst < 0


def _size(clf, X):
    """Return by how much rounding errors of predictions are multiplied."""
    largest = max(1.0, float(np.abs(clf.gamma_ * X @ X.T + 1.0).max()) ** 2)
    return (largest if clf.kernel == "poly" else 1.0) * float(np.abs(clf.dual_coef_).sum())


def hostile(rng):
    """Return rows, labels and settings: duplicates, any gamma, any penalty, in effect one row."""
    n, d = int(rng.integers(3, 16)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3)
    if rng.random() < 0.3:
        X = X[rng.integers(0, max(1, n // 2), n)]
    if rng.random() < 0.1:
        X[:] = X[0]
    y = np.full(n, -1)
    y[: int(rng.integers(1, n))] = 0
    y[0], y[1] = 0, 1
    settings = {
        "kernel": str(rng.choice(["rbf", "laplacian", "poly"])),
        "gamma": 10.0 ** rng.uniform(-6, 6),
        "alpha": 10.0 ** rng.uniform(-8, 8),
        "fit_intercept": bool(rng.random() < 0.7),
    }
    if settings["kernel"] == "poly":
        settings |= {"degree": 2, "gamma": 10.0 ** rng.uniform(-3, 3)}
    if rng.random() < 0.3:
        settings |= {"n_components": int(rng.integers(1, n)), "random_state": 0}
    return X, y, settings


def exact_worst_case(Z, y, alpha, before, after):
    """Return the largest change of the loss over all labelings, in rational arithmetic."""

    def values(weights):
        coef = [Fraction(c) for c in weights.coef[0]]
        at = [sum(c * Fraction(z) for c, z in zip(coef, row, strict=True)) for row in Z]
        return [t + Fraction(weights.intercept[0]) for t in at], sum(c * c for c in coef)

    (g, norm_g), (f, norm_f) = values(before), values(after)
    total = Fraction(alpha) * (norm_f - norm_g)
    for old, new, label in zip(g, f, y, strict=True):
        labels = (0, 1) if label < 0 else (int(label),)
        total += max((new - q) ** 2 - (old - q) ** 2 for q in labels)
    return total
