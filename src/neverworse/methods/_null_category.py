"""A Gaussian process classifier that keeps its boundary away from unlabeled rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from neverworse import estimators
from neverworse._budget import Budget
from neverworse._typing import AnyArray, Matrix, Vector
from neverworse._words import documented_like
from neverworse.methods import _base
from neverworse.methods import _null_category_inference as inference


@documented_like(estimators.ProjectedLeastSquaresClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class NullCategoryNoiseModel(_base.ObservedMixin, _base.LogOddsMixin, BaseEstimator):  # type: ignore[misc]
    r"""Gaussian process classifier with a null category between its two classes.

    A latent function f with a Gaussian process prior gives the probabilities of three categories,

    .. math:: p(+ | f) = \Phi(f - a/2), \qquad p(- | f) = \Phi(-f - a/2), \qquad
              p(0 | f) = 1 - p(+ | f) - p(- | f) ,

    with the normal distribution function Φ. No row comes from the null category 0: the likelihood
    of a labeled row is that of its class, and of an unlabeled row
    :math:`\gamma_+ p(+ | f) + \gamma_- p(- | f)`, where :math:`\gamma_\pm` are the probabilities of
    rows of a class to be unlabeled. It is small where f is close to zero, so the boundary keeps
    away from unlabeled rows. That helps if few rows lie between the classes, and harms otherwise.

    The posterior of f is approximated by expectation propagation, from that of the labeled rows on.

    Parameters
    ----------
    kernel : kernel of sklearn.gaussian_process.kernels, or None, default=None
        Covariance of f, with a fixed variance, which would grow to its bound otherwise. None:
        ``ConstantKernel(10) * RBF(l) + ConstantKernel(1)``; l starts at the median distance.
    width : float, default=1.0
        a, the width of the null category, in units of the standard deviation of the noise. With 0,
        unlabeled rows carry no information.
    unlabeled_rates : (float, float) or None, default=None
        The probabilities :math:`\gamma_-, \gamma_+` of a row of the first and of the second class
        to be unlabeled. None: they are equal.
    optimize : bool, default=True
        Whether to choose parameters of the kernel by the marginal likelihood, within their bounds.
    max_active : int, default=200
        Maximum number of active rows (inducing points). See Notes.
    tol : float, default=1e-6
        Stop when a row's likelihood in place of its approximation would change no mean (in standard
        deviations) and no variance (relative to it) by more than this.
    max_iter : int, default=1000
        Maximum number of iterations of expectation propagation.
    {missing_label}
    random_state : int, RandomState or None, default=None
        For the sample of rows that is drawn if there are many. See Notes.
    {verbose}

    Attributes
    ----------
    {classes_}
    kernel_ : kernel
        With the parameters that were chosen.
    supervised_ : NullCategoryNoiseModel
        The same model, fitted to the labeled rows only. It has no `supervised_` of its own.
    active_rows_ : array of shape (n_active, n_features)
        The active rows, from which predictions are computed.
    log_marginal_likelihood_ : float
        Approximate log probability of all labels, and of no unlabeled row being null.
    residual_, n_iter_ : float, int
        The change that `tol` bounds, and iterations of expectation propagation, for `kernel_`.
    converged_ : bool
        Whether `tol` was reached.
    {n_features_in_, feature_names_in_}

    Notes
    -----
    With m active rows, an iteration over n rows takes O(n m²) operations, and all take O(n m)
    memory. Active rows are chosen one by one: always the one with the largest variance given those
    before it, of the labeled rows first. Given the active rows, all others are independent in the
    prior (a fully independent conditional). The authors use the likelihoods of active rows only,
    in one pass; here all rows are used, until convergence. With more than 1,000 rows (or
    `max_active`), kernel and active rows are chosen from a random sample of this size.

    References
    ----------
    Lawrence and Jordan, Advances in Neural Information Processing Systems 17 (2005), 753-760.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse.methods import NullCategoryNoiseModel
    >>> X = np.r_[-1.0, 1.0, np.linspace(-0.2, 0.6, 30)][:, None]  # a cluster between two labels
    >>> y = np.r_[0, 1, np.full(30, -1)]
    >>> clf = NullCategoryNoiseModel(width=2.0).fit(X, y)
    >>> np.bincount(clf.supervised_.predict(X[2:]))  # cuts the cluster in two
    array([ 8, 22])
    >>> np.bincount(clf.predict(X[2:]))
    array([ 0, 30])
    """

    kernel: Any = field(default=None, kw_only=False)
    width: float = 1.0
    unlabeled_rates: Any = None
    optimize: bool = True
    max_active: int = 200
    tol: float = 1e-6
    max_iter: int = 1000
    missing_label: Any = "auto"
    random_state: Any = None
    verbose: int = 0

    @estimators.explains_conversion
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Labeled and unlabeled rows, in any order.
        y : array-like of shape (n_samples,)
            Labels of two classes, and a marker for rows without one.

        Returns
        -------
        self : object
        """
        with estimators.fresh_fit(self):
            estimators.refuse_chunks(self, X)
            X = validate_data(self, X, dtype=np.float64)
            classes, codes, unlabeled = estimators.split_labels(y, self.missing_label)
            _base.check_two_classes(classes)
            sign = np.where(unlabeled, 0.0, 2.0 * codes - 1.0)
            check_consistent_length(X, sign)
            with self._observed(X, y) as budget:
                self._fit_signs(X, sign, classes, budget)
        return self

    @estimators.explains_conversion
    def _scores(self, X: Any) -> Vector:
        """Return the log odds of the second class."""
        check_is_fitted(self, "kernel_")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        odds = np.empty(len(X))
        for rows in gen_batches(len(X), inference.BATCH):
            odds[rows] = self._noise_.log_odds(*self._process_.latent(X[rows]))
        return odds

    def _fit_signs(self, X: Matrix, sign: Vector, classes: AnyArray, budget: Budget) -> None:
        rates = None if self.unlabeled_rates is None else np.asarray(self.unlabeled_rates, float)
        if rates is not None and (rates.shape != (2,) or not ((rates > 0) & (rates < 1)).all()):
            raise ValueError(
                f"unlabeled_rates={self.unlabeled_rates!r} has to be two probabilities between 0 "
                "and 1: of a row of the first and of the second class to be unlabeled."
            )
        noise = inference.NullCategoryNoise(float(self.width), rates)
        data = inference.Data(X, sign, noise, int(self.max_active), self.tol, self.max_iter)
        labeled, given = sign != 0.0, (bool(self.optimize), self.random_state, budget)
        alone = inference.fit_process(self.kernel, data.take(labeled), *given)
        whole = alone if labeled.all() else inference.fit_process(self.kernel, data, *given)
        supervised = clone(self)
        estimators.copy_input_checks(self, supervised)
        for model, process in ((supervised, alone), (self, whole)):
            model.classes_, model._noise_, model._process_ = classes, noise, process
            model.kernel_, model.active_rows_ = process.active.kernel, process.active.rows
            found = process.approximation
            model.log_marginal_likelihood_ = found.log_evidence
            model.residual_, model.converged_ = found.residual, found.converged
            model.n_iter_ = max(1, found.n_iter)
        self.supervised_ = supervised
        if not self.converged_:
            _base.warn_not_converged(
                f"Expectation propagation ended after {self.n_iter_} iterations at a residual of "
                f"{self.residual_:.1g}. Raise max_iter or tol, or choose another kernel or width."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
