"""Gaussian clusters: the artificial data sets of the book, and of the paper's timing figure."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from neverworse._typing import Indices, Matrix, Vector

N_DIMENSIONS = 241  # of all the artificial sets and images of the book


def make_g241c(
    n_samples: int = 1500, *, standardize: bool = True, random_state: Any = None
) -> tuple[Matrix, Indices]:
    """Draw rows as those of g241c: two Gaussians, one for each class.

    Half of the rows are of each class. Both classes are Gaussian in 241 dimensions, with the
    identity as covariance and means that are 2.5 apart, in a random direction. Then every column
    is standardised. Clusters are classes, so that unlabeled rows can help. The Bayes error is
    Φ(-1.25) = 10.6 %.

    Parameters
    ----------
    n_samples : int, default=1500
        How many rows to draw, at least 2. If odd, class 0 has one more.
    standardize : bool, default=True
        Whether each column is given mean 0 and standard deviation 1, as in the book.
    random_state : int, RandomState or None, default=None
        Seed. An int gives the same rows in every call.

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
    check_size("n_samples", n_samples, 2)
    rng = check_random_state(random_state)
    y = rng.permutation(np.arange(n_samples) % 2)
    centers = np.outer([-0.5, 0.5], 2.5 * _direction(rng))
    return _rows(centers, y, standardize, rng), y


def make_g241d(
    n_samples: int = 1500, *, standardize: bool = True, random_state: Any = None
) -> tuple[Matrix, Indices]:
    """Draw rows as those of g241d: four Gaussians, two for each class.

    Each row comes from one of four Gaussians with the identity as covariance, in 241 dimensions,
    with equal probability. The means of the two of class 1 are 6 apart, in a random direction.
    Each of the two of class 0 has a mean 3.1 away from one of these, in a random direction of its
    own. Then every column is standardised. The clearest gap in the data runs through both
    classes, so that methods that look for a gap are misled.

    Parameters
    ----------
    n_samples : int, default=1500
        How many rows to draw.
    standardize : bool, default=True
        Whether each column is given mean 0 and standard deviation 1, as in the book.
    random_state : int, RandomState or None, default=None
        Seed. An int gives the same rows in every call.

    Returns
    -------
    X : array of shape (n_samples, 241)
    y : array of int of shape (n_samples,)
        0 and 1, at random.

    Notes
    -----
    The distance 3.1 is that in the book's data: there, the means are 3.13 and 3.16 away from their
    neighbours, with a standard error of 0.08.

    References
    ----------
    .. [1] Chapelle, O., Schölkopf, B. and Zien, A. (2006). Semi-Supervised Learning. MIT Press,
           chapter 21.
    """
    check_size("n_samples", n_samples, 1)
    rng = check_random_state(random_state)
    one = np.outer([-0.5, 0.5], 6.0 * _direction(rng))
    other = one + 3.1 * np.stack([_direction(rng), _direction(rng)])
    component = rng.randint(4, size=n_samples)
    X = _rows(np.concatenate([other, one]), component, standardize, rng)
    return X, (component >= 2).astype(np.int64)


def make_two_gaussians(
    n_samples: int = 10_000,
    n_features: int = 100,
    *,
    center: float = 1.0,
    random_state: Any = None,
) -> tuple[Matrix, Indices]:
    """Draw rows as those of the paper's timing experiment: a Gaussian for each class.

    Half of the rows are from N(-c, I) and of class 0, the others from N(c, I) and of class 1,
    where c is `center` in every coordinate.

    Parameters
    ----------
    n_samples : int, default=10_000
        How many rows to draw, at least 2. If odd, class 0 has one more.
    n_features : int, default=100
        How many dimensions.
    center : float, default=1.0
        Every coordinate of the mean of class 1; those of class 0 are the negative of it.
    random_state : int, RandomState or None, default=None
        Seed. An int gives the same rows in every call.

    Returns
    -------
    X : array of shape (n_samples, n_features)
    y : array of int of shape (n_samples,)
        0 and 1, in random order.

    References
    ----------
    .. [1] Krijthe, J. H. and Loog, M. (2017). Projected estimators for robust semi-supervised
           classification. Machine Learning 106, 993-1008.

    Examples
    --------
    >>> from neverworse.datasets import make_two_gaussians
    >>> X, y = make_two_gaussians(1000, 5, random_state=0)
    >>> (X[y == 1].mean(axis=0) > 0.8).all()
    np.True_
    """
    check_size("n_samples", n_samples, 2)
    check_size("n_features", n_features, 1)
    rng = check_random_state(random_state)
    y = rng.permutation(np.arange(n_samples) % 2)
    X = rng.normal(size=(n_samples, n_features))
    X += center * (2.0 * y - 1.0)[:, None]
    return X, y


def check_size(name: str, value: Any, least: int) -> None:
    """Refuse what is not a number of rows or of columns."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least:
        raise ValueError(f"{name}={value!r} must be an integer, {least} or more.")


def _direction(rng: np.random.RandomState) -> Vector:
    """Draw a direction, all being equally likely."""
    vector = rng.normal(size=N_DIMENSIONS)
    direction: Vector = vector / np.linalg.norm(vector)
    return direction


def _rows(
    centers: Matrix, component: Indices, standardize: bool, rng: np.random.RandomState
) -> Matrix:
    """Draw each row around the centre of its component."""
    X: Matrix = rng.normal(size=(len(component), N_DIMENSIONS)) + centers[component]
    if standardize:
        X -= X.mean(axis=0)
        spread = X.std(axis=0)
        X /= np.where(spread > 0.0, spread, 1.0)
    return X
