"""Artificial data: the book's, the paper's, and sets on which unlabeled rows help or mislead."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.preprocessing import scale
from sklearn.utils import check_random_state, check_scalar

from neverworse._typing import Indices, Matrix, Vector
from neverworse._words import documented_like

N_DIMENSIONS = 241  # of all the artificial sets and images of the book


def make_g241c(n_samples: int = 1500, *, random_state: Any = None) -> tuple[Matrix, Indices]:
    """Generate data like g241c in [1]_: two Gaussians, one for each class.

    Half of the rows are of each class. Both classes are Gaussian in 241 dimensions, with the
    identity as covariance and means that are 2.5 apart, in a random direction. Then every column
    is standardised. The clusters are the classes, so unlabeled rows can help. The Bayes error is
    Φ(-1.25) = 10.6 %.

    Parameters
    ----------
    n_samples : int, default=1500
        Number of rows. If odd, class 0 has one more.
    random_state : int, RandomState or None, default=None
        Pass an int for reproducible output across calls.

    Returns
    -------
    X : array of shape (n_samples, 241)
    y : array of int of shape (n_samples,)
        0 and 1, in random order.

    References
    ----------
    .. [1] Chapelle, O., Schölkopf, B. and Zien, A. (2006). Semi-Supervised Learning. MIT Press,
           chapter 21.

    Examples
    --------
    >>> from neverworse.datasets import make_g241c
    >>> X, y = make_g241c(random_state=0)
    >>> X.shape, int(y.sum())
    ((1500, 241), 750)
    """
    rng = _checked(n_samples, random_state)
    y = rng.permutation(np.arange(n_samples) % 2)
    centers = np.outer([-0.5, 0.5], 2.5 * _direction(rng))
    return _rows(centers[y], rng), y


@documented_like(make_g241c)
def make_g241d(n_samples: int = 1500, *, random_state: Any = None) -> tuple[Matrix, Indices]:
    """Generate data like g241d: four Gaussians, two for each class.

    Each row comes from one of four Gaussians with the identity as covariance, in 241 dimensions,
    with equal probability. The means of the two of class 1 are 6 apart, in a random direction.
    Each of the two of class 0 has a mean 3.1 away from one of these, in a random direction of its
    own. Then every column is standardised. The clearest gap in the data runs through both classes,
    so that methods that look for a gap are misled.

    Parameters
    ----------
    n_samples : int, default=1500
        Number of rows.
    {random_state}

    Returns
    -------
    {X}
    y : array of int of shape (n_samples,)
        0 and 1, at random.

    Examples
    --------
    >>> from neverworse.datasets import make_g241d
    >>> X, y = make_g241d(random_state=0)
    """
    rng = _checked(n_samples, random_state)
    one = np.outer([-0.5, 0.5], 6.0 * _direction(rng))
    other = one + 3.1 * np.stack([_direction(rng), _direction(rng)])
    component = rng.randint(4, size=n_samples)
    X = _rows(np.concatenate([other, one])[component], rng)
    return X, (component >= 2).astype(np.int64)


@documented_like(make_g241c)
def make_two_gaussians(
    n_samples: int = 10_000, n_features: int = 100, *, random_state: Any = None
) -> tuple[Matrix, Indices]:
    """Generate data like those of the paper's timing experiment: one Gaussian per class.

    Half of the rows are from N(-1, I) and of class 0, the others from N(1, I) and of class 1.

    Parameters
    ----------
    n_samples : int, default=10_000
        Number of rows. If odd, class 0 has one more.
    n_features : int, default=100
        Number of features.
    {random_state}

    Returns
    -------
    X : array of shape (n_samples, n_features)
    {y}

    References
    ----------
    .. [1] Krijthe, J. H. and Loog, M. (2017). Projected estimators for robust semi-supervised
           classification. Machine Learning 106, 993-1008.

    Examples
    --------
    >>> from neverworse.datasets import make_two_gaussians
    >>> X, y = make_two_gaussians(1000, 5, random_state=0)
    >>> print((X[y == 1].mean(axis=0) > 0.8).all())
    True
    """
    rng = _checked(n_samples, random_state)
    check_scalar(n_features, "n_features", Integral, min_val=1)
    y = rng.permutation(np.arange(n_samples) % 2)
    return rng.normal(size=(n_samples, n_features)) + (2.0 * y - 1.0)[:, None], y


def make_helpful(n_samples: int = 500, *, random_state: Any = None) -> tuple[Matrix, Indices]:
    """Generate two-dimensional data whose clusters are the classes.

    The classes are equally likely, and Gaussian with means (-2, 0) and (2, 0) and standard
    deviations 1 and 4. A few labels leave it open how the line between the classes is tilted;
    the gap between the two long clusters shows it. The Bayes error is Φ(-2) = 2.3 %.

    Parameters
    ----------
    n_samples : int, default=500
        Number of rows.
    random_state : int, RandomState or None, default=None
        Pass an int for reproducible output across calls.

    Returns
    -------
    X : array of shape (n_samples, 2)
    y : array of int of shape (n_samples,)
        0 and 1.

    Examples
    --------
    >>> from neverworse.datasets import make_helpful
    >>> X, y = make_helpful(random_state=0)
    """
    rng = _checked(n_samples, random_state)
    y = rng.randint(2, size=n_samples).astype(np.int64)
    X = rng.normal(size=(n_samples, 2)) * [1.0, 4.0]
    X[:, 0] += np.where(y == 1, 2.0, -2.0)
    return X, y


@documented_like(make_helpful)
def make_neutral(n_samples: int = 500, *, random_state: Any = None) -> tuple[Matrix, Indices]:
    """Generate two-dimensional data that say nothing about the classes.

    Rows are uniform on the disc of radius 1, which looks the same from all sides; class 1 has the
    probability 0.5 + 0.45 x, where x is the first coordinate. Where the rows lie says nothing
    about the direction in which the classes change. The Bayes error is 0.5 - 0.6 / π = 30.9 %.

    {Parameters}

    {Returns}

    Examples
    --------
    >>> from neverworse.datasets import make_neutral
    >>> X, y = make_neutral(random_state=0)
    """
    rng = _checked(n_samples, random_state)
    angle = 2.0 * np.pi * rng.uniform(size=n_samples)
    radius = np.sqrt(rng.uniform(size=n_samples))
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    y = (rng.uniform(size=n_samples) < 0.5 + 0.45 * X[:, 0]).astype(np.int64)
    return X, y


@documented_like(make_helpful)
def make_misleading(n_samples: int = 500, *, random_state: Any = None) -> tuple[Matrix, Indices]:
    """Generate two-dimensional data whose clusters are not the classes.

    Two equally likely Gaussian clusters have means (0, -2) and (0, 2) and standard deviation 0.3
    in both coordinates; the class is 1 where the first coordinate is positive. The wide gap is
    between the clusters, but the line between the classes cuts both of them in half. The Bayes
    error is 0.

    {Parameters}

    {Returns}

    Examples
    --------
    >>> from neverworse.datasets import make_misleading
    >>> X, y = make_misleading(random_state=0)
    """
    rng = _checked(n_samples, random_state)
    X = 0.3 * rng.normal(size=(n_samples, 2))
    X[:, 1] += rng.choice([-2.0, 2.0], size=n_samples)
    return X, (X[:, 0] > 0.0).astype(np.int64)


def _checked(n_samples: int, random_state: Any) -> np.random.RandomState:
    check_scalar(n_samples, "n_samples", Integral, min_val=1)
    return check_random_state(random_state)


def _direction(rng: np.random.RandomState) -> Vector:
    vector = rng.normal(size=N_DIMENSIONS)
    return np.asarray(vector / np.linalg.norm(vector))


def _rows(centers: Matrix, rng: np.random.RandomState) -> Matrix:
    """Draw each row around its centre, and standardise the columns as in the book."""
    return scale(rng.normal(size=centers.shape) + centers)
