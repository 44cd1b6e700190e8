"""Rows of the tables in a report, as cells of HTML."""

from __future__ import annotations

from collections.abc import Iterator

from neverworse._words import MISSING, decimal, number, percent, signed
from neverworse.pages import Markup, estimate, exact, name
from neverworse.study._ladder import ConfidentFacts
from neverworse.study._study import (
    ChangedRow,
    Coefficient,
    Curve,
    Numbers,
    Scalar,
    Study,
)

Row = list[Markup | str]


def measures(study: Study, numbers: Numbers) -> Iterator[Row]:
    """Yield how well a model predicts held-out rows, beside always answering with one class."""
    assert study.comparison is not None
    positive = study.data.positive
    always = study.comparison.baseline.measures(positive)
    for (what, of, found), (*_, other) in zip(numbers.measures(positive), always, strict=True):
        title = Markup.escape(what[0].upper() + what[1:]) + (
            Markup(" of ") + name(of) if of else ""
        )
        yield [title, estimate(found), MISSING if other is None else score(other.value)]


def confusion(numbers: Numbers) -> Iterator[Row]:
    """Yield held-out rows by their class and by the predicted one; wrong ones stand out."""
    for k, counts in enumerate(numbers.confusion):
        row: Row = [name(numbers.classes[k].name)]
        for m, n in enumerate(counts):
            share = percent(n / sum(counts)) if any(counts) else MISSING
            cell = exact(n, f"{n:,.1f}".removesuffix(".0")) + f" ({share})"
            row.append(Markup("<b>{}</b>").format(cell) if n and k != m else cell)
        yield row


def candidates(found: ConfidentFacts) -> Iterator[Row]:
    """Yield the candidates of the stacked model, and the step towards each."""
    for each in found.candidates:
        change = exact(each.difference, signed(decimal(each.difference)))
        yield [name(each.name), change, exact(each.step, decimal(each.step, 2))]


def curve(found: Curve) -> Iterator[Row]:
    """Yield errors and losses of all methods at each size."""
    for k, size in enumerate(found.sizes):
        errors, losses = (
            [estimate(getattr(line, measure)[k]) for line in found.lines]
            for measure in ("error", "loss")
        )
        yield [exact(size), *errors, *losses]


def changed_classes(study: Study) -> Iterator[Row]:
    """Yield unlabeled rows by what the supervised and the projected model predict."""
    for k, counts in enumerate(study.changes.counts):
        row: Row = [name(study.data.classes[k].name)]
        for m, n in enumerate(counts):
            kind = "<b>{}</b>" if n else '<span class="soft">{}</span>'
            row.append(exact(n) if k == m else Markup(kind).format(exact(n)))
        yield [*row, exact(sum(counts))]


def changed_pairs(study: Study) -> list[Row]:
    """Return how many rows have moved from one class to another, the largest number first."""
    names = [name(each.name) for each in study.data.classes]
    pairs = [
        (n, names[k], names[m])
        for k, counts in enumerate(study.changes.counts)
        for m, n in enumerate(counts)
        if k != m and n
    ]
    pairs.sort(key=lambda pair: -pair[0])
    return [[before, after, exact(n)] for n, before, after in pairs]


def changed_row(each: ChangedRow) -> Row:
    """Return an unlabeled row whose predicted class changed."""
    before, after = each.supervised_score, each.projected_score
    return [
        *map(name, (each.row, each.supervised, each.projected)),
        *map(score, (before, after)),
        exact(after - before, signed(decimal(after - before))),
        score(each.soft_label),
    ]


def weight(each: Coefficient, several: bool, moved: bool) -> Row:
    """Return a weight, in original units and per standard deviation; before and after if moved."""
    row: Row = [name(each.feature), *([name(each.class_name)] if several else [])]
    pairs = (each.supervised, each.projected), (each.supervised_scaled, each.projected_scaled)
    for before, after in pairs:
        change = exact(after - before, signed(number(after - before)))
        row += [exact(before), exact(after), change] if moved else [exact(after)]
    return row


def settings(study: Study) -> Iterator[tuple[str, Markup]]:
    """Yield what the fit was told, with the penalty that was chosen."""
    chosen_by = study.settings.get("alpha_chosen_by")
    for key, value in study.settings.items():
        if key == "alpha" and chosen_by:
            yield key, _setting(value) + f", chosen by {chosen_by}"
        elif key != "alpha_chosen_by":
            yield key, _setting(value)


def _setting(value: Scalar) -> Markup:
    if value is None:
        return Markup('<span class="soft">not set</span>')
    if isinstance(value, bool):
        return Markup("yes" if value else "no")
    return (
        exact(value) if isinstance(value, int | float) else Markup("<code>{}</code>").format(value)
    )


def certificate(study: Study) -> Iterator[tuple[str, Markup | str]]:
    """Yield the numbers of the certificate."""
    found = study.certificate
    if not found["reason"]:
        yield "Difference in loss", _between(found["best_case"], found["worst_case"])
        yield (
            "The same of probabilities",
            _between(found["probability_best_case"], found["probability_worst_case"]),
        )
        yield "Improvement owed to the penalty", percent(found["penalty_share"])
    yield "Loss of the supervised model", _between(*found["supervised_loss"])
    yield "Measured on", study.certified_rows
    yield "Distance", Markup("<code>{}</code>").format(found["distance"])
    yield "Penalty in the loss", exact(found["penalty"])
    yield "Penalty of the supervised model", exact(found["supervised_penalty"])
    labeled, unlabeled = exact(found["n_labeled"]), exact(found["n_unlabeled"])
    yield "Rows", labeled + " labeled, " + unlabeled + " unlabeled"
    ends = exact(found["n_one"]) + ", " + exact(found["n_fractional"])
    if len(study.data.classes) > 2:
        yield "Rows with one class, rows that share several", ends
    else:
        yield "Soft labels that are 0, 1, between", exact(found["n_zero"]) + ", " + ends
    gap = found["duality_gap"]
    yield "Relative duality gap", "infinite" if gap is None else exact(gap, number(gap, 2))
    yield "Allowance for rounding", exact(found["rounding_bound"])


def _between(low: float, high: float) -> Markup:
    return Markup("between {} and {}").format(exact(low), exact(high))


def score(value: float) -> Markup:
    """Return a number as those above and below it."""
    return exact(value, decimal(value))
