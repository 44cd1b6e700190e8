"""What the answers so far decide, in numbers and in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from neverworse._words import count, number, signed

NOT_WORSE, WORSE, UNDECIDED = "candidate is not worse", "candidate is worse", "undecided"
NOTHING = "nothing to decide"


def in_points(difference: float) -> str:
    """Return a difference of error rates in percentage points, however few of many rows differ."""
    return signed(number(100.0 * difference, 3))


@dataclass(frozen=True)
class Standing:
    """What the answers so far decide.

    Attributes
    ----------
    model : str
        The candidate: the model in the model file, by its name.
    verdict : str
        As `SequentialAudit` has it, or "nothing to decide".
    interval : tuple of float
        Bounds of its error rate less that of the supervised model, on the unlabeled rows.
    level : float
        Probability with which the verdict and the interval hold.
    n_unlabeled, n_differing : int
        Unlabeled rows, and those of them that get another class.
    n_decide : int
        Answers to rows that were drawn to decide.
    n_waiting : int
        Of these, those that count as soon as rows that were drawn before have an answer.
    n_train : int
        Answers to rows that were suggested for training alone.
    expected : int
        How many more labels a verdict is likely to take.
    """

    model: str
    verdict: str
    interval: tuple[float, float]
    level: float
    n_unlabeled: int
    n_differing: int
    n_decide: int
    n_waiting: int
    n_train: int
    expected: int

    @property
    def is_open(self) -> bool:
        """Whether more labels are needed to decide."""
        return self.verdict == UNDECIDED

    @property
    def decision(self) -> str:
        """What to do, in a sentence."""
        if self.model == "supervised":
            return "Nothing to decide: model.skops holds the supervised model itself."
        return {
            NOTHING: f"Nothing to decide: the {self.model} model gives all {self._rows} the class "
            "that the supervised model gives them.",
            UNDECIDED: f"Undecided: use the {self.model} model or the supervised one?",
            NOT_WORSE: f"Decided: use the {self.model} model. It is what model.skops holds.",
            WORSE: "Decided: use the supervised model. Run neverworse fit again, with --model "
            "supervised.",
        }[self.verdict]

    @property
    def _rows(self) -> str:
        return count(self.n_unlabeled, "unlabeled row")

    def reasons(self) -> Iterator[str]:
        """Yield what the decision rests on, and what is missing."""
        if self.n_differing:
            low, high = map(in_points, self.interval)
            sure = f"{100.0 * self.level:g} %"
            if self.verdict == NOT_WORSE:
                yield f"It makes no more errors on the {self._rows}, with {sure} confidence."
            elif self.verdict == WORSE:
                yield (
                    f"The {self.model} model makes more errors on the {self._rows}, with {sure} "
                    "confidence."
                )
            yield (
                f"The error rate of the {self.model} model less that of the supervised one is "
                f"between {low} and {high} percentage points ({sure} confidence interval, whenever "
                "one stops)."
            )
            yield (
                f"The two give different classes to {count(self.n_differing, 'row')}, of which "
                f"{self.n_decide:,} have been labeled."
            )
        if self.n_waiting:
            yield (
                f"{count(self.n_waiting, 'answer')} will count as soon as rows that were drawn "
                "before have one: otherwise, easy rows would decide."
            )
        if self.is_open:
            yield f"About {count(self.expected, 'more label')} will probably decide."

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers and the words, as JSON has them."""
        names = ("model", "verdict", "level", "n_unlabeled", "n_differing", "n_decide", "n_waiting")
        return {
            **{name: getattr(self, name) for name in names},
            "n_train": self.n_train,
            "interval": list(self.interval),
            "expected_labels": self.expected,
            "words": [self.decision, *self.reasons()],
        }
