"""Labeled rows come with `fit`, unlabeled rows are there already."""

from __future__ import annotations

import copy
import sys
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import _fit_context, clone
from sklearn.utils.validation import _num_samples, check_consistent_length

from neverworse._typing import AnyArray
from neverworse.estimators import (
    DelegatingClassifier,
    check_classes,
    distinct_labels,
    explains_conversion,
    label_array,
)


class WithUnlabeledRows(DelegatingClassifier):
    """A semi-supervised classifier that brings its unlabeled rows along.

    `fit` takes labeled rows only, so that everything in scikit-learn works that makes a class of
    every value in y, or that scores all rows: `CalibratedClassifierCV`,
    `TunedThresholdClassifierCV`, `StackingClassifier`, `VotingClassifier`, and plain
    cross-validation. Every fit, in every fold, has all unlabeled rows.

    Parameters
    ----------
    estimator : classifier
        One of neverworse, or a pipeline or a search that ends in one.
    X_unlabeled : array-like, sparse matrix or data frame of shape (n_unlabeled, n_features)
        The unlabeled rows, with the same columns as X in `fit`. Copies of the classifier share
        them.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes in sorted order.
    estimator_ : classifier
        Fitted to the labeled rows, followed by the unlabeled ones; it makes the predictions.
    n_features_in_ : int
        Only if the classifier has it.
    feature_names_in_ : array of shape (n_features_in_,)
        Only if X has column names that are all strings.

    See Also
    --------
    StratifiedLabeledKFold : For tools that leave y to the estimator, such as `GridSearchCV`.

    Notes
    -----
    Whatever `missing_label` the classifier has, labels of every kind are classes here, -1 too.
    `sample_weight` is that of the labeled rows; unlabeled rows weigh 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.calibration import CalibratedClassifierCV
    >>> from neverworse import ProjectedLeastSquaresClassifier
    >>> from neverworse.model_selection import WithUnlabeledRows
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(300) % 2
    >>> X = rng.normal(size=(300, 3)) + y[:, None]
    >>> labeled = np.arange(300) < 40
    >>> clf = WithUnlabeledRows(ProjectedLeastSquaresClassifier(), X[~labeled])
    >>> calibrated = CalibratedClassifierCV(clf).fit(X[labeled], y[labeled])
    >>> calibrated.predict_proba(X[:2]).shape
    (2, 2)
    """

    def __init__(self, estimator: Any, X_unlabeled: Any) -> None:
        self.estimator = estimator
        self.X_unlabeled = X_unlabeled

    @explains_conversion
    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier to labeled rows and to its unlabeled ones.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Labeled rows.
        y : array-like of shape (n_samples,)
            Their labels, of two or more classes.
        sample_weight : array-like of shape (n_samples,), optional
            Not negative. Passed on to the classifier, which has to take it.

        Returns
        -------
        self : object
        """
        with self._fitting(X, sample_weight) as (estimator, X, weights):
            labels = label_array(y)
            check_consistent_length(X, labels)
            _check_labels(labels)
            n_unlabeled = _num_samples(self.X_unlabeled)
            target = np.array([*labels.tolist(), *[None] * n_unlabeled], dtype=object)
            passed = {}
            if weights is not None:
                passed["sample_weight"] = np.concatenate([weights, np.ones(n_unlabeled)])
            model = _with_null_markers(estimator)
            self.estimator_ = model.fit(_stacked(X, self.X_unlabeled), target, **passed)
            self.classes_ = self.estimator_.classes_
        return self

    def __sklearn_clone__(self) -> Self:
        # Folds need no copies of the unlabeled rows, which nobody changes.
        twin = type(self)(clone(self.estimator), self.X_unlabeled)
        if hasattr(self, "_metadata_request"):
            twin._metadata_request = copy.deepcopy(self._metadata_request)
        return twin


def _check_labels(labels: AnyArray) -> None:
    found = distinct_labels(labels)
    if found.null.any():
        raise ValueError(
            f"y has {int(found.null[found.codes].sum())} null values (NaN, None or pd.NA). Every "
            "row in fit needs a label: put the others into X_unlabeled."
        )
    check_classes(found.values, len(labels))


def _with_null_markers(estimator: Any) -> Any:
    """Return an unfitted copy of an estimator to which null values mark unlabeled rows."""
    copied = clone(estimator)
    markers = [name for name in copied.get_params() if name.split("__")[-1] == "missing_label"]
    if not markers:
        raise ValueError(
            f"estimator={estimator!r} has no missing_label, and would make a class of the marker "
            "of unlabeled rows. Pass a semi-supervised classifier of neverworse, or a pipeline or "
            "a search that ends in one."
        )
    return copied.set_params(**dict.fromkeys(markers, np.nan))


def _stacked(X: Any, X_unlabeled: Any) -> Any:
    """Return the rows of both, in the form of X."""
    if hasattr(X, "columns") or hasattr(X_unlabeled, "columns"):
        if type(X) is not type(X_unlabeled) or list(X.columns) != list(X_unlabeled.columns):
            raise ValueError(
                "X and X_unlabeled must be data frames of the same kind with the same columns in "
                f"the same order, or both no data frames: X is a {_described(X)}, X_unlabeled is a "
                f"{_described(X_unlabeled)}."
            )
        library = sys.modules[type(X).__module__.partition(".")[0]]  # pandas or polars
        return library.concat([X, X_unlabeled])
    X, X_unlabeled = (
        rows if sparse.issparse(rows) else np.asarray(rows) for rows in (X, X_unlabeled)
    )
    if X.ndim != 2 or X_unlabeled.ndim != 2 or X.shape[1] != X_unlabeled.shape[1]:
        raise ValueError(
            f"X has the shape {X.shape}, and X_unlabeled the shape {X_unlabeled.shape}: both must "
            "have the same columns."
        )
    if sparse.issparse(X) or sparse.issparse(X_unlabeled):
        return sparse.vstack([X, X_unlabeled], format="csr")
    return np.concatenate([X, X_unlabeled])


def _described(X: Any) -> str:
    kind = f"{type(X).__module__.partition('.')[0]} {type(X).__name__}"
    return f"{kind} with {len(X.columns)} columns" if hasattr(X, "columns") else kind
