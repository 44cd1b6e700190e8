"""Candidates: how they are fitted, compared by cross-validation, and combined with a baseline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, has_fit_parameter

from neverworse._typing import AnyArray, Matrix, Vector
from neverworse.estimators import (
    ICLSClassifier,
    LabeledRows,
    LeastSquaresClassifierCV,
    class_scores,
    scores_of,
    with_null_markers,
)
from neverworse.methods import SelfLearningClassifier
from neverworse.projection import Simplex

Named = list[tuple[str, Any]]  # classifiers with their names
Response = Literal["predict_proba", "score"]

BASELINE = "baseline"
# The largest number of labels for an exact kernel, and the number of landmarks beyond, for speed.
MOST_EXACT, N_LANDMARKS = 200, 50


def default_candidates(n_labeled: int, random_state: Any, *, sparse: bool = False) -> Named:
    """Return linear and nonlinear, supervised and semi-supervised classifiers."""
    scaler = StandardScaler(with_mean=not sparse)
    logistic = make_pipeline(scaler, LogisticRegression(max_iter=1000))
    landmarks = None if n_labeled <= MOST_EXACT else N_LANDMARKS
    kernel = LeastSquaresClassifierCV(
        kernel="rbf", gamma="loo", n_components=landmarks, random_state=random_state
    )
    return [
        ("ICLS", ICLSClassifier()),
        ("self-learning", SelfLearningClassifier()),
        ("logistic regression", logistic),
        ("random forest", RandomForestClassifier(random_state=random_state)),
        ("self-training", SelfTrainingClassifier(clone(logistic))),
        ("kernel least squares", kernel),
    ]


def check_names(candidates: list[Any]) -> Named:
    """Return candidates; raise an error unless they are (name, classifier), with unique names."""
    pairs = all(isinstance(p, tuple) and len(p) == 2 and isinstance(p[0], str) for p in candidates)
    if not candidates or not pairs or len(dict(candidates)) < len(candidates):
        raise ValueError("Pass a list of (name, classifier), at least one, with unique names.")
    return candidates


def check_classifier(subject: str, estimator: Any) -> None:
    """Raise an error unless an estimator, fitted or not, is a classifier with probabilities."""
    is_instance = hasattr(estimator, "predict_proba") and not isinstance(estimator, type)
    if not is_instance or not is_classifier(estimator):
        raise ValueError(
            f"{subject} is not a classifier with predict_proba, as the Brier score needs it: "
            f"{estimator!r}. Pass an instance such as LogisticRegression(); wrap a classifier "
            "without probabilities in sklearn.calibration.CalibratedClassifierCV."
        )


def fit_all(named: Named, rows: LabeledRows, n_jobs: int | None) -> list[Any]:
    """Return copies of all classifiers, fitted in parallel."""
    jobs = (delayed(_fit)(called(name), model, rows) for name, model in named)
    return list(Parallel(n_jobs=n_jobs)(jobs))


def _fit(name: str, estimator: Any, rows: LabeledRows) -> Any:
    """Return a copy of a classifier, fitted to the rows that it can learn from.

    Those of neverworse and of `sklearn.semi_supervised`, or that contain one, get all rows, with
    null values or -1 for missing labels, all others the labeled rows. The name is for messages.
    """
    try:
        model = _fitted(estimator, rows)
    except Exception as error:
        error.add_note(
            f"This happened when {name} ({type(estimator).__name__}) was fitted to "
            f"{np.sum(~rows.unlabeled)} labels. In cross-validation, fits have fewer labels: leave "
            "out a classifier that fails then, or label more rows."
        )
        raise
    if np.sort(np.asarray(model.classes_)).tolist() != rows.classes.tolist():
        raise ValueError(
            f"{name} ({type(estimator).__name__}) has the classes "
            f"{np.asarray(model.classes_).tolist()}, but the labels have {rows.classes.tolist()}. "
            "If one is missing, label more rows of that class: each fold has to leave some of all "
            "classes. If one marks unlabeled rows, wrap the classifier in "
            "neverworse.methods.SupervisedClassifier."
        )
    return model


def _fitted(estimator: Any, rows: LabeledRows) -> Any:
    settings, model = estimator.get_params(), with_null_markers(estimator)
    if any(key.split("__")[-1] == "missing_label" for key in settings):
        labels = rows.classes[rows.codes].astype(object)
        labels[rows.unlabeled] = None
        return model.fit(rows.X, labels, **_weights_of(model, rows.weights))
    kinds = map(type, (estimator, *settings.values()))
    if any(kind.__module__.startswith("sklearn.semi_supervised") for kind in kinds):
        return CodedClassifier(model).fit(rows)
    known = rows.labeled()
    return model.fit(known.X, rows.classes[known.codes], **_weights_of(model, known.weights))


def _weights_of(estimator: Any, weights: Vector | None) -> dict[str, Vector]:
    """Return row weights as arguments of `fit`; none if the estimator does not accept any."""
    if weights is None:
        return {}
    if has_fit_parameter(estimator, "sample_weight"):
        return {"sample_weight": weights}
    if get_config()["enable_metadata_routing"]:
        taken = get_routing_for_object(estimator).consumes("fit", ["sample_weight"])
        return {"sample_weight": weights} if taken else {}
    if isinstance(estimator, Pipeline) and has_fit_parameter(estimator[-1], "sample_weight"):
        return {f"{estimator.steps[-1][0]}__sample_weight": weights}
    return {}


class CodedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose `estimator_` is fitted to positions in `classes_`, or -1 if unlabeled."""

    classes_: AnyArray

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, rows: LabeledRows) -> CodedClassifier:
        codes = np.where(rows.unlabeled, -1, rows.codes)
        weights = _weights_of(self.estimator, rows.weights)
        self.estimator_ = clone(self.estimator).fit(rows.X, codes, **weights)
        self.classes_ = rows.classes[np.asarray(self.estimator_.classes_, dtype=np.intp)]
        return self

    def predict(self, X: Any) -> AnyArray:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> Matrix:
        return self.estimator_.predict_proba(X)


def scores_of_model(name: str, model: Any, X: Any, response: Response) -> Matrix:
    """Return checked scores, one row for each class, or one for the second of two."""
    classes, used = np.sort(np.asarray(model.classes_)), np.ones(_num_samples(X), bool)
    return np.atleast_2d(scores_of(name, model, X, response, classes, used))


def called(name: str) -> str:
    """Return how messages refer to a classifier."""
    return name if name == BASELINE else f"candidate {name!r}"


def moved(baseline: Any, candidates: Named, steps: Vector, response: Response) -> Any:
    """Return a fitted baseline moved towards fitted candidates; itself if all steps are zero."""
    taken = [(each, float(a)) for each, a in zip(candidates, steps, strict=True) if a > 0.0]
    if not taken:
        return baseline
    return MovedClassifier(baseline, [each for each, _ in taken], [a for _, a in taken], response)


@dataclass(eq=False, repr=False)
class MovedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""A fitted classifier, moved towards others: :math:`g + \sum_k a_k (c_k - g)`.

    Steps are positive, with a sum of at most 1. What is moved are probabilities, or scores on
    targets coded 0 and 1, which of linear classifiers are linear again.
    """

    baseline: Any
    candidates: Named
    steps: list[float]
    response: Response

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> AnyArray:
        return np.sort(np.asarray(self.baseline.classes_))

    @property
    def n_features_in_(self) -> int:
        return self.baseline.n_features_in_

    @property
    def feature_names_in_(self) -> AnyArray:
        return self.baseline.feature_names_in_

    @property
    def coef_(self) -> Matrix:
        return self._linear("coef_")

    @property
    def intercept_(self) -> Vector:
        return self._linear("intercept_")

    def predict(self, X: Any) -> AnyArray:
        return self.classes_[self._scores(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> Matrix:
        scores = self._scores(X)
        # The probabilities that are nearest to the scores.
        return scores if self.response == "predict_proba" else Simplex().project(scores.T).T

    @available_if(lambda self: self.response == "score")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Vector:
        scores = self._scores(X) - 0.5
        return scores if scores.shape[1] > 2 else scores[:, 1]

    def _scores(self, X: Any) -> Matrix:
        if self.response == "score":
            return self._sum(lambda model: class_scores(model, X))
        return self._sum(lambda m: np.asarray(m.predict_proba(X))[:, np.argsort(m.classes_)])

    def _linear(self, name: str) -> AnyArray:
        """Return the moved weights or intercepts, if all classifiers have them."""
        if self.response != "score":
            raise AttributeError(f"moved probabilities are not linear, so there is no {name}")
        # Meta-estimators have the weights in the estimator that they wrap.
        return self._sum(lambda model: getattr(getattr(model, "estimator_", model), name))

    def _sum(self, part: Callable[[Any], Any]) -> AnyArray:
        """Return the weighted sum of what `part` returns for each classifier."""
        total = (1.0 - sum(self.steps)) * np.asarray(part(self.baseline), dtype=np.float64)
        for (_, model), step in zip(self.candidates, self.steps, strict=True):
            total += step * np.asarray(part(model), dtype=np.float64)
        return total
