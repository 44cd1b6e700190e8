"""What is proved about the projected weights, in numbers and in words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from neverworse._words import card, count, number, printed

Task = Literal["binary", "multiclass", "regression"]


@dataclass(frozen=True)
class Assumptions:
    """What a certificate assumes about the labels of the unlabeled rows."""

    task: Task = "binary"  # labels are one of two classes, one of several, or targets
    n_bounded: int = 0  # unlabeled rows whose label is restricted by bounds of their own
    # (class, low, high): bounds of the share of a class among the unlabeled rows
    class_prior: tuple[tuple[str, float, float], ...] = ()
    # With what probability the shares are within these bounds, if the labeled rows are a random
    # subset; None if they are taken for granted
    prior_level: float | None = None
    target_range: tuple[float, float] | None = None  # of the unknown targets of a regression

    @property
    def labels(self) -> str:
        return "targets" if self.task == "regression" else "labels"

    @property
    def model(self) -> str:
        return "regression" if self.task == "regression" else "classifier"

    def conditions(self, lead: str = "as long as") -> str:
        """Return what the labels have to satisfy, to be put behind a statement about them."""
        found = []
        if self.target_range is not None:
            low, high = self.target_range
            found.append(f"each is between {low:,.6g} and {high:,.6g}")
        if self.n_bounded:
            found.append(f"the {self.n_bounded:,} with bounds are within their bounds")
        if self.class_prior:
            shares = " and ".join(_share(*prior) for prior in self.class_prior)
            found.append(f"{shares} of the unlabeled rows")
        return f" ({lead} {', and '.join(found)})" if found else ""

    def probability(self) -> str:
        """Return with what probability this is so, as a sentence; empty if it is assumed."""
        if self.prior_level is None:
            return ""
        return (
            "If labels are missing completely at random, the condition on the shares is met with "
            f"a probability of at least {self.prior_level:.4g}, and so is what follows from it."
        )


def _share(name: str, low: float, high: float) -> str:
    share = f"{low:.4g}" if low == high else f"between {low:.4g} and {high:.4g}"
    return f"class {name} makes up {share}"


class Claim(ABC):
    """What certificates and audits share. Subclasses are data classes.

    A difference is the loss of a model less that of its baseline: negative is better.
    """

    worst_case: float

    @property
    def holds(self) -> bool:
        """Whether the model is never worse than its baseline on these rows."""
        return self.worst_case <= 0.0

    @property
    def guaranteed_improvement(self) -> float:
        """By how much the loss is lower at least, whatever the true labels."""
        return max(0.0, -self.worst_case)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers and statements as plain Python values, ready for JSON."""
        values = asdict(self)  # type: ignore[call-overload]
        return {
            "holds": self.holds,
            "guaranteed_improvement": self.guaranteed_improvement,
            # JSON knows no infinity
            **{k: None if v == float("inf") else v for k, v in values.items()},
            "summary": self.summary(),
        }

    @abstractmethod
    def summary(self) -> str:
        """Return the statement as a paragraph for people."""

    def __str__(self) -> str:
        return self.summary()


Reason = Literal["", "no unlabeled rows", "inside", "stopped early", "no progress", "rounding"]

EXACT = 1e-6  # a relative duality gap above this is not called exact
MOST_CLASSES = 6  # whose weights are listed in a sentence

_WHY = {
    "no unlabeled rows": "There are no unlabeled rows, so the {model} is the supervised one.",
    "inside": (
        "Nothing could be improved: the supervised solution lies in the constraint set, which "
        "means that some {labels} of the unlabeled rows{conditions} would reproduce it, so no "
        "other {model} is better for all of them. The {model} is the supervised one."
    ),
    "stopped early": (
        "The solver was stopped before it found an improvement, so the {model} is the "
        "supervised one. Raise max_iter or max_time to let it finish."
    ),
    "no progress": (
        "The solver got no further before it found an improvement, so the {model} is the "
        "supervised one. Rescaling the features may help."
    ),
    "rounding": (
        "The possible improvement is smaller than the rounding errors of floating point numbers, "
        "so the {model} is the supervised one."
    ),
}


@dataclass(frozen=True)
class Certificate(Claim):
    """What is proved about a classifier against its supervised baseline, for these rows.

    All losses are sums of squared errors of the scores over the rows (weighted, and penalised if
    there is a penalty). A difference is the loss of the classifier less that of the baseline:
    negative is better. The numbers are evaluated from the weights that were returned, and rounded
    so that the statement is true in spite of floating point.

    Attributes
    ----------
    worst_case, best_case : float
        Upper bound of the largest, lower bound of the smallest difference over all labelings of
        the unlabeled rows.
    guaranteed_improvement : float
        The classifier's loss is lower than the baseline's by at least this, whatever the labels.
    holds : bool
        Whether the classifier is never worse: `worst_case` is at most zero.
    supervised_loss : tuple of float
        Bounds of the loss of the supervised baseline over all labelings, soft ones included. A
        class prior is not taken into account here.
    duality_gap : float
        How far the projection is from optimal, relative to its squared distance.
    converged : bool
        Whether the duality gap is within the tolerance, or within rounding errors.
    stopped_early : bool
        Whether `max_iter` or `max_time` ended the solver before it converged.
    rounding_bound : float
        What `worst_case` and `best_case` contain as allowance for rounding errors.
    n_labeled, n_unlabeled : int
        Rows with and without a label (and with a positive weight).
    n_zero, n_one, n_fractional : int
        How many soft labels are at their lower end (0), at their upper end (1), or between. With
        several classes: `n_one` rows have one class only, `n_fractional` rows share several.
    distance : str
        In which distance the supervised solution was projected.
    rows : {"all", "unlabeled"}
        On which rows the losses are measured.
    penalty : float
        Ridge penalty that the losses include.
    supervised_penalty : float
        Ridge penalty with which the baseline was fitted.
    penalty_share : float
        Which share of the guaranteed improvement is owed to the penalty alone, where `penalty` is
        not that of the baseline (or the losses leave out its labeled rows). The rest is owed to
        the unlabeled rows, and may be negative.
    probability_worst_case, probability_best_case : float or None
        The same bounds as `worst_case` and `best_case` for the squared loss of the probabilities:
        the scores clipped to [0, 1], or for several classes projected onto the simplex, as
        `predict_proba` returns them. Without a penalty. None for a regression.
    reason : str
        Why nothing was improved; empty if something was.
    assumptions : Assumptions
        What is assumed about the labels of the unlabeled rows; "all labelings" are those.
    class_weight : tuple of (class, weight)
        What weights of labeled rows are multiplied by in the losses, for each class; empty if by
        nothing.
    kernel : str
        Which kernel's space the classifier is a function of; empty if it is linear. The penalty is
        then that of the function's squared norm, and the losses are those of the features of the
        training rows as they were computed.

    Examples
    --------
    >>> from neverworse import ProjectedLeastSquaresClassifier
    >>> X, y = [[0.0], [1.0], [3.0], [-2.0]], [0, 1, -1, -1]
    >>> certificate = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y).certificate_
    >>> certificate.holds
    True
    >>> print(f"lower by {certificate.guaranteed_improvement:.2f} at least")
    lower by 7.69 at least
    """

    worst_case: float
    best_case: float
    supervised_loss: tuple[float, float]
    duality_gap: float
    converged: bool
    stopped_early: bool
    rounding_bound: float
    n_labeled: int
    n_unlabeled: int
    n_zero: int
    n_one: int
    n_fractional: int
    distance: str
    rows: Literal["all", "unlabeled"]
    penalty: float
    supervised_penalty: float = 0.0
    penalty_share: float = 0.0
    probability_worst_case: float | None = None
    probability_best_case: float | None = None
    reason: Reason = ""
    assumptions: Assumptions = field(default_factory=Assumptions)
    class_weight: tuple[tuple[str, float], ...] = ()
    kernel: str = ""

    def summary(self) -> str:
        probability = "" if not self.n_unlabeled else self.assumptions.probability()
        parts = (self._claim(), self._owed(), self._probabilities(), probability, self._how())
        return printed(" ".join(part for part in parts if part))

    def _claim(self) -> str:
        assumed = self.assumptions
        labels, model = assumed.labels, assumed.model
        if self.reason:
            conditions = assumed.conditions("where")
            return _WHY[self.reason].format(labels=labels, model=model, conditions=conditions)
        low, high = self.supervised_loss
        context = f" (the supervised loss is between {number(low)} and {number(high)})"
        unlabeled = f"the {count(self.n_unlabeled, 'unlabeled row')}"
        true = f"the true {labels} of {unlabeled}{assumed.conditions()}"
        every = f"all {self.n_labeled + self.n_unlabeled:,} training rows"
        loss = f"{self._loss()} on {unlabeled if self.rows == 'unlabeled' else every}"
        if self.penalty:
            norm = f"||f||² (of functions of {self.kernel})" if self.kernel else "||w||²"
            loss += f" plus the ridge penalty {number(self.penalty)} {norm}"
        if self.holds:
            return (
                f"Never worse: whatever {true}, the {loss} is lower than that of the supervised "
                f"{model} by at least {number(-self.worst_case)} and at most "
                f"{number(-self.best_case)}{context}."
            )
        better = f"up to {number(-self.best_case)} lower" if self.best_case < 0 else "never lower"
        return (
            f"Not guaranteed: depending on {true}, the {loss} may be up to "
            f"{number(self.worst_case)} higher or {better} than that of the supervised "
            f"{model}{context}. Only distance='all' and distance='unlabeled' promise never to "
            "be worse."
        )

    def _loss(self) -> str:
        how = ["summed over the classes"] if self.assumptions.task == "multiclass" else []
        if self.class_weight and self.rows == "all":
            weights = ", ".join(f"{name} {weight:.4g}" for name, weight in self.class_weight)
            many = len(self.class_weight) > MOST_CLASSES
            how.append("labeled rows weighted by class" + ("" if many else f": {weights}"))
        return f"squared loss ({', '.join(how)})" if how else "squared loss"

    def _owed(self) -> str:
        """Say what merely comes from another penalty than that of the baseline."""
        if not self.penalty_share:
            return ""
        own = f"with the penalty {number(self.supervised_penalty)} ||w||²"
        if not self.supervised_penalty:
            own = "without a penalty"
        if self.rows == "unlabeled":
            own += " to labeled rows that are no part of this loss"
        else:
            own += ", which is not that of this loss" if self.penalty else ", which this loss drops"
        percent = round(100.0 * self.penalty_share)
        return (
            f"The supervised {self.assumptions.model} was fitted {own}: {percent} % of the "
            f"guaranteed improvement is owed to the penalty alone, {100 - percent} % to the "
            "unlabeled rows."
        )

    def _probabilities(self) -> str:
        """Say what holds for the probabilities that people use."""
        worst, best = self.probability_worst_case, self.probability_best_case
        if self.reason or worst is None or best is None:
            return ""
        change = f"may be up to {number(worst)} higher or {number(-best)} lower"
        if worst <= 0.0:
            change = f"is lower by at least {number(-worst)} and at most {number(-best)}"
        elif best >= 0.0:
            change = f"is higher by at least {number(best)} and at most {number(worst)}"
        clipped = "projected onto the simplex"
        if self.assumptions.task == "binary":
            clipped = "clipped to [0, 1]"
        return f"For probabilities (scores {clipped}), the squared loss {change}."

    def _how(self) -> str:
        if not self.n_unlabeled:
            return ""
        labels = f"Imputed {self.assumptions.labels}: {self._counts()}."
        if self.converged and self.duality_gap <= EXACT:
            return f"{labels} The projection is exact: relative duality gap {self.duality_gap:.1g}."
        if self.converged:
            return f"{labels} The projection is as exact as floating point numbers allow."
        how = "was stopped early" if self.stopped_early else "stopped making progress"
        return (
            f"{labels} The solver {how}, at a relative duality gap of {self.duality_gap:.1g}; "
            "the statement above still holds."
        )

    def _counts(self) -> str:
        zero, one, between = f"{self.n_zero:,}", f"{self.n_one:,}", f"{self.n_fractional:,}"
        if self.assumptions.task == "multiclass":
            return f"{one} of one class, {between} shared by several"
        if self.assumptions.task == "regression" or self.assumptions.n_bounded:
            return f"{zero} at their lower bound, {one} at their upper bound, {between} between"
        return f"{count(self.n_zero, 'zero')}, {count(self.n_one, 'one')}, {between} fractional"

    def _repr_html_(self) -> str:
        verdict, colour = "Not guaranteed", "#b45309"
        if self.reason:
            verdict, colour = "Same as supervised", "#6b7280"
        elif self.holds:
            verdict, colour = "Never worse", "#15803d"
        numbers = [
            ("guaranteed improvement", number(self.guaranteed_improvement)),
            ("worst case", number(self.worst_case)),
            ("best case", number(self.best_case)),
            ("labeled rows", f"{self.n_labeled:,}"),
            ("unlabeled rows", f"{self.n_unlabeled:,}"),
            ("imputed labels at a bound", f"{self.n_zero + self.n_one:,}"),
            ("fractional imputed labels", f"{self.n_fractional:,}"),
            ("relative duality gap", f"{self.duality_gap:.1g}"),
        ]
        worst, best = self.probability_worst_case, self.probability_best_case
        if worst is not None and best is not None:
            numbers[3:3] = [
                ("worst case, probabilities", number(worst)),
                ("best case, probabilities", number(best)),
            ]
        return card(verdict, colour, self.summary(), numbers)
