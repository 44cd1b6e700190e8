"""Audit of any two classifiers: what is certain about their losses, whatever the labels."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from neverworse._typing import AnyArray, Mask, Matrix, Vector
from neverworse._words import count, documented_like, number, printed
from neverworse.estimators._class_prior import with_class_prior
from neverworse.estimators._delegating import predicted_codes
from neverworse.estimators._input import checked_weights, explains_conversion
from neverworse.estimators._known_labels import LARGEST_TARGET, KnownLabels, coded_labels
from neverworse.estimators._labels import (
    check_classes,
    find_unlabeled,
    label_array,
    native_dtype,
    shown_classes,
    split_labels,
)
from neverworse.estimators._linear import class_scores, has_class_scores
from neverworse.estimators._projected import ProjectedLeastSquaresClassifier
from neverworse.projection import EPS, Assumptions, Claim, loss_difference

# Tolerance for probabilities that should add up to one; they may be in single precision.
SUM_TOLERANCE = 1e-4

Response = Literal["predict_proba", "score", "error"]
Models = dict[str, Any]  # the candidate and the baseline, under the names of the arguments

_NEEDED = {
    "predict_proba": "predict_proba",
    "score": "decision_function that is known as a score on targets coded 0 and 1",
    "error": "predict",
}
_LOSS = {
    "predict_proba": "Brier score",
    "score": "mean squared loss of the scores",
    "error": "error rate",
}


@dataclass(frozen=True)
class Audit(Claim):
    """Worst and best case of a candidate against a baseline, over all labelings of some rows.

    A loss is the Brier score, the mean squared loss of scores or the error rate. A difference is
    the loss of the candidate less that of the baseline: negative is better. All numbers are rounded
    outwards, so that they hold in spite of rounding errors.

    Attributes
    ----------
    worst_case, best_case : float
        Bounds of the largest and the smallest difference over all labelings, per row.
    worst_case_sum, best_case_sum : float
        The same, summed over the rows: `total_weight` times as large.
    holds : bool
        Whether the candidate is never worse: `worst_case` is at most zero.
    guaranteed_improvement : float
        The candidate's loss is lower than the baseline's by at least this, whatever the labels.
    candidate_loss, baseline_loss : tuple of float
        Bounds of the loss of each over all labelings, per row, whatever the class prior.
    known_difference : float or None
        Difference on the labeled rows alone, per labeled row; None if there are none.
    n_labeled, n_unlabeled : int
        Rows with and without a label (and with a positive weight).
    total_weight : float
        Sum of the weights; the number of rows if there are none.
    response : {"predict_proba", "score", "error"}
        What was compared.
    assumptions : Assumptions
        What is assumed about the labels of the unlabeled rows; "all labelings" are those.

    Examples
    --------
    >>> from neverworse import audit
    >>> rows, labels = [[0.0], [0.5], [1.0]], [-1, 0, 1]  # the first row has no label
    >>> found = audit([0.2, 0.1, 0.9], [-0.3, 0.1, 0.9], rows, labels)  # scores of both
    >>> found.holds
    True
    >>> print(f"lower by {-found.worst_case:.3f} to {-found.best_case:.3f} per row")
    lower by 0.017 to 0.350 per row
    """

    worst_case: float
    best_case: float
    worst_case_sum: float
    best_case_sum: float
    candidate_loss: tuple[float, float]
    baseline_loss: tuple[float, float]
    known_difference: float | None
    n_labeled: int
    n_unlabeled: int
    total_weight: float
    response: Response
    assumptions: Assumptions = field(default_factory=Assumptions)

    def summary(self) -> str:
        """Return the audit as a paragraph, with its limits."""
        parts, change = [self._claim()], self.known_difference
        if change is not None and self.n_unlabeled and not self._is_same:
            compared = _change(change) if change else "the same"
            parts += [f"On the {count(self.n_labeled, 'labeled row')} alone, it is {compared}."]
        if self.n_unlabeled and self.assumptions.prior_level is not None:
            parts += [self.assumptions.probability()]
        accuracy = "" if self.response == "error" else ", and about squared losses, not accuracy"
        return printed(" ".join([*parts, f"This is about these rows, not about others{accuracy}."]))

    @property
    def _is_same(self) -> bool:
        """Whether both have the same loss, or one that only rounding errors tell apart."""
        known = not self.n_unlabeled or self.worst_case == self.best_case
        return known and self.best_case <= 0.0 <= self.worst_case

    def _claim(self) -> str:
        loss, these = self._loss(), f"these {count(self.n_labeled + self.n_unlabeled, 'row')}"
        if self._is_same:
            return f"No difference: on {these}, candidate and baseline have the same {loss}."
        labels, (low, high) = self.assumptions.labels, map(number, self.baseline_loss)
        if self.n_unlabeled:
            better, worse = "Never worse", "Never better"
            rows = count(self.n_unlabeled, "unlabeled row")
            truth = f"whatever the true {labels} of the {rows}{self.assumptions.conditions()},"
            change = f"between {_change(self.best_case)} and {_change(self.worst_case)}"
            size = f"between {low} and {high}"
        else:
            better, worse = "Better", "Worse"
            truth = f"all {labels} are known, and"
            change, size = _change((self.worst_case + self.best_case) / 2.0), low
        verdict = better if self.holds else worse if self.best_case >= 0.0 else "Not guaranteed"
        return (
            f"{verdict}: {truth} the {loss} of the candidate on {these} is {change} than that of "
            f"the baseline ({size})."
        )

    def _loss(self) -> str:
        several = self.assumptions.task == "multiclass" and self.response != "error"
        return _LOSS[self.response] + (" (summed over the classes)" if several else "")


def _change(difference: float) -> str:
    return f"{number(abs(difference))} {'lower' if difference < 0.0 else 'higher'}"


@documented_like(ProjectedLeastSquaresClassifier, ProjectedLeastSquaresClassifier.fit)
@explains_conversion
def audit(
    candidate: Any,
    baseline: Any,
    X: Any,
    y: Any,
    *,
    response: str = "auto",
    sample_weight: Any = None,
    label_bounds: Any = None,
    class_prior: Any = None,
    prior_level: float = 0.95,
    missing_label: Any = "auto",
) -> Audit:
    """Compare two fitted classifiers on rows of which some are unlabeled, whatever their labels.

    The largest and the smallest difference of their losses over *all* labelings are computed
    exactly, however the two were fitted, and up to a rounding error that is accounted for.

    Parameters
    ----------
    candidate, baseline : fitted estimators, or array-likes
        Classifiers, pipelines or searches of them; or arrays of scores on targets coded 0 and 1: of
        shape (n_samples,) for the second of two classes, or (n_samples, n_classes).
    X : array-like, sparse matrix, data frame or anything that the two accept
        Passed on as it is. It may be None if both are arrays.
    y : array-like of shape (n_samples,)
        Labels, and a marker for rows without one. Classes may be missing, and even all labels.
    response : {"auto", "predict_proba", "score", "error"}, default="auto"
        What is compared.

        - "predict_proba": probabilities, by the Brier score (summed over several classes).
        - "score": scores on targets coded 0 and 1, as the classifiers of neverworse have them
          (also in a pipeline or a search), by the loss of their certificate.
        - "error": predicted classes, by the error rate.
        - "auto": "predict_proba" if there are estimators and all have it, otherwise "score".
    {sample_weight, label_bounds, class_prior, prior_level, missing_label}

    Returns
    -------
    audit : Audit

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from neverworse import audit
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [1.4]], [0, 0, 1, 1, -1]
    >>> models = [kind().fit(X[:4], y[:4]) for kind in (GaussianNB, LogisticRegression)]
    >>> found = audit(*models, X, y)
    >>> print(f"between {found.best_case:.3f} and {found.worst_case:.3f}")
    between -0.099 and -0.033
    """
    models: Models = {"candidate": candidate, "baseline": baseline}
    chosen = _chosen_response(models, response)
    n_rows = len(label_array(y))
    if X is None and not all(map(_is_array, models.values())):
        raise ValueError("X is None: it is required unless both models are arrays of scores.")
    check_consistent_length(X, y)
    weights = None if sample_weight is None else checked_weights(sample_weight, n_rows)
    used = np.ones(n_rows, bool) if weights is None else weights > 0.0
    if not used.any():
        raise ValueError("y has no rows of positive weight: there is nothing to audit.")
    fitted = [(name, model) for name, model in models.items() if not _is_array(model)]
    classes = shared_classes(fitted) if fitted else _classes_of_arrays(models, y, missing_label)
    split = split_labels(y, missing_label, classes)
    known = coded_labels(*split, weights, label_bounds)
    if class_prior is not None:
        known = with_class_prior(known, class_prior, prior_level)
    f, g = (
        np.atleast_2d(scores_of(name, model, X, chosen, known.classes, used))
        for name, model in models.items()
    )
    return _evaluate(f, g, known, chosen)


def _evaluate(f: Matrix, g: Matrix, known: KnownLabels, response: Response) -> Audit:
    labels, s, t = known.labels, known.labels.weights, f - g
    total = float(len(labels.width)) if s is None else math.fsum(s)
    difference = loss_difference(t, g, labels, s)
    # Taken as they are, the scores have no error; their difference was rounded once.
    bound = difference.rounding + difference.score_error(EPS * difference.norm_t, 0.0)
    # A wrong class misses two of several indicators, but is one error.
    share = 0.5 if response == "error" and len(f) > 1 else 1.0
    worst, best = share * (difference.worst + bound), share * (difference.best - bound)
    best_per_row, worst_per_row = _per_row((best, worst), total)
    free = replace(labels, totals=None)
    of_candidate = loss_difference(-t, f, free, s).baseline_loss()
    labeled = labels.weights_where(~labels.unlabeled)
    known_weight, of_labeled = math.fsum(labeled), None
    if known_weight > 0.0:
        of_labeled = share * loss_difference(t, g, free, labeled).worst / known_weight
    return Audit(
        worst_case=worst_per_row,
        best_case=best_per_row,
        worst_case_sum=worst,
        best_case_sum=best,
        candidate_loss=_per_row(of_candidate, total / share),
        baseline_loss=_per_row(difference.baseline_loss(), total / share),
        known_difference=of_labeled,
        n_labeled=int(np.count_nonzero(labeled)),
        n_unlabeled=int(np.count_nonzero(labels.weights_where(labels.unlabeled))),
        total_weight=total,
        response=response,
        assumptions=known.assumptions,
    )


def _per_row(bounds: tuple[float, float], total: float) -> tuple[float, float]:
    # Rounded outwards for the errors of a sum, its weight and the division.
    low, high = bounds[0] / total, bounds[1] / total
    return low - 4.0 * EPS * abs(low), high + 4.0 * EPS * abs(high)


def _is_array(model: Any) -> bool:
    return not hasattr(model, "predict")


def _described(name: str, model: Any) -> str:
    return f"The {name} ({'an array' if _is_array(model) else type(model).__name__})"


def _chosen_response(models: Models, response: str) -> Response:
    """Return what to compare, after a check that all models are fitted and have it."""
    estimators = {name: model for name, model in models.items() if not _is_array(model)}
    for name, model in estimators.items():
        if hasattr(model, "fit"):
            check_is_fitted(model)
        classes: Any = getattr(model, "classes_", ())
        if len(classes) < 2 or np.ndim(classes[0]):
            raise ValueError(
                f"{_described(name, model)} has no classes_, one class only, or several outputs. "
                "Pass a classifier of one output that is fitted to two or more classes, or an "
                "array of scores on targets coded 0 and 1."
            )
    if response == "auto":
        has_all = all(hasattr(model, "predict_proba") for model in estimators.values())
        response = "predict_proba" if estimators and has_all else "score"
    if response not in _NEEDED:
        raise ValueError(
            f"response={response!r} is unknown. Pass 'auto', 'predict_proba', 'score' or 'error'."
        )
    for name, model in models.items():
        has = has_class_scores(model) if response == "score" else hasattr(model, _NEEDED[response])
        if not has and (response == "error" or name in estimators):
            raise ValueError(
                f"{_described(name, model)} has no {_NEEDED[response]}. Compare probabilities with "
                "response='predict_proba' (wrap a classifier that has none in "
                "sklearn.calibration.CalibratedClassifierCV), the classes that two classifiers "
                "predict with response='error', or two arrays of scores on targets coded 0 and 1."
            )
    return response  # type: ignore[return-value]


def scores_of(
    name: str, model: Any, X: Any, response: Response, classes: AnyArray, used: Mask
) -> Vector:
    """Return one score for each row, or one row of scores for each of several classes."""
    n, n_classes, subject = len(used), len(classes), _described(name, model)
    if _is_array(model):
        scores = np.asarray(model, dtype=np.float64)
    elif response == "error":
        scores = np.eye(n_classes)[predicted_codes(subject, model.predict(X), classes)]
    elif response == "score":
        scores = class_scores(model, X)
    else:
        scores = np.asarray(getattr(model, response)(X), dtype=np.float64)
        # The columns are in the order of the classifier's own classes, whatever that is.
        if scores.shape == (n, n_classes):
            scores = scores[:, np.argsort(model.classes_, kind="stable")]
    if scores.shape != (n, n_classes) and (n_classes > 2 or scores.shape != (n,)):
        raise ValueError(
            f"{subject} has scores of shape {scores.shape}, but ({n}, {n_classes}) is needed, or "
            f"({n},) for two classes."
        )
    # Whatever rows without a weight have is ignored, and equal shares pass all checks.
    scores = np.where(used if scores.ndim == 1 else used[:, None], scores, 1.0 / n_classes)
    _check_values(subject, scores, response == "predict_proba", n_classes)
    if scores.ndim == 1:
        return scores
    return scores[:, 1].copy() if n_classes == 2 else np.ascontiguousarray(scores.T)


def _check_values(subject: str, scores: Vector, is_probability: bool, n_classes: int) -> None:
    """Raise an error that names the first row with something wrong in it, if there is one."""
    size = np.abs(scores)
    problems = {"are NaN, infinite or too large to be squared": ~(size < LARGEST_TARGET)}
    if is_probability:
        problems["are outside [0, 1]"] = np.abs(scores - 0.5) > 0.5 + SUM_TOLERANCE
    if scores.ndim > 1 and (is_probability or n_classes == 2):
        off = np.abs(scores.sum(axis=1) - 1.0)
        problems["do not add up to 1"] = off > SUM_TOLERANCE * np.maximum(1.0, size.max(axis=1))
    for problem, wrong in problems.items():
        if wrong.any():
            row = int(np.argwhere(wrong)[0, 0])
            raise ValueError(
                f"{subject} has values that {problem}, first in row {row}: {scores[row]}. "
                "Correct them, or leave such rows out (or give them a sample_weight of zero). With "
                "response='score', arrays may have any numbers: those of the second of two classes."
            )


def shared_classes(named: list[tuple[str, Any]]) -> AnyArray:
    """Return the classes of fitted classifiers in sorted order; they have to be the same."""
    found = [(name, np.sort(np.asarray(model.classes_))) for name, model in named]
    baseline, classes = found[-1]
    for name, own in found:
        if own.tolist() != classes.tolist():
            raise ValueError(
                f"The {name} has the classes {shown_classes(own)}, but the {baseline} has "
                f"{shown_classes(classes)}. Fit all to the same classes, without unlabeled rows."
            )
    return classes


def _classes_of_arrays(models: Models, y: Any, missing_label: Any) -> AnyArray:
    """Return the classes in y, one for each column of the scores."""
    shapes = [np.shape(model) for model in models.values()]
    n_columns = {2 if len(shape) == 1 else shape[-1] if shape else 0 for shape in shapes}
    n_classes = max(n_columns)
    unlabeled = find_unlabeled(y, missing_label)
    # With no label at all, no name of a class matters.
    classes = np.unique(native_dtype(label_array(y)[~unlabeled]))
    classes = np.arange(n_classes) if unlabeled.all() else classes
    if n_columns != {len(classes)} or n_classes < 2:
        raise ValueError(
            "candidate and baseline have to be estimators, or arrays of scores of the classes in y "
            f"({shown_classes(classes)}) with the shape (n_samples,) for two classes or (n_samples,"
            f" n_classes), but have the shapes {shapes[0]} and {shapes[1]}. Fitted classifiers know"
            " their classes even if y lacks some."
        )
    return classes if unlabeled.all() else check_classes(classes, len(unlabeled))
