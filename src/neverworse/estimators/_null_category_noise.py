"""The null category noise model: how likely labels are, given a latent value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from neverworse._typing import Vector
from neverworse.estimators._expectation_propagation import Evidence

# Left of this, u plus its hazard is computed by a continued fraction of so many terms; to the
# right, the two do not cancel.
TAIL, TERMS = -3.0, 60


@dataclass(frozen=True)
class NullCategoryNoise:
    r"""Likelihood of labels with a null category between the classes.

    With the normal distribution function Φ and a latent value f,

    .. math:: p(+ | f) = \Phi(f - a/2), \qquad p(- | f) = \Phi(-f - a/2),

    and the rest belongs to the null category, from which no row ever comes. So an unlabeled row
    has the likelihood :math:`p(+ | f) + p(- | f)`.

    Attributes
    ----------
    width : float
        a, the width of the null category.
    """

    width: float

    def evidence(self, sign: Vector, mean: Vector, variance: Vector) -> Evidence:
        """Return the normaliser for latent values distributed as N(mean, variance).

        Parameters
        ----------
        sign : array of shape (n,)
            1 and -1 for rows of the two classes, 0 for unlabeled rows.
        mean, variance : arrays of shape (n,)
        """
        scale = np.sqrt(1.0 + variance)
        plus, minus = self._arguments(mean, scale)
        log_plus, log_minus = special.log_ndtr(plus), special.log_ndtr(minus)
        known = np.where(sign > 0, plus, minus)
        hazard = _hazard(known)
        # An unlabeled row may be of either class: a mixture of the two.
        share = special.expit(log_plus - log_minus), special.expit(log_minus - log_plus)
        hazards = _hazard(plus), _hazard(minus)
        mixed = share[0] * hazards[0] - share[1] * hazards[1]
        bent = share[0] * share[1] * (hazards[0] + hazards[1]) ** 2
        for p, h, u in zip(share, hazards, (plus, minus), strict=True):
            bent = bent - p * h * _excess(u, h)
        unlabeled = sign == 0
        return Evidence(
            np.where(
                unlabeled,
                np.logaddexp(log_plus, log_minus),
                np.where(sign > 0, log_plus, log_minus),
            ),
            np.where(unlabeled, mixed, sign * hazard) / scale,
            np.where(unlabeled, bent, -hazard * _excess(known, hazard)) / scale**2,
        )

    def log_odds(self, mean: Vector, variance: Vector) -> Vector:
        """Return log p(+) - log p(-) for latent values distributed as N(mean, variance).

        The null category does not occur, so these are the odds of the two classes.
        """
        plus, minus = self._arguments(mean, np.sqrt(1.0 + variance))
        odds: Vector = special.log_ndtr(plus) - special.log_ndtr(minus)
        return odds

    def _arguments(self, mean: Vector, scale: Vector) -> tuple[Vector, Vector]:
        return (mean - 0.5 * self.width) / scale, (-mean - 0.5 * self.width) / scale


def _hazard(u: Vector) -> Vector:
    """Return the normal density over the normal distribution function at u."""
    hazard: Vector = np.sqrt(2.0 / np.pi) / special.erfcx(-u / np.sqrt(2.0))
    return hazard


def _excess(u: Vector, hazard: Vector) -> Vector:
    """Return u + hazard, of which nothing but rounding errors would be left in the far tail."""
    x = np.maximum(-u, -TAIL)
    fraction = x
    for k in range(TERMS, 1, -1):
        fraction = x + k / fraction
    return np.where(u < TAIL, 1.0 / fraction, u + hazard)
