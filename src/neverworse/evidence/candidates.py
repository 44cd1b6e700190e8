"""Candidates of all kinds: which rows they are fitted to, and the scores that they give.

Semi-supervised candidates get all rows, with a marker where the label is missing; all others get
the labeled rows only.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse.estimators import ICLSClassifier, LabeledRows, scores_of
from neverworse.methods import SelfLearningClassifier

Named = list[tuple[str, Any]]  # classifiers with their names
Response = Literal["predict_proba", "score"]

BASELINE = "baseline"


def default_candidates(X: Any, random_state: Any) -> Named:
    """Return what people would try, linear and not, supervised and semi-supervised."""
    logistic = make_pipeline(
        StandardScaler(with_mean=not sparse.issparse(X)), LogisticRegression(max_iter=1000)
    )
    return [
        ("ICLS", ICLSClassifier()),
        ("self-learning", SelfLearningClassifier()),
        ("logistic regression", logistic),
        ("random forest", RandomForestClassifier(random_state=random_state)),
        ("self-training", SelfTrainingClassifier(clone(logistic))),
    ]


def check_candidates(candidates: Any) -> None:
    """Check the list of candidates, before anything is fitted."""
    if not (
        isinstance(candidates, list)
        and candidates
        and all(isinstance(p, tuple) and len(p) == 2 and isinstance(p[0], str) for p in candidates)
    ):
        raise ValueError(
            "candidates has to be a list of (name, classifier) with at least one of them. Got: "
            f"{candidates!r}"
        )
    for name, estimator in candidates:
        check_classifier(f"Candidate {name!r}", estimator)


def check_classifier(subject: str, estimator: Any) -> None:
    """Check that an estimator, fitted or not, is a classifier that has probabilities."""
    if isinstance(estimator, type) or not is_classifier(estimator):
        raise ValueError(
            f"{subject} is no classifier: {estimator!r}. Pass an object such as "
            "LogisticRegression()."
        )
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{subject} ({type(estimator).__name__}) has no predict_proba, and the Brier score "
            "compares probabilities. Wrap it in sklearn.calibration.CalibratedClassifierCV"
            + (", or set probability=True." if hasattr(estimator, "probability") else ".")
        )


def fit_to_rows(name: str, estimator: Any, rows: LabeledRows) -> Any:
    """Return a copy of a classifier, fitted to the rows that it can learn from.

    Parameters
    ----------
    name : str
        For messages.
    estimator : classifier
        A classifier of neverworse, or one that contains such a one, gets all rows, with null values
        as markers; so does one of `sklearn.semi_supervised`, with -1. All others get the labeled
        rows.
    rows : LabeledRows
        Weights of rows are passed on to those that take them.
    """
    settings = estimator.get_params()
    markers = [key for key in settings if key.split("__")[-1] == "missing_label"]
    if markers:
        labels = rows.classes[rows.codes].astype(object)
        labels[rows.unlabeled] = None
        model = clone(estimator).set_params(**dict.fromkeys(markers, np.nan))
        model.fit(rows.X, labels, **weights_of_rows(model, rows.weights))
    elif any(_takes_minus_one(part) for part in (estimator, *settings.values())):
        model = CodedClassifier(clone(estimator)).fit(rows)
    else:
        known = rows.labeled()
        model = clone(estimator)
        weights = weights_of_rows(model, known.weights)
        model.fit(known.X, rows.classes[known.codes], **weights)
    if np.sort(np.asarray(model.classes_)).tolist() != rows.classes.tolist():
        raise ValueError(
            f"{name} ({type(estimator).__name__}) has the classes {list(model.classes_)}, but the "
            f"labels have {rows.classes.tolist()}. If one of them marks unlabeled rows, wrap the "
            "classifier in neverworse.methods.SupervisedClassifier."
        )
    return model


def _takes_minus_one(part: Any) -> bool:
    """Whether -1 means unlabeled to an estimator, as in scikit-learn's semi-supervised ones."""
    return type(part).__module__.startswith("sklearn.semi_supervised")


def weights_of_rows(estimator: Any, weights: Vector | None) -> dict[str, Vector]:
    """Return the weights of rows as arguments of `fit`; none if the estimator takes none."""
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
    """A classifier that is fitted to codes of classes, with -1 for unlabeled rows.

    Parameters
    ----------
    estimator : classifier

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    estimator_ : classifier
        Fitted; its classes are the positions in `classes_`.
    """

    classes_: AnyArray

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, rows: LabeledRows) -> CodedClassifier:
        """Fit the classifier to labeled and unlabeled rows."""
        codes = np.where(rows.unlabeled, -1, rows.codes)
        weights = weights_of_rows(self.estimator, rows.weights)
        self.estimator_ = clone(self.estimator).fit(rows.X, codes, **weights)
        self.classes_ = rows.classes[np.asarray(self.estimator_.classes_, dtype=np.intp)]
        return self

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> Matrix:
        """Return the probabilities of the classes."""
        return self.estimator_.predict_proba(X)


def scores_of_model(name: str, model: Any, X: Any, response: Response, n_rows: int) -> Matrix:
    """Return checked scores, one row for each class, or one for the second of two.

    Parameters
    ----------
    name : str
        For messages.
    model : fitted classifier
    X : anything that it accepts
    response : {"predict_proba", "score"}
    n_rows : int
        The number of rows of X.
    """
    classes = np.sort(np.asarray(model.classes_))
    used = np.ones(n_rows, bool)
    return np.atleast_2d(scores_of(name, model, X, response, classes, used))


def targets(codes: Indices, n_classes: int) -> Matrix:
    """Return the 0/1 targets that belong to such scores."""
    if n_classes == 2:
        return codes[None, :].astype(np.float64)
    return np.eye(n_classes)[:, codes]
