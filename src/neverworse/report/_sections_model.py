"""Sections about the model: scores, changed predictions, coefficients, and pulls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from neverworse.projection.words import count
from neverworse.report._charts import coefficients_chart, pulls_chart, scores_chart
from neverworse.report._html import Markup, table, tag
from neverworse.report._pieces import drawing, legend, long_table, side_by_side
from neverworse.report._words import decimal, exact, name, number, percent, signed
from neverworse.study._study import Changes, Coefficient, Study

MODELS = ("supervised", "projected")
MOST_SCORES = 12  # classes whose scores are drawn
MOST_WEIGHTS = 20  # weights that are drawn
LARGEST_MATRIX = 12  # classes; more do not fit on a page


def scores(study: Study) -> Iterator[Markup]:
    """Yield how the classes score, supervised against projected."""
    two = len(study.data.classes) == 2
    words = [
        tag(
            "p",
            "A score of 1 is what rows of the class should have, 0 what all others should. The "
            "area shows the projected model, the dashed line the supervised one. Heights are "
            "relative to the fullest bar of each group of rows. Rows beyond the ends are in the "
            "last bars.",
        ),
        tag(
            "p",
            "The class is predicted from a score of one half on, the dotted line. "
            if two
            else "The class with the highest score is predicted. ",
            "Scores of unlabeled rows that lie outside 0 and 1 are what the projection can put "
            "right: no label is there.",
        ),
        legend(MODELS),
    ]
    drawn = [
        drawing(scores_chart(each, threshold=two), f"scores{k}")
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
    if not found.n_changed:
        yield tag(
            "p",
            f"None: for every unlabeled row ({found.n_unlabeled:,}), both models predict the same "
            "class.",
        )
        return
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


def coefficients(study: Study) -> Iterator[Markup]:
    """Yield weights before and after, by feature."""
    several = len(study.data.classes) > 2
    ordered = sorted(study.coefficients, key=_shift, reverse=True)
    moved = [each for each in ordered[:MOST_WEIGHTS] if _shift(each) > 0]
    words = Markup(
        tag(
            "p",
            "How much the score rises when a feature rises by one standard deviation: before, from "
            "the labeled rows alone, and after the projection. Features with longer lines matter "
            "more to what changed.",
        )
        + tag(
            "p",
            "The table has the weights in the original units of the features, which is what "
            "multiplies a value from your file; the intercept is then the score of a row with 0 "
            "everywhere. Per standard deviation, it is the score at the mean of all features. "
            "Weights describe this model. They are no causes, and features that say the same share "
            "their weight in ways that mean little.",
        )
        + legend(MODELS)
    )
    if moved:
        chart = drawing(
            coefficients_chart(moved, with_class=several),
            "weights",
            f"Of {len(ordered):,} weights, the {len(moved)} that moved most."
            if len(moved) < len(ordered)
            else None,
        )
        yield side_by_side(chart, words)
    else:
        yield words
        yield tag("p", "No weight changed.")
    head = ["Feature", *(["Class"] if several else []), "Supervised", "Projected", "Change"]
    listed = [*study.intercepts, *ordered]
    yield long_table(
        "Weights in original units, and per standard deviation. Ordered by how much they moved.",
        [*head, "Supervised, per SD", "Projected, per SD", "Change, per SD"],
        (_weights(each, several) for each in listed),
        numbers_from=2 if several else 1,
        n_all=len(listed),
        rest="all are in the model.",
    )


def _weights(each: Coefficient, several: bool) -> list[object]:
    pairs = (each.supervised, each.projected), (each.supervised_scaled, each.projected_scaled)
    cells: list[object] = [name(each.feature)]
    if several:
        cells.append(name(each.class_name))
    for before, after in pairs:
        cells += [exact(before), exact(after), _change(before, after, number)]
    return cells


def _shift(each: Coefficient) -> float:
    return abs(each.projected_scaled - each.supervised_scaled)


def pulls(study: Study) -> Iterator[Markup]:
    """Yield how much each unlabeled row pulled."""
    found = study.pulls
    if found is None:
        return
    words = [
        tag(
            "p",
            "The projection moves the supervised model until some labels of the unlabeled rows fit "
            "it. Each unlabeled row has a share in this move: large if its score was far from any "
            "label, and if the move took it a long way there.",
        ),
        tag(
            "p",
            f"{count(found.n_forwards, 'row')} pulled forwards, {found.n_backwards:,} back. A row "
            "pulls back if the move that suits all rows together takes its score away from its "
            "soft label: its share is negative. Shares of all rows"
            + (
                f" and of the penalty ({percent(found.penalty_share)}) add up to 100 %."
                if found.penalty_share
                else " add up to 100 %."
            ),
        ),
        tag(
            "p",
            "If few rows make up most of the pull, the model leans on them: check that they are "
            "typical and not mistakes. On the dotted line, all would pull the same.",
        ),
    ]
    yield side_by_side(drawing(pulls_chart(found), "pulls"), Markup("".join(words)))
    n_all = found.n_forwards + found.n_backwards
    yield long_table(
        "Unlabeled rows that pulled most.",
        ["Row", "Raised the score for", "Share", "Soft label", "Score before", "Score after"],
        [
            [
                name(each.row),
                name(each.towards),
                exact(each.share, percent(each.share)),
                _score(each.soft_label),
                _score(each.supervised_score),
                _score(each.projected_score),
            ]
            for each in found.rows
        ],
        numbers_from=2,
        n_all=max(n_all, len(found.rows)),
        rest="others pulled less.",
    )
