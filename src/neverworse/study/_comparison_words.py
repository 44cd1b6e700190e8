"""What follows from a comparison of methods, in sentences for people."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from neverworse.study._resampling import Mean

LEVEL = 0.05
SMALLEST_LOSS = 5e-5  # per row; less is not shown


@dataclass(frozen=True)
class Result:
    """Means over the folds for a method, and of its difference from the first one."""

    method: str
    error: Mean
    loss: Mean | None
    difference: Mean  # of errors
    loss_difference: Mean | None
    p_value: float | None  # of the difference of errors, corrected for the number of methods


def points(share: float) -> str:
    """Return a share in percentage points, as a number."""
    return f"{100.0 * share:.1f}"


def words_of(results: Sequence[Result], guaranteed: AbstractSet[str], rows: str) -> str:
    """Return what follows, honestly: errors, quadratic loss, and how little may be known.

    Parameters
    ----------
    results : sequence of Result
        The method first that all others are compared with.
    guaranteed : set of str
        Methods with a guarantee about quadratic loss.
    rows : str
        The labeled rows in words.
    """
    base, *others = results
    sentences = [_errors(base, others)]
    sentences += [
        _loss(result.method, result.loss_difference, base.method)
        for result in others
        if result.method in guaranteed and result.loss_difference is not None
    ]
    if base.error.value == base.error.margin == 0.0:
        return " ".join([*sentences, f"With {rows}, no error was made: too few to tell how many."])
    widest = max((result.difference.margin for result in others), default=0.0)
    known = f"With {rows}, error rates are known to within about ±{points(base.error.margin)}"
    if widest:
        known += f" percentage points, and differences between methods to about ±{points(widest)}."
    else:
        known += " percentage points."
    return " ".join([*sentences, known])


def _errors(base: Result, others: Sequence[Result]) -> str:
    clear = [r for r in others if r.p_value is not None and r.p_value < LEVEL]
    fewer = [_named(r) for r in clear if r.difference.value < 0.0]
    more = [_named(r) for r in clear if r.difference.value > 0.0]
    if not clear:
        return (
            f"No method's error on held-out rows differs from that of the {base.method} one by "
            "more than chance would explain."
        )
    parts = [
        f"{kind} errors: {_listed(names)}"
        for kind, names in (("fewer", fewer), ("more", more))
        if names
    ]
    return (
        f"On held-out rows, these differ from the {base.method} one by more than chance would "
        f"explain; {'; '.join(parts)}."
    )


def _named(result: Result) -> str:
    sign = "-" if result.difference.value < 0.0 else "+"
    return f"{result.method} ({sign}{points(abs(result.difference.value))} percentage points)"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _loss(method: str, difference: Mean, base: str) -> str:
    start = f"In quadratic loss, which the guarantee is about, the {method} one is "
    if max(abs(difference.value), difference.margin) < SMALLEST_LOSS:
        return f"{start}the same as the {base} one."
    way = "lower" if difference.value < 0.0 else "higher"
    change = f"{abs(difference.value):.4f} (±{difference.margin:.4f}) per held-out row"
    if not difference.sign:
        return f"{start}not clearly different: {way} by {change}."
    return f"{start}{way} than the {base} one by {change}."
