"""Sections about the claim, the data, and how to reproduce it all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from neverworse.projection.words import count
from neverworse.report._charts import bounds_chart
from neverworse.report._html import Markup, facts, table, tag
from neverworse.report._meaning import (
    assumed,
    does_not_mean,
    means,
    rows_in_words,
    standing,
)
from neverworse.report._pieces import drawing, long_table, side_by_side
from neverworse.report._words import exact, moment, name, number, percent, size
from neverworse.study._study import Scalar, Study
from neverworse.tables import grouped

MOODS = {"never worse": "good", "same": "neutral", "not guaranteed": "bad"}
# What is bounded, by the beginning of its names in a certificate.
_LOSSES = {
    "": "Scores: the squared loss that the guarantee is about.",
    "probability_": "Probabilities, the scores cut off at 0 and 1, as predict --probabilities "
    "gives them: their squared loss (Brier score). Nothing is promised about it.",
}
PARTS = {
    "unlabeled_curve": "the learning curve over unlabeled rows",
    "labeled_curve": "the learning curve over labeled rows",
    "comparison": "the comparison of methods",
}


def certificate(study: Study) -> Iterator[Markup]:
    """Yield the certificate in full."""
    found = study.certificate
    yield tag("p", study.claim, class_="lead")
    yield tag("p", study.certificate_words)
    if standing(found) != "same":
        yield side_by_side(*(_bounds(found, prefix) for prefix in _LOSSES))
    yield tag("div", facts(_facts(study)), class_="columns")


def _facts(study: Study) -> Iterator[tuple[str, object]]:
    found = study.certificate
    if standing(found) != "same":
        yield "Difference in loss", _between(found["best_case"], found["worst_case"])
        yield (
            "The same of probabilities",
            _between(found["probability_best_case"], found["probability_worst_case"]),
        )
        yield "Improvement owed to the penalty", percent(found["penalty_share"])
    low, high = found["supervised_loss"]
    yield "Loss of the supervised model", _between(low, high)
    yield "Measured on", f"{rows_in_words(found)}"
    yield "Distance", tag("code", found["distance"])
    yield "Penalty in the loss", exact(found["penalty"])
    yield "Penalty of the supervised model", exact(found["supervised_penalty"])
    yield "Rows", _rows(found["n_labeled"], found["n_unlabeled"])
    ends: Markup = exact(found["n_one"]) + ", " + exact(found["n_fractional"])
    if len(study.data.classes) > 2:
        yield "Rows with one class, rows that share several", ends
    else:
        yield "Soft labels that are 0, 1, between", exact(found["n_zero"]) + ", " + ends
    gap = found["duality_gap"]
    yield "Relative duality gap", "infinite" if gap is None else exact(gap, number(gap, 2))
    yield "Allowance for rounding", exact(found["rounding_bound"])


def _bounds(certificate: Mapping[str, Any], prefix: str) -> Markup:
    """Return the interval of a loss, with the loss that it is about."""
    best, worst = certificate[f"{prefix}best_case"], certificate[f"{prefix}worst_case"]
    caption = _LOSSES[prefix]
    if not prefix and certificate["penalty"]:
        caption += f" It includes the ridge penalty {number(certificate['penalty'])} ‖w‖²."
    return drawing(bounds_chart(best, worst), f"{prefix}bounds", caption)


def _between(low: float, high: float) -> Markup:
    return Markup("between " + exact(low) + " and " + exact(high))


def _rows(n_labeled: int, n_unlabeled: int) -> Markup:
    return exact(n_labeled) + " labeled, " + exact(n_unlabeled) + " unlabeled"


def meaning(study: Study) -> Iterator[Markup]:
    """Yield what the certificate means, what it does not mean, and what it assumes."""
    yield tag(
        "div",
        _list("What it means", means(study), MOODS[standing(study.certificate)]),
        _list("What it does not mean", does_not_mean(study), "no"),
        _list("What is assumed", assumed(study), "given"),
        class_="meaning",
    )


def _list(title: str, sentences: Iterator[str], kind: str) -> Markup:
    return tag(
        "div", tag("h3", title), tag("ul", *(tag("li", said) for said in sentences)), class_=kind
    )


def notes(study: Study) -> Iterator[Markup]:
    """Yield what else should be known, and which parts are left out."""
    missing = [what for part, what in PARTS.items() if getattr(study, part) is None]
    if missing:
        yield tag("p", f"Left out of this report: {', '.join(missing)}.")
    if study.notes:
        yield tag("ul", *(tag("li", note) for note in study.notes), class_="notes")


def data(study: Study) -> Iterator[Markup]:
    """Yield what was read."""
    found = study.data
    n_used = sum(each.n_features > 0 for each in found.columns)
    yield tag(
        "p",
        f"{count(found.n_rows, 'row')}: {found.n_labeled:,} with a label in ",
        name(found.target),
        f", {found.n_unlabeled:,} without. {count(n_used, 'column')} became "
        f"{count(found.n_features, 'feature')}.",
    )
    yield table(
        "Files",
        ["File", "SHA-256", "Size"],
        [
            [
                name(each.name),
                tag("code", each.sha256, class_="hash") if each.sha256 else "not known",
                "not known" if each.n_bytes is None else exact(each.n_bytes, size(each.n_bytes)),
            ]
            for each in found.files
        ],
        numbers_from=2,
    )
    models = ["Supervised", "Projected"] if study.changes.n_changed else ["Predicted"]
    yield long_table(
        "Classes: labeled rows, and unlabeled rows that are predicted to be of them.",
        ["Class", "Labeled", *models],
        [
            [
                name(each.name),
                *map(
                    exact, (each.n_labeled, each.n_supervised, each.n_projected)[: len(models) + 1]
                ),
            ]
            for each in found.classes
        ],
        numbers_from=1,
        n_all=len(found.classes),
        rest="others are in predictions.csv.",
    )
    looks = grouped({each.name: each.look for each in found.columns})
    if looks:
        yield tag("p", "Columns to look at:")
        said = (f"{names}: {look}" for look, names in looks.items())
        yield tag("ul", *(tag("li", sentence) for sentence in said), class_="notes")
    yield long_table(
        "Columns, and what became of them.",
        ["Column", "Read as", "Treatment", "Missing", "Features"],
        [
            [
                name(each.name),
                each.read_as or each.kind,
                tag("span", each.treatment, class_="wide"),
                exact(each.n_missing),
                exact(each.n_features),
            ]
            for each in found.columns
        ],
        numbers_from=3,
        n_all=len(found.columns),
        rest="others are in the model.",
    )


def reproduction(study: Study) -> Iterator[Markup]:
    """Yield how to get the same again."""
    if study.command:
        yield tag("pre", tag("code", study.command))
    shown = {key: _setting(value) for key, value in study.settings.items()}
    shown.pop("alpha_chosen_by", None)
    if chosen_by := study.settings.get("alpha_chosen_by"):
        shown["alpha"] = tag("span", shown["alpha"], f", chosen by {chosen_by}")
    yield tag("div", facts(shown.items()), class_="columns")
    versions = ", ".join(f"{key} {version}" for key, version in study.packages.items())
    yield facts(
        [("neverworse", study.version), ("Other packages", versions), ("Made", moment(study.made))]
    )


def _setting(value: Scalar) -> Markup:
    if value is None:
        return tag("span", "not set", class_="soft")
    if isinstance(value, bool):
        return tag("span", "yes" if value else "no")
    return exact(value) if isinstance(value, int | float) else tag("code", value)
