"""The null category noise model: how likely labels are, given a latent value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from neverworse._typing import Vector
from neverworse.methods.null_category._expectation_propagation import Evidence

# Left of this, u plus its hazard is computed by a continued fraction of so many terms; to the
# right, the two do not cancel.
TAIL, TERMS = -3.0, 60


@dataclass(frozen=True)
class NullCategoryNoise:
    r"""Likelihood of labels with a null category between the classes.

    With the normal distribution function Φ and a latent value f,

    .. math:: p(+ | f) = \Phi(f - a/2), \qquad p(- | f) = \Phi(-f - a/2),

    and the rest belongs to the null category, from which no row ever comes. If a row of the class
    ± is unlabeled with the probability :math:`\gamma_\pm`, an unlabeled row has the likelihood
    :math:`\gamma_+ p(+ | f) + \gamma_- p(- | f)`, and a labeled one
    :math:`(1 - \gamma_\pm) p(\pm | f)`.

    Attributes
    ----------
    width : float
        a, the width of the null category.
    rates : (float, float) or None
        The probabilities of rows of the first class (-) and of the second one (+) to be unlabeled.
        None: they are equal, and left out.
    """

    width: float
    rates: tuple[float, float] | None = None

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
        log_known = np.where(sign > 0, log_plus, log_minus)
        if self.rates is not None:
            labeled, unlabeled = np.log1p(-np.array(self.rates)), np.log(self.rates)
            log_known = log_known + np.where(sign > 0, labeled[1], labeled[0])
            log_plus, log_minus = log_plus + unlabeled[1], log_minus + unlabeled[0]
        # An unlabeled row may be of either class: a mixture of the two.
        share = special.expit(log_plus - log_minus), special.expit(log_minus - log_plus)
        hazards = _hazard(plus), _hazard(minus)
        mixed = share[0] * hazards[0] - share[1] * hazards[1]
        bent = share[0] * share[1] * (hazards[0] + hazards[1]) ** 2
        for p, h, u in zip(share, hazards, (plus, minus), strict=True):
            bent = bent - p * h * _excess(u, h)
        either = sign == 0
        return Evidence(
            np.where(either, np.logaddexp(log_plus, log_minus), log_known),
            np.where(either, mixed, sign * hazard) / scale,
            np.where(either, bent, -hazard * _excess(known, hazard)) / scale**2,
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


def checked_rates(rates: Any) -> tuple[float, float] | None:
    """Return the parameter `unlabeled_rates` of a classifier, or say what is wrong with it."""
    if rates is None:
        return None
    try:
        first, second = (float(rate) for rate in rates)
    except (TypeError, ValueError):
        first = second = np.nan
    if not (0.0 < first < 1.0 and 0.0 < second < 1.0):
        raise ValueError(
            f"unlabeled_rates={rates!r} are not two numbers between 0 and 1: the probabilities of "
            "rows of the first and of the second class to be unlabeled."
        )
    return first, second


def _hazard(u: Vector) -> Vector:
    """Return the normal density over the normal distribution function at u."""
    hazard: Vector = np.sqrt(2.0 / np.pi) / special.erfcx(-u / np.sqrt(2.0))
    return hazard


def _excess(u: Vector, hazard: Vector) -> Vector:
    """Return u + hazard, of which nothing but rounding errors would be left in the far tail."""
    excess: Vector = u + hazard
    tail = u < TAIL
    if tail.any():
        x = -u[tail]
        fraction = x
        for k in range(TERMS, 1, -1):
            fraction = x + k / fraction
        excess[tail] = 1.0 / fraction
    return excess
