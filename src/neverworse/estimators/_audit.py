"""Audit of any two fitted models: what is certain about their losses, whatever the labels.

The loss difference of two scores is affine in every unknown label, so its extremes over all
labelings are known in closed form (`neverworse.projection._loss`). Here fitted classifiers,
regressors and arrays are turned into scores, and y, bounds and priors into what is known about the
labels. Unlike in a fit, the classes are those of the classifiers: y need not have all of them, nor
any label at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted

from neverworse._typing import AnyArray, Indices, Mask, Matrix, Vector
from neverworse.estimators._audit_report import Audit, Response
from neverworse.estimators._class_prior import with_class_prior
from neverworse.estimators._classifier import LinearClassifier
from neverworse.estimators._known_labels import (
    KnownLabels,
    _bounds,
    _several_classes,
    _two_classes,
)
from neverworse.estimators._known_targets import LARGEST, KnownTargets, _raise_if_too_large
from neverworse.estimators._labels import (
    _as_array,
    _check_classes,
    _distinct,
    _missing,
    _shown,
    find_unlabeled,
    split_targets,
)
from neverworse.projection import Assumptions, Labels
from neverworse.projection._loss import SUMMATION, LossDifference, loss_difference
from neverworse.projection._whitening import EPS

# Probabilities add up to one but for this, even if they were computed in single precision.
SAME = 1e-4

# How many classes a message names.
FEW = 10

Models = dict[str, Any]  # the candidate and the baseline, under the names of the arguments


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
    r"""Compare two fitted classifiers on rows of which some are unlabeled, whatever their labels.

    For probabilities :math:`f_j` of the candidate and :math:`g_j` of the baseline, the difference
    of their Brier scores is

    .. math:: \frac{1}{\sum_j s_j} \sum_j s_j \left( \lVert f_j - y_j \rVert^2
              - \lVert g_j - y_j \rVert^2 \right) ,

    affine in every unknown label :math:`y_j`. Its largest and its smallest value over *all*
    labelings are computed exactly, up to a rounding error that is accounted for. No assumption is
    made about how the two were fitted, or whether they saw these rows.

    Between probabilities, an unlabeled row on which the two differ can always turn out either
    way: `holds` then takes labeled rows that outweigh it, or bounds or priors that exclude enough
    labelings. Scores outside of [0, 1] leave room for certain improvement.

    Parameters
    ----------
    candidate, baseline : fitted estimators, or array-likes
        Classifiers, pipelines or searches of them; two regressors; or arrays of scores on targets
        coded 0 and 1: of shape (n_samples,) for the second of two classes, or
        (n_samples, n_classes) with a column for each class in sorted order.
    X : array-like, sparse matrix, data frame or anything that the two accept
        Passed on as it is. It may be None if both are arrays.
    y : array-like of shape (n_samples,)
        Labels, and a marker for rows without one. Classes that the classifiers know may be
        missing, and there may be no label at all.
    response : {"auto", "predict_proba", "score"}, default="auto"
        What is compared.

        - "predict_proba": probabilities. The loss is the Brier score, as computed by
          `sklearn.metrics.brier_score_loss`: of the second of two classes, or summed over several.
        - "score": scores on targets coded 0 and 1, as the classifiers of neverworse have them
          (also as the last step of a pipeline, or the best estimator of a search). The loss is
          that of their certificate.
        - "auto": "predict_proba" if every estimator has it; "score" otherwise, or if both are
          arrays.
    sample_weight : array-like of shape (n_samples,), optional
        Not negative. A row of weight zero is as good as absent.
    label_bounds : array-like, optional
        Of shape (n_samples, 2) or (n_samples, n_classes, 2), as in the `fit` of
        `ProjectedLeastSquaresClassifier`. For regressors, who need them: bounds (low, high) of
        all unknown targets, or one such pair for each row.
    class_prior : None, number, interval, array, dict or "confidence", default=None
        What is known about the share of classes among the unlabeled rows, as in
        `ProjectedLeastSquaresClassifier`.
    prior_level : float, default=0.95
        Probability with which "confidence" intervals hold.
    missing_label : "auto" or scalar, default="auto"
        What marks unlabeled rows in y, as in `LeastSquaresClassifier`.

    Returns
    -------
    audit : Audit
        Worst and best case, as numbers and in words.

    See Also
    --------
    ProjectedLeastSquaresClassifier : Constructed such that the audit of its scores holds.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.semi_supervised import SelfTrainingClassifier
    >>> from neverworse import audit
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 300)
    >>> X = rng.normal(size=(300, 3)) + truth[:, None]
    >>> y = np.where(np.arange(300) < 30, truth, -1)
    >>> supervised = LogisticRegression().fit(X[:30], y[:30])
    >>> self_trained = SelfTrainingClassifier(LogisticRegression()).fit(X, y)
    >>> found = audit(self_trained, supervised, X, y)
    >>> found.holds
    False
    >>> print(f"between {found.best_case:.3f} and {found.worst_case:.3f}")
    between -0.048 and 0.228
    """
    models: Models = {"candidate": candidate, "baseline": baseline}
    for name, model in models.items():
        _check_fitted(name, model)
    n_rows = _count_rows(models, X, y)
    weights = _weights(sample_weight, n_rows)
    used = np.ones(n_rows, bool) if weights is None else weights > 0.0
    chosen: Response
    if any(_is_regressor(model) for model in models.values()):
        _check_regressors(models, response, class_prior)
        chosen = "predict"
        labels, assumptions = _known_targets(y, missing_label, weights, label_bounds)
        f, g = (_predictions(name, model, X, used) for name, model in models.items())
    else:
        chosen = _chosen_response(models, response)
        known = _known_labels(models, y, missing_label, weights, label_bounds)
        _check_countable(known, class_prior)
        labels, assumptions = with_class_prior(known, class_prior, prior_level)
        f, g = (
            _scores(name, model, X, chosen, known.classes, used) for name, model in models.items()
        )
    return _evaluate(f, g, labels, chosen, assumptions)


# What is compared


def _is_array(model: Any) -> bool:
    return not hasattr(model, "predict")


def _is_regressor(model: Any) -> bool:
    return (
        hasattr(model, "__sklearn_tags__") and not isinstance(model, type) and is_regressor(model)
    )


def _called(name: str, model: Any) -> str:
    """Return what messages call a model."""
    return f"The {name} ({'an array' if _is_array(model) else type(model).__name__})"


def _check_fitted(name: str, model: Any) -> None:
    if _is_array(model):
        return
    if hasattr(model, "fit"):
        check_is_fitted(model)
    if not _is_regressor(model) and not hasattr(model, "classes_"):
        raise ValueError(
            f"{_called(name, model)} has no classes_, so that it is no fitted classifier. Pass a "
            "fitted classifier, two regressors, or an array of scores."
        )


def _chosen_response(models: Models, response: str) -> Response:
    """Return what to compare, after a check that all models have it."""
    if response not in ("auto", "predict_proba", "score"):
        raise ValueError(
            f"response={response!r} is unknown. Pass 'auto', 'predict_proba' or 'score'."
        )
    estimators = {name: model for name, model in models.items() if not _is_array(model)}
    without = {n: m for n, m in estimators.items() if not hasattr(m, "predict_proba")}
    chosen: Response = "predict_proba"
    if response == "score" or (response == "auto" and (without or not estimators)):
        chosen = "score"
        without = {n: m for n, m in estimators.items() if not _has_score(m)}
    for name, model in without.items():
        _raise_no_response(name, model, response)
    return chosen


def _has_score(model: Any) -> bool:
    """Whether the decision function is a score on targets coded 0 and 1, less one half."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            model = model.steps[-1][1]
        else:
            return isinstance(model, LinearClassifier)


def _raise_no_response(name: str, model: Any, response: str) -> None:
    if hasattr(model, "predict_proba"):
        fix = "Pass response='predict_proba' if the other one has probabilities too"
    else:
        fix = "Wrap it in sklearn.calibration.CalibratedClassifierCV, which has probabilities"
    lacks = [] if hasattr(model, "predict_proba") else ["no predict_proba"]
    if response != "predict_proba":
        lacks.append("no decision_function that is known as a score on targets coded 0 and 1")
    raise ValueError(
        f"{_called(name, model)} has {' and '.join(lacks)}: without a coding, scores have no "
        f"squared loss. {fix}, or pass arrays of scores on the 0/1 coding instead of estimators."
    )


def _scores(
    name: str, model: Any, X: Any, response: Response, classes: AnyArray, used: Mask
) -> Vector:
    """Return one score for each row, or one row of scores for each of several classes."""
    if _is_array(model):
        scores = _as_numbers(name, model)
    elif response == "predict_proba":
        scores = _as_numbers(name, model.predict_proba(X))
        # The columns are in the order of the classifier's own classes, whatever that is.
        if scores.shape == (len(used), len(classes)):
            scores = scores[:, np.argsort(model.classes_, kind="stable")]
    else:
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
        scores = scores + LinearClassifier._threshold
    called = _called(name, model)
    _check_shape(called, scores, len(used), len(classes))
    # Whatever rows without a weight have is ignored, and equal shares pass all checks.
    scores = np.where(used if scores.ndim == 1 else used[:, None], scores, 1.0 / len(classes))
    _check_finite(called, scores)
    if response == "predict_proba":
        _check_probabilities(called, scores)
    if scores.ndim == 1:
        return scores
    if len(classes) > 2:
        return np.ascontiguousarray(scores.T)
    _check_one_score(called, scores)
    return scores[:, 1].copy()


def _predictions(name: str, model: Any, X: Any, used: Mask) -> Vector:
    """Return what a regressor predicts for each row."""
    predicted = _as_numbers(name, model if _is_array(model) else model.predict(X))
    called = _called(name, model)
    if predicted.shape != used.shape:
        raise ValueError(
            f"{called} has predictions of shape {predicted.shape}, but y has {len(used)} rows: one "
            "prediction for each is needed."
        )
    predicted = np.where(used, predicted, 0.0)
    _check_finite(called, predicted)
    return predicted


def _as_numbers(name: str, given: Any) -> Vector:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"The {name} is neither a fitted estimator nor an array of numbers, but of type "
            f"{type(given).__name__}."
        ) from None


def _check_shape(called: str, scores: Vector, n: int, n_classes: int) -> None:
    if scores.shape == (n, n_classes) or (n_classes == 2 and scores.shape == (n,)):
        return
    wanted = f"({n}, {n_classes})" + (f" or ({n},)" if n_classes == 2 else "")
    raise ValueError(
        f"{called} has scores of shape {scores.shape}, but {wanted} is needed for {n} rows in y "
        f"and {n_classes} classes."
    )


def _check_finite(called: str, scores: Vector) -> None:
    row = _first(~(np.abs(scores) < LARGEST))
    if row is not None:
        raise ValueError(
            f"{called} has values that are NaN, infinite or too large to be squared, first in row "
            f"{row}: {scores[row]}. Leave such rows out, or give them a sample_weight of zero."
        )


def _check_probabilities(called: str, scores: Vector) -> None:
    what, row = "outside of [0, 1]", _first(~(np.abs(scores - 0.5) <= 0.5 + SAME))
    if row is None and scores.ndim > 1:
        what, row = "that do not add up to 1", _first(np.abs(scores.sum(axis=1) - 1.0) > SAME)
    if row is not None:
        raise ValueError(
            f"{called} has probabilities {what}, first in row {row}: {scores[row]}. Correct them, "
            "or pass arrays for both and response='score': scores may be any numbers."
        )


def _check_one_score(called: str, scores: Matrix) -> None:
    """Two classes have one score: check that the first column says the same as the second."""
    off, size = np.abs(scores.sum(axis=1) - 1.0), np.abs(scores).max(axis=1)
    row = _first(off > SAME * (1.0 + size))
    if row is not None:
        raise ValueError(
            f"{called} has scores of two classes that do not add up to 1, first in row {row}: "
            f"{scores[row]}. Pass the scores of the second class only, of shape ({len(scores)},)."
        )


def _first(wrong: Mask) -> int | None:
    """Return the first row with something wrong in it, if there is one."""
    return int(np.argwhere(wrong)[0, 0]) if wrong.any() else None


# What is known about the labels


def _count_rows(models: Models, X: Any, y: Any) -> int:
    n_rows = len(_as_array(y))
    if n_rows == 0:
        raise ValueError("y has no rows: there is nothing to audit.")
    if X is None and not all(_is_array(model) for model in models.values()):
        raise ValueError("X is None, but needed: only arrays of scores can do without.")
    if X is not None and _num_samples(X) != n_rows:
        raise ValueError(
            f"X has {_num_samples(X)} rows, but y has {n_rows}. Pass a label for every row, with a "
            "marker such as -1 where there is none."
        )
    return n_rows


def _weights(sample_weight: Any, n_rows: int) -> Vector | None:
    if sample_weight is None:
        return None
    weights: Vector = _check_sample_weight(
        sample_weight, np.empty((n_rows, 0)), dtype=np.float64, ensure_non_negative=True
    )
    if not weights.any():
        raise ValueError("sample_weight is zero for all rows: there is nothing to audit.")
    return weights


def _known_labels(
    models: Models, y: Any, missing_label: Any, weights: Vector | None, bounds: Any
) -> KnownLabels:
    """Return what is known about the labels, in terms of the classes of the classifiers."""
    classes, codes = _coded(models, y, missing_label)
    unlabeled, codes = codes == -1, np.maximum(codes, 0)
    counted = ~unlabeled if weights is None else ~unlabeled & (weights > 0.0)
    counts = np.bincount(codes[counted], minlength=len(classes))
    lower, upper = _bounds(bounds, classes, codes, unlabeled)
    if len(classes) == 2:
        target = codes.astype(np.float64)
        return _two_classes(classes, target, unlabeled, weights, lower, upper, counts)
    return _several_classes(classes, codes, unlabeled, weights, lower, upper, counts)


def _coded(models: Models, y: Any, missing_label: Any) -> tuple[AnyArray, Indices]:
    """Return the classes, and which of them each row has: -1 if it is unlabeled."""
    labels = _distinct(_as_array(y))
    missing = _missing(labels, missing_label)
    classes = _classes_of(models)
    if classes is None:
        classes = _classes_of_arrays(models, labels.values[~missing], len(labels.codes))
    position = {c: k for k, c in enumerate(classes.tolist())}
    _check_marker(labels.values[missing & ~labels.null], position)
    code_of = [-1 if m else position.get(v) for v, m in zip(labels.values, missing, strict=True)]
    unknown = [v for v, k in zip(labels.values, code_of, strict=True) if k is None]
    if unknown:
        raise ValueError(
            f"y has labels that the classifiers do not know: {_listed(unknown)}. Their classes are "
            f"{_listed(classes)}. Fit them to rows of all classes, or mark these rows as unlabeled."
        )
    return classes, np.array(code_of, np.intp)[labels.codes]


def _classes_of(models: Models) -> AnyArray | None:
    """Return the classes that the estimators know, in sorted order; None if all are arrays."""
    found = [_sorted_classes(name, model) for name, model in models.items() if not _is_array(model)]
    if len(found) == 2 and found[0].tolist() != found[1].tolist():
        raise ValueError(
            f"The candidate has the classes {_listed(found[0])}, but the baseline has "
            f"{_listed(found[1])}. Both have to be fitted to the same classes. If one of these "
            "marks unlabeled rows, drop them before you fit a supervised classifier."
        )
    return found[0] if found else None


def _sorted_classes(name: str, model: Any) -> AnyArray:
    classes = model.classes_
    if isinstance(classes, list) and np.ndim(classes[0]) > 0:
        raise ValueError(f"{_called(name, model)} has several outputs. Audit one at a time.")
    ordered = np.sort(np.asarray(classes))
    if len(ordered) < 2:
        raise ValueError(
            f"{_called(name, model)} knows one class only ({_listed(ordered)}). Fit it to two or "
            "more."
        )
    return ordered


def _classes_of_arrays(models: Models, known: AnyArray, n_rows: int) -> AnyArray:
    """Return the classes in y, one for each column of the scores."""
    shapes = {name: np.shape(model) for name, model in models.items()}
    n_columns = {2 if len(shape) == 1 else shape[-1] if shape else 0 for shape in shapes.values()}
    n_classes = n_columns.pop()
    if n_columns or n_classes < 2:
        raise ValueError(
            "candidate and baseline have to be estimators, or arrays of scores of the same classes "
            "with the shape (n_samples,) for two classes or (n_samples, n_classes), but have the "
            f"shapes {shapes['candidate']} and {shapes['baseline']}."
        )
    if not len(known):
        return np.arange(n_classes)  # with no label at all, no name of a class matters
    classes = np.unique(known) if len(known) < 2 else _check_classes(known, n_rows)
    if len(classes) != n_classes:
        raise ValueError(
            f"The scores are for {n_classes} classes, but y has labels of {len(classes)} "
            f"({_listed(classes)}), so that it is not clear which score belongs to which class. "
            "Pass a fitted classifier, which knows its classes, instead of one of the arrays."
        )
    return classes


def _check_marker(markers: AnyArray, position: dict[Any, int]) -> None:
    for marker in markers:
        if marker in position:
            raise ValueError(
                f"{_shown(marker)} marks unlabeled rows in y, but is a class of the classifiers. "
                "Drop unlabeled rows before you fit a supervised classifier; or pass "
                "missing_label=np.nan if it is a class in y too (then NaN, None and pd.NA mark "
                "unlabeled rows)."
            )


def _check_countable(known: KnownLabels, class_prior: Any) -> None:
    is_confidence = isinstance(class_prior, str) and class_prior == "confidence"
    if is_confidence and known.counts is not None and not known.counts.any():
        raise ValueError(
            "class_prior='confidence' counts labeled rows of each class, but y has none. Give "
            "class_prior as an interval, or label some rows."
        )


def _listed(classes: Iterable[Any]) -> str:
    shown = [_shown(c) for c in classes]
    more = f" and {len(shown) - FEW} more" if len(shown) > FEW else ""
    return ", ".join(shown[:FEW]) + more


def _check_regressors(models: Models, response: str, class_prior: Any) -> None:
    for name, model in models.items():
        if not _is_array(model) and not _is_regressor(model):
            raise ValueError(
                f"{_called(name, model)} is no regressor, but the other one is. Pass two "
                "classifiers or two regressors."
            )
    if response != "auto":
        raise ValueError(
            f"response={response!r} is for classifiers. Leave it at 'auto' for regressors: their "
            "predictions are compared."
        )
    if class_prior is not None:
        raise ValueError("class_prior is for classifiers: the targets of regressors have none.")


def _known_targets(
    y: Any, missing_label: Any, weights: Vector | None, bounds: Any
) -> tuple[Labels, Assumptions]:
    """Return the targets of a regression, those that are unknown with their bounds."""
    marker = None if isinstance(missing_label, str) and missing_label == "auto" else missing_label
    unlabeled = find_unlabeled(y, marker)
    n = len(unlabeled)
    target = np.zeros(n) if unlabeled.all() else split_targets(y, marker)[0]
    _raise_if_too_large("y", target)
    low, high = _target_bounds(bounds, n)
    targets = KnownTargets(target, ~unlabeled, low, high, weights)
    wrong = unlabeled & ~((low <= high) & (np.abs(low) < LARGEST) & (np.abs(high) < LARGEST))
    row = _first(wrong | targets.contradicted())
    if row is not None:
        what = "are missing or not finite"
        if low[row] > high[row]:
            what = "cross"
        elif not unlabeled[row]:
            what = "exclude the target in y"
        raise ValueError(
            f"label_bounds {what} in row {row} (from {low[row]:.6g} to {high[row]:.6g}). Without "
            "bounds of all unknown targets, two regressors have no worst case: pass "
            "label_bounds=(low, high) that hold for all rows, or one such pair for each row."
        )
    targets = targets.with_equal_bounds_known()
    return targets.labels(), targets.assumptions()


def _target_bounds(bounds: Any, n: int) -> tuple[Vector, Vector]:
    """Return lower and upper bounds of all targets, NaN where none are given."""
    given = np.full(2, np.nan) if bounds is None else np.asarray(bounds, dtype=np.float64)
    if given.shape not in ((2,), (n, 2)):
        raise ValueError(
            f"label_bounds has shape {given.shape}, but (2,) or ({n}, 2) is needed: lower and "
            "upper bound of the unknown targets."
        )
    low, high = np.broadcast_to(given, (n, 2)).T
    return low, high


# What follows


def _evaluate(
    f: Vector, g: Vector, labels: Labels, response: Response, assumptions: Assumptions
) -> Audit:
    """Return worst and best case for scores f and g, rounded outwards."""
    s = labels.weights
    used = np.ones(len(labels.width), bool) if s is None else s > 0.0
    total = float(len(used)) if s is None else math.fsum(s)
    t = f - g
    difference = loss_difference(t, g, labels, s)
    # Taken as they are, the scores have no error; their difference was rounded once.
    bound = difference.rounding + difference.score_error(EPS * difference.norm_t, 0.0)
    worst, best = difference.worst + bound, difference.best - bound
    free = replace(labels, totals=None)
    labeled = labels.weights_where(~labels.unlabeled)
    known_weight, known = math.fsum(labeled), None
    if known_weight > 0.0:
        known = loss_difference(t, g, free, labeled).worst / known_weight
    return Audit(
        worst_case=_up(worst / total),
        best_case=_down(best / total),
        worst_case_sum=worst,
        best_case_sum=best,
        candidate_loss=_loss_range(loss_difference(-t, f, free, s), total),
        baseline_loss=_loss_range(difference, total),
        known_difference=known,
        n_labeled=int(np.count_nonzero(labeled)),
        n_unlabeled=int(np.count_nonzero(used & labels.unlabeled)),
        total_weight=total,
        response=response,
        assumptions=assumptions,
    )


def _loss_range(difference: LossDifference, total: float) -> tuple[float, float]:
    """Return bounds of the loss of the baseline per row, rounded outwards."""
    low, high = difference.baseline
    sizes = difference.norm_residual**2 + difference.norm_width**2
    bound = 2.0 * SUMMATION * EPS * sizes
    return max(0.0, _down((low - bound) / total)), _up((high + bound) / total)


def _up(value: float) -> float:
    """Return a number that is larger by the rounding errors of a sum, its weight and a division."""
    return value + 4.0 * EPS * abs(value)


def _down(value: float) -> float:
    """Return a number that is smaller by as much."""
    return value - 4.0 * EPS * abs(value)
