"""The methods that a report compares, how they are fitted, and what each of them promises."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterGrid, StratifiedKFold, cross_val_score
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from neverworse._typing import AnyArray, Indices, Vector
from neverworse._words import nearest
from neverworse.estimators import (
    DelegatingClassifier,
    ICLSClassifier,
    LabeledRows,
    ProjectedLeastSquaresClassifier,
)
from neverworse.evidence import moved
from neverworse.methods import SelfLearningClassifier, TransductiveSVMClassifier
from neverworse.study._held_out import Sample

AUTO, SUPERVISED, PROJECTED, STACKED = "auto", "supervised", "projected", "stacked"
OURS = (SUPERVISED, PROJECTED, "ICLS")
TUNED = ("logistic regression", "random forest", "gradient boosting", "self-training")
NEIGHBOURS = "label spreading"
METHODS = (*OURS, *TUNED, "self-learning", "TSVM", NEIGHBOURS)
# Methods with probabilities, which the supervised model can be moved towards.
CANDIDATES = (PROJECTED, "ICLS", *TUNED, "self-learning")
MODELS = (AUTO, STACKED, SUPERVISED, *CANDIDATES)  # what a model file may hold
# Methods whose models predict with compiled code of scikit-learn.
COMPILED = ("random forest", "gradient boosting")
# Methods that take their own predictions for labels, so that they may collapse.
SELF_TAUGHT = ("self-training", "self-learning", "TSVM", NEIGHBOURS)
PROVED = ("all", "unlabeled")  # distances with a guarantee
COLLAPSED = 10  # how much rarer other classes are among predictions than among labels
MOST_FOLDS = 3  # few labels are typical, and each method is tuned in every fold of a comparison
N_TREES = 50


def named(text: str) -> str:
    """Return the name of a model, in whatever case and with whatever hyphens it is written."""
    return _spelled(text, MODELS, "There is no model {!r} for --model.")


def candidates_named(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the names of candidates, as `named` does; "none" alone means no candidate."""
    if [_plain(text) for text in texts] == ["none"]:
        return ()
    problem = "There is no candidate {!r} for --candidates."
    return tuple(dict.fromkeys(_spelled(text, CANDIDATES, problem) for text in texts))


def _spelled(text: str, names: Sequence[str], problem: str) -> str:
    found = {_plain(name): name for name in names}.get(_plain(text))
    if found is None:
        raise ValueError(f"{problem.format(text)} {nearest(text, names)}")
    return found


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()


def standard_methods(
    projected: ProjectedLeastSquaresClassifier, names: Collection[str] = OURS, *, seed: int = 0
) -> dict[str, Any]:
    """Return unfitted methods by name, with the settings of the projected one."""
    settings = projected.get_params(deep=False)
    del settings["distance"]
    methods = {
        SUPERVISED: projected._baseline(),
        PROJECTED: clone(projected),
        "ICLS": ICLSClassifier(**settings),
        **{name: tuned_classifier(name, projected.class_weight, seed) for name in TUNED},
        "self-learning": SelfLearningClassifier(projected._baseline(), missing_label=np.nan),
        "TSVM": TransductiveSVMClassifier(missing_label=np.nan),
        NEIGHBOURS: NearestLabelSpreading(),
    }
    return {name: method for name, method in methods.items() if name in names}


def tuned_classifier(name: str, class_weight: Any = None, seed: int = 0) -> TunedClassifier:
    """Return one of the classifiers `TUNED`, which people would try instead."""
    shared = {"class_weight": class_weight, "random_state": seed}
    logistic = LogisticRegression(class_weight=class_weight, max_iter=1000)
    # With scikit-learn's leaves of 20 rows, 40 labels could hardly be split.
    few = {"max_iter": 50, "min_samples_leaf": 5, "early_stopping": False}
    others: dict[str, tuple[Any, dict[str, list[float]]]] = {
        "random forest": (RandomForestClassifier(N_TREES, **shared), {"min_samples_leaf": [1, 5]}),
        "gradient boosting": (
            HistGradientBoostingClassifier(**few, **shared),
            {"learning_rate": [0.1, 0.03]},
        ),
    }
    estimator, grid = others.get(name, (logistic, {"C": [1.0, 0.001, 0.01, 0.1, 10.0]}))
    return TunedClassifier(estimator, grid, name == "self-training", seed)


def fitted(method: Any, X: Any, y: Vector, weights: Vector | None) -> Any:
    """Return a fitted copy of a method, without weights if it does not take them."""
    model = clone(method)
    # Forests draw other rows if there are weights, even if all are 1.
    is_weighted = weights is not None and bool((weights != 1.0).any())
    takes_weights = is_weighted and has_fit_parameter(model, "sample_weight")
    passed = {"sample_weight": weights} if takes_weights else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # test rows show how good it is
        return model.fit(X, y, **passed)


def fit_fold(method: Any, sample: Sample, train: Indices) -> Any:
    """Return a method fitted to the training rows of a fold."""
    return fitted(method, sample.X[train], sample.y[train], sample.weights[train])


def reason_of(error: Exception) -> str:
    """Return why a fit failed, as a sentence."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"{lines[0].rstrip('.')}."


def collapsed_to(predicted: Indices, labels: Indices) -> int | None:
    """Return the code of a class, if others are predicted ten times more rarely than labeled."""
    largest = int(np.bincount(predicted).argmax())
    others, known = (int(np.sum(codes != largest)) for codes in (predicted, labels))
    return largest if COLLAPSED * others * len(labels) < known * len(predicted) else None


def guarantee_of(method: Any) -> str:
    """Return what is proved about a method before any data are seen."""
    if isinstance(method, SteppedClassifier):
        return "not worse in Brier score on the unlabeled rows, with 95 % confidence"
    if isinstance(method, ProjectedLeastSquaresClassifier) and method.distance in PROVED:
        return "never worse, in the terms of the certificate"
    return "none"


@dataclass(eq=False, repr=False)
class TunedClassifier(DelegatingClassifier):
    """Fit a classifier to the labeled rows, with the parameters of a grid that do best on them.

    Parameters are compared by the squared error of probabilities, out of bag or in cross-validation
    with at most three folds. If a class has one label, the first ones are used. With
    `self_training`, the classifier learns from the unlabeled rows as well, without weights. y has
    codes of classes, NaN where unlabeled.
    """

    estimator: Any
    grid: Mapping[str, Sequence[Any]]
    self_training: bool = False
    random_state: int = 0
    missing_label: Any = np.nan  # which also says that it takes unlabeled rows

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the parameters, and fit with them to rows of which some have labels."""
        # With so few rows, threads that wait for each other take twenty times as long.
        with (
            self._fitting(X, None if self.self_training else sample_weight) as (_, X, weights),
            threadpool_limits(1),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", ConvergenceWarning)  # held-out rows decide
            warnings.filterwarnings("ignore", "Some inputs do not have OOB", UserWarning)
            rows = LabeledRows.split(X, y, self.missing_label, weights)
            labeled, grid = rows.labeled(), list(ParameterGrid(dict(self.grid)))
            tuned = [clone(self.estimator).set_params(**each) for each in grid]
            losses, models = zip(*(self._tried(labeled, each) for each in tuned), strict=True)
            best = int(np.argmin(losses))
            self.best_params_, self.classes_ = grid[best], rows.classes
            if self.self_training:
                codes = np.where(rows.unlabeled, -1, rows.codes)
                self.estimator_ = SelfTrainingClassifier(tuned[best]).fit(rows.X, codes).estimator_
            else:
                self.estimator_ = models[best] or labeled.fit(tuned[best])
        return self

    def _tried(self, rows: LabeledRows, tuned: Any) -> tuple[float, Any]:
        """Return the mean squared error for rows that a model has not seen, and a fitted forest."""
        n_folds = min(MOST_FOLDS, int(np.bincount(rows.codes).min()))
        if n_folds < 2:
            return np.inf, None
        if hasattr(tuned, "oob_score"):
            forest = rows.fit(clone(tuned).set_params(oob_score=True))
            shares = vars(forest).pop("oob_decision_function_")  # NaN for rows in all trees
            del forest.oob_score_
            return float(np.nanmean((shares - np.eye(len(rows.classes))[rows.codes]) ** 2)), forest
        scores = cross_val_score(
            tuned,
            rows.X,
            rows.codes,
            scoring="neg_brier_score",
            cv=StratifiedKFold(n_folds, shuffle=True, random_state=self.random_state),
            params=None if rows.weights is None else {"sample_weight": rows.weights},
            error_score="raise",
        )
        return -float(np.mean(scores)), None


class NearestLabelSpreading(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """scikit-learn's label spreading over seven nearest neighbours, for codes of classes."""

    classes_: AnyArray

    def fit(self, X: Any, y: Vector) -> Self:
        self.model_ = LabelSpreading(kernel="knn", n_neighbors=min(7, len(y) - 1))
        self.model_.fit(X, np.nan_to_num(y, nan=-1.0).astype(np.intp))
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each row; the first one where no label has spread to."""
        with np.errstate(invalid="ignore"):
            return self.model_.predict(X)


class SteppedClassifier(DelegatingClassifier):
    """The probabilities of a baseline, moved towards those of candidates by given steps."""

    def __init__(self, estimator: Any, candidates: list[Any], steps: list[float]) -> None:
        self.estimator = estimator
        self.candidates = candidates
        self.steps = steps

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        baseline, *others = (
            fitted(part, X, y, sample_weight) for part in (self.estimator, *self.candidates)
        )
        named = [("", each) for each in others]
        self.estimator_ = moved(baseline, named, np.array(self.steps), "predict_proba")
        self.classes_ = baseline.classes_
        return self
