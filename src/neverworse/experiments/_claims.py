"""What the text of the paper says about its learning curves, checked by what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from neverworse.experiments._statistics import standard_error

Verdict = Literal["agrees", "differs", "undecided"]

SURE = 3.0  # standard errors of a paired difference, for an effect to be there
BAND = 2.0  # standard errors of the ribbons in the figure
RESOLUTION = 0.01  # an effect of this size would be seen, where none is said to be
# Losses differ little if by less than this share of what any of them gains on the supervised one.
LITTLE = 0.25
NAMES = {"error": "error", "test_loss": "loss"}


@dataclass(frozen=True)
class Claim:
    """A claim, the numbers that it is checked by, and the outcome."""

    dataset: str
    text: str
    evidence: str
    verdict: Verdict


@dataclass(frozen=True)
class Change:
    """A difference of two means over the same repeats, a later or other one less the first.

    Attributes
    ----------
    before, after : float
        Means.
    standard_error : float
        Of their difference, repeat by repeat; NaN for a single repeat.
    band_before, band_after : float
        Half the widths of the ribbons about the means.
    """

    before: float
    after: float
    standard_error: float
    band_before: float
    band_after: float

    @classmethod
    def of(cls, before: pd.Series, after: pd.Series) -> Change:
        """Compare values with the same repeats as their index."""
        both = pd.DataFrame({"before": before, "after": after}).dropna()
        return cls(
            both["before"].mean(),
            both["after"].mean(),
            standard_error((both["after"] - both["before"]).to_numpy()),
            BAND * standard_error(both["before"].to_numpy()),
            BAND * standard_error(both["after"].to_numpy()),
        )

    @property
    def difference(self) -> float:
        """How much higher the second is."""
        return self.after - self.before

    def is_effect(self, sign: int) -> Verdict:
        """Judge the claim that the difference has a sign."""
        if not np.isfinite(self.standard_error):
            return "undecided"
        distance = sign * self.difference
        if distance > SURE * self.standard_error:
            return "agrees"
        return "differs" if distance < -SURE * self.standard_error else "undecided"

    def is_none(self, sign: int) -> Verdict:
        """Judge the claim that there is no difference of that sign to be seen in the figure."""
        if not np.isfinite(self.standard_error):
            return "undecided"
        seen = sign * self.difference > self.band_before + self.band_after
        if seen and self.is_effect(sign) == "agrees":
            return "differs"
        would_be_seen = SURE * self.standard_error <= RESOLUTION
        return "agrees" if would_be_seen or self.is_effect(-sign) == "agrees" else "undecided"

    def __str__(self) -> str:
        said = f"{self.before:.4f} → {self.after:.4f}, by {self.difference:+.4f}"
        if np.isfinite(self.standard_error):
            said += f" ± {self.standard_error:.4f}"
        return said.replace("-", "\N{MINUS SIGN}")


class Curves:
    """The learning curves of one data set, repeat by repeat."""

    def __init__(self, measurements: pd.DataFrame) -> None:
        self._measured = measurements
        self.sizes = sorted(int(size) for size in measurements["n_unlabeled"].unique())

    def values(self, method: str, measure: str, size: int) -> pd.Series:
        """Return what was measured in each repeat."""
        chosen = (self._measured["method"] == method) & (self._measured["n_unlabeled"] == size)
        return self._measured[chosen].set_index("repeat")[measure]

    def turn(self, method: str, measure: str) -> int:
        """Return the size before the largest at which the mean is lowest.

        It is chosen by what it is used to judge, which makes a rise look larger than it is. Three
        standard errors leave room for a choice among ten sizes.
        """
        earlier = self.sizes[:-1] or self.sizes
        return min(earlier, key=lambda size: float(self.values(method, measure, size).mean()))

    def since(self, size: int, method: str, measure: str) -> Change:
        """Compare the largest size with another one."""
        return Change.of(
            self.values(method, measure, size), self.values(method, measure, self.sizes[-1])
        )

    def against(self, reference: str, method: str, measure: str) -> Change:
        """Compare a method with another one, at the largest size."""
        last = self.sizes[-1]
        return Change.of(self.values(reference, measure, last), self.values(method, measure, last))


def check(measurements: pd.DataFrame) -> list[Claim]:
    """Check all claims about data sets that were measured.

    Parameters
    ----------
    measurements : DataFrame
        Of the learning curves.
    """
    claims = []
    for dataset, checks in CLAIMS.items():
        chosen = measurements[measurements["dataset"] == dataset]
        if len(chosen):
            claims += [Claim(dataset, *found) for found in checks(Curves(chosen))]
    return claims


Found = Iterator[tuple[str, str, Verdict]]


def _ionosphere(curves: Curves) -> Found:
    turn = curves.turn("Self-Learning", "error")
    rise = curves.since(turn, "Self-Learning", "error")
    yield (
        "The error of Self-Learning rises again for many unlabeled rows.",
        f"{_sizes(turn, curves)}: {rise}",
        rise.is_effect(+1),
    )
    fall = curves.since(turn, "Self-Learning", "test_loss")
    yield (
        "Meanwhile its loss keeps falling.",
        f"{_sizes(turn, curves)}: {fall}",
        fall.is_effect(-1),
    )
    for method in ("ICLS", "Projection"):
        start = curves.turn(method, "error")
        change = curves.since(start, method, "error")
        yield (
            f"The error of {method} does not rise.",
            f"{_sizes(start, curves)}: {change}",
            change.is_none(+1),
        )
    yield _little_difference(curves, ("Self-Learning", "ICLS", "Projection"))


def _little_difference(curves: Curves, methods: Sequence[str]) -> tuple[str, str, Verdict]:
    """Judge whether losses differ little, compared with what they gain on the supervised one."""
    gains = {m: -curves.against("Supervised", m, "test_loss").difference for m in methods}
    most, least = max(gains, key=gains.__getitem__), min(gains, key=gains.__getitem__)
    spread = curves.against(most, least, "test_loss")
    margin, little = SURE * spread.standard_error, LITTLE * gains[most]
    verdict: Verdict = "undecided"
    if spread.difference + margin <= little:
        verdict = "agrees"
    elif spread.difference - margin > little:
        verdict = "differs"
    said = ", ".join(f"{gain:.4f} ({method})" for method, gain in gains.items())
    return (
        "In the loss there is little difference between the three.",
        f"{_at_most(curves)}, lower than Supervised by {said}",
        verdict,
    )


def _spect(curves: Curves) -> Found:
    for method in ("Self-Learning", "Projection"):
        change = curves.against("Supervised", method, "error")
        yield (
            f"{method} does not improve the error of Supervised.",
            f"{_at_most(curves)}: {change}",
            change.is_none(-1),
        )
    change = curves.against("Supervised", "ICLS", "error")
    yield (
        "ICLS improves it.",
        f"{_at_most(curves)}: {change}",
        change.is_effect(-1),
    )


def _usps(curves: Curves) -> Found:
    for measure, name in NAMES.items():
        for method in ("Self-Learning", "ICLS", "Projection"):
            change = curves.against("Supervised", method, measure)
            yield (
                f"{method} improves the {name} of Supervised.",
                f"{_at_most(curves)}: {change}",
                change.is_effect(-1),
            )
        for method in ("ICLS", "Projection"):
            change = curves.against(method, "Self-Learning", measure)
            yield (
                f"Self-Learning improves the {name} more than {method}.",
                f"{_at_most(curves)}, {method} → Self-Learning: {change}",
                change.is_effect(-1),
            )


def _sizes(size: int, curves: Curves) -> str:
    return f"{size} → {curves.sizes[-1]} unlabeled rows"


def _at_most(curves: Curves) -> str:
    return f"{curves.sizes[-1]} unlabeled rows"


CLAIMS: dict[str, Callable[[Curves], Found]] = {
    "Ionosphere": _ionosphere,
    "SPECT": _spect,
    "USPS": _usps,
}
