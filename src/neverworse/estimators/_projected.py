"""The projected estimator, and its variant that is known as ICLS."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions

from neverworse._typing import AnyArray, Matrix, Vector
from neverworse.estimators._least_squares import LeastSquaresClassifier
from neverworse.estimators._linear import LinearBinaryClassifier, stored_weights
from neverworse.projection import Certificate, TrainingRows, project

DISTANCES = ("all", "labeled", "unlabeled", "euclidean")


class ProjectedLeastSquaresClassifier(LinearBinaryClassifier):
    r"""Semi-supervised least squares classifier that is never worse than the supervised one.

    The constraint set Θ holds every weight vector that least squares on all rows would give for
    some soft labels :math:`q \in [0, 1]^n` of the unlabeled rows,

    .. math:: w(q) = H^{-1} (X'Sy + U'Sq), \qquad H = X'SX + U'SU + \alpha P .

    The projected weights are the point of Θ nearest to the supervised weights. In the distance
    "all", :math:`\lVert w - w' \rVert_H`, they are never worse: for *every* labeling of the
    unlabeled rows, the quadratic loss on all training rows is at most that of the supervised
    weights. The attribute `certificate_` says by how much, for these rows.

    Parameters
    ----------
    distance : {"all", "labeled", "unlabeled", "euclidean"} or array, default="all"
        How the distance between two classifiers is measured: by their scores on

        - "all": all training rows (and the penalty `constraint_alpha`). Never worse in quadratic
          loss on all rows.
        - "labeled": the labeled rows. Known as implicitly constrained least squares (ICLS); less
          conservative, without the guarantee.
        - "unlabeled": the unlabeled rows, with a constraint set made of these rows alone. Never
          worse in quadratic loss on the unlabeled rows: the transductive variant.
        - an array D of shape (k, n_features): the rows of D.

        or, for "euclidean", by the Euclidean norm of the difference of their weights, intercept
        included.
    alpha : float, default=0.0
        Ridge penalty of the supervised solution, as in `LeastSquaresClassifier`.
    constraint_alpha : float, default=0.0
        Ridge penalty inside the constraint set, and in the loss that the guarantee is about.
    fit_intercept : bool, default=True
        Whether to fit an intercept; it is never penalised.
    rcond : float or None, default=None
        Cut-off for the supervised solution, as in `LeastSquaresClassifier`.
    missing_label : "auto" or scalar, default="auto"
        What marks unlabeled rows in y, as in `LeastSquaresClassifier`.
    solver : {"exact", "lbfgs"}, default="exact"
        "exact" solves the dual, at the cost of a few passes over the rows. "lbfgs" runs L-BFGS-B
        on the soft labels, the slow reference.
    tol : float, default=1e-9
        Duality gap to reach, relative to the squared distance.
    max_iter : int or None, default=None
        Stop after so many Newton steps (or function evaluations of L-BFGS-B). What is returned
        when stopped early is certified all the same.
    max_time : float or None, default=None
        Stop the solver after so many seconds.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The classes in sorted order; the second one is coded 1.
    coef_ : array of shape (1, n_features)
        Projected weights.
    intercept_ : array of shape (1,)
        Their intercept less 0.5, so that ``X @ coef_.T + intercept_`` is the decision function.
    supervised_ : LeastSquaresClassifier
        The supervised baseline, fitted to the labeled rows.
    soft_labels_ : array of shape (n_unlabeled,)
        Imputed labels of the unlabeled rows, in their order, as the share of the second class.
    certificate_ : Certificate
        What is proved about the projected against the supervised weights.
    n_iter_ : int
        Newton steps (or function evaluations of L-BFGS-B).
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only if X has column names that are all strings.

    See Also
    --------
    LeastSquaresClassifier : The supervised baseline.
    ICLSClassifier : The same with ``distance="labeled"``.

    References
    ----------
    J. H. Krijthe and M. Loog, "Projected estimators for robust semi-supervised classification",
    Machine Learning 106 (2017), 993-1008.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import ProjectedLeastSquaresClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> X = rng.normal(size=(500, 5)) + y[:, None]
    >>> y[20:] = -1
    >>> clf = ProjectedLeastSquaresClassifier().fit(X, y)
    >>> clf.certificate_.holds
    True
    >>> round(clf.certificate_.guaranteed_improvement, 2)
    2.09
    """

    _skips_rows: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        "distance": [StrOptions(set(DISTANCES)), "array-like"],
        "constraint_alpha": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions({"exact", "lbfgs"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "max_time": [Interval(Real, 0, None, closed="left"), None],
        **LeastSquaresClassifier._parameter_constraints,
    }

    supervised_: LeastSquaresClassifier
    soft_labels_: Vector
    certificate_: Certificate

    def __init__(
        self,
        distance: Any = "all",
        *,
        alpha: float = 0.0,
        constraint_alpha: float = 0.0,
        fit_intercept: bool = True,
        rcond: float | None = None,
        missing_label: Any = "auto",
        solver: str = "exact",
        tol: float = 1e-9,
        max_iter: int | None = None,
        max_time: float | None = None,
    ) -> None:
        self.distance = distance
        self.alpha = alpha
        self.constraint_alpha = constraint_alpha
        self.fit_intercept = fit_intercept
        self.rcond = rcond
        self.missing_label = missing_label
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time

    def _fit_rows(self, training: TrainingRows, classes: AnyArray) -> None:
        distance = self._checked_distance()
        supervised = LeastSquaresClassifier(
            float(self.alpha),
            fit_intercept=self.fit_intercept,
            rcond=self.rcond,
            missing_label=self.missing_label,
        )
        supervised._fit_rows(training, classes)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(supervised, name, getattr(self, name))
        result = project(
            training,
            stored_weights(supervised),
            distance=distance,
            alpha=self.constraint_alpha,
            fit_intercept=self.fit_intercept,
            solver=self.solver,  # type: ignore[arg-type]
            tol=self.tol,
            max_iter=self.max_iter,
            max_time=self.max_time,
        )
        if not (result.certificate.converged or result.certificate.stopped_early):
            warnings.warn(
                "The solver made no more progress at a relative duality gap of "
                f"{result.certificate.duality_gap:.1g}. What the certificate says is true all the "
                "same; to improve more, rescale the features or raise tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.supervised_ = supervised
        self.soft_labels_ = result.soft_labels
        self.certificate_ = result.certificate
        self.n_iter_ = max(1, result.n_iter)  # scikit-learn wants at least one
        self._set_weights(result.weights, classes)

    def _checked_distance(self) -> Any:
        if isinstance(self.distance, str):
            return self.distance
        D: Matrix = check_array(self.distance, dtype=np.float64, input_name="distance")
        if D.shape[1] != self.n_features_in_:
            raise ValueError(
                f"distance is an array with {D.shape[1]} columns, but X has "
                f"{self.n_features_in_} features. Its rows are points at which two classifiers "
                "are compared, so it needs the columns of X."
            )
        if not D.any() and not self.fit_intercept:
            raise ValueError("distance is an array of zeros: it cannot tell classifiers apart.")
        return D


class ICLSClassifier(ProjectedLeastSquaresClassifier):
    """Implicitly constrained least squares classifier.

    `ProjectedLeastSquaresClassifier` with ``distance="labeled"``: of all classifiers that least
    squares could give for some labeling of the unlabeled rows, the one with the smallest loss on
    the labeled rows. Less conservative than the projection in the distance "all", and without its
    guarantee; the certificate says what is true for the rows at hand.

    Parameters
    ----------
    alpha, constraint_alpha, fit_intercept, rcond, missing_label, solver, tol, max_iter, max_time
        See `ProjectedLeastSquaresClassifier`.

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

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        name: constraint
        for name, constraint in ProjectedLeastSquaresClassifier._parameter_constraints.items()
        if name != "distance"
    }

    def __init__(
        self,
        *,
        alpha: float = 0.0,
        constraint_alpha: float = 0.0,
        fit_intercept: bool = True,
        rcond: float | None = None,
        missing_label: Any = "auto",
        solver: str = "exact",
        tol: float = 1e-9,
        max_iter: int | None = None,
        max_time: float | None = None,
    ) -> None:
        super().__init__(
            "labeled",
            alpha=alpha,
            constraint_alpha=constraint_alpha,
            fit_intercept=fit_intercept,
            rcond=rcond,
            missing_label=missing_label,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            max_time=max_time,
        )
