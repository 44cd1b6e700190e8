"""From the parameters of an estimator to a projection, and back to its attributes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse.estimators._input import FitInput, copy_input_checks
from neverworse.estimators._kernels import landmarks_of_all, space_of_all
from neverworse.estimators._least_squares import CONSTRAINTS
from neverworse.estimators._linear import LinearModel, fit_least_squares, stored_weights
from neverworse.projection import (
    Assumptions,
    Certificate,
    Labels,
    ProjectionResult,
    TrainingRows,
    project,
)

INTERPOLATES = (
    "alpha is 0 and the kernel has as many features as there are rows: least squares reproduces "
    "any labels, so that the constraint set holds every function whose values on the unlabeled "
    "rows are possible labels, and these rows say nothing else. Set alpha to 'loo' or to a "
    "positive number."
)


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

    def _project(
        self, given: FitInput, labels: Labels, assumptions: Assumptions
    ) -> ProjectionResult:
        """Fit the baseline, project it, and set the attributes."""
        distance = self._checked_distance()
        training = TrainingRows(given.rows, labels)
        landmarks = landmarks_of_all(self, labels)
        # Otherwise, the Gram matrix is another one.
        once = not (isinstance(distance, str) and distance == "unlabeled")
        if once and landmarks is None:
            training = training.read_once()
        supervised = self._baseline()
        supervised._fit_training(training, landmarks if self.n_components else None)
        copy_input_checks(self, supervised)
        gamma, baseline = getattr(supervised, "gamma_", None), stored_weights(supervised)
        space = space_of_all(self, training, gamma, landmarks)
        if landmarks is not None:  # of all rows, where the baseline needs the labeled ones only
            training = space.training(training)
            training = training.read_once() if once else training
            alpha = supervised.alpha_
            baseline = fit_least_squares(supervised, training, alpha, self.rcond, space)
            if space.interpolates(training) and not alpha:
                warnings.warn(INTERPOLATES, stacklevel=2)
        same = self.constraint_alpha == "same"
        alpha = supervised.alpha_ if same else float(self.constraint_alpha)
        start = None
        if isinstance(distance, str) and distance == "all" and self.solver == "exact":
            start = space.start(labels, baseline, alpha, self.fit_intercept)
        result = project(
            training,
            baseline,
            distance=space.points(distance),
            alpha=alpha,
            supervised_alpha=supervised.alpha_,
            fit_intercept=self.fit_intercept,
            threshold=self._threshold,
            assumptions=assumptions,
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            max_time=self.max_time,
            observer=given.observer,
            start=start,
        )
        certificate = replace(result.certificate, kernel=space.words())
        if not (certificate.converged or certificate.stopped_early):
            warnings.warn(
                "The solver made no more progress at a relative duality gap of "
                f"{certificate.duality_gap:.1g}. The certificate is valid nevertheless. To improve "
                "the fit, rescale the features; to accept it, raise tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.supervised_, self.certificate_ = supervised, certificate
        self.n_iter_ = max(1, result.n_iter)  # scikit-learn wants at least one
        space.store(self, result.weights)
        return result

    def _baseline(self) -> Any:
        """Return the unfitted baseline."""
        is_chosen = self.alpha == "loo"
        if is_chosen and self.rcond is not None:
            raise ValueError("alpha='loo' takes no rcond. Set alpha to a number, or rcond to None.")
        kind, own = self._baselines[is_chosen], self.get_params(deep=False)
        return kind(**{name: own[name] for name in kind._get_param_names() if name in own})

    def _checked_distance(self) -> Any:
        """Return the distance, as an array if it is one."""
        if isinstance(self.distance, str):
            return self.distance
        D: Matrix = check_array(self.distance, dtype=np.float64, input_name="distance")
        if D.shape[1] != self.n_features_in_:
            raise ValueError(
                f"distance is an array with {D.shape[1]} columns, but X has {self.n_features_in_} "
                "features. Its rows are points at which two models are compared, so it needs the "
                "columns of X."
            )
        if not D.any() and not self.fit_intercept:
            raise ValueError("distance is an array of zeros: it cannot tell models apart.")
        return D


@dataclass(frozen=True)
class SoftLabels:
    """Soft labels of rows."""

    # (n_rows,): the class of each row with a whole label; for two classes, the label itself
    codes: AnyArray
    rows: Indices  # rows whose label is not whole
    values: Matrix  # (n,) or (n_classes, n): their labels

    @classmethod
    def compress(cls, labels: Matrix) -> SoftLabels:
        """Return the compact form of labels of shape (n_classes, n_rows)."""
        ones = labels == 1.0
        whole, codes = ones.any(axis=0), labels.argmax(axis=0)
        if len(labels) == 1:
            whole, codes = whole | (labels[0] == 0.0), ones[0]
        rows = np.flatnonzero(~whole)
        n_codes = max(len(labels), 2)
        return cls(codes.astype(np.min_scalar_type(n_codes - 1)), rows, labels[:, rows])

    @property
    def _is_binary(self) -> bool:
        return self.values.ndim == 1 or len(self.values) == 1  # the former in older model files

    def to_array(self) -> Vector:
        """Return an array of shape (n_rows,) or (n_rows, n_classes)."""
        if self._is_binary:
            labels = self.codes.astype(np.float64)
            labels[self.rows] = self.values.ravel()
            return labels
        labels = np.zeros((len(self.codes), len(self.values)))
        labels[np.arange(len(labels)), self.codes] = 1.0
        labels[self.rows] = self.values.T
        return labels

    def to_sparse(self) -> sparse.csr_array:
        """Return a sparse array of shape (n_rows, 1) or (n_rows, n_classes)."""
        if self._is_binary:
            return sparse.csr_array(self.to_array()[:, None])
        n, is_whole = len(self.codes), np.ones(len(self.codes))
        is_whole[self.rows] = 0.0
        whole = sparse.csr_array((is_whole, (np.arange(n), self.codes)), (n, len(self.values)))
        m = len(self.rows)
        to_rows = sparse.csr_array((np.ones(m), (self.rows, np.arange(m))), (n, m))
        labels = whole + to_rows @ sparse.csr_array(self.values.T)
        labels.eliminate_zeros()
        return labels
