"""What follows from a comparison of methods, in sentences for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from neverworse._typing import Indices
from neverworse.projection.words import count
from neverworse.study._study import Estimate, MethodFacts

USUAL_FOLDS = 5
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


def fold_words(classes: Sequence[str], codes: Indices, n_folds: int) -> Iterator[str]:
    """Yield why there are fewer folds than usual, if there are."""
    if n_folds < USUAL_FOLDS:
        counts = np.bincount(codes, minlength=len(classes))
        rarest = int(counts.argmin())
        yield (
            f"There are {count(counts[rarest], 'label')} of {classes[rarest]!r}, so {n_folds} "
            f"folds instead of {USUAL_FOLDS}."
        )


def collapse_words(collapsed: Mapping[str, Mapping[str, int]], n_fits: int) -> Iterator[str]:
    """Yield which methods have collapsed to one class in most of their fits."""
    for method, counts in collapsed.items():
        name, n_collapsed = max(counts.items(), key=lambda pair: pair[1])
        if 2 * n_collapsed > n_fits:
            yield (
                f"{method} has collapsed: in {n_collapsed} of {n_fits} fits it gives {name!r} to "
                "nearly all unlabeled rows."
            )


def failure_words(failures: Mapping[str, str], n_others: int) -> Iterator[str]:
    """Yield which methods failed, and why."""
    if failures and len(failures) == n_others:
        yield "None of the other methods could be fitted."
    for method, reason in failures.items():
        yield f"{method} failed: {reason}"


def reason_of(error: Exception) -> str:
    """Return why something failed, as a sentence."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"{lines[0].rstrip('.')}."


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
