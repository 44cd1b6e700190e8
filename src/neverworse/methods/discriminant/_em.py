"""Linear discriminant analysis by expectation maximisation."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import special
from sklearn.utils._param_validation import Interval

from neverworse._docs import documented_like
from neverworse._typing import Matrix, Vector
from neverworse.estimators import ProjectedLeastSquaresClassifier
from neverworse.methods.discriminant._gaussian import GaussianClasses
from neverworse.methods.discriminant._sample import Family, Sample
from neverworse.methods.discriminant._semi_supervised import (
    Problem,
    SoftLabelDiscriminant,
    posteriors,
)
from neverworse.methods.discriminant._supervised import LinearDiscriminantClassifier
from neverworse.projection import Labels


@documented_like(LinearDiscriminantClassifier, ProjectedLeastSquaresClassifier)
class EMDiscriminantAnalysis(SoftLabelDiscriminant):
    r"""Linear discriminant analysis with unlabeled rows, by expectation maximisation.

    Climbs the likelihood of what is known: rows with their classes where these are labeled, rows
    alone where they are not,

    .. math:: \sum_{i \text{ labeled}} s_i \log \left( \pi_{y_i}
              \mathcal N(x_i; \mu_{y_i}, \Sigma) \right)
              + \lambda \sum_{j \text{ unlabeled}} s_j \log \sum_k \pi_k
              \mathcal N(x_j; \mu_k, \Sigma)
              - \frac{\alpha}{2} N \operatorname{tr} \Sigma^{-1} ,

    with N the sum of all weights :math:`s_i` and :math:`\lambda s_j`. Every step replaces the
    missing labels by the probabilities of the classes, and the parameters by those of maximum
    likelihood for these soft labels. The likelihood never falls, and ends in a local maximum.

    More likely rows need not mean better predictions: where the classes are not Gaussian, the
    unlabeled rows outvote the labels, and the classifier can become much worse than the supervised
    one. Nothing here is guaranteed.

    Parameters
    ----------
    unlabeled_weight : float, default=1.0
        λ, how much an unlabeled row counts. Zero gives the supervised classifier.
    {covariance, priors, alpha, missing_label}
    tol : float, default=1e-6
        Stop when a step raises the log-likelihood by at most this for each unit of weight.
    max_iter : int or None, default=1000
        Maximum number of steps.
    {max_time, verbose}

    Attributes
    ----------
    {classes_, coef_, intercept_, priors_, means_, covariance_, rank_}
    supervised_ : LinearDiscriminantClassifier
        The supervised baseline, fitted to the labeled rows: where the climb starts.
    soft_labels_ : array of shape (n_unlabeled,) or (n_unlabeled, n_classes)
        Probabilities of the unlabeled rows to be in the second of two classes, or in every class.
    log_likelihood_ : float
        The objective at the end.
    log_likelihoods_ : array of shape (n_iter_ + 1,)
        The objective at the start and after every step; it never falls.
    n_iter_ : int
        Number of steps.
    converged_ : bool
        Whether `tol` was reached.
    {n_features_in_, feature_names_in_}

    References
    ----------
    A. P. Dempster, N. M. Laird and D. B. Rubin, "Maximum likelihood from incomplete data via the EM
    algorithm", Journal of the Royal Statistical Society B 39 (1977), 1-38.

    G. J. McLachlan, "Estimating the linear discriminant function from initial samples containing a
    small number of unclassified observations", Journal of the American Statistical Association 72
    (1977), 403-406.

    K. Nigam, A. K. McCallum, S. Thrun and T. Mitchell, "Text classification from labeled and
    unlabeled documents using EM", Machine Learning 39 (2000), 103-134.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse.methods import EMDiscriminantAnalysis
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 500)
    >>> X = rng.normal(size=(500, 2)) + 2 * truth[:, None]
    >>> y = np.where(np.arange(500) < 8, truth, -1)
    >>> clf = EMDiscriminantAnalysis().fit(X, y)
    >>> print(f"{clf.supervised_.score(X, truth):.3f} becomes {clf.score(X, truth):.3f}")
    0.924 becomes 0.946
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **SoftLabelDiscriminant._parameter_constraints,
        "unlabeled_weight": [Interval(Real, 0, None, closed="left")],
    }

    log_likelihood_: float
    log_likelihoods_: Vector

    def __init__(
        self,
        unlabeled_weight: float = 1.0,
        *,
        covariance: str = "full",
        priors: Any = None,
        alpha: float = 0.0,
        missing_label: Any = "auto",
        tol: float = 1e-6,
        max_iter: int | None = 1000,
        max_time: float | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            covariance=covariance,
            priors=priors,
            alpha=alpha,
            missing_label=missing_label,
            tol=tol,
            max_iter=max_iter,
            max_time=max_time,
            verbose=verbose,
        )
        self.unlabeled_weight = unlabeled_weight

    def _row_weights(self, labels: Labels) -> Vector:
        weights = super()._row_weights(labels)
        return np.where(labels.unlabeled, self.unlabeled_weight * weights, weights)

    def _move(self, problem: Problem) -> GaussianClasses:
        sample, family, budget = problem.sample, problem.family, self._budget(problem.observer)
        n_unlabeled = int(np.count_nonzero(sample.free))
        model, path = problem.start, [-np.inf]
        while True:
            scores, sums, likelihood = _expect(model, sample, family)
            path.append(likelihood)
            converged = likelihood - path[-2] <= self.tol * sample.total
            budget.report("expectation maximisation", n_unlabeled)
            if converged or not budget.spend():
                break
            model = family.most_likely(sums, sample)
        unlabeled = problem.labels.unlabeled
        self._set_soft_labels(posteriors(scores), unlabeled, budget.n_iter, converged)
        self._set_likelihoods(path[1:])
        self._warn_unless_converged()
        return model

    def _keep(self, problem: Problem) -> None:
        super()._keep(problem)
        self._set_likelihoods([self.supervised_.log_likelihood_])

    def _set_likelihoods(self, path: list[float]) -> None:
        self.log_likelihoods_ = np.array(path)
        self.log_likelihood_ = path[-1]


def _expect(model: GaussianClasses, sample: Sample, family: Family) -> tuple[Matrix, Matrix, float]:
    """Return the scores, the class sums for their probabilities, and the log-likelihood."""
    evidence = np.zeros(sample.rows.n_rows)

    def weigh(t: Matrix, rows: slice) -> Matrix:
        evidence[rows] = special.logsumexp(t, axis=0)
        weights: Matrix = sample.free[rows] * np.exp(t - evidence[rows])
        return weights

    scores, sums = sample.scores_and_sums(model.linear, weigh)
    known = family.log_likelihood(model, sample.known, sample)
    return scores, sample.known + sums, known + float(sample.free @ evidence)
