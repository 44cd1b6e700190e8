"""``report.html``: a study of a table as one page that needs nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from neverworse._files import write_whole
from neverworse._words import MISSING, count, decimal, grouped, number, percent
from neverworse.pages import Markup, drawing_style, estimate, exact, name, render
from neverworse.study._study import Coefficient, Estimate, Numbers, Study, VerdictKind
from neverworse.study.report import _charts

# In the order of a reader's questions: how to use the model, then how to defend it. Each has a
# template of its name.
SECTIONS = {
    "numbers": "How good it is",
    "model": "The model in the file",
    "asked": "What was asked and answered",
    "comparison": "Other methods",
    "curves": "Is more data worth it?",
    "importance": "Most important columns",
    "coefficients": "Weights, the largest first",
    "changes": "Predictions that the projection changed",
    "notes": "Notes",
    "certificate": "What is proved",
    "meaning": "What “never worse” means",
    "scores": "Scores by class",
    "data": "Data",
    "reproduction": "How to reproduce this",
}
# Text and colour of the badge: green means that the projected model should be used.
BADGES: dict[VerdictKind, tuple[str, str]] = {
    "projected": ("Never worse", "good"),
    "nothing to gain": ("Same as supervised", "neutral"),
    "supervised": ("Worse on held-out rows", "bad"),
    "stacked": ("Likely better, not certain", "neutral"),
    "another method": ("Another method is better", "neutral"),
    "undecided": ("Not guaranteed", "bad"),
}
UNPROVED = ("Better on held-out rows, not guaranteed", "neutral")
Row = list[Markup | str]  # of a table, as cells of HTML
LARGEST_MATRIX = 12  # classes; more do not fit on a page
MOST_SCORES = 12  # classes whose scores are drawn
MOST_WEIGHTS = 20  # weights that are drawn
SAME = Estimate(0.0, 0.0, 0.0)


def page(study: Study, asked: Any = None) -> str:
    """Return a study as one HTML page: no network, light and dark, fit for print.

    `asked` has the labels since the fit, as `neverworse.study.asked_of` finds them.
    """
    present = {
        "numbers": study.comparison is not None,
        "asked": asked is not None and (asked.decide or asked.train),
        "comparison": study.comparison is not None,
        "curves": study.unlabeled_curve is not None or study.labeled_curve is not None,
        "importance": study.importance is not None,
        "coefficients": study.coefficients,
        "changes": study.changes.n_changed,
        "notes": study.notes,
    }
    standing = "never worse" if study.certificate["holds"] else "not guaranteed"
    standing = "same" if study.certificate["reason"] else standing
    is_unproved = study.verdict.kind == "projected" and standing != "never worse"
    weights = sorted(study.coefficients, key=_effect, reverse=True)
    positive, several = study.data.positive, len(study.data.classes) > 2
    of_positive = [each for each in weights if positive in (None, each.class_name)]
    with drawing_style():
        return render(
            "neverworse.study.report",
            "report.html",
            study=study,
            asked=asked,
            sections={key: title for key, title in SECTIONS.items() if present.get(key, True)},
            badge=UNPROVED if is_unproved else BADGES[study.verdict.kind],
            standing=standing,
            to_look_at=grouped({each.name: each.look for each in study.data.columns}),
            weights=weights,
            n_weights=len(of_positive),
            drawn_weights=[each for each in of_positive[:MOST_WEIGHTS] if _effect(each) > 0],
            moved=any(each.supervised != each.projected for each in weights),
            several=several,
            clipped="projected onto the simplex" if several else "clipped to [0, 1]",
            charts=_charts,
            rows=sys.modules[__name__],
        )


def write_report(study: Study, path: str | Path, asked: Any = None) -> None:
    """Write `page` to a file, whole or not at all; an existing one is replaced."""
    # Half a surrogate pair, which a column name may contain, is no character.
    content = page(study, asked).encode("utf-8", errors="replace")
    write_whole(Path(path), lambda file: file.write(content))


def _effect(each: Coefficient) -> float:
    return max(abs(each.projected_scaled), abs(each.supervised_scaled))


def measures(study: Study, numbers: Numbers) -> Iterator[Row]:
    """Yield how well a model predicts held-out rows, compared with always predicting one class."""
    assert study.comparison is not None
    positive = study.data.positive
    always = study.comparison.baseline.measures(positive)
    for (what, of, found), (*_, other) in zip(numbers.measures(positive), always, strict=True):
        title = Markup.escape(what[0].upper() + what[1:])
        title += Markup(" of ") + name(of) if of else ""
        always_found = MISSING if other is None else exact(other.value, decimal(other.value))
        yield [title, estimate(found), always_found]


def confusion(numbers: Numbers) -> Iterator[Row]:
    """Yield held-out rows by their class and by the predicted one; errors are bold."""
    for k, counts in enumerate(numbers.confusion):
        row: Row = [name(numbers.classes[k].name)]
        for m, n in enumerate(counts):
            share = percent(n / sum(counts)) if any(counts) else MISSING
            cell = exact(n, f"{n:,.1f}".removesuffix(".0")) + f" ({share})"
            row.append(Markup("<b>{}</b>").format(cell) if n and k != m else cell)
        yield row


def settings(study: Study) -> Iterator[tuple[str, Markup]]:
    """Yield the settings of the fit."""
    for key, value in study.settings.items():
        if value is None:
            yield key, Markup('<span class="soft">not set</span>')
        elif isinstance(value, bool):
            yield key, Markup("yes" if value else "no")
        elif isinstance(value, int | float):
            yield key, exact(value)
        else:
            yield key, Markup("<code>{}</code>").format(value)


def certificate(study: Study) -> Iterator[tuple[str, Markup | str]]:
    """Yield the numbers of the certificate."""
    found = study.certificate
    if not found["reason"]:
        yield "Difference in loss", _between(found["best_case"], found["worst_case"])
        yield (
            "The same for probabilities",
            _between(found["probability_best_case"], found["probability_worst_case"]),
        )
        yield "Improvement due to the penalty", percent(found["penalty_share"])
    yield "Loss of the supervised model", _between(*found["supervised_loss"])
    yield "Measured on", certified_rows(study)
    yield "Distance", Markup("<code>{}</code>").format(found["distance"])
    yield "Penalty in the loss", exact(found["penalty"])
    yield "Penalty of the supervised model", exact(found["supervised_penalty"])
    labeled, unlabeled = exact(found["n_labeled"]), exact(found["n_unlabeled"])
    yield "Rows", labeled + " labeled, " + unlabeled + " unlabeled"
    ends = exact(found["n_one"]) + ", " + exact(found["n_fractional"])
    if len(study.data.classes) > 2:
        yield "Soft labels: one class, several classes", ends
    else:
        yield "Soft labels: zeros, ones, fractional", exact(found["n_zero"]) + ", " + ends
    gap = found["duality_gap"]
    yield "Relative duality gap", "infinite" if gap is None else exact(gap, number(gap, 2))
    yield "Allowance for rounding", exact(found["rounding_bound"])


def certified_rows(study: Study) -> str:
    """Return the rows that the certificate is about."""
    n_labeled, n_unlabeled = study.certificate["n_labeled"], study.certificate["n_unlabeled"]
    if study.certificate["rows"] == "unlabeled":
        return f"the {count(n_unlabeled, 'unlabeled row')}"
    return f"all {n_labeled + n_unlabeled:,} training rows"


def _between(low: float, high: float) -> Markup:
    return Markup("between {} and {}").format(exact(low), exact(high))
