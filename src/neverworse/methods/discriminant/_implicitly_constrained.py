"""Linear discriminant analysis on all rows that suits the labeled rows best."""

from __future__ import annotations

from typing import Any

import numpy as np

from neverworse._typing import Matrix
from neverworse.methods.discriminant._descent import descend
from neverworse.methods.discriminant._family import Family
from neverworse.methods.discriminant._gaussian import GaussianClasses
from neverworse.methods.discriminant._sample import Sample
from neverworse.methods.discriminant._semi_supervised import SoftLabelDiscriminant, posteriors
from neverworse.projection import Labels, Observer


class ImplicitlyConstrainedDiscriminantAnalysis(SoftLabelDiscriminant):
    r"""Linear discriminant analysis with implicit constraints from unlabeled rows.

    Every choice of soft labels q of the unlabeled rows, each in the simplex of the classes, gives
    parameters θ(q): those of maximum likelihood on all rows. Of these, the ones are taken that are
    most likely for the labeled rows,

    .. math:: \max_q \; \sum_{i \text{ labeled}} s_i \log \left( \pi_{y_i}(q)
              \mathcal N(x_i; \mu_{y_i}(q), \Sigma(q)) \right)
              - \frac{\alpha}{2} \sum_{i \text{ labeled}} s_i \operatorname{tr} \Sigma(q)^{-1} .

    What the parameters of linear discriminant analysis have to do with moments of all rows need
    not be spelled out, as in `MomentConstrainedDiscriminantAnalysis`: it is implied. The objective
    is not concave; it is climbed by projected gradients from the probabilities that the supervised
    classifier gives, up to a point that satisfies the conditions of Karush, Kuhn and Tucker.
    Nothing is guaranteed.

    Parameters
    ----------
    covariance, priors, alpha, missing_label
        See `LinearDiscriminantClassifier`.
    tol : float, default=1e-6
        Stop when the first derivatives promise at most this much more log-likelihood for each
        unit of weight of the labeled rows, wherever the soft labels go.
    max_iter : int or None, default=10000
        Steps at most.
    max_time : float or None, default=None
        Stop after so many seconds.
    verbose : int, default=0
        Whether to write a line to stderr for every step. Callbacks of scikit-learn (1.9 or newer)
        see the same steps.

    Attributes
    ----------
    classes_, coef_, intercept_, priors_, means_, covariance_, rank_ : arrays and int
        See `LinearDiscriminantClassifier`.
    supervised_ : LinearDiscriminantClassifier
        The supervised baseline, fitted to the labeled rows.
    soft_labels_ : array of shape (n_unlabeled,) or (n_unlabeled, n_classes)
        The soft labels q, as the share of the second of two classes, or of every class.
    log_likelihood_ : float
        The objective: the penalised log-likelihood of the labeled rows. At most that of the
        supervised classifier, which maximises it without constraints.
    n_iter_ : int
    converged_ : bool
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only if X has column names that are all strings.

    References
    ----------
    J. H. Krijthe and M. Loog, "Implicitly constrained semi-supervised linear discriminant
    analysis", International Conference on Pattern Recognition (2014), 3762-3767.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse.methods import ImplicitlyConstrainedDiscriminantAnalysis
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 500)
    >>> X = rng.normal(size=(500, 4)) + truth[:, None]
    >>> y = np.where(np.arange(500) < 12, truth, -1)
    >>> clf = ImplicitlyConstrainedDiscriminantAnalysis().fit(X, y)
    >>> print(f"{clf.supervised_.score(X, truth):.3f} becomes {clf.score(X, truth):.3f}")
    0.776 becomes 0.784
    """

    log_likelihood_: float

    def __init__(
        self,
        *,
        covariance: str = "full",
        priors: Any = None,
        alpha: float = 0.0,
        missing_label: Any = "auto",
        tol: float = 1e-6,
        max_iter: int | None = 10000,
        max_time: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.covariance = covariance
        self.priors = priors
        self.alpha = alpha
        self.missing_label = missing_label
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.verbose = verbose

    def _move(
        self,
        start: GaussianClasses,
        sample: Sample,
        family: Family,
        labels: Labels,
        observer: Observer | None,
    ) -> GaussianClasses:
        budget = self._budget(observer)
        objective = LabeledLoss(start, sample, family)
        smallest = self.tol * sample.labeled_weight
        found = descend(
            objective,
            sample,
            posteriors(sample.scores(start.linear)),
            lambda gap, _: gap <= smallest,
            budget,
        )
        self._set_soft_labels(
            found.soft_labels, labels.unlabeled, budget.n_iter, found.gap <= smallest
        )
        self._warn_unless_converged()
        sums = sample.all_sums(found.soft_labels)
        self.log_likelihood_ = -objective(sums)[0]
        return family.most_likely(sums, sample)

    def _keep(self, start: GaussianClasses, sample: Sample, family: Family, labels: Labels) -> None:
        super()._keep(start, sample, family, labels)
        self.log_likelihood_ = self.supervised_.log_likelihood_


class LabeledLoss:
    r"""Penalised negative log-likelihood of the labeled rows, as a function of class sums.

    With the weights :math:`l_k` and means :math:`m_k` of the labeled rows of each class, their
    scatter :math:`W_l` within the classes and :math:`n_l = \sum_k l_k`, it is

    .. math:: \tfrac{n_l}2 \log \det (2 \pi \Sigma) + \tfrac12 \operatorname{tr} \Sigma^{-1} C
              - \sum_k l_k \log \pi_k , \qquad
              C = W_l + n_l \alpha I + \sum_k l_k (m_k - \mu_k)(m_k - \mu_k)' ,

    at the parameters of maximum likelihood for the class sums.

    Parameters
    ----------
    supervised : GaussianClasses
        The parameters of maximum likelihood for the labeled rows.
    sample : Sample
    family : Family
    """

    def __init__(self, supervised: GaussianClasses, sample: Sample, family: Family) -> None:
        self._sample = sample
        self._family = family
        self._counts = sample.known[:, 0]
        self._total = sample.labeled_weight
        self._means = supervised.means
        # Of a spherical family, only its trace matters: it is the same.
        self._scatter = self._total * supervised.covariance

    def __call__(self, sums: Matrix) -> tuple[float, Matrix]:
        """Return the loss, and its derivative with respect to the class sums."""
        sample, counts = self._sample, self._counts
        model = self._family.most_likely(sums, sample)
        precision = model.precision.matrix
        apart = self._means - model.means
        scatter = self._scatter + (apart.T * counts) @ apart
        spread = precision @ scatter
        value = -self._total * model.constant + 0.5 * float(np.trace(spread))
        value -= float(counts @ np.log(model.priors))
        # Of the loss, with respect to the covariance, and to the means as far as these enter C.
        by_covariance = 0.5 * (self._total * precision - spread @ precision)
        by_covariance = self._family.pulled(by_covariance) / sample.total
        by_means = -(counts[:, None] * apart) @ precision
        # W/N is the covariance of all rows less Σ n_k μ_k μ_k' / N, and μ_k = M_k / n_k.
        through_covariance = model.means @ by_covariance
        shares = sums[:, 0]
        by_sums = by_means / shares[:, None] - 2.0 * through_covariance
        by_counts = np.sum(through_covariance * model.means, axis=1)
        by_counts -= np.sum(by_means * model.means, axis=1) / shares
        if self._family.priors is None:
            by_counts -= counts / shares
        return value, np.column_stack([by_counts, by_sums])
