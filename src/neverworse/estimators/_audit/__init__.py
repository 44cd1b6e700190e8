"""Audit of any two fitted models: what is certain about their losses, whatever the labels."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from neverworse._typing import Vector
from neverworse._words import count, documented_like, number, printed
from neverworse.estimators._audit._inputs import (
    Models,
    Response,
    chosen_response,
    count_rows,
    labels_of_classes,
    scores_of,
)
from neverworse.estimators._class_prior import with_class_prior
from neverworse.estimators._input import checked_weights
from neverworse.estimators._projected import ProjectedLeastSquaresClassifier
from neverworse.projection import EPS, Assumptions, Claim, Labels, loss_difference

__all__ = ["Audit", "audit"]

_LOSS = {
    "predict_proba": "Brier score",
    "score": "mean squared loss of the scores",
    "error": "error rate",
}


@dataclass(frozen=True)
class Audit(Claim):
    """Worst and best case of a candidate against a baseline, over all labelings of some rows.

    A loss is the mean squared error over the rows (weighted, if there are weights), summed over
    the classes if there are more than two: the Brier score of probabilities, the error rate of
    predicted classes. A difference is the loss of the candidate less that of the baseline: negative
    is better. All numbers are rounded outwards, so that they hold in spite of rounding errors.

    Attributes
    ----------
    worst_case, best_case : float
        Upper bound of the largest, lower bound of the smallest difference over all labelings of
        the unlabeled rows, per row.
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
        probability = self.assumptions.probability() if self.n_unlabeled else ""
        limits = "This is about these rows, not about others"
        if self.response != "error":
            limits += ", and about squared losses, not about accuracy"
        parts = (self._claim(), self._known(), probability, f"{limits}.")
        return printed(" ".join(part for part in parts if part))

    @property
    def _is_same(self) -> bool:
        """Whether both have the same loss, or one that only rounding errors tell apart."""
        known = not self.n_unlabeled or self.worst_case == self.best_case
        return known and self.best_case <= 0.0 <= self.worst_case

    def _claim(self) -> str:
        loss, verdict = self._loss(), self._verdict()
        these = f"these {count(self.n_labeled + self.n_unlabeled, 'row')}"
        if self._is_same:
            return f"{verdict}: on {these}, candidate and baseline have the same {loss}."
        labels, (low, high) = self.assumptions.labels, map(number, self.baseline_loss)
        if self.n_unlabeled:
            rows = count(self.n_unlabeled, "unlabeled row")
            truth = f"whatever the true {labels} of the {rows}{self.assumptions.conditions()},"
            change = f"between {_change(self.best_case)} and {_change(self.worst_case)}"
            size = f"between {low} and {high}"
        else:
            truth = f"all {labels} are known, and"
            change, size = _change((self.worst_case + self.best_case) / 2.0), low
        return (
            f"{verdict}: {truth} the {loss} of the candidate on {these} is {change} than that of "
            f"the baseline ({size})."
        )

    def _loss(self) -> str:
        several = self.assumptions.task == "multiclass" and self.response != "error"
        return _LOSS[self.response] + (" (summed over the classes)" if several else "")

    def _known(self) -> str:
        change = self.known_difference
        if change is None or not self.n_unlabeled or self._is_same:
            return ""
        compared = _change(change) if change else "the same"
        return f"On the {count(self.n_labeled, 'labeled row')} alone, it is {compared}."

    def _verdict(self) -> str:
        if self._is_same:
            return "No difference"
        if self.holds:
            return "Never worse" if self.n_unlabeled else "Better"
        if self.best_case >= 0.0:
            return "Never better" if self.n_unlabeled else "Worse"
        return "Not guaranteed"


def _change(difference: float) -> str:
    return f"{number(abs(difference))} {'lower' if difference < 0.0 else 'higher'}"


@documented_like(ProjectedLeastSquaresClassifier)
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

    Parameters
    ----------
    candidate, baseline : fitted estimators, or array-likes
        Classifiers, pipelines or searches of them; or arrays of scores on targets coded 0 and 1: of
        shape (n_samples,) for the second of two classes, or (n_samples, n_classes).
    X : array-like, sparse matrix, data frame or anything that the two accept
        Passed on as it is. It may be None if both are arrays.
    y : array-like of shape (n_samples,)
        Labels, and a marker for rows without one. Classes that the classifiers know may be
        missing, and there may be no label at all.
    response : {"auto", "predict_proba", "score", "error"}, default="auto"
        What is compared.

        - "predict_proba": probabilities, by the Brier score: of the second of two classes, or
          summed over several.
        - "score": scores on targets coded 0 and 1, as the classifiers of neverworse have them
          (also in a pipeline or a search), by the loss of their certificate.
        - "error": predicted classes, by the error rate.
        - "auto": "predict_proba" if every estimator has it; "score" otherwise, or if both are
          arrays.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weight of each row in the losses. A row of weight zero is ignored.
    label_bounds : array-like, optional
        Of shape (n_samples, 2) or (n_samples, n_classes, 2), as in the `fit` of
        `ProjectedLeastSquaresClassifier`.
    {class_prior, prior_level, missing_label}

    Returns
    -------
    audit : Audit
        Worst and best case, in numbers and in words.

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
    chosen = chosen_response(models, response)
    n_rows = count_rows(models, X, y)
    weights = None if sample_weight is None else checked_weights(sample_weight, n_rows)
    used = np.ones(n_rows, bool) if weights is None else weights > 0.0
    if not used.any():
        raise ValueError("sample_weight is zero for all rows: there is nothing to audit.")
    known = labels_of_classes(models, y, missing_label, weights, label_bounds)
    if class_prior is not None:
        known = with_class_prior(known, class_prior, prior_level)
    f, g = (
        scores_of(name, model, X, chosen, known.classes, used) for name, model in models.items()
    )
    return _evaluate(f, g, known.labels, chosen, known.assumptions)


def _evaluate(
    f: Vector, g: Vector, labels: Labels, response: Response, assumptions: Assumptions
) -> Audit:
    """Return worst and best case for scores f and g, rounded outwards."""
    f, g = np.atleast_2d(f), np.atleast_2d(g)
    s, t = labels.weights, f - g
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
    known_weight, known = math.fsum(labeled), None
    if known_weight > 0.0:
        known = share * loss_difference(t, g, free, labeled).worst / known_weight
    return Audit(
        worst_case=worst_per_row,
        best_case=best_per_row,
        worst_case_sum=worst,
        best_case_sum=best,
        candidate_loss=_per_row(of_candidate, total / share),
        baseline_loss=_per_row(difference.baseline_loss(), total / share),
        known_difference=known,
        n_labeled=int(np.count_nonzero(labeled)),
        n_unlabeled=int(np.count_nonzero(labels.weights_where(labels.unlabeled))),
        total_weight=total,
        response=response,
        assumptions=assumptions,
    )


def _per_row(bounds: tuple[float, float], total: float) -> tuple[float, float]:
    """Divide bounds, rounded outwards for the errors of a sum, its weight and the division."""
    low, high = bounds[0] / total, bounds[1] / total
    return low - 4.0 * EPS * abs(low), high + 4.0 * EPS * abs(high)
