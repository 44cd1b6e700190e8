"""What an audit found, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from neverworse._words import card, count, number
from neverworse.projection import Assumptions, Claim

Response = Literal["predict_proba", "score", "error", "predict"]

_LOSS = {
    "predict_proba": "Brier score",
    "score": "mean squared loss of the scores",
    "error": "error rate",
    "predict": "mean squared error",
}
_MEANS = {
    "predict_proba": (
        "The Brier score is the mean squared loss of the probabilities: this is about these rows, "
        "not about others, and not about accuracy."
    ),
    "score": (
        "This is about the squared loss of scores on targets coded 0 and 1, on these rows: not "
        "about others, and not about accuracy."
    ),
    "error": "This is about the errors on these rows, not on others.",
    "predict": "This is about the squared errors on these rows, not on others.",
}


@dataclass(frozen=True)
class Audit(Claim):
    """Worst and best case of a candidate against a baseline, over all labelings of some rows.

    A loss is the mean squared error over the rows (weighted, if there are weights), summed over
    the classes if there are more than two. For probabilities that is the Brier score, for predicted
    classes the error rate (half of the sum, if there are more than two). A difference
    is the loss of the candidate less that of the baseline: negative is better. The numbers are
    about the probabilities or scores that the two return, and are rounded so that they are true in
    spite of floating point.

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
        Bounds of the loss of each over all labelings, per row. They regard bounds of labels, but
        no class prior.
    known_difference : float or None
        Difference on the labeled rows alone, per labeled row; None if there are none.
    n_labeled, n_unlabeled : int
        Rows with and without a label (and with a positive weight).
    total_weight : float
        Sum of the weights; the number of rows if there are none.
    response : {"predict_proba", "score", "error", "predict"}
        What was compared: probabilities, scores on targets coded 0 and 1, predicted classes, or
        predictions of a regression.
    assumptions : Assumptions
        What is assumed about the labels of the unlabeled rows; "all labelings" are those.
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
        """Return the audit as a paragraph for people, with what it does not mean."""
        parts = [self._claim(), self._known(), "", _MEANS[self.response]]
        if self.n_unlabeled:
            parts[2] = self.assumptions.probability()
        return " ".join(part for part in parts if part)

    @property
    def _is_same(self) -> bool:
        """Whether both have the same loss, or one that only rounding errors tell apart."""
        known = not self.n_unlabeled or self.worst_case == self.best_case
        return known and self.best_case <= 0.0 <= self.worst_case

    def _claim(self) -> str:
        n, loss = self.n_labeled + self.n_unlabeled, self._loss()
        these = f"these {count(n, 'row')}"
        if self._is_same:
            return f"No difference: on {these}, candidate and baseline have the same {loss}."
        subject = f"the {loss} of the candidate on {these}"
        low, high = self.baseline_loss
        context = f" (between {number(low)} and {number(high)})"
        if not self.n_unlabeled:
            middle = (self.worst_case + self.best_case) / 2.0
            return (
                f"{self._verdict()[0]}: all {self.assumptions.labels} are known, and {subject} is "
                f"{_change(middle)} than that of the baseline ({number(low)})."
            )
        rows = count(self.n_unlabeled, "unlabeled row")
        of_rows = f"the true {self.assumptions.labels} of the {rows}"
        of_rows += self.assumptions.conditions()
        if self.holds or self.best_case >= 0.0:
            # Both ends are on the same side of zero, and the nearer one is what is certain.
            near, far = sorted((abs(self.worst_case), abs(self.best_case)))
            direction = "lower" if self.holds else "higher"
            return (
                f"{self._verdict()[0]}: whatever {of_rows}, {subject} is {direction} than that of "
                f"the baseline{context} by at least {number(near)} and at most {number(far)}."
            )
        return (
            f"{self._verdict()[0]}: depending on {of_rows}, {subject} may be up to "
            f"{_change(self.worst_case)} or up to {_change(self.best_case)} than that of the "
            f"baseline{context}."
        )

    def _loss(self) -> str:
        several = self.assumptions.task == "multiclass" and self.response != "error"
        return _LOSS[self.response] + (" (summed over the classes)" if several else "")

    def _known(self) -> str:
        if self.known_difference is None or not self.n_unlabeled or self._is_same:
            return ""
        rows = f"On the {count(self.n_labeled, 'labeled row')} alone, "
        change = self.known_difference
        return rows + (f"it is {_change(change)}." if change else "it is the same.")

    def _verdict(self) -> tuple[str, str]:
        """Return the audit in two words, and the colour of a page that shows it."""
        if self._is_same:
            return "No difference", "#6b7280"
        if self.holds:
            return ("Never worse" if self.n_unlabeled else "Better"), "#15803d"
        if self.best_case >= 0.0:
            return ("Never better" if self.n_unlabeled else "Worse"), "#b91c1c"
        return "Not guaranteed", "#b45309"

    def _repr_html_(self) -> str:
        known = self.known_difference
        numbers = [
            ("guaranteed improvement per row", number(self.guaranteed_improvement)),
            ("worst case per row", number(self.worst_case)),
            ("best case per row", number(self.best_case)),
            ("worst case, sum", number(self.worst_case_sum)),
            ("best case, sum", number(self.best_case_sum)),
            ("difference per labeled row", "none" if known is None else number(known)),
            ("labeled rows", f"{self.n_labeled:,}"),
            ("unlabeled rows", f"{self.n_unlabeled:,}"),
        ]
        return card(*self._verdict(), self.summary(), numbers)


def _change(difference: float) -> str:
    return f"{number(abs(difference))} {'lower' if difference < 0.0 else 'higher'}"
