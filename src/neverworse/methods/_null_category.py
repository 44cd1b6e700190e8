"""A Gaussian process classifier that keeps its boundary away from unlabeled rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from scipy import optimize
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from neverworse._budget import Budget
from neverworse._typing import Matrix, Vector
from neverworse._words import documented_like
from neverworse.estimators import (
    CallbackSupportMixin,
    ProjectedLeastSquaresClassifier,
    copy_input_checks,
    explains_conversion,
    forget_fit,
    observed_fit,
    refuse_chunks,
    split_labels,
)
from neverworse.methods._base import (
    CONSTRAINTS,
    Constraints,
    LogOddsMixin,
    check_two_classes,
    dask_tokenize,
    warn_not_converged,
)
from neverworse.methods._null_category_inference import (
    BATCH,
    ActiveRows,
    Evidence,
    Posterior,
    evidence,
    log_odds,
    propagate,
    sample_rows,
)

SAMPLE = 1000  # rows that kernel and active rows are chosen from, unless `max_active` is larger
VARIANCE, BIAS = 10.0, 1.0  # prior variances of the default kernel; the noise has the variance 1
RANGE = 100.0  # factor by which the length scale of the default kernel may change
# First step of the search over logarithms of kernel parameters, and where it ends.
STEP, SMALL_STEP, SMALL_CHANGE = 0.5, 1e-2, 1e-3


@documented_like(ProjectedLeastSquaresClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class NullCategoryNoiseModel(CallbackSupportMixin, LogOddsMixin, BaseEstimator):  # type: ignore[misc]
    r"""Gaussian process classifier with a null category between its two classes.

    A latent function f with a Gaussian process prior gives the probabilities of three categories,

    .. math:: p(+ | f) = \Phi(f - a/2), \qquad p(- | f) = \Phi(-f - a/2), \qquad
              p(0 | f) = 1 - p(+ | f) - p(- | f) ,

    with the normal distribution function Φ. No row comes from the null category 0: the likelihood
    of a labeled row is that of its class, and of an unlabeled row :math:`p(+ | f) + p(- | f)`,
    which is small where f is close to zero, so the boundary keeps away from unlabeled rows. That
    helps if few rows lie between the classes, and harms otherwise.

    The posterior of f is approximated by expectation propagation, from that of the labeled rows on.
    Parameters of the kernel are chosen by the approximate marginal likelihood.

    Parameters
    ----------
    kernel : kernel of sklearn.gaussian_process.kernels, or None, default=None
        Covariance of f, with a fixed variance, which would grow to its bound otherwise. None:
        ``ConstantKernel(10) * RBF(l) + ConstantKernel(1)``; l starts at the median distance.
    width : float, default=1.0
        a, the width of the null category, in units of the standard deviation of the noise. With 0,
        unlabeled rows carry no information.
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
    With m active rows, an iteration over n rows takes O(n m²) operations and O(n m) memory. The
    authors use the likelihoods of active rows only, in one pass; here all rows are used, until
    convergence. With more than 1,000 rows (or `max_active`), kernel and active rows are chosen from
    a random sample of this size.

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
    array([12, 18])
    >>> np.bincount(clf.predict(X[2:]))
    array([ 0, 30])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **CONSTRAINTS,
        "kernel": [Kernel, None],
    }

    kernel: Any = field(default=None, kw_only=False)
    width: float = 1.0
    optimize: bool = True
    max_active: int = 200
    tol: float = 1e-6
    max_iter: int = 1000
    missing_label: Any = "auto"
    random_state: Any = None
    verbose: int = 0

    __dask_tokenize__ = dask_tokenize

    @explains_conversion
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
        try:
            refuse_chunks(self, X)
            X = validate_data(self, X, dtype=np.float64)
            self.classes_, codes, unlabeled = split_labels(y, self.missing_label)
            check_two_classes(self.classes_)
            sign = np.where(unlabeled, 0.0, 2.0 * codes - 1.0)
            check_consistent_length(X, sign)
            with observed_fit(self, X, y, {}, self.verbose) as observer:
                budget = Budget(None, None, observer, "iterations")
                supervised = clone(self)
                supervised._fit_signs(X[~unlabeled], sign[~unlabeled], budget)
                supervised.classes_ = self.classes_
                copy_input_checks(self, supervised)
                self._fit_signs(X, sign, budget)
            self.supervised_ = supervised
        except BaseException:  # an interrupt from the keyboard too
            forget_fit(self)
            raise
        if not self.converged_:
            warn_not_converged(
                f"Expectation propagation ended after {self.n_iter_} iterations at a residual of "
                f"{self.residual_:.1g}. Raise max_iter or tol, or choose another kernel or width."
            )
        return self

    @explains_conversion
    def _scores(self, X: Any) -> Vector:
        """Return the log odds of the second class."""
        check_is_fitted(self, "kernel_")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        odds = np.empty(len(X))
        for rows in gen_batches(len(X), BATCH):
            odds[rows] = log_odds(self.width, *self._latent(X[rows]))
        return odds

    def _latent(self, X: Matrix) -> tuple[Vector, Vector]:
        """Return posterior means and variances of f."""
        factor, own = self._active_.factor(X)
        mean, variance = self._posterior_.latent(factor)
        return mean, variance + own

    def _fit_signs(self, X: Matrix, sign: Vector, budget: Budget) -> None:
        """Choose kernel parameters and active rows, and find the posterior of all rows.

        The sign is 1 or -1 for rows of the two classes, 0 for unlabeled rows.
        """
        size = max(SAMPLE, self.max_active)
        sample = sample_rows(sign != 0.0, size, check_random_state(self.random_state))
        kernel = default_kernel(X[sample]) if self.kernel is None else clone(self.kernel)
        if self.optimize and len(kernel.theta):
            kernel = self._search(kernel, X[sample], sign[sample], budget)
        self._active_ = ActiveRows.of(kernel, X[sample], sign[sample] != 0.0, self.max_active)
        self._posterior_ = found = self._propagate(self._active_, X, sign)
        budget.n_iter = found.n_iter
        budget.report("expectation propagation", len(X))
        self.kernel_, self.active_rows_ = kernel, self._active_.rows
        self.log_marginal_likelihood_ = found.log_evidence
        self.residual_, self.converged_ = found.residual, found.residual <= self.tol
        self.n_iter_ = max(1, found.n_iter)

    def _search(self, kernel: Any, X: Matrix, sign: Vector, budget: Budget) -> Any:
        """Return the kernel with the largest marginal likelihood of those tried."""
        seen: list[tuple[float, Any]] = []

        # Expectation propagation has no gradient where a site would have a negative precision.
        def loss(theta: Vector) -> float:
            tried = kernel.clone_with_theta(theta)
            active = ActiveRows.of(tried, X, sign != 0.0, self.max_active)
            found = self._propagate(active, X, sign)
            seen.append((found.log_evidence, tried))
            budget.n_iter = found.n_iter
            budget.report(f"log marginal likelihood {found.log_evidence:.6g}", len(X))
            return -found.log_evidence

        def stop(_: Vector) -> None:
            if budget.exhausted:
                raise StopIteration

        start, steps = (
            kernel.theta,
            np.where(kernel.theta + STEP > kernel.bounds[:, 1], -STEP, STEP),
        )
        corners = np.vstack([start, start + np.diag(steps)])
        optimize.minimize(
            loss,
            start,
            method="Nelder-Mead",
            bounds=kernel.bounds,
            callback=stop,
            options={"initial_simplex": corners, "xatol": SMALL_STEP, "fatol": SMALL_CHANGE},
        )
        return max(seen, key=lambda pair: pair[0])[1]

    def _propagate(self, active: ActiveRows, X: Matrix, sign: Vector) -> Posterior:
        """Find the posterior; there may be several, so start from that of the labeled rows."""
        factor, own = active.factor(X)

        def found(rows: Any, start: Matrix) -> Posterior:
            # The variance of e acts as additional noise.
            def likelihood(mean: Vector, variance: Vector) -> Evidence:
                return evidence(self.width, sign[rows], mean, variance + own[rows])

            return propagate(factor[:, rows], likelihood, start, self.tol, self.max_iter)

        start, labeled = np.zeros((2, len(X))), np.flatnonzero(sign)
        if len(labeled) < len(X):
            start[:, labeled] = found(labeled, start[:, labeled]).sites
        return found(slice(None), start)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def default_kernel(X: Matrix) -> Any:
    """Return a Gaussian kernel whose length starts at the median distance of different rows."""
    size = float(np.abs(X).max()) or 1.0  # without it, squares might overflow or vanish
    distances = pdist(X / size)
    length = size * float(np.median(distances[distances > 0.0])) if distances.any() else 1.0
    smooth = ConstantKernel(VARIANCE, "fixed") * RBF(length, (length / RANGE, length * RANGE))
    return smooth + ConstantKernel(BIAS, "fixed")
