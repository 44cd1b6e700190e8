"""Linear discriminant analysis that is never less likely than the supervised one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from neverworse._budget import Budget
from neverworse._typing import Matrix, Vector
from neverworse._words import documented_like
from neverworse.methods.discriminant import _soft_labels
from neverworse.methods.discriminant._gaussian import GaussianClasses, Sample
from neverworse.projection import EPS, EXACT, SUMMATION, Assumptions, Certificate, Reason
from neverworse.rows import blocks


@dataclass(frozen=True)
class LikelihoodCertificate(Certificate):
    """What is proved about the likelihood of a classifier against its supervised baseline.

    A `Certificate` whose losses are negative log-likelihoods, weighted and penalised. `distance` is
    "likelihood", and `duality_gap` how much more the worst case could be improved at most, relative
    to the improvement.

    Examples
    --------
    >>> from neverworse.methods import ContrastivePessimisticDiscriminantAnalysis
    >>> X = [[0.0], [1.0], [4.0], [5.0], [2.0], [9.0]]
    >>> clf = ContrastivePessimisticDiscriminantAnalysis().fit(X, [0, 0, 1, 1, -1, -1])
    >>> clf.certificate_.distance, clf.certificate_.holds
    ('likelihood', True)
    """

    def _loss(self) -> str:
        return ("penalised " if self.penalty else "") + "negative log-likelihood"

    def _penalty(self) -> str:
        return ""  # said by the name of the loss

    def _how(self) -> str:
        if not self.n_unlabeled:
            return ""
        labels = f"Most pessimistic labels: {self._counts()}."
        gap = f"relative duality gap {self.duality_gap:.1g}"
        if self.converged and self.duality_gap <= EXACT:
            return f"{labels} No other parameters guarantee more: {gap}."
        if self.converged:
            return f"{labels} No other parameters guarantee noticeably more."
        how = "was stopped early" if self.stopped_early else "stopped making progress"
        return f"{labels} The solver {how}, at a {gap}; the statement above still holds."


@documented_like(_soft_labels.EMDiscriminantAnalysis)
class ContrastivePessimisticDiscriminantAnalysis(_soft_labels.SoftLabelDiscriminant):
    r"""Linear discriminant analysis that is never less likely than the supervised one.

    Maximum contrastive pessimistic likelihood: with L(θ; q) the log-likelihood of all rows, where
    the unlabeled ones have the soft labels q (each in the simplex of the classes),

    .. math:: \max_\theta \min_q \; L(\theta; q) - L(\theta_{\text{sup}}; q) ,
              \qquad L(\theta; q) = \sum_j s_j \sum_k q_{jk} \log \left( \pi_k
              \mathcal N(x_j; \mu_k, \Sigma) \right) - \frac{\alpha}{2} N \operatorname{tr}
              \Sigma^{-1} .

    The supervised :math:`\theta_{\text{sup}}` would give zero: for *every* labeling, the parameters
    found are at least as likely on all training rows as these. The attribute `certificate_` says by
    how much. It is a statement about likelihood: predictions can become worse. The improvement of
    the best θ for soft labels q is a convex function of q, whose minimum is found by projected
    gradients; `soft_labels_` are the most pessimistic ones.

    Parameters
    ----------
    {covariance, priors, alpha, missing_label}
    tol : float, default=1e-6
        Duality gap to reach, relative to the improvement.
    max_iter : int or None, default=10000
        Maximum number of steps. A fit that is stopped early is certified all the same.
    {max_time, verbose}

    Attributes
    ----------
    {classes_, coef_, intercept_, priors_, means_, covariance_, rank_, supervised_, soft_labels_}
    certificate_ : LikelihoodCertificate
        What is proved about these parameters, compared with the supervised ones.
    {n_iter_, converged_, n_features_in_, feature_names_in_}

    References
    ----------
    Loog, IEEE Transactions on Pattern Analysis and Machine Intelligence 38 (2016), 462-475.

    Examples
    --------
    >>> from neverworse.methods import ContrastivePessimisticDiscriminantAnalysis
    >>> X = [[0.0], [1.0], [4.0], [5.0], [2.2], [9.0]]
    >>> clf = ContrastivePessimisticDiscriminantAnalysis().fit(X, [0, 0, 1, 1, -1, -1])
    >>> round(clf.certificate_.guaranteed_improvement, 1)
    38.1
    """

    def _move(self, start: GaussianClasses, sample: Sample, budget: Budget) -> GaussianClasses:
        floor = rounding_error(start, sample)

        def improvement(sums: Matrix) -> tuple[float, Matrix]:
            model = sample.most_likely(sums)
            better = sample.log_likelihood(model, sums) - sample.log_likelihood(start, sums)
            return better, model.linear - start.linear

        def enough(gap: float, value: float) -> bool:
            return gap <= self.tol * value or value <= floor

        found, _ = _soft_labels.SoftLabelDescent(improvement, sample, enough, budget).run(start)
        saddle = sample.most_likely(sample.all_sums(found.labels)).stored()
        worst, best, bound = contrast(saddle, start, sample)
        if worst + bound > 0.0:  # stopped early, or nothing but rounding errors
            saddle, worst, best, bound = start, 0.0, 0.0, 0.0
        # The descent bounds the guarantee of any parameters from above, the proof from below.
        gap = max(0.0, found.value + worst)
        converged = gap <= max(self.tol * found.value, bound, floor)
        stopped_early = budget.exhausted and not converged
        self._set_soft_labels(found.labels, sample, budget.n_iter, converged, not stopped_early)
        # Of the supervised parameters, rounded outwards.
        known, scores = sample.log_likelihood(start, sample.known), sample.scores(start.linear)
        lowest = -known - _total(sample.free, scores.max(axis=0)) - floor
        highest = -known - _total(sample.free, scores.min(axis=0)) + floor
        labels, n_unlabeled = sample.labels, int(np.count_nonzero(sample.free))
        relative_gap = gap / found.value if found.value > 0.0 else math.inf
        reason: Reason = ""
        if not n_unlabeled:
            reason, relative_gap = "no unlabeled rows", 0.0
        elif worst == best == 0.0:  # the supervised parameters were kept
            unfinished: Reason = "stopped early" if stopped_early else "no progress"
            reason = "rounding" if converged else unfinished
        counted = np.atleast_2d(self.soft_labels_.T)[:, sample.free[labels.unlabeled] > 0.0]
        n_one = int(np.sum((counted == 1.0).any(axis=0)))
        n_zero = int(np.sum(~counted.any(axis=0)))
        self.certificate_ = LikelihoodCertificate(
            worst_case=worst + bound,
            best_case=best - bound,
            supervised_loss=(lowest, highest),
            duality_gap=relative_gap,
            converged=converged,
            stopped_early=stopped_early,
            rounding_bound=bound,
            n_labeled=labels.n_labeled,
            n_unlabeled=n_unlabeled,
            n_zero=n_zero,
            n_one=n_one,
            n_fractional=n_unlabeled - n_zero - n_one,
            distance="likelihood",
            rows="all",
            penalty=float(self.alpha),
            reason=reason,
            assumptions=Assumptions("multiclass" if len(counted) > 1 else "binary"),
        )
        return saddle


def contrast(
    model: GaussianClasses, baseline: GaussianClasses, sample: Sample
) -> tuple[float, float, float]:
    """Return the largest and smallest loss of a model less that of a baseline, over all labelings.

    The third number bounds their rounding errors. The loss is linear in every soft label: extremes
    are sums of extreme terms of the rows.
    """
    step = model.linear - baseline.linear
    gain, known = sample.scores(step), float(np.vdot(step, sample.known)) + sample.shared(model)
    known -= sample.shared(baseline)
    worst, best = (-known - _total(sample.free, end(gain, axis=0)) for end in (np.min, np.max))
    return worst, best, rounding_error(model, sample) + rounding_error(baseline, sample)


def _total(weights: Vector, terms: Vector) -> float:
    """Return a weighted sum: block by block, and over the blocks exactly."""
    counted = np.where(weights > 0.0, terms, 0.0)  # other scores may overflow
    return math.fsum(float(weights[rows] @ counted[rows]) for rows in blocks(counted[None]))


def rounding_error(model: GaussianClasses, sample: Sample) -> float:
    """Return a bound of the rounding errors in the loss of the model, for any labeling.

    The factor of a covariance of d columns is exact for one that is off by (d + 4) ε, relative to
    the variances. This changes quadratic forms of the precision by up to d times its norm, and the
    logarithm of the determinant by as much. Sums have errors of SUMMATION ε, relative to the sizes
    of their terms; scores and stored means, relative to the distance of the centre from zero.
    """
    precision, sums, d = model.precision, sample.moments, len(model.covariance)
    total = sums.total
    root, sizes, means = math.sqrt(total), np.abs(precision.matrix), np.abs(model.means)
    centre, lengths = np.abs(sums.centre), np.sqrt(sums.raw)
    penalty = total * sample.family.alpha * float(np.trace(precision.matrix))
    priors = total * float(np.abs(np.log(model.priors)).max())
    # Σ (x - c)'P(x - c) and N μ'Pμ, with their errors from the factorisation.
    spread = float(np.vdot(precision.matrix, sums.gram))
    height = total * float(np.sum(model.linear[:, 1:] * model.means, axis=1).max())
    forms = (math.sqrt(spread) + math.sqrt(height)) ** 2 + penalty + total
    factored = 2.0 * (d + 4) * d * precision.size * forms
    # Σ |x|'|P||x|, N |μ|'|P||μ| and so on: the sizes of the terms of sums.
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
