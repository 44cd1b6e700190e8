"""What the discriminant classifiers share: parameters, fit, probabilities and densities."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from neverworse._typing import AnyArray, Matrix, Vector
from neverworse.estimators import explains_conversion
from neverworse.estimators._known_labels import known_labels
from neverworse.estimators._linear import copy_input_checks
from neverworse.methods._log_odds import LogOddsClassifier
from neverworse.methods.discriminant._family import Family, checked_priors
from neverworse.methods.discriminant._gaussian import GaussianClasses, uncentred
from neverworse.methods.discriminant._subspace import SingularCovarianceError
from neverworse.projection import Observer, TrainingRows
from neverworse.rows import Rows, as_rows
from neverworse.rows._threads import single_threaded_blas


class DiscriminantClassifier(LogOddsClassifier):
    """Base of classifiers that model the classes as Gaussians with a common covariance."""

    # Which rows are read depends on labels and weights, so NaN are looked for beforehand.
    _skips_rows: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        "covariance": [StrOptions({"full", "spherical"})],
        "priors": [None, StrOptions({"uniform"}), "array-like"],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "missing_label": "no_validation",
    }

    covariance: str
    priors: Any
    alpha: float
    missing_label: Any

    priors_: Vector
    means_: Matrix
    covariance_: Matrix
    rank_: int

    @explains_conversion
    def predict_joint_log_proba(self, X: Any) -> Matrix:
        """Return the logarithms of the joint densities of rows and classes.

        Where `rank_` is smaller than the number of columns, they are densities of what the rows
        have in the subspace.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        log_densities : array of shape (n_samples, n_classes)
            log p(x, k). Their sum over labeled rows is the log-likelihood.
        """
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        return self._model_.log_joint(as_rows(X)).T

    def to_sklearn(self) -> LinearDiscriminantAnalysis:
        """Return a plain scikit-learn classifier with the same weights.

        Returns
        -------
        classifier : sklearn.discriminant_analysis.LinearDiscriminantAnalysis
            Fitted, with the same scores, probabilities and predictions. It knows nothing of
            neverworse, so that it can be used where that is not installed.
        """
        check_is_fitted(self, "coef_")
        model = LinearDiscriminantAnalysis(solver="lsqr")
        for name in ("coef_", "intercept_", "classes_", "priors_", "means_", "covariance_"):
            setattr(model, name, getattr(self, name).copy())
        copy_input_checks(self, model)
        return model

    @single_threaded_blas()
    def _fit_rows(
        self,
        rows: Rows,
        y: Any,
        weights: Vector | None,
        bounds: Any,  # noqa: ARG002
        observer: Observer | None,
    ) -> None:
        known = known_labels(y, self.missing_label, rows.n_rows, weights)
        family = Family(
            self.covariance == "spherical",
            float(self.alpha),
            checked_priors(self.priors, known.classes),
        )
        try:
            model = self._fit_training(
                TrainingRows(rows, known.labels), known.classes, family, observer
            )
        except SingularCovarianceError:
            raise ValueError(_singular(known.labels.unlabeled)) from None
        self._set_model(model, known.classes)

    @abstractmethod
    def _fit_training(
        self,
        training: TrainingRows,
        classes: AnyArray,
        family: Family,
        observer: Observer | None,
    ) -> GaussianClasses:
        """Fit to checked rows, set the attributes of the method, and return what was found."""

    def _set_model(self, model: GaussianClasses, classes: AnyArray) -> None:
        linear = model.linear
        weights = uncentred(linear if len(linear) > 2 else linear[1:] - linear[:1], model.centre)
        self._set_weights(weights)
        self.classes_ = classes
        self.priors_ = model.priors
        self.means_ = model.means + model.centre
        self.covariance_ = model.covariance
        self.rank_ = model.space.rank
        self._model_ = model


def _singular(unlabeled: AnyArray) -> str:
    n_labeled = int(np.count_nonzero(~unlabeled))
    return (
        f"The {n_labeled} labeled rows do not vary within their classes (or hardly so, compared "
        "with all rows), so that their common covariance is singular. Label more rows, or pass "
        "alpha > 0, which is added to all variances: scale the columns first, for example with "
        "sklearn.preprocessing.StandardScaler."
    )
