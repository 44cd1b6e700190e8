"""Sections about the claim, the data, and how to reproduce it all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from neverworse.projection.words import count
from neverworse.report._charts import bounds_chart
from neverworse.report._html import Markup, facts, table, tag
from neverworse.report._meaning import (
    VERDICTS,
    assumed,
    does_not_mean,
    means,
    rows_in_words,
    verdict,
)
from neverworse.report._pieces import drawing, long_table, side_by_side
from neverworse.report._words import exact, moment, name, number, percent, size
from neverworse.study._study import Scalar, Study

MOODS = {"never worse": "good", "same": "neutral", "not guaranteed": "bad"}
# What is bounded, by the beginning of its names in a certificate.
_LOSSES = {
    "": "Scores: the squared loss that the guarantee is about.",
    "probability_": "Probabilities, the scores cut off at 0 and 1, as predict --probabilities "
    "gives them: their squared loss (Brier score). Nothing is promised about it.",
}
PARTS = {
    "pulls": "how much each unlabeled row pulled",
    "unlabeled_curve": "the learning curve over unlabeled rows",
    "labeled_curve": "the learning curve over labeled rows",
    "comparison": "the comparison of methods",
}


def headline(study: Study) -> Markup:
    """Return the claim, and the numbers behind it."""
    certificate = study.certificate
    found = verdict(certificate)
    return tag(
        "header",
        tag(
            "p",
            "Model of ",
            tag("strong", name(study.data.target)),
            f" · {count(certificate['n_labeled'], 'labeled row')}, "
            f"{count(certificate['n_unlabeled'], 'unlabeled row')} · {moment(study.made)}",
            class_="eyebrow",
        ),
        tag("p", VERDICTS[found], class_=f"verdict {MOODS[found]}"),
        tag("h1", study.claim, class_="claim"),
        tag("ul", *_tiles(study), class_="tiles"),
    )


def _tiles(study: Study) -> Iterator[Markup]:
    certificate = study.certificate
    low, high = certificate["supervised_loss"]
    best, improvement = certificate["best_case"], certificate["guaranteed_improvement"]
    found = verdict(certificate)
    if found == "same":
        yield _tile("Guaranteed improvement", exact(improvement), "both models are the same")
    elif found == "never worse":
        # True for every labeling: none has a higher supervised loss.
        least = f"at least {percent(improvement / high)} of the supervised loss"
        yield _tile("Guaranteed improvement", exact(improvement), least)
    else:
        yield _tile("Worst case", exact(certificate["worst_case"]), "higher loss than supervised")
    if found != "same":
        words = f"{'lower' if best <= 0 else 'higher'} loss than supervised"
        yield _tile("Best case", exact(abs(best)), words)
    yield _tile(
        "Supervised loss",
        Markup(exact(low) + " to " + exact(high)),
        "depending on the unknown labels",
    )
    changed = study.changes
    yield _tile(
        "Predictions changed",
        exact(changed.n_changed),
        f"of {count(changed.n_unlabeled, 'unlabeled row')}",
    )


def _tile(what: str, value: object, more: str) -> Markup:
    return tag(
        "li",
        tag("span", what, class_="what"),
        tag("span", value, class_="value"),
        tag("span", more, class_="more"),
    )


def certificate(study: Study) -> Iterator[Markup]:
    """Yield the certificate in full."""
    found = study.certificate
    yield tag("p", study.certificate_words)
    if verdict(found) != "same":
        yield side_by_side(*(_bounds(found, prefix) for prefix in _LOSSES))
    labels = "Rows with one class, rows that share several" if len(study.data.classes) > 2 else None
    ends: Markup = exact(found["n_one"]) + ", " + exact(found["n_fractional"])
    if labels is None:
        labels = "Soft labels that are 0, 1, between"
        ends = exact(found["n_zero"]) + ", " + ends
    gap = found["duality_gap"]
    yield tag(
        "div",
        facts(
            [
                ("Difference in loss", _between(found["best_case"], found["worst_case"])),
                (
                    "The same of probabilities",
                    _between(found["probability_best_case"], found["probability_worst_case"]),
                ),
                ("Measured on", f"{rows_in_words(found)}"),
                ("Distance", tag("code", found["distance"])),
                ("Penalty in the loss", exact(found["penalty"])),
                ("Penalty of the supervised model", exact(found["supervised_penalty"])),
                ("Improvement owed to the penalty", percent(found["penalty_share"])),
                ("Rows", _rows(found["n_labeled"], found["n_unlabeled"])),
                (labels, ends),
                ("Relative duality gap", "infinite" if gap is None else exact(gap, number(gap, 2))),
                ("Allowance for rounding", exact(found["rounding_bound"])),
            ]
        ),
        class_="columns",
    )


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
        _list("What it means", means(study), MOODS[verdict(study.certificate)]),
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
    yield long_table(
        "Classes: labeled rows, and unlabeled rows that either model gives to them.",
        ["Class", "Labeled", "Supervised", "Projected"],
        [
            [name(each.name), *map(exact, (each.n_labeled, each.n_supervised, each.n_projected))]
            for each in found.classes
        ],
        numbers_from=1,
        n_all=len(found.classes),
        rest="others are in predictions.csv.",
    )
    yield long_table(
        "Columns, and what became of them.",
        ["Column", "Kind", "Treatment", "Missing", "Features"],
        [
            [
                name(each.name),
                each.kind,
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
