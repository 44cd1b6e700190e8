"""A statement about a loss that holds for every labeling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import Any


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
