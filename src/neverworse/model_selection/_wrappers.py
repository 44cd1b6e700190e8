"""Scorers and classifiers that make tools of scikit-learn work with missing labels."""

from __future__ import annotations

import copy
import sys
from dataclasses import dataclass
from inspect import signature
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import _fit_context, clone
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing, check_consistent_length, indexable
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import _check_method_params, _num_samples

from neverworse._words import documented_like
from neverworse.estimators import (
    DelegatingClassifier,
    LeastSquaresClassifier,
    explains_conversion,
    label_array,
    split_labels,
    with_null_markers,
)
from neverworse.model_selection._mask import labeled_rows


def labeled_scorer(scoring: Any, missing_label: Any = "auto") -> Any:
    """Make a scorer that leaves out the rows without a label.

    A marker such as -1 is never predicted, so that every unlabeled row would count as an error.

    Parameters
    ----------
    scoring : str, callable, None, list, tuple or dict
        What to compute on the labeled rows: the name of a scorer of scikit-learn; a callable
        ``scorer(estimator, X, y)``, such as `sklearn.metrics.make_scorer` returns; None for the
        estimator's own ``score``; a list or tuple of names, or a dict of any of these.
    missing_label : "auto" or scalar, default="auto"
        What marks unlabeled rows in y, as in `neverworse.LeastSquaresClassifier`. Name it if there
        may be test folds with labels of one class only: -1 beside one other value is ambiguous.

    Returns
    -------
    scorer : callable, or dict of str to callable
        For ``scoring=`` in `sklearn.model_selection.cross_validate`, `GridSearchCV` and the like.
        Keyword arguments with one entry for each row, such as ``sample_weight``, lose the entries
        of unlabeled rows as well. Metadata are requested as by the given scorer.

    Examples
    --------
    >>> from neverworse import LeastSquaresClassifier
    >>> from neverworse.model_selection import labeled_scorer
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1, -1]
    >>> clf = LeastSquaresClassifier().fit(X, y)
    >>> clf.score(X, y)
    0.8
    >>> scorer = labeled_scorer("accuracy")
    >>> scorer(clf, X, y)
    1.0
    >>> list(labeled_scorer(["accuracy", "roc_auc"]))
    ['accuracy', 'roc_auc']
    """
    if isinstance(scoring, (list, tuple)):
        if not all(isinstance(name, str) for name in scoring):
            raise ValueError(f"scoring={scoring!r} is no list of names. Pass a dict of scorers.")
        scoring = dict(zip(scoring, scoring, strict=True))
    if isinstance(scoring, dict):
        return {name: _LabeledScorer(each, missing_label) for name, each in scoring.items()}
    return _LabeledScorer(scoring, missing_label)


@dataclass(eq=False)
class _LabeledScorer:
    """What `labeled_scorer` returns for one scorer."""

    scoring: Any
    missing_label: Any

    def __post_init__(self) -> None:
        own = self.scoring is None
        self._scorer: Any = _own_score if own else check_scoring(scoring=self.scoring)

    def __call__(self, estimator: Any, X: Any, y: Any = None, **metadata: Any) -> Any:
        """Score a fitted estimator on the labeled rows, with their entries of the metadata."""
        labeled, known = labeled_rows(
            y,
            self.missing_label,
            "There is nothing to score. In a cross-validation, pass cv=LabeledKFold(...) or "
            "another splitter of neverworse.model_selection: all its test rows are labeled.",
        )
        X, _ = indexable(X, y)
        metadata = _check_method_params(X, metadata, labeled)
        return self._scorer(estimator, _safe_indexing(X, labeled), known, **metadata)

    def get_metadata_routing(self) -> Any:
        """Return what the wrapped scorer requests."""
        return get_routing_for_object(self._scorer)

    def _accept_sample_weight(self) -> bool:
        """Tell the searches of scikit-learn, which ask while metadata routing is disabled."""
        if hasattr(self._scorer, "_accept_sample_weight"):
            return bool(self._scorer._accept_sample_weight())
        return "sample_weight" in signature(self._scorer).parameters


def _own_score(estimator: Any, X: Any, y: Any, *, sample_weight: Any = None) -> Any:
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    return estimator.score(X, y, **weights)


@documented_like(LeastSquaresClassifier)
class WithUnlabeledRows(DelegatingClassifier):
    """A semi-supervised classifier that brings its unlabeled rows along.

    `fit` takes labeled rows only, so that tools of scikit-learn work that make a class of every
    value in y, or that score all rows, such as `CalibratedClassifierCV` and
    `TunedThresholdClassifierCV`. Every fit, in every fold, has all unlabeled rows.

    Parameters
    ----------
    estimator : classifier
        One of neverworse, or a pipeline or a search that ends in one.
    X_unlabeled : array-like, sparse matrix or data frame of shape (n_unlabeled, n_features)
        The unlabeled rows, with the same columns as X in `fit`.

    Attributes
    ----------
    {classes_}
    estimator_ : classifier
        Fitted to the labeled rows, followed by the unlabeled ones; it makes the predictions.
    n_features_in_ : int
        Only if the classifier has it.
    {feature_names_in_}

    See Also
    --------
    StratifiedLabeledKFold : For tools that leave y to the estimator, such as `GridSearchCV`.

    Examples
    --------
    >>> from sklearn.calibration import CalibratedClassifierCV
    >>> from neverworse import ProjectedLeastSquaresClassifier
    >>> from neverworse.datasets import make_two_gaussians
    >>> from neverworse.model_selection import WithUnlabeledRows
    >>> X, y = make_two_gaussians(300, 3, random_state=0)
    >>> clf = WithUnlabeledRows(ProjectedLeastSquaresClassifier(), X[40:])
    >>> calibrated = CalibratedClassifierCV(clf).fit(X[:40], y[:40])
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
            Their labels, of two or more classes; -1 is a class here too.
        sample_weight : array-like of shape (n_samples,), optional
            Not negative. Passed on to the classifier, which has to take it; unlabeled rows weigh 1.

        Returns
        -------
        self : object
        """
        with self._fitting(X, sample_weight) as (estimator, X, weights):
            labels = label_array(y)
            check_consistent_length(X, labels)
            _, _, unlabeled = split_labels(labels, None)
            if unlabeled.any():
                raise ValueError(
                    f"y has {unlabeled.sum()} null values (NaN, None or pd.NA). Every row in fit "
                    "needs a label: put the others into X_unlabeled."
                )
            n_unlabeled = _num_samples(self.X_unlabeled)
            target = np.array([*labels.tolist(), *[None] * n_unlabeled], dtype=object)
            passed = {}
            if weights is not None:
                passed["sample_weight"] = np.concatenate([weights, np.ones(n_unlabeled)])
            if not any(name.endswith("missing_label") for name in estimator.get_params()):
                raise ValueError(
                    f"estimator={estimator!r} has no missing_label, and would make a class of the "
                    "marker of unlabeled rows. Pass a semi-supervised classifier of neverworse, or "
                    "a pipeline or a search that ends in one."
                )
            self.estimator_ = with_null_markers(estimator).fit(
                _stacked(X, self.X_unlabeled), target, **passed
            )
            self.classes_ = self.estimator_.classes_
        return self

    def __sklearn_clone__(self) -> Self:
        # Folds need no copies of the unlabeled rows, which nobody changes.
        twin = type(self)(clone(self.estimator), self.X_unlabeled)
        if hasattr(self, "_metadata_request"):
            twin._metadata_request = copy.deepcopy(self._metadata_request)
        return twin


def _stacked(X: Any, X_unlabeled: Any) -> Any:
    """Return the rows of both, in the form of X."""
    X, X_unlabeled = both = [
        rows if hasattr(rows, "columns") or sparse.issparse(rows) else np.asarray(rows)
        for rows in (X, X_unlabeled)
    ]
    kinds = [type(rows) if hasattr(rows, "columns") else rows.ndim for rows in both]
    columns = [list(getattr(rows, "columns", range(rows.shape[-1]))) for rows in both]
    if kinds[0] != kinds[1] or columns[0] != columns[1]:
        raise ValueError(
            "X and X_unlabeled must have the same columns in the same order, and both be data "
            f"frames of the same kind if one of them is. Their shapes are {X.shape} and "
            f"{X_unlabeled.shape}."
        )
    if hasattr(X, "columns"):
        library = sys.modules[type(X).__module__.partition(".")[0]]  # pandas or polars
        return library.concat(both)
    if any(map(sparse.issparse, both)):
        return sparse.vstack(both, format="csr")
    return np.concatenate(both)
