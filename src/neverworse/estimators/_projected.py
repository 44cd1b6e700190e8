"""The projected estimators, and the variant that is known as ICLS."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar, cast

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from neverworse._typing import Matrix, Vector
from neverworse._words import documented_like
from neverworse.estimators._class_prior import with_class_prior
from neverworse.estimators._input import FitInput, copy_input_checks
from neverworse.estimators._kernels import (
    KernelModel,
    landmarks_of_all,
    space_of_all,
    start_of_projection,
)
from neverworse.estimators._known_labels import KnownLabels
from neverworse.estimators._labels import SoftLabels
from neverworse.estimators._least_squares import (
    CONSTRAINTS,
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
    LeastSquaresRegressor,
    LeastSquaresRegressorCV,
    fit_least_squares,
)
from neverworse.estimators._linear import (
    IndicatorClassifier,
    LinearModel,
    LinearRegressor,
    stored_weights,
)
from neverworse.projection import Certificate, TrainingRows, project


@dataclass(eq=False, repr=False, kw_only=True)
class ProjectedModel(LinearModel):
    """Base of estimators that project a supervised baseline on a constraint set."""

    _reads_chunks: ClassVar[bool] = True
    _skips_rows: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        "distance": [StrOptions({"all", "labeled", "unlabeled", "euclidean"}), "array-like"],
        "constraint_alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"same"})],
        "solver": [StrOptions({"exact", "lbfgs"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "max_time": [Interval(Real, 0, None, closed="left"), None],
        "verbose": ["verbose"],
        "class_prior": "no_validation",
        "prior_level": [Interval(Real, 0, 1, closed="neither")],
        "target_bounds": "no_validation",
        **CONSTRAINTS,
        "alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"loo"})],
    }
    # The baselines: with a given penalty, and with one that leave-one-out chooses.
    _baselines: ClassVar[tuple[Any, Any]]

    distance: Any = "all"
    alpha: float | str = "loo"
    constraint_alpha: float | str = "same"
    fit_intercept: bool = True
    rcond: float | None = None
    missing_label: Any = "auto"
    solver: Any = "exact"
    tol: float = 1e-9
    max_iter: int | None = None
    max_time: float | None = None
    verbose: int = 0
    supervised_: Any = field(init=False)
    certificate_: Certificate = field(init=False)

    def _fit_rows(self, given: FitInput) -> None:
        known = self._read_labels(given)
        labels = known.labels
        distance = self._checked_distance()
        training = TrainingRows(given.rows, labels)
        landmarks = landmarks_of_all(self, labels)
        kind = distance if isinstance(distance, str) else "array"
        one_pass = kind != "unlabeled"  # which takes a Gram matrix of other rows
        if one_pass and landmarks is None:
            training = training.read_once()
        supervised = self._baseline()
        supervised._fit_training(training, landmarks if self.n_components else None)
        copy_input_checks(self, supervised)
        gamma, baseline = getattr(supervised, "gamma_", None), stored_weights(supervised)
        space = space_of_all(self, training, gamma, landmarks)
        if landmarks is not None:  # of all rows, where the baseline needs the labeled ones only
            training = space.training(training)
            training = training.read_once() if one_pass else training
            alpha = supervised.alpha_
            baseline = fit_least_squares(supervised, training, alpha, space, self.rcond)
            if not alpha and training.rows.n_columns >= training.rows.n_rows - 1:
                warnings.warn(
                    "alpha is 0 and the kernel has as many features as there are rows: least "
                    "squares reproduces any labels, so that the constraint set holds every "
                    "function whose values on the unlabeled rows are possible labels. Set alpha "
                    "to 'loo' or to a positive number.",
                    stacklevel=2,
                )
        same = self.constraint_alpha == "same"
        alpha = supervised.alpha_ if same else float(self.constraint_alpha)
        start, rows = None, space.of_landmarks
        if rows is not None and kind == "all" and self.solver == "exact":
            start = start_of_projection(rows, labels, baseline, alpha, self.fit_intercept)
        result = project(
            training,
            baseline,
            distance=space.points(distance),
            alpha=alpha,
            supervised_alpha=supervised.alpha_,
            fit_intercept=self.fit_intercept,
            threshold=self._threshold,
            assumptions=known.assumptions,
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            max_time=self.max_time,
            observer=given.observer,
            start=start,
        )
        certificate = replace(
            result.certificate, kernel=space.words(), class_weight=known.class_weight
        )
        if not (certificate.converged or certificate.stopped_early):
            warnings.warn(
                "The solver stopped making progress at a relative duality gap of "
                f"{certificate.duality_gap:.1g}. The certificate is valid nevertheless. To improve "
                "the fit, rescale the features; to accept it, raise tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.supervised_, self.certificate_ = supervised, certificate
        self.n_iter_ = max(1, result.n_iter)  # scikit-learn requires at least one
        space.store(self, result.weights)
        if known.classes.size:
            supervised.classes_ = known.classes
        self._set_labels(known, result.soft_labels)

    @abstractmethod
    def _set_labels(self, known: KnownLabels, soft_labels: Matrix) -> None:
        """Store the imputed labels of the unlabeled rows."""

    def _baseline(self) -> Any:
        is_chosen = isinstance(self.alpha, str)  # "loo"; numbers of NumPy are compared otherwise
        if is_chosen and self.rcond is not None:
            raise ValueError("alpha='loo' takes no rcond. Set alpha to a number, or rcond to None.")
        kind, own = self._baselines[is_chosen], self.get_params(deep=False)
        return kind(**{name: own[name] for name in kind._get_param_names() if name in own})

    def _checked_distance(self) -> Any:
        if isinstance(self.distance, str):
            return self.distance
        D: Matrix = check_array(self.distance, dtype=np.float64, input_name="distance")
        if D.shape[1] != self.n_features_in_:
            raise ValueError(
                f"distance is an array with {D.shape[1]} columns, but X has {self.n_features_in_} "
                "features. Pass points at which two models are compared, with the columns of X."
            )
        if not D.any() and not self.fit_intercept:
            raise ValueError("distance is an array of zeros: it cannot tell models apart.")
        return D


@documented_like(LeastSquaresClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class ProjectedLeastSquaresClassifier(KernelModel, ProjectedModel, IndicatorClassifier):
    r"""Semi-supervised least squares classifier that is never worse than the supervised one.

    The constraint set Θ holds every weight vector that least squares on all rows would give for
    some soft labels :math:`q \in [0, 1]^n` of the unlabeled rows,

    .. math:: w(q) = H^{-1} (X'Sy + U'Sq), \qquad H = X'SX + U'SU + \alpha P .

    The projected weights are the point of Θ nearest to the supervised weights. In the distance
    "all", :math:`\lVert w - w' \rVert_H`, they are never worse: for *every* labeling of the
    unlabeled rows, the quadratic loss on all training rows is at most that of the supervised
    weights. The attribute `certificate_` says by how much, for these rows.

    Knowing more about the labels (`label_bounds` in `fit`, `class_prior`) makes Θ smaller and the
    classifier less conservative. The guarantee then holds for every labeling that agrees with this
    knowledge. With more than two classes, the loss is summed over the classes.

    Parameters
    ----------
    distance : {"all", "labeled", "unlabeled", "euclidean"} or array, default="all"
        On which rows the scores of two models are compared to measure their distance.

        - "all": all training rows (and the penalty `constraint_alpha`). Never worse in quadratic
          loss on all rows.
        - "labeled": the labeled rows. Known as implicitly constrained least squares (ICLS); less
          conservative, without the guarantee.
        - "unlabeled": the unlabeled rows, with a constraint set made of these rows alone. Never
          worse in quadratic loss on the unlabeled rows: the transductive variant.
        - an array of shape (k, n_features): its rows.
        - "euclidean": none; by the norm of the difference of their weights and intercepts.
    alpha : float or "loo", default="loo"
        Ridge penalty of the supervised baseline: chosen by exact leave-one-out on the labeled
        rows, or a number. The paper uses 0.0. The guarantee is only as good as the baseline.
    constraint_alpha : float or "same", default="same"
        Ridge penalty inside the constraint set, and in the loss that the guarantee is about: "same"
        as that of the baseline, or a number. The certificate says what is owed to the difference.
    {fit_intercept, rcond, missing_label}
    solver : {"exact", "lbfgs"}, default="exact"
        "lbfgs" runs L-BFGS-B on the soft labels (or unknown targets), as a slow reference.
    tol : float, default=1e-9
        Duality gap to reach, relative to the squared distance.
    max_iter : int or None, default=None
        Maximum number of steps. A fit that is stopped early is still certified.
    max_time : float or None, default=None
        Maximum time of the solver in seconds.
    verbose : int, default=0
        If positive, write a line to stderr for every stage of the fit. Callbacks of scikit-learn
        (1.9 or newer) see the same stages.
    {kernel, gamma, degree, coef0, n_components, random_state}
    class_prior : None, number, interval, array, dict or "confidence", default=None
        What is known about the share of classes among the unlabeled rows (weighted, if there are
        weights).

        - a dict from classes to shares or intervals (low, high); others are not restricted.
        - a list or array with a share or an interval for every class.
        - for two classes, a number: the share of the second one; a tuple (low, high): an interval
          for it. (A list of two ascending numbers may be either, and is refused.)
        - "confidence": exact confidence intervals, from the labeled rows as a random subset of all
          rows (the hypergeometric test inverted, with Bonferroni's correction).
    prior_level : float, default=0.95
        Probability with which "confidence" intervals hold.
    {class_weight}

    Attributes
    ----------
    {classes_, coef_, intercept_, dual_coef_, landmarks_, gamma_}
    supervised_ : LeastSquaresClassifier or LeastSquaresClassifierCV
        The supervised baseline, fitted to the labeled rows.
    soft_labels_ : array of shape (n_unlabeled,) or (n_unlabeled, n_classes)
        Imputed labels of the unlabeled rows, in their order, as the share of the second of two
        classes, or of every class.
    sparse_soft_labels_ : sparse array of shape (n_unlabeled, 1) or (n_unlabeled, n_classes)
        The same as a sparse array.
    certificate_ : Certificate
        What is proved about the projected weights, compared with the supervised ones.
    n_iter_ : int
        Number of steps of the solver.
    {n_features_in_, feature_names_in_}

    References
    ----------
    J. H. Krijthe and M. Loog, "Projected estimators for robust semi-supervised classification",
    Machine Learning 106 (2017), 993-1008.

    Examples
    --------
    >>> from neverworse import ProjectedLeastSquaresClassifier
    >>> X, y = [[0.0], [1.0], [3.0], [-2.0]], [0, 1, -1, -1]
    >>> clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    >>> print(f"lower by {clf.certificate_.guaranteed_improvement:.2f} at least")
    lower by 7.69 at least
    """

    _baselines: ClassVar[tuple[Any, Any]] = (LeastSquaresClassifier, LeastSquaresClassifierCV)

    distance: Any = field(default="all", kw_only=False)
    class_prior: Any = None
    prior_level: float = 0.95
    class_weight: Any = None

    def _read_labels(self, given: FitInput) -> KnownLabels:
        known = super()._read_labels(given)
        if self.class_prior is not None:
            known = with_class_prior(known, self.class_prior, self.prior_level)
        labels = known.labels
        if self.solver == "lbfgs" and (labels.shape.is_coupled or labels.totals is not None):
            raise ValueError(
                "solver='lbfgs' is a reference for two classes without class_prior. Use "
                "solver='exact'."
            )
        return known

    def _set_labels(self, known: KnownLabels, soft_labels: Matrix) -> None:  # noqa: ARG002
        self._soft_labels_ = SoftLabels.compress(soft_labels)

    @property
    def soft_labels_(self) -> Vector:
        """Imputed labels of the unlabeled rows, in their order."""
        check_is_fitted(self, "intercept_")
        return self._soft_labels_.to_array()

    @property
    def sparse_soft_labels_(self) -> sparse.csr_array:
        """The same as a sparse array of shape (n_unlabeled, 1) or (n_unlabeled, n_classes)."""
        labels = self.soft_labels_
        return sparse.csr_array(labels.reshape(len(labels), -1))


@documented_like(ProjectedLeastSquaresClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class ICLSClassifier(ProjectedLeastSquaresClassifier):
    """Implicitly constrained least squares classifier.

    `ProjectedLeastSquaresClassifier` with ``distance="labeled"``: of all classifiers that least
    squares could give for some labeling of the unlabeled rows, the one with the smallest loss on
    the labeled rows. The certificate says what is true for the rows at hand.

    Parameters
    ----------
    {alpha, constraint_alpha, fit_intercept, rcond, missing_label}
    {solver, tol, max_iter, max_time, verbose}
    {kernel, gamma, degree, coef0, n_components, random_state}
    {class_prior, prior_level, class_weight}

    Attributes
    ----------
    {classes_, coef_, intercept_, supervised_, soft_labels_, sparse_soft_labels_, certificate_}
    {n_iter_, dual_coef_, landmarks_, gamma_, n_features_in_, feature_names_in_}

    References
    ----------
    J. H. Krijthe and M. Loog, "Implicitly constrained semi-supervised least squares
    classification", Advances in Intelligent Data Analysis XIV (2015), 158-169.

    Examples
    --------
    >>> from neverworse import ICLSClassifier
    >>> X = [[0.0], [1.0], [2.0], [3.0], [10.0], [12.0]]
    >>> clf = ICLSClassifier().fit(X, ["a", "a", "b", "b", None, None])
    >>> clf.predict([[1.0], [9.0]])
    array(['a', 'b'], dtype=object)
    """

    distance: Any = field(default="labeled", init=False)


@documented_like(LeastSquaresRegressor, ProjectedLeastSquaresClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class ProjectedLeastSquaresRegressor(KernelModel, ProjectedModel, LinearRegressor):
    r"""Semi-supervised least squares regression that is never worse than the supervised one.

    For targets that are known to lie within bounds, such as shares, ratings or marks. As in
    `ProjectedLeastSquaresClassifier`, with unknown targets in place of soft labels: in the distance
    "all", the squared error on all training rows is at most that of the supervised regression,
    whatever these targets are. The narrower the bounds, the more there is to gain.

    Parameters
    ----------
    target_bounds : (low, high), "labeled" or None, default=None
        Smallest and largest possible target of the unlabeled rows.

        - (low, high): two finite numbers. All known targets have to lie between them.
        - "labeled": the smallest and the largest known target. The fewer these are, the bolder is
          this assumption.
        - None: every unlabeled row needs bounds of its own, see `target_bounds` in `fit`.
    {distance}
    alpha : float or "loo", default="loo"
        Ridge penalty of the supervised baseline: chosen by exact leave-one-out on the rows with a
        target, or a number.
    {constraint_alpha, fit_intercept, rcond, missing_label}
    {solver, tol, max_iter, max_time, verbose}
    {kernel, gamma, degree, coef0, n_components, random_state}

    Attributes
    ----------
    {coef_, intercept_}
    supervised_ : LeastSquaresRegressor or LeastSquaresRegressorCV
        The supervised baseline, fitted to the labeled rows.
    imputed_targets_ : array of shape (n_unlabeled,)
        Targets of the unlabeled rows, in their order and within their bounds, for which least
        squares on all rows gives the projected weights. They are not predictions.
    {certificate_, n_iter_, dual_coef_, landmarks_, gamma_, n_features_in_, feature_names_in_}

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import ProjectedLeastSquaresRegressor
    >>> X, y = [[0.0], [1.0], [3.0], [-2.0]], [2.0, 4.0, np.nan, np.nan]
    >>> reg = ProjectedLeastSquaresRegressor((1, 5), alpha=0.0).fit(X, y)  # one to five stars
    >>> print(f"lower by {reg.certificate_.guaranteed_improvement:.2f} at least")
    lower by 17.31 at least
    """

    _baselines: ClassVar[tuple[Any, Any]] = (LeastSquaresRegressor, LeastSquaresRegressorCV)

    target_bounds: Any = field(default=None, kw_only=False)
    missing_label: Any = np.nan

    def _set_labels(self, known: KnownLabels, soft_labels: Matrix) -> None:
        # The lower bound plus a share of the range may be off by a rounding error.
        unlabeled, upper = known.labels.unlabeled, cast("Vector", known.upper)
        self.imputed_targets_ = np.minimum(soft_labels[0], upper[unlabeled])
