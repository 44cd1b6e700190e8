r"""Worst and best case of a difference of likelihoods over all labelings, with its rounding error.

The loss is the penalised negative log-likelihood of all rows,

.. math:: -\sum_j s_j \sum_k q_{jk} \log p(x_j, k)
          + \tfrac{\alpha}2 N \operatorname{tr} \Sigma^{-1} ,

linear in every unknown soft label :math:`q_j`. So are differences of losses, and their extremes
over all labelings are sums of the largest and the smallest term of each row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from neverworse._typing import Vector
from neverworse.methods.discriminant._family import Family
from neverworse.methods.discriminant._gaussian import GaussianClasses
from neverworse.methods.discriminant._sample import Sample
from neverworse.projection.certificate.loss import CHUNK, SUMMATION
from neverworse.projection.coordinates.gram import EPS


@dataclass(frozen=True)
class Contrast:
    """Extremes of the loss of classes less the loss of others.

    Attributes
    ----------
    worst, best : float
        Largest and smallest difference over all labelings, as computed.
    bound : float
        `worst` and `best` are at most so far from the true values.
    baseline : tuple of float
        Bounds of the loss of the others over all labelings, rounded outwards.
    """

    worst: float
    best: float
    bound: float
    baseline: tuple[float, float]

    @property
    def is_never_worse(self) -> bool:
        """Whether that is proved in spite of rounding errors."""
        return self.worst + self.bound <= 0.0


def contrast(
    model: GaussianClasses, baseline: GaussianClasses, sample: Sample, family: Family
) -> Contrast:
    """Compare classes with a baseline, both about the centre of the sample."""
    of_baseline = sample.scores(baseline.linear)
    shared_baseline = family.shared(baseline, sample)
    known_baseline = float(np.vdot(baseline.linear, sample.known)) + shared_baseline
    error = rounding_error(baseline, sample, family)
    range_of_baseline = (
        -known_baseline - _total(sample.free, of_baseline.max(axis=0)) - error,
        -known_baseline - _total(sample.free, of_baseline.min(axis=0)) + error,
    )
    if model is baseline:
        return Contrast(0.0, 0.0, 0.0, range_of_baseline)
    step = model.linear - baseline.linear
    gain = sample.scores(step)
    known = float(np.vdot(step, sample.known)) + family.shared(model, sample) - shared_baseline
    return Contrast(
        worst=-known - _total(sample.free, gain.min(axis=0)),
        best=-known - _total(sample.free, gain.max(axis=0)),
        bound=rounding_error(model, sample, family) + error,
        baseline=range_of_baseline,
    )


def _total(weights: Vector, terms: Vector) -> float:
    """Return a weighted sum: chunk by chunk, and over the chunks exactly."""
    counted = np.where(weights > 0.0, terms, 0.0)  # others may score anything, even infinity
    starts = range(0, len(terms), CHUNK)
    return math.fsum(float(weights[i : i + CHUNK] @ counted[i : i + CHUNK]) for i in starts)


def rounding_error(model: GaussianClasses, sample: Sample, family: Family) -> float:
    """Return a bound of the rounding errors in the loss of the model, for any labeling.

    Factoring a covariance of d columns is exact for one that is off by (d + 4) ε, relative to the
    variances. This changes quadratic forms of the precision by up to d times its norm, relative to
    themselves, and the logarithm of the determinant by as much. Sums have errors of SUMMATION ε,
    relative to the sizes of all terms. Scores, and means that are stored as measured from zero,
    have errors relative to the distance of the centre from zero.
    """
    precision, total, d = model.precision, sample.total, len(sample.offset)
    root, sizes, means = math.sqrt(total), np.abs(precision.matrix), np.abs(model.means)
    centre, lengths = np.abs(sample.centre), np.sqrt(sample.raw)
    penalty = total * family.alpha * float(np.trace(precision.matrix))
    priors = total * float(np.abs(np.log(model.priors)).max())
    # Σ (x - c)'P(x - c) and N μ'Pμ, with their errors from the factorisation.
    spread = float(np.vdot(precision.matrix, sample.scatter))
    height = total * float(np.sum(model.linear[:, 1:] * model.means, axis=1).max())
    forms = (math.sqrt(spread) + math.sqrt(height)) ** 2 + penalty + total
    factored = 2.0 * (d + 4) * d * precision.size * forms
    # Σ |x|'|P||x|, N |μ|'|P||μ| and the like: the sizes of what was added up.
    terms = float(lengths @ sizes @ lengths) + penalty + 2.0 * priors
    terms += total * float(np.sum(means @ sizes * means, axis=1).max())
    terms += total * (abs(precision.log_det) + 2.0 * d)
    terms += 2.0 * root * float((means @ sizes @ lengths).max())
    # Scores h·x + β, and means that were moved from one centre to another.
    slopes, constant = np.abs(model.linear[:, 1:]).max(axis=0), np.abs(model.linear[:, 0]).max()
    scores = root * float(slopes @ lengths) + total * float(slopes @ centre + constant)
    moved = 4.0 * (centre + means.max(axis=0)) @ sizes
    moves = root * float(moved @ lengths) + total * float((moved @ means.T).max())
    return EPS * (factored + SUMMATION * terms + 2.0 * (d + 4) * scores + moves)
