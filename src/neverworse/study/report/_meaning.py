"""What a certificate means, and what it does not mean, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from neverworse.projection.words import count
from neverworse.study._study import Study
from neverworse.study.report._words import number, percent

Standing = Literal["never worse", "same", "not guaranteed"]


def standing(certificate: Mapping[str, Any]) -> Standing:
    """Return what a certificate says, in a word."""
    if certificate["reason"]:
        return "same"
    return "never worse" if certificate["holds"] else "not guaranteed"


def rows_in_words(certificate: Mapping[str, Any]) -> str:
    """Return on which rows the losses are measured."""
    n_unlabeled = certificate["n_unlabeled"]
    if certificate["rows"] == "unlabeled":
        return f"the {count(n_unlabeled, 'unlabeled row')}"
    return f"all {certificate['n_labeled'] + n_unlabeled:,} training rows"


def means(study: Study) -> Iterator[str]:
    """Yield what the certificate means."""
    certificate = study.certificate
    where = rows_in_words(certificate)
    penalty = certificate["penalty"]
    extra = f", plus the ridge penalty {number(penalty)} ‖w‖² of the weights" if penalty else ""
    summed = ", summed over the classes" if len(study.data.classes) > 2 else ""
    loss = (
        f"The loss is quadratic: the squared difference between the score of a row and its label, "
        f"which is 1 for its class and 0 otherwise{summed}, over {where}{extra}."
    )
    found = standing(certificate)
    if found == "same":
        yield (
            "The projected model is the supervised model: it has the same weights, gives the same "
            "scores, and has the same loss. So it is not worse, and not better either."
        )
        if certificate["reason"] == "inside":
            yield (
                "No other model can be better than the supervised one for every possible labeling: "
                "some labels of the unlabeled rows would lead to exactly this model. With these "
                "rows and columns, unlabeled rows have nothing to add for certain."
            )
    elif found == "never worse":
        yield (
            f"Whatever the true labels of the {count(certificate['n_unlabeled'], 'unlabeled row')} "
            f"are, the loss of the projected model is lower than that of the supervised one by at "
            f"least {number(certificate['guaranteed_improvement'])}. Even somebody who chose the "
            "labels to spite it could not make it worse."
        )
    else:
        yield (
            f"For some labels of the unlabeled rows the loss is higher than that of the supervised "
            f"model, by up to {number(certificate['worst_case'])}. This model may well be the "
            "better one, but nothing proves it. Of the distances, 'all' and 'unlabeled' promise "
            "never to be worse."
        )
    yield loss
    if found != "same" and certificate["penalty_share"]:
        yield (
            "The supervised model was fitted with another penalty than this loss has: "
            f"{percent(certificate['penalty_share'])} of the guaranteed improvement is owed to "
            "that alone, and would be there without any unlabeled row."
        )
    if found != "same":
        what = (
            "It is a proof" if found == "never worse" else "Best and worst case are proved bounds"
        )
        yield (
            f"{what} for these rows and the weights that were saved, not an estimate. Rounding "
            f"errors are allowed for, with {number(certificate['rounding_bound'], 2)}."
        )


def does_not_mean(study: Study) -> Iterator[str]:
    """Yield what nobody should read into the certificate."""
    yield (
        "It is not about accuracy. A model whose quadratic loss is lower can still give more rows "
        "the wrong class."
    )
    yield (
        "It is not about probabilities, which are scores cut off at 0 and 1. On unlabeled rows, no "
        "model beats the supervised probabilities whatever the labels are: what the projection "
        "improves for certain, cutting off improves as well."
    )
    yield (
        "It is not about other rows. How well the model does on rows that it has not seen is an "
        "estimate" + (", in the comparison below." if study.comparison is not None else ".")
    )
    yield (
        "It does not say that the model is good. It compares with the supervised model, least "
        "squares on the labeled rows with the same columns, and with nothing else."
    )


def assumed(study: Study) -> Iterator[str]:
    """Yield what the certificate takes for granted."""
    certificate = study.certificate
    assumptions = certificate["assumptions"]
    prior = assumptions["class_prior"]
    for class_name, low, high in prior:
        share = percent(low) if low == high else f"between {percent(low)} and {percent(high)}"
        yield f"Class {class_name} makes up {share} of the unlabeled rows."
    if prior and assumptions["prior_level"] is not None:
        yield (
            "These shares follow from the labeled rows, and hold with a probability of at least "
            f"{percent(assumptions['prior_level'])} if labels are missing completely at random: "
            "which rows have one must be pure chance."
        )
    elif prior:
        yield "These shares were given, not found in the data: if they are wrong, nothing holds."
    if assumptions["n_bounded"]:
        bounded = count(assumptions["n_bounded"], "unlabeled row")
        yield f"The labels of {bounded} are within given bounds."
    yield f"Every unlabeled row belongs to one of the {len(study.data.classes)} classes."
    if not prior and not assumptions["n_bounded"]:
        yield (
            "Nothing else is assumed about the unlabeled rows: not how they were chosen, not how "
            "their classes are spread."
        )
    yield "The labels that are there are taken as true."
