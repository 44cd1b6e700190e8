"""A fitted baseline, moved towards candidates by steps that were proved."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from neverworse._typing import AnyArray, Matrix, Vector
from neverworse.estimators import class_scores
from neverworse.evidence.candidates import Named, Response
from neverworse.projection import Box, Simplex


def moved(baseline: Any, candidates: Named, steps: Vector, response: Response) -> Any:
    """Return the baseline moved by steps; the baseline itself where all steps are zero.

    Parameters
    ----------
    baseline : fitted classifier
    candidates : list of (str, fitted classifier)
    steps : array of shape (n_candidates,)
        Not negative, with a sum of at most 1.
    response : {"predict_proba", "score"}
        What is moved.
    """
    taken = [(*each, float(a)) for each, a in zip(candidates, steps, strict=True) if a > 0.0]
    if not taken:
        return baseline
    names, models, sizes = zip(*taken, strict=True)
    return MovedClassifier(baseline, list(zip(names, models, strict=True)), list(sizes), response)


def _has_scores(self: MovedClassifier) -> bool:
    return self.response == "score"


class MovedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""A fitted classifier, moved towards others: :math:`g + \sum_k a_k (c_k - g)`.

    It is made of fitted classifiers, and is not to be fitted.

    Parameters
    ----------
    baseline : fitted classifier
        Its scores are g.
    candidates : list of (str, fitted classifier)
        Their scores are :math:`c_k`.
    steps : list of float
        The steps :math:`a_k`: positive, with a sum of at most 1.
    response : {"predict_proba", "score"}
        Whether probabilities are moved, or scores on targets coded 0 and 1. Of linear classifiers
        of neverworse, moved scores are linear again.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_, intercept_ : arrays
        Only if scores are moved, and all classifiers are linear: the decision function is
        ``X @ coef_.T + intercept_``.
    n_features_in_, feature_names_in_
        Those of the baseline, if it has them.
    """

    def __init__(
        self, baseline: Any, candidates: Named, steps: list[float], response: Response
    ) -> None:
        self.baseline = baseline
        self.candidates = candidates
        self.steps = steps
        self.response = response

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> AnyArray:
        """The classes in sorted order."""
        return np.sort(np.asarray(self.baseline.classes_))

    @property
    def n_features_in_(self) -> int:
        """The number of columns of X."""
        return self.baseline.n_features_in_

    @property
    def feature_names_in_(self) -> AnyArray:
        """Names of the columns of X."""
        return self.baseline.feature_names_in_

    @property
    def coef_(self) -> Matrix:
        """Weights of the columns."""
        return self._linear("coef_")

    @property
    def intercept_(self) -> Vector:
        """What is added to the weighted columns."""
        return self._linear("intercept_")

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each row: the one with the largest score.

        Parameters
        ----------
        X : anything that the classifiers accept

        Returns
        -------
        classes : array of shape (n_samples,)
        """
        return self.classes_[self._scores(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> Matrix:
        """Return probabilities: the moved ones, or those nearest to the moved scores.

        Parameters
        ----------
        X : anything that the classifiers accept

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
        """
        scores = self._scores(X)
        if self.response == "predict_proba":
            return scores
        if scores.shape[1] > 2:
            return Simplex().project(scores.T).T
        second = Box().project(scores[:, 1])
        return np.column_stack([1.0 - second, second])

    @available_if(_has_scores)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Vector:
        """Return the moved scores, less one half.

        Parameters
        ----------
        X : anything that the classifiers accept

        Returns
        -------
        scores : array of shape (n_samples,) or (n_samples, n_classes)
        """
        scores = self._scores(X) - 0.5
        return scores if scores.shape[1] > 2 else scores[:, 1]

    def _scores(self, X: Any) -> Matrix:
        """Return the moved scores, a column for each class."""
        scores = (1.0 - sum(self.steps)) * self._scores_of(self.baseline, X)
        for (_, model), step in zip(self.candidates, self.steps, strict=True):
            scores += step * self._scores_of(model, X)
        return scores

    def _scores_of(self, model: Any, X: Any) -> Matrix:
        if self.response == "score":
            return class_scores(model, X)
        order = np.argsort(model.classes_, kind="stable")
        return np.asarray(model.predict_proba(X), dtype=np.float64)[:, order]

    def _linear(self, name: str) -> AnyArray:
        """Return the moved weights or intercepts, if all classifiers have them."""
        if self.response != "score":
            raise AttributeError(f"moved probabilities are not linear, so there is no {name}")
        models = (self.baseline, *(model for _, model in self.candidates))
        # A classifier that hands its rows on has the weights inside.
        parts = [getattr(getattr(m, "estimator_", m), name) for m in models]
        sizes = [1.0 - sum(self.steps), *self.steps]
        return np.sum([a * np.asarray(part) for a, part in zip(sizes, parts, strict=True)], axis=0)
