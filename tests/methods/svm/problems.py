"""Data on which the cluster assumption of transductive machines holds, or fails."""

import numpy as np
from sklearn.datasets import load_breast_cancer


def make(n=120, d=4, n_labeled=24, n_classes=2, seed=0):
    """Labeled rows first, of all classes in turn."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_classes
    X = rng.normal(size=(n, d)) + 1.2 * rng.normal(size=(n_classes, d))[truth]
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


def clusters(seed, n=400, d=2, gap=6.0, n_labeled=4):
    """Two clusters that are the classes."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 2
    X = rng.normal(size=(n, d))
    X[:, 0] += gap * (truth - 0.5)
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


def rare_class(seed, n=400, n_labeled=10):
    """Clusters that are the classes, of which one is rare, but not among the labeled rows."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.1).astype(int)
    truth[:n_labeled] = np.arange(n_labeled) % 2
    X = rng.normal(size=(n, 2))
    X[:, 0] += 3.0 * (truth - 0.5)
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


def raw_units(seed, n_labeled=35):
    """Measurements of tumours in their units, from 0.001 to 4000: clusters, but not the classes."""
    X, truth = load_breast_cancer(return_X_y=True)
    labeled = np.random.default_rng(seed).choice(len(X), n_labeled, replace=False)
    return X, np.where(np.isin(np.arange(len(X)), labeled), truth, -1), truth


def errors(clf, problem, n=10):
    """Return the mean errors of the supervised and the semi-supervised classifier."""
    found = []
    for seed in range(n):
        X, y, truth = problem(seed)
        clf.fit(X, y)
        found.append([1.0 - model.score(X, truth) for model in (clf.supervised_, clf)])
    return np.mean(found, axis=0)


def objective(clf, X, target, weights, penalise_intercept=False):
    """Return (α/2)|w|² plus half of the weighted squared hinge losses, for targets -1 and 1."""
    scores = X @ clf.coef_[0] + clf.intercept_[0]
    losses = np.maximum(0.0, 1.0 - target * scores) ** 2
    size = np.sum(clf.coef_**2) + (clf.intercept_[0] ** 2 if penalise_intercept else 0.0)
    return 0.5 * clf.alpha * size + 0.5 * np.sum(weights * losses)
