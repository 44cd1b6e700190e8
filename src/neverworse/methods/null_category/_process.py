"""A Gaussian process, and its posterior given labeled and unlabeled rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neverworse._typing import AnyArray, Matrix, Vector
from neverworse.estimators import split_labels
from neverworse.methods._two_classes import check_two_classes
from neverworse.methods.null_category._active import ActiveRows, choose_active
from neverworse.methods.null_category._expectation_propagation import (
    Approximation,
    Evidence,
    Sites,
    propagate,
)
from neverworse.methods.null_category._noise import NullCategoryNoise


def signed_labels(y: Any, missing_label: Any) -> tuple[AnyArray, Vector]:
    """Return the classes, and 1, -1 or 0 for rows of the second, the first or no class."""
    classes, codes, unlabeled = split_labels(y, missing_label)
    check_two_classes(classes)
    return classes, np.where(unlabeled, 0.0, 2.0 * codes - 1.0)


@dataclass(frozen=True)
class Process:
    """A Gaussian process with its posterior."""

    active: ActiveRows
    approximation: Approximation

    def latent(self, X: Matrix) -> tuple[Vector, Vector]:
        """Return posterior means and variances of f."""
        factor, own = self.active.factor(X)
        mean, variance = self.approximation.posterior.latent(factor)
        return mean, variance + own


@dataclass(frozen=True)
class Data:
    """Rows with what is known about their labels, and how to propagate it.

    Attributes
    ----------
    X : array of shape (n, n_features)
    sign : array of shape (n,)
        1 and -1 for rows of the two classes, 0 for unlabeled rows.
    noise : NullCategoryNoise
    max_active : int
        Number of active rows at most.
    tol, max_iter
        Of expectation propagation.
    """

    X: Matrix
    sign: Vector
    noise: NullCategoryNoise
    max_active: int
    tol: float
    max_iter: int

    def take(self, rows: Any) -> Data:
        """Return a part of the rows."""
        return replace(self, X=self.X[rows], sign=self.sign[rows])

    def active(self, kernel: Any) -> ActiveRows:
        """Choose active rows."""
        return ActiveRows.of(
            kernel, self.X[choose_active(kernel, self.X, self.sign != 0.0, self.max_active)]
        )

    def process(self, active: ActiveRows, start: Sites | None = None) -> Process:
        """Find the posterior.

        Parameters
        ----------
        active : ActiveRows
        start : Sites, optional
            By default, where the labeled rows alone lead to: there may be several fixed points.
        """
        factor, own = active.factor(self.X)
        if start is None:
            start = Sites.nothing(len(self.X))
            labeled = np.flatnonzero(self.sign)
            if len(labeled) < len(self.X):
                alone = self._propagate(
                    factor[:, labeled],
                    own[labeled],
                    self.sign[labeled],
                    Sites.nothing(len(labeled)),
                ).sites
                start.precision[labeled], start.shift[labeled] = alone.precision, alone.shift
        return Process(active, self._propagate(factor, own, self.sign, start))

    def _propagate(self, factor: Matrix, own: Vector, sign: Vector, start: Sites) -> Approximation:
        # What is a row's own is as good as noise, and makes its likelihood flatter.
        def likelihood(mean: Vector, variance: Vector) -> Evidence:
            return self.noise.evidence(sign, mean, variance + own)

        return propagate(factor, likelihood, start, self.tol, self.max_iter)
