"""What follows from a comparison of methods, in sentences for people."""

from __future__ import annotations

from collections.abc import Sequence

from neverworse.study._study import Estimate, MethodFacts

SMALLEST_LOSS = 5e-5  # per row; less is not shown


def points(share: float) -> str:
    """Return a share in percentage points, as a number."""
    return f"{100.0 * share:.1f}"


def margin(estimate: Estimate) -> float:
    """Return half the width of an interval."""
    return 0.5 * (estimate.high - estimate.low)


def words_of(methods: Sequence[MethodFacts], rows: str) -> str:
    """Return what follows, honestly: errors, quadratic loss, and how little may be known.

    Parameters
    ----------
    methods : sequence of MethodFacts
        The one first that all others are compared with.
    rows : str
        The labeled rows in words.
    """
    base, *others = methods
    sentences = [_errors(base, others)]
    sentences += [
        _loss(each.method, each.loss_difference, base.method)
        for each in others
        if each.guarantee != "none" and each.loss_difference is not None
    ]
    differences = [each.error_difference for each in others if each.error_difference is not None]
    widest = max(map(margin, differences), default=0.0)
    if widest:
        sentences.append(
            f"With {rows}, differences between error rates are known to within about "
            f"±{points(widest)} percentage points."
        )
    return " ".join(sentences)


def _errors(base: MethodFacts, others: Sequence[MethodFacts]) -> str:
    differences = [(each.method, each.error_difference) for each in others]
    fewer = [_named(name, d) for name, d in differences if d is not None and d.sign < 0]
    more = [_named(name, d) for name, d in differences if d is not None and d.sign > 0]
    if not fewer and not more:
        return (
            f"No method's error on held-out rows differs from that of the {base.method} one by "
            "more than chance would explain."
        )
    parts = [
        f"{kind} errors: {listed(names)}"
        for kind, names in (("fewer", fewer), ("more", more))
        if names
    ]
    return (
        f"On held-out rows, these differ from the {base.method} one by more than chance would "
        f"explain; {'; '.join(parts)}."
    )


def _named(method: str, difference: Estimate) -> str:
    return f"{method} ({100.0 * difference.value:+.1f} percentage points)"


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _loss(method: str, difference: Estimate, base: str) -> str:
    start = f"In squared loss, which the guarantee is about, the {method} one is "
    if max(abs(difference.value), margin(difference)) < SMALLEST_LOSS:
        return f"{start}the same as the {base} one."
    way = "lower" if difference.value < 0.0 else "higher"
    change = f"{abs(difference.value):.4f} (±{margin(difference):.4f}) per held-out row"
    if not difference.sign:
        return f"{start}not clearly different: {way} by {change}."
    return f"{start}{way} than the {base} one by {change}."
