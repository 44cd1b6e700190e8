"""Problems to time: two Gaussians, most of whose rows carry no label."""

from __future__ import annotations

import numpy as np


def two_gaussians(n_labeled, n_unlabeled, d, *, separation=1.5, seed=0, dtype=np.float64):
    """Return X, y with -1 for unlabeled rows, and the true labels; labeled rows come first.

    The means are `separation` from the origin each, in a random direction.
    """
    rng = np.random.default_rng(seed)
    n = n_labeled + n_unlabeled
    truth = np.arange(n) % 2
    mean = rng.normal(size=d)
    mean *= separation / np.linalg.norm(mean)
    X = rng.standard_normal((n, d), dtype=dtype)
    X += np.where(truth, 1.0, -1.0).astype(dtype)[:, None] * mean.astype(dtype)
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


def paper_gaussians(n_labeled, n_unlabeled, d, *, seed=0):
    """Return the Gaussians of the paper's timing figure: means -1 and +1 in every feature."""
    return two_gaussians(n_labeled, n_unlabeled, d, separation=np.sqrt(d), seed=seed)


def gaussian_classes(n_labeled, n_unlabeled, d, n_classes, seed=0):
    """Return rows of Gaussian classes with random means, their labels with -1, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_labeled + n_unlabeled)
    truth[:n_classes] = np.arange(n_classes)
    means = rng.normal(size=(n_classes, d)) * 3.0 / np.sqrt(d)
    X = rng.normal(size=(len(truth), d)) + means[truth]
    return X, np.where(np.arange(len(truth)) < n_labeled, truth, -1), truth


def box_least_squares(X, y):
    """Return A (d x n) and b of the projection as min ‖Aq - b‖² over 0 <= q <= 1."""
    labeled = y >= 0
    E = np.column_stack([X, np.ones(len(X))])
    w_sup = np.linalg.lstsq(E[labeled], y[labeled], rcond=None)[0]
    triangle = np.linalg.cholesky(E.T @ E)
    c = E.T @ (E @ w_sup) - E[labeled].T @ y[labeled]
    A = np.linalg.solve(triangle, E[~labeled].T)
    return np.ascontiguousarray(A), np.linalg.solve(triangle, c)
