"""Linear discriminant analysis that is never less likely than the supervised one."""

from __future__ import annotations

from typing import Any

import numpy as np

from neverworse._typing import Matrix
from neverworse.methods.discriminant._certificate import LikelihoodCertificate
from neverworse.methods.discriminant._contrast import Contrast, contrast, rounding_error
from neverworse.methods.discriminant._descent import descend
from neverworse.methods.discriminant._family import Family
from neverworse.methods.discriminant._gaussian import GaussianClasses
from neverworse.methods.discriminant._sample import Sample
from neverworse.methods.discriminant._semi_supervised import SoftLabelDiscriminant, posteriors
from neverworse.methods.discriminant._subspace import SingularCovarianceError
from neverworse.projection import Assumptions, Labels, Observer
from neverworse.projection.certificate.certificate import Reason

# Parts of the way from the supervised parameters that are tried until one is never worse.
WAYS = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01)


class ContrastivePessimisticDiscriminantAnalysis(SoftLabelDiscriminant):
    r"""Linear discriminant analysis that is never less likely than the supervised one.

    Maximum contrastive pessimistic likelihood: with L(θ; q) the log-likelihood of all rows, where
    the unlabeled ones have the soft labels q (each in the simplex of the classes),

    .. math:: \max_\theta \min_q \; L(\theta; q) - L(\theta_{\text{sup}}; q) ,
              \qquad L(\theta; q) = \sum_j s_j \sum_k q_{jk} \log \left( \pi_k
              \mathcal N(x_j; \mu_k, \Sigma) \right) - \frac{\alpha}{2} N \operatorname{tr}
              \Sigma^{-1} .

    The supervised parameters :math:`\theta_{\text{sup}}` would give zero, so the result is at least
    zero: for *every* labeling of the unlabeled rows, the parameters found are at least as likely
    on all training rows as the supervised ones. The attribute `certificate_` says by how much, for
    these rows. It is a statement about likelihood: predictions can become worse.

    For given soft labels the best θ is that of linear discriminant analysis with these labels. What
    it achieves is a convex function of q, whose minimum is found by projected gradients; minimum
    and θ make up the saddle point.

    Parameters
    ----------
    covariance, priors, alpha, missing_label
        See `LinearDiscriminantClassifier`.
    tol : float, default=1e-6
        Duality gap to reach, relative to the improvement.
    max_iter : int or None, default=10000
        Stop after so many steps. What is returned when stopped early is certified all the same.
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
        The most pessimistic labels, as the share of the second of two classes, or of every class.
    certificate_ : LikelihoodCertificate
        What is proved about these parameters against the supervised ones.
    n_iter_ : int
    converged_ : bool
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only if X has column names that are all strings.

    References
    ----------
    M. Loog, "Contrastive pessimistic likelihood estimation for semi-supervised classification",
    IEEE Transactions on Pattern Analysis and Machine Intelligence 38 (2016), 462-475.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse.methods import ContrastivePessimisticDiscriminantAnalysis
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> X = rng.normal(size=(500, 5)) + y[:, None]
    >>> y[20:] = -1
    >>> clf = ContrastivePessimisticDiscriminantAnalysis().fit(X, y)
    >>> clf.certificate_.holds
    True
    >>> round(clf.certificate_.guaranteed_improvement)
    1071
    """

    certificate_: LikelihoodCertificate

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

        def improvement(sums: Matrix) -> tuple[float, Matrix]:
            model = family.most_likely(sums, sample)
            better = family.log_likelihood(model, sums, sample)
            return better - family.log_likelihood(start, sums, sample), model.linear - start.linear

        floor = rounding_error(start, sample, family)
        found = descend(
            improvement,
            sample,
            posteriors(sample.scores(start.linear)),
            lambda gap, value: gap <= self.tol * value or value <= floor,
            budget,
        )
        saddle = family.most_likely(sample.all_sums(found.soft_labels), sample).stored()
        model, proved = _certified(saddle, start, sample, family)
        # The descent bounds what any parameters guarantee from above, these do from below.
        gap = max(0.0, found.value + proved.worst)
        converged = gap <= max(self.tol * found.value, proved.bound, floor)
        self._set_soft_labels(found.soft_labels, labels.unlabeled, budget.n_iter, converged)
        self.certificate_ = self._certificate(
            proved,
            labels,
            duality_gap=gap / found.value if found.value > 0.0 else float("inf"),
            stopped_early=budget.exhausted and not converged,
            moved=model is not start,
        )
        if not (converged or self.certificate_.stopped_early):
            self._warn_unless_converged()
        return self.supervised_._model_ if model is start else model

    def _keep(self, start: GaussianClasses, sample: Sample, family: Family, labels: Labels) -> None:
        super()._keep(start, sample, family, labels)
        proved = contrast(start, start, sample, family)
        self.certificate_ = self._certificate(
            proved, labels, duality_gap=0.0, stopped_early=False, moved=False
        )

    def _certificate(
        self,
        proved: Contrast,
        labels: Labels,
        *,
        duality_gap: float,
        stopped_early: bool,
        moved: bool,
    ) -> LikelihoodCertificate:
        """Put together what was proved, and how."""
        n_unlabeled = int(np.count_nonzero(labels.weights_where(labels.unlabeled)))
        reason: Reason = ""
        if not n_unlabeled:
            reason = "no unlabeled rows"
        elif not moved:
            unfinished: Reason = "stopped early" if stopped_early else "no progress"
            reason = "rounding" if self.converged_ else unfinished
        several = labels.target.ndim > 1
        counted = self.soft_labels_[labels.weights_where(labels.unlabeled)[labels.unlabeled] > 0.0]
        whole = (counted == 1.0).any(axis=1) if several else counted == 1.0
        n_zero, n_one = 0 if several else int(np.sum(counted == 0.0)), int(np.sum(whole))
        return LikelihoodCertificate(
            worst_case=proved.worst + proved.bound,
            best_case=proved.best - proved.bound,
            supervised_loss=proved.baseline,
            duality_gap=duality_gap,
            converged=self.converged_,
            stopped_early=stopped_early,
            rounding_bound=proved.bound,
            n_labeled=int(np.count_nonzero(labels.weights_where(~labels.unlabeled))),
            n_unlabeled=n_unlabeled,
            n_zero=n_zero,
            n_one=n_one,
            n_fractional=n_unlabeled - n_zero - n_one,
            distance="likelihood",
            rows="all",
            penalty=float(self.alpha),
            reason=reason,
            assumptions=Assumptions("multiclass" if several else "binary"),
        )


def _certified(
    saddle: GaussianClasses, start: GaussianClasses, sample: Sample, family: Family
) -> tuple[GaussianClasses, Contrast]:
    """Return classes that are never worse than the supervised ones, and the proof.

    The worst case is convex on the way from the supervised classes, and zero there: if the saddle
    point was not reached, a part of the way may still be an improvement.
    """
    for part in WAYS:
        try:
            model = saddle if part == 1.0 else start.between(saddle, part).stored()
            proved = contrast(model, start, sample, family)
        except SingularCovarianceError:
            continue
        if proved.is_never_worse:
            return model, proved
    return start, contrast(start, start, sample, family)
