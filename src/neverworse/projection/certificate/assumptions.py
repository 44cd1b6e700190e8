"""What is assumed about the unknown labels, beside that each belongs to a class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Task = Literal["binary", "multiclass", "regression"]


@dataclass(frozen=True)
class Assumptions:
    """What a certificate assumes about the labels of the unlabeled rows.

    Attributes
    ----------
    task : {"binary", "multiclass", "regression"}
        Labels are one of two classes, one of several, or targets.
    n_bounded : int
        Unlabeled rows whose label is restricted by bounds of their own.
    class_prior : tuple of (class, low, high)
        Bounds of the share of a class among the unlabeled rows.
    prior_level : float or None
        With what probability the shares are within these bounds, if the labeled rows are a random
        subset; None if they are taken for granted.
    target_range : tuple of float or None
        Range of the unknown targets of a regression.
    """

    task: Task = "binary"
    n_bounded: int = 0
    class_prior: tuple[tuple[str, float, float], ...] = ()
    prior_level: float | None = None
    target_range: tuple[float, float] | None = None

    @property
    def labels(self) -> str:
        """What an unknown label is called."""
        return "targets" if self.task == "regression" else "labels"

    @property
    def model(self) -> str:
        """What is fitted."""
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
    if low == high:
        return f"class {name} makes up {low:.4g}"
    return f"class {name} makes up between {low:.4g} and {high:.4g}"
