"""Rows for the tests of the discriminant classifiers."""

import numpy as np
from scipy.stats import multivariate_normal

from neverworse.methods import (
    ContrastivePessimisticDiscriminantAnalysis,
    EMDiscriminantAnalysis,
    ImplicitlyConstrainedDiscriminantAnalysis,
    LinearDiscriminantClassifier,
    MomentConstrainedDiscriminantAnalysis,
    NearestMeanClassifier,
)
from neverworse.projection import Labels, Simplex, TrainingRows
from neverworse.rows import as_rows

SUPERVISED = [LinearDiscriminantClassifier, NearestMeanClassifier]
SOFT = [
    EMDiscriminantAnalysis,
    ImplicitlyConstrainedDiscriminantAnalysis,
    ContrastivePessimisticDiscriminantAnalysis,
]
SEMI = [*SOFT, MomentConstrainedDiscriminantAnalysis]
ALL = [*SUPERVISED, *SEMI]


def make(n=120, d=3, n_classes=2, n_labeled=24, seed=4, shift=1.0):
    """Gaussian classes with a common covariance; labeled and unlabeled rows in random order."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_classes
    means = shift * rng.normal(size=(n_classes, d))
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.2 * rng.normal(size=(d, d))) + means[truth]
    y = np.where(np.arange(n) < n_labeled, truth, -1)
    order = rng.permutation(n)
    return X[order], y[order], truth[order]


def one_hot(codes, n_classes):
    return (np.asarray(codes)[:, None] == np.arange(n_classes)).astype(float)


def log_joint(clf, X):
    """Log densities of rows and classes, by the fitted parameters."""
    parameters = zip(clf.priors_, clf.means_, strict=True)
    columns = [np.log(p) + multivariate_normal(m, clf.covariance_).logpdf(X) for p, m in parameters]
    return np.column_stack(columns)


def training(X, target, weights, known):
    """Rows with one-hot labels, of which some are known."""
    labels = Labels(target, 1.0 - known, weights, Simplex())
    return TrainingRows(as_rows(X), labels)


def responsibilities(clf, y):
    """Labels of all rows as shares of the classes: known ones, and the soft labels."""
    n_classes = len(clf.classes_)
    shares = one_hot(y, n_classes)
    soft = clf.soft_labels_
    shares[y == -1] = np.column_stack([1.0 - soft, soft]) if soft.ndim == 1 else soft
    return shares


def most_likely(X, shares, alpha=0.0, weights=None):
    """Maximum likelihood parameters for soft labels, written down plainly."""
    s = np.ones(len(X)) if weights is None else weights
    counts = s @ shares
    means = (s[:, None] * shares).T @ X / counts[:, None]
    covariance = alpha * np.eye(X.shape[1])
    for k, mean in enumerate(means):
        apart = X - mean
        covariance += (apart.T * (s * shares[:, k])) @ apart / s.sum()
    return counts / s.sum(), means, covariance
