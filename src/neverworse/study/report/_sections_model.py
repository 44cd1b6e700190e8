"""Sections about the model: scores, changed predictions, and coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from neverworse.projection.words import count
from neverworse.study._study import Changes, Coefficient, Study
from neverworse.study.report._charts import coefficients_chart, scores_chart
from neverworse.study.report._charts_methods import importance_chart
from neverworse.study.report._html import Markup, table, tag
from neverworse.study.report._meaning import standing
from neverworse.study.report._pieces import (
    LARGEST_MATRIX,
    drawing,
    legend,
    long_table,
    side_by_side,
)
from neverworse.study.report._words import decimal, estimate, exact, name, number, percent, signed

MODELS = ("supervised", "projected")
MOST_SCORES = 12  # classes whose scores are drawn
MOST_WEIGHTS = 20  # weights that are drawn


def scores(study: Study) -> Iterator[Markup]:
    """Yield how the classes score, supervised against projected."""
    two = len(study.data.classes) == 2
    both = "The area shows the projected model, the dashed line the supervised one. "
    same = standing(study.certificate) == "same"
    words = [
        tag(
            "p",
            "A score of 1 is what rows of the class should have, 0 what all others should. "
            f"{'' if same else both}Heights are relative to the fullest bar of each group of rows. "
            "Rows beyond the ends are in the last bars.",
        ),
        tag(
            "p",
            "The class is predicted from a score of one half on, the dotted line. "
            if two
            else "The class with the highest score is predicted. ",
            "Scores of unlabeled rows that lie outside 0 and 1 are what the projection can put "
            "right: no label is there.",
        ),
        *([] if same else [legend(MODELS)]),
    ]
    drawn = [
        drawing(scores_chart(each, threshold=two, moved=not same), f"scores{k}")
        for k, each in enumerate(study.scores[:MOST_SCORES])
    ]
    if len(drawn) == 1:
        yield side_by_side(drawn[0], Markup("".join(words)))
        return
    yield from words
    yield side_by_side(*drawn)
    if len(study.scores) > MOST_SCORES:
        yield tag("p", f"The first {MOST_SCORES} of {len(study.scores)} classes.", class_="soft")


def changes(study: Study) -> Iterator[Markup]:
    """Yield the rows whose prediction changed."""
    found = study.changes
    share = found.n_changed / found.n_unlabeled
    yield tag(
        "p",
        "For ",
        exact(found.n_changed),
        f" of {count(found.n_unlabeled, 'unlabeled row')} ({percent(share)}) the projected model "
        "predicts another class than the supervised one. Which of the two is right cannot be known "
        "without labels: look at examples below.",
    )
    classes = [each.name for each in study.data.classes]
    yield _matrix(found, classes) if len(classes) <= LARGEST_MATRIX else _pairs(found, classes)
    rows = [
        [
            name(each.row),
            name(each.supervised),
            name(each.projected),
            _score(each.supervised_score),
            _score(each.projected_score),
            _change(each.supervised_score, each.projected_score, decimal),
            _score(each.soft_label),
        ]
        for each in found.rows
    ]
    yield long_table(
        "Rows whose predicted class changed, with their scores and soft labels for the class that "
        "is predicted now.",
        ["Row", "Supervised", "Projected", "Score before", "Score after", "Change", "Soft label"],
        rows,
        numbers_from=3,
        n_all=found.n_changed,
        rest="all are in predictions.csv.",
    )


def _score(value: float) -> Markup:
    return exact(value, decimal(value))


def _change(before: float, after: float, write: Callable[[float], str]) -> Markup:
    return exact(after - before, signed(write(after - before)))


def _matrix(found: Changes, classes: Sequence[str]) -> Markup:
    return table(
        "Unlabeled rows by predicted class: supervised model down, projected model across. Off the "
        "diagonal, predictions changed.",
        ["Supervised ↓  projected →", *map(name, classes), "All"],
        [
            [
                name(classes[k]),
                *(_cell(n, k == m) for m, n in enumerate(counts)),
                exact(sum(counts)),
            ]
            for k, counts in enumerate(found.counts)
        ],
        kind="matrix",
    )


def _cell(n: int, same: bool) -> Markup:
    shown = exact(n)
    return shown if same else tag("b", shown) if n else tag("span", shown, class_="soft")


def _pairs(found: Changes, classes: Sequence[str]) -> Markup:
    pairs = sorted(
        (
            (n, k, m)
            for k, counts in enumerate(found.counts)
            for m, n in enumerate(counts)
            if k != m and n
        ),
        key=lambda pair: -pair[0],
    )
    return long_table(
        "Unlabeled rows whose predicted class changed, by both classes.",
        ["Supervised", "Projected", "Rows"],
        [[name(classes[k]), name(classes[m]), exact(n)] for n, k, m in pairs],
        numbers_from=2,
        n_all=len(pairs),
        rest="those with most rows come first.",
    )


def importance(study: Study) -> Iterator[Markup]:
    """Yield which columns a model without such weights relies on."""
    found = study.importance
    if found is None:
        return
    largest = [(each.column, each.increase) for each in found.columns[:MOST_WEIGHTS]]
    words = tag(
        "p",
        f"How much the {found.measure} of ",
        name(found.model),
        " on held-out rows rises if a column is shuffled among them, so that it says nothing any "
        "more. Columns that say the same can stand in for each other, and look less important than "
        "they are. Lines are 95 % intervals; where one reaches 0, it may be chance.",
    )
    chart = importance_chart(largest, f"rise of the {found.measure}")
    yield side_by_side(drawing(chart, "importance"), words)
    if len(found.columns) > len(largest):
        yield long_table(
            "All columns.",
            ["Column", f"Rise of the {found.measure}"],
            [[name(each.column), estimate(each.increase, sign=True)] for each in found.columns],
            numbers_from=1,
            n_all=len(found.columns),
            rest="others are in study.json.",
        )


def coefficients(study: Study) -> Iterator[Markup]:
    """Yield weights by how much they matter, before and after."""
    several = len(study.data.classes) > 2
    ordered = sorted(study.coefficients, key=_effect, reverse=True)
    drawn = [each for each in ordered[:MOST_WEIGHTS] if _effect(each) > 0]
    moved = any(each.supervised != each.projected for each in ordered)
    second = study.data.classes[1].name
    words = [
        tag(
            "p",
            "How much the score of ",
            "a class" if several else name(second),
            " rises when a feature rises by one standard deviation, the largest effects first"
            + (": from the labeled rows alone, and after the projection." if moved else "."),
        ),
        tag(
            "p",
            "The table has the weights in the original units of the features, which is what "
            "multiplies a value from your file; the intercept is then the score of a row with 0 "
            "everywhere. Per standard deviation, it is the score at the mean of all features. "
            "Weights describe this model. They are no causes, and features that say the same share "
            "their weight in ways that mean little.",
        ),
        *([legend(MODELS)] if moved else []),
    ]
    charts = []
    if drawn:
        left_out = len(drawn) < len(ordered)
        caption = f"The {len(drawn)} largest of {len(ordered):,} weights." if left_out else None
        chart = coefficients_chart(drawn, with_class=several, moved=moved)
        charts.append(drawing(chart, "weights", caption))
    yield side_by_side(*charts, Markup("".join(words)))
    models = ["Supervised", "Projected", "Change"] if moved else ["Weight"]
    listed = [*study.intercepts, *ordered]
    yield long_table(
        "Weights in original units, and per standard deviation (SD), the largest effects first.",
        [
            "Feature",
            *(["Class"] if several else []),
            *models,
            *(f"{each}, per SD" for each in models),
        ],
        (_weights(each, several, moved) for each in listed),
        numbers_from=2 if several else 1,
        n_all=len(listed),
        rest="all are in the model.",
    )


def _weights(each: Coefficient, several: bool, moved: bool) -> list[object]:
    pairs = (each.supervised, each.projected), (each.supervised_scaled, each.projected_scaled)
    cells: list[object] = [name(each.feature)]
    if several:
        cells.append(name(each.class_name))
    for before, after in pairs:
        cells += [exact(after)]
        if moved:
            cells[-1:] = [exact(before), exact(after), _change(before, after, number)]
    return cells


def _effect(each: Coefficient) -> float:
    return max(abs(each.projected_scaled), abs(each.supervised_scaled))
