"""References for experiments: any classifier on the labeled rows only, and with all labels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils.validation import check_consistent_length

from neverworse import estimators
from neverworse._typing import AnyArray, Vector
from neverworse._words import documented_like


@documented_like(estimators.LeastSquaresClassifier)
class SupervisedClassifier(estimators.DelegatingClassifier):
    """Any classifier, fitted to the labeled rows only, with the same X and y as all others.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Any classifier of scikit-learn, pipelines and searches included. None:
        ``LeastSquaresClassifier()``.
    {missing_label}

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes in sorted order.
    estimator_ : classifier
        Fitted to the labeled rows; it makes the predictions.
    n_features_in_ : int
        Only if the classifier has it.
    {feature_names_in_}

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from neverworse.methods import SupervisedClassifier
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> clf = SupervisedClassifier(DecisionTreeClassifier()).fit(X, ["a", None, None, "b"])
    >>> clf.predict([[1.0], [2.0]])
    array(['a', 'b'], dtype=object)
    """

    def __init__(self, estimator: Any = None, *, missing_label: Any = "auto") -> None:
        self.estimator = estimator
        self.missing_label = missing_label

    @estimators.explains_conversion
    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or anything else the classifier accepts
            Labeled and unlabeled rows, in any order.
        y : array-like of shape (n_samples,)
            Labels of two or more classes, and a marker for rows without one.
        sample_weight : array-like of shape (n_samples,), optional
            Not negative. Passed to the classifier, which has to accept it.

        Returns
        -------
        self : object
        """
        with self._fitting(X, sample_weight) as (estimator, X, weights):
            self._learn(estimator, X, y, weights)
        return self

    def _learn(self, estimator: Any, X: Any, y: Any, weights: Vector | None) -> None:
        """Set `classes_`, `estimator_`, and what else the method has."""
        rows = self._rows(X, y, weights)
        self.estimator_ = rows.fit(estimator)
        self.classes_ = rows.classes

    def _rows(self, X: Any, y: Any, weights: Vector | None) -> estimators.LabeledRows:
        """Return the rows that the classifier is fitted to."""
        return estimators.LabeledRows.split(X, y, self.missing_label, weights).labeled()


@documented_like(SupervisedClassifier)
class OracleClassifier(SupervisedClassifier):
    """Any classifier, fitted to all rows with their true labels: the oracle of an experiment.

    Where labels were hidden, y is `HiddenLabels`, whose true labels only an oracle sees.

    Parameters
    ----------
    {estimator, missing_label}

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes in sorted order, including those of true labels only.
    estimator_ : classifier
        Fitted to all rows; it makes the predictions.
    {n_features_in_, feature_names_in_}

    Examples
    --------
    >>> from neverworse.methods import HiddenLabels, OracleClassifier
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> clf = OracleClassifier().fit(X, HiddenLabels([0, -1, -1, 1], y_true=[0, 0, 0, 1]))
    >>> clf.predict([[1.6], [2.4]])
    array([0, 1])
    """

    def _rows(self, X: Any, y: Any, weights: Vector | None) -> estimators.LabeledRows:
        unlabeled = estimators.find_unlabeled(y, self.missing_label)
        if isinstance(y, HiddenLabels) and unlabeled.any():
            y = np.where(unlabeled, y.y_true.astype(object), y.y)
            unlabeled = estimators.find_unlabeled(y, self.missing_label)
        if unlabeled.any():
            raise ValueError(
                f"{np.count_nonzero(unlabeled)} rows have no true label, which an oracle needs: "
                "pass HiddenLabels(y, y_true) as y, or leave these rows out."
            )
        return estimators.LabeledRows.split(X, y, self.missing_label, weights)


class HiddenLabels:
    """Labels with markers where they are hidden, together with the true labels.

    As an array, these are the labels with the markers, which is all that classifiers other than
    `OracleClassifier` see. Indexing, as by scikit-learn's splitters and searches, keeps both.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels, with a marker where they are hidden; see `neverworse.model_selection.mask_labels`.
    y_true : array-like of shape (n_rows,)
        All labels.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse.methods import HiddenLabels
    >>> y = HiddenLabels(y=[0, -1, -1, 1], y_true=[0, 0, 1, 1])
    >>> np.asarray(y)
    array([ 0, -1, -1,  1])
    """

    def __init__(self, y: Any, y_true: Any) -> None:
        self.y = estimators.label_array(y)
        self.y_true = estimators.label_array(y_true)
        check_consistent_length(self.y, self.y_true)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.y.shape

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: Any) -> HiddenLabels:
        y = self.y[rows]
        if not np.ndim(y):
            raise TypeError("Choose rows of HiddenLabels by a slice, a mask or a list of indices.")
        return HiddenLabels(y, self.y_true[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return np.array(self.y, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        return f"HiddenLabels({self.y!r})"
