"""Problems in two dimensions, on which unlabeled rows help, do nothing, or mislead."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from neverworse._typing import Indices, Matrix
from neverworse.datasets._generators import check_size


def make_helpful(n_samples: int = 500, *, random_state: Any = None) -> tuple[Matrix, Indices]:
    """Draw rows of which the clusters are the classes.

    The classes are equally likely, and Gaussian with means (-2, 0) and (2, 0) and standard
    deviations 1 and 4. A few labels leave it open how the line between the classes is tilted;
    the gap between the two long clusters shows it. With 10 labels, self-learning, transductive
    machines and projection all have a smaller error on average than the supervised classifiers
    that they start from. The Bayes error is Φ(-2) = 2.3 %.

    Parameters
    ----------
    n_samples : int, default=500
        How many rows to draw.
    random_state : int, RandomState or None, default=None
        Seed. An int gives the same rows in every call.

    Returns
    -------
    X : array of shape (n_samples, 2)
    y : array of int of shape (n_samples,)
        0 and 1. Hide most of them with `neverworse.model_selection.mask_labels`.

    See Also
    --------
    make_neutral : Unlabeled rows do nothing.
    make_misleading : Unlabeled rows mislead.

    References
    ----------
    .. [1] Chapelle, O., Schölkopf, B. and Zien, A. (2006). Semi-Supervised Learning. MIT Press,
           chapter 1, on the cluster assumption.

    Examples
    --------
    >>> from neverworse.datasets import make_helpful
    >>> X, y = make_helpful(random_state=0)
    >>> X.shape
    (500, 2)
    """
    check_size("n_samples", n_samples, 1)
    rng = check_random_state(random_state)
    y = rng.randint(2, size=n_samples).astype(np.int64)
    X = rng.normal(size=(n_samples, 2)) * [1.0, 4.0]
    X[:, 0] += np.where(y == 1, 2.0, -2.0)
    return X, y


def make_neutral(n_samples: int = 500, *, random_state: Any = None) -> tuple[Matrix, Indices]:
    """Draw rows that say nothing about the classes.

    Rows are uniform on the disc of radius 1, which looks the same from all sides; class 1 has the
    probability 0.5 + 0.45 x, where x is the first coordinate. Where the rows lie says nothing
    about the direction in which the classes change. With 50 labels, self-learning and
    transductive machines have the error of the supervised classifiers that they start from, to
    within one percentage point on average. The supervised scores are between 0 and 1 almost
    always; then projection leaves them exactly as they are. The Bayes error is
    0.5 - 0.6 / π = 30.9 %.

    Parameters
    ----------
    n_samples : int, default=500
        How many rows to draw.
    random_state : int, RandomState or None, default=None
        Seed. An int gives the same rows in every call.

    Returns
    -------
    X : array of shape (n_samples, 2)
    y : array of int of shape (n_samples,)
        0 and 1. Hide most of them with `neverworse.model_selection.mask_labels`.

    See Also
    --------
    make_helpful : Unlabeled rows help.
    make_misleading : Unlabeled rows mislead.

    References
    ----------
    .. [1] Ben-David, S., Lu, T. and Pál, D. (2008). Does unlabeled data provably help? Worst-case
           analysis of the sample complexity of semi-supervised learning. Conference on Learning
           Theory, 33-44.
    """
    check_size("n_samples", n_samples, 1)
    rng = check_random_state(random_state)
    angle = 2.0 * np.pi * rng.uniform(size=n_samples)
    radius = np.sqrt(rng.uniform(size=n_samples))
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    y = (rng.uniform(size=n_samples) < 0.5 + 0.45 * X[:, 0]).astype(np.int64)
    return X, y


def make_misleading(n_samples: int = 500, *, random_state: Any = None) -> tuple[Matrix, Indices]:
    """Draw rows of which the clusters are not the classes.

    Two equally likely Gaussian clusters have means (0, -2) and (0, 2) and standard deviation 0.3
    in both coordinates; the class is 1 where the first coordinate is positive. The wide gap is
    between the clusters, but the line between the classes cuts both of them in half. With
    10 labels, self-learning and transductive machines have an error that is larger on average, by
    more than five percentage points, than that of the supervised classifiers that they start from;
    projection stays within one percentage point, and its squared loss on the training rows is
    never larger. The Bayes error is 0.

    Parameters
    ----------
    n_samples : int, default=500
        How many rows to draw.
    random_state : int, RandomState or None, default=None
        Seed. An int gives the same rows in every call.

    Returns
    -------
    X : array of shape (n_samples, 2)
    y : array of int of shape (n_samples,)
        0 and 1. Hide most of them with `neverworse.model_selection.mask_labels`.

    See Also
    --------
    make_helpful : Unlabeled rows help.
    make_neutral : Unlabeled rows do nothing.

    References
    ----------
    .. [1] Cozman, F. G., Cohen, I. and Cirelo, M. C. (2003). Semi-supervised learning of mixture
           models. International Conference on Machine Learning, 99-106.
    """
    check_size("n_samples", n_samples, 1)
    rng = check_random_state(random_state)
    X = 0.3 * rng.normal(size=(n_samples, 2))
    X[:, 1] += rng.choice([-2.0, 2.0], size=n_samples)
    return X, (X[:, 0] > 0.0).astype(np.int64)
