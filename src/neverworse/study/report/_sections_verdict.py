"""What to do with the table, why, and how good the model is: the first page of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from neverworse.projection.words import count
from neverworse.study._study import ClassNumbers, Estimate, Numbers, Study, VerdictKind
from neverworse.study.report._charts_methods import calibration_chart
from neverworse.study.report._html import Markup, table, tag
from neverworse.study.report._meaning import standing
from neverworse.study.report._pieces import LARGEST_MATRIX, drawing, long_table, side_by_side
from neverworse.study.report._words import (
    MISSING,
    decimal,
    estimate,
    exact,
    moment,
    name,
    percent,
    sentence,
)

# What the badge says, and its colour: green is for a projected model that is to be used.
BADGES: dict[VerdictKind, tuple[str, str]] = {
    "projected": ("Never worse", "good"),
    "nothing to gain": ("Same as supervised", "neutral"),
    "supervised": ("Worse on held-out rows", "bad"),
    "another method": ("Another method is better", "neutral"),
    "undecided": ("Not guaranteed", "bad"),
}
UNPROVED = ("Better on held-out rows, not guaranteed", "neutral")


def headline(study: Study) -> Markup:
    """Return what to do, why, and the numbers behind it."""
    verdict, data = study.verdict, study.data
    badge, mood = BADGES[verdict.kind]
    if verdict.kind == "projected" and standing(study.certificate) != "never worse":
        badge, mood = UNPROVED
    parts = [
        ("Why", verdict.reasons, "given"),
        ("Caution", verdict.cautions, "no"),
        ("What could help", verdict.advice, "good"),
    ]
    return tag(
        "header",
        tag(
            "p",
            "Model of ",
            tag("strong", name(data.target)),
            f" · {count(data.n_labeled, 'labeled row')}, "
            f"{count(data.n_unlabeled, 'unlabeled row')} · {moment(study.made)}",
            class_="eyebrow",
        ),
        tag("p", badge, class_=f"verdict {mood}"),
        tag("h1", verdict.headline, class_="claim"),
        *([] if verdict.quality is None else [tag("p", verdict.quality, class_="quality")]),
        tag("ul", *_tiles(study), class_="tiles"),
        tag(
            "div",
            *(_list(title, sentences, kind) for title, sentences, kind in parts if sentences),
            class_="meaning",
        ),
    )


def _tiles(study: Study) -> Iterator[Markup]:
    if study.comparison is not None:
        numbers = study.comparison.of(study.verdict.model).numbers
        always = percent(study.comparison.baseline.error.value)
        beside = tag("span", "always ", name(study.comparison.majority), f": {always}")
        yield _tile("Error on held-out rows", _share(numbers.error), beside)
        if numbers.auc is not None:
            area = numbers.auc
            ends = f"{decimal(area.low, 2)} to {decimal(area.high, 2)}; 0.5 is chance"
            yield _tile("AUC", exact(area.value, decimal(area.value, 2)), ends)
        found = _positive(numbers, study)
        if found is None:
            yield _tile("Balanced accuracy", _share(numbers.balanced_accuracy), "mean over classes")
        else:
            ends = f"{percent(found.recall.low)} to {percent(found.recall.high)}"
            found_of = tag("span", "Found of ", name(found.name))
            yield _tile(found_of, _share(found.recall), ends)
        if study.verdict.kind == "another method":
            if numbers.brier is not None:
                mine = exact(numbers.brier.value, decimal(numbers.brier.value))
                theirs = study.comparison.of("supervised").numbers.brier
                more = "" if theirs is None else f"supervised: {decimal(theirs.value)}"
                yield _tile("Brier score", mine, more)
            return  # what the projected model changes is no matter
    changed = study.changes
    yield _tile(
        "Predictions changed",
        exact(changed.n_changed),
        f"of {count(changed.n_unlabeled, 'unlabeled row')}, by the projected model",
    )


def _tile(what: object, value: object, more: object) -> Markup:
    return tag(
        "li",
        tag("span", what, class_="what"),
        tag("span", value, class_="value"),
        tag("span", more, class_="more"),
    )


def _share(found: Estimate) -> Markup:
    return exact(found.value, percent(found.value))


def _list(title: str, sentences: Sequence[str], kind: str) -> Markup:
    return tag(
        "div",
        tag("h3", title),
        tag("ul", *(tag("li", sentence(said)) for said in sentences)),
        class_=kind,
    )


def _positive(numbers: Numbers, study: Study) -> ClassNumbers | None:
    return next((each for each in numbers.classes if each.name == study.data.positive), None)


def numbers(study: Study) -> Iterator[Markup]:
    """Yield how good the recommended model is on held-out rows, beside no model at all."""
    comparison = study.comparison
    if comparison is None:
        return
    model = study.verdict.model
    found = comparison.of(model).numbers
    yield tag(
        "p",
        "All of this is about labeled rows that were held out: each was predicted by models that "
        "had not seen it. Intervals are right in 95 % of such tables. They are about other rows of "
        "the same kind; where rows were labeled for a reason, the unlabeled ones may differ.",
    )
    yield table(
        "The recommended model, beside always answering with the most frequent class.",
        ["", name(model), tag("span", "Always ", name(comparison.majority))],
        list(_rows(study, found, comparison.baseline)),
    )
    classes = [each.name for each in found.classes]
    parts = []
    if len(classes) <= LARGEST_MATRIX:
        parts.append(_confusion(found, classes))
    if found.calibration is not None:
        chart = calibration_chart(found.calibration, study.data.positive or "")
        caption = tag(
            "span",
            "Calibration: rows with about the same predicted probability, and which share of them "
            "are ",
            name(study.data.positive or ""),
            ". On the dotted line, probabilities mean what they say.",
        )
        parts.append(drawing(chart, "calibration", caption))
    yield side_by_side(*parts)
    if len(classes) > 2:
        yield long_table(
            "Each class against all others.",
            ["Class", "Labeled", "Precision", "Recall", "F1"],
            [
                [
                    name(each.name),
                    exact(each.n_labeled),
                    estimate(each.precision),
                    estimate(each.recall),
                    estimate(each.f1),
                ]
                for each in found.classes
            ],
            numbers_from=1,
            n_all=len(classes),
            rest="others are in study.json.",
        )


def _rows(study: Study, found: Numbers, always: Numbers) -> Iterator[list[object]]:
    rows: list[tuple[object, Estimate | None, Estimate | None]] = [
        ("Error", found.error, always.error),
        ("Balanced accuracy", found.balanced_accuracy, always.balanced_accuracy),
        ("AUC", found.auc, always.auc),
        ("Brier score", found.brier, always.brier),
        ("Log loss", found.log_loss, always.log_loss),
    ]
    own, other = (_positive(each, study) for each in (found, always))
    if own is not None and other is not None:
        for kind in ("precision", "recall", "f1"):
            what = tag("span", f"{kind.capitalize()} of ", name(own.name))
            rows.append((what, getattr(own, kind), getattr(other, kind)))
    for title, of_model, of_always in rows:
        value = MISSING if of_always is None else exact(of_always.value, decimal(of_always.value))
        yield [title, estimate(of_model), value]


def _confusion(found: Numbers, classes: Sequence[str]) -> Markup:
    rows = [
        [
            name(classes[k]),
            *(_cell(n, sum(counts), k == m) for m, n in enumerate(counts)),
        ]
        for k, counts in enumerate(found.confusion)
    ]
    return table(
        "Confusion matrix: labeled rows by their class (down) and by the predicted one (across), "
        "the mean over repeats.",
        ["True ↓  predicted →", *map(name, classes)],
        rows,
        kind="matrix",
    )


def _cell(n: float, all_of_class: float, same: bool) -> Markup:
    share = percent(n / all_of_class) if all_of_class else MISSING
    shown = exact(n, f"{n:,.1f}".removesuffix(".0")) + f" ({share})"
    return Markup(shown) if same or not n else tag("b", shown)
