"""The section about the model in the model file: which one, its threshold, and its audit."""

from __future__ import annotations

from collections.abc import Iterator

from neverworse.study._study import Study
from neverworse.study.report._html import Markup, table, tag
from neverworse.study.report._pieces import LARGEST_MATRIX
from neverworse.study.report._sections_verdict import _confusion, _rows
from neverworse.study.report._words import name, sentence


def model(study: Study) -> Iterator[Markup]:
    """Yield which model it is, what was decided on for it, and what is certain about it."""
    found = study.model
    if found is None:
        return
    yield tag("p", sentence(" ".join(found.words)), class_="lead")
    if found.decision is not None:
        for words in found.decision.words:
            yield tag("p", sentence(words))
        numbers, comparison = found.decision.numbers, study.comparison
        if numbers is not None and comparison is not None:
            yield table(
                "The model with its threshold and calibration, found in each training fold alone, "
                "on held-out rows.",
                ["", name(found.name), tag("span", "Always ", name(comparison.majority))],
                list(_rows(study, numbers, comparison.baseline)),
            )
            if len(numbers.classes) <= LARGEST_MATRIX:
                yield _confusion(numbers, [each.name for each in numbers.classes])
    yield tag("p", sentence(found.audit.words))
