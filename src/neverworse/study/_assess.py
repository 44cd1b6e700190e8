"""The study of a fit: the numbers and sentences of its report, and the model that follows."""

from __future__ import annotations

import datetime as dt
import platform
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Any, TypeVar

import numpy as np

from neverworse import __version__
from neverworse._words import count, listed, number, percent
from neverworse.projection import Certificate
from neverworse.study._choice import Chosen, check_choice, choose, stack
from neverworse.study._comparison import Compared
from neverworse.study._fit import FitSettings, TableFit
from neverworse.study._held_out import Progress
from neverworse.study._methods import (
    METHODS,
    OURS,
    PROJECTED,
    STACKED,
    SUPERVISED,
    standard_methods,
)
from neverworse.study._side_by_side import RowKind, ScoredRows, coefficients, learning_curve
from neverworse.study._study import (
    ClassFacts,
    ColumnFacts,
    ConfidentFacts,
    Curve,
    DataFacts,
    FileFacts,
    Rung,
    Scalar,
    Study,
)
from neverworse.study._verdict import Evidence, verdict_of
from neverworse.tables import TableError

AUDIT = (
    "A few new labels can decide it, with 95 % confidence and without assumptions about how the "
    "labeled rows were chosen: the sequential audit (docs/evidence.md) draws the rows to label."
)
PACKAGES = ("numpy", "scipy", "scikit-learn", "pyarrow", "skops")

Part = TypeVar("Part")


def assess(
    fit: TableFit,
    settings: FitSettings,
    *,
    files: Sequence[FileFacts],
    command: str,
    compare_all: bool = False,
    curves: bool = True,
    seed: int = 0,
    notify: Progress = lambda *_: None,
) -> tuple[Study, ScoredRows, Chosen]:
    """Compute everything in the report of a fit, and make the model that was chosen.

    `command` reproduces the fit. With `compare_all`, all methods are compared: otherwise those of
    the paper, and the chosen one. `TableError` if the model cannot be made.
    """
    check_choice(fit, settings)
    names, certificate = fit.target.class_names, fit.model.certificate_
    scored, notes = ScoredRows.of(fit), list(fit.notes)
    wanted = METHODS if compare_all else (*OURS, settings.model)
    methods = standard_methods(fit.classifier, wanted, seed=seed)
    notify("moving towards candidates", 0.0)
    stacked = stack(fit, settings, seed)
    if settings.model == STACKED and stacked.facts is None:
        raise TableError(f"There is no stacked model: {stacked.why_not} Choose another --model.")
    if settings.model == STACKED or stacked.has_moved:
        methods[STACKED] = stacked.method

    def unless_impossible(problem: str, compute: Callable[..., Part], *given: Any) -> Part | None:
        try:
            return compute(*given)
        except ValueError as error:
            notes.append(f"{problem} {error}")
            return None

    compare = partial(Compared, classes=names, positive=fit.positive, notify=notify, seed=seed)
    compared = unless_impossible("Methods were not compared.", compare, methods, *fit.rows)
    drawn: dict[RowKind, Curve | None] = {"unlabeled": None, "labeled": None}
    for kind in drawn:
        if curves and compared is not None:
            notify(f"learning curve of {kind} rows", 0.0)
            problem = f"There is no learning curve of {kind} rows."
            draw = partial(learning_curve, kind, fit.classifier, seed=seed)
            drawn[kind] = unless_impossible(problem, draw, *fit.rows)
    comparison = None if compared is None else compared.comparison
    evidence = Evidence(
        guarantee="same" if certificate.reason else "improved" if certificate.holds else "none",
        penalised=certificate.penalty > 0.0,
        has_prior=bool(settings.prior),
        data=_data(fit, settings, files, scored),
        changes=scored.changes(),
        comparison=comparison,
        # With class weights, scores are not probabilities, and Brier scores mean nothing.
        better=() if compared is None or settings.class_weight else compared.better,
        labeled_curve=drawn["labeled"],
        confident=stacked.has_moved,
        leaks=fit.leaks,
        kernel=fit.kernel,
    )
    notify("choosing the model", 0.0)
    chosen = choose(fit, settings, evidence.recommended, comparison, stacked, seed)
    model, importance = chosen.facts.name, None
    has_weights = fit.classifier.kernel == "linear" and model in (SUPERVISED, PROJECTED)
    if compared is not None and not has_weights:
        problem = "The importance of columns was not computed."
        of_features = fit.model.preparation_.feature_columns_
        importance = unless_impossible(problem, compared.importance, model, of_features)
    proved, (weights, intercepts) = claim(certificate), coefficients(fit)
    study = Study(
        version=__version__,
        made=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        command=command,
        settings=_settings(fit, settings, seed),
        packages={"python": platform.python_version()} | {name: version(name) for name in PACKAGES},
        data=evidence.data,
        verdict=verdict_of(replace(evidence, model=chosen.facts)),
        ladder=ladder(
            proved,
            evidence.guarantee == "improved",
            stacked.facts,
            stacked.why_not,
            model=None if model == SUPERVISED else model,
            n_differing=int(np.sum(chosen.codes != chosen.supervised)),
            n_unlabeled=len(chosen.codes),
        ),
        confident=stacked.facts,
        certificate=certificate.to_dict(),
        claim=proved,
        certificate_words=certificate.summary(),
        scores=scored.scores(fit.positive),
        changes=evidence.changes,
        coefficients=weights,
        intercepts=intercepts,
        importance=importance,
        unlabeled_curve=drawn["unlabeled"],
        labeled_curve=drawn["labeled"],
        comparison=comparison,
        notes=tuple(notes),
        model=chosen.facts,
    )
    return study, scored, chosen


def claim(certificate: Certificate) -> str:
    """Return what is proved, in one sentence for people who know nothing of quadratic losses."""
    unlabeled = f"the {count(certificate.n_unlabeled, 'unlabeled row')}"
    conditions = certificate.assumptions.conditions()
    if certificate.reason == "inside":
        return (
            "The projected model is the supervised one: some classes of the unlabeled rows"
            f"{conditions} would give exactly this model, so no other one is certain to be better."
        )
    if certificate.reason:
        return (
            "The projected model is the supervised one: no improvement was found that is certain "
            f"for all possible classes of the unlabeled rows{conditions}."
        )
    included = ["ridge penalty included"] if certificate.penalty else []
    where = unlabeled
    if certificate.rows == "all":
        where = f"all {certificate.n_labeled + certificate.n_unlabeled:,} rows"
        included += ["labeled rows weighted by class"] if certificate.class_weight else []
    if included:
        where += f", {' and '.join(included)},"
    least, highest = certificate.guaranteed_improvement, certificate.supervised_loss[1]
    share = f" ({100.0 * least / highest:.2g} %)" if 0.0 < highest < np.inf else ""
    start = f"Whatever the true classes of {unlabeled} are"
    how = f"at least {number(least)}{share} lower"
    if not certificate.holds:
        start, how = f"No guarantee: for some classes of {unlabeled}", "higher"
    return (
        f"{start}{conditions}, the projected model's squared error on {where} is {how} than that "
        f"of a model trained on the {certificate.n_labeled:,} labeled rows alone."
    )


def _settings(fit: TableFit, settings: FitSettings, seed: int) -> dict[str, Scalar]:
    prior = settings.prior
    if not isinstance(prior, str):
        second = fit.target.class_names[1]
        parts = (f"{name or second}: {low:g} to {high:g}" for name, (low, high) in prior.items())
        prior = ", ".join(parts) or "none"
    return {
        "target": settings.target,
        "distance": settings.distance,
        "alpha": fit.classifier.supervised_.alpha_,
        "alpha chosen by": "leave-one-out" if settings.alpha == "loo" else None,
        "constraint_alpha": fit.classifier.certificate_.penalty,
        "class prior": prior,
        "class weight": settings.class_weight,
        "kernel": fit.classifier.certificate_.kernel or "linear",
        "model": settings.model,
        "candidates": ", ".join(settings.candidates) or "none",
        "threshold": str(settings.threshold or 0.5),
        "calibrate": settings.calibrate,
        "weights": settings.weight,
        "positive": settings.positive,
        "seed": seed,
    }


def _data(
    fit: TableFit, settings: FitSettings, files: Sequence[FileFacts], scored: ScoredRows
) -> DataFacts:
    target, preparation = fit.target, fit.model.preparation_
    n_unlabeled = int((~target.labeled).sum())
    predicted = (np.bincount(each, minlength=len(target.classes)) for each in scored.predictions)
    counts = zip(
        target.class_names, target.counts(), *map(np.ndarray.tolist, predicted), strict=True
    )
    columns = [ColumnFacts(settings.target, "target", "labels", n_unlabeled, 0, "target")]
    if settings.id is not None:
        columns.append(ColumnFacts(settings.id, "id", "names the rows", 0, 0, "id"))
    if settings.weight is not None:
        columns.append(ColumnFacts(settings.weight, "weight", "weights of rows", 0, 0, "weight"))
    made = Counter(preparation.feature_columns_)
    for plan in preparation.plans_:
        of_plan = plan.name, plan.kind, plan.note, plan.n_missing, made[plan.name], plan.read_as
        columns.append(ColumnFacts(*of_plan, fit.looks.get(plan.name, "")))
    return DataFacts(
        files=tuple(files),
        target=settings.target,
        n_rows=len(target.codes),
        n_labeled=len(target.codes) - n_unlabeled,
        n_unlabeled=n_unlabeled,
        n_features=len(preparation.feature_columns_),
        classes=tuple(ClassFacts(*each) for each in counts),
        positive=None if fit.positive is None else target.class_names[fit.positive],
        columns=tuple(columns),
    )


def ladder(
    claim: str,
    improved: bool,
    facts: ConfidentFacts | None,
    why_not: str,
    *,
    model: str | None,
    n_differing: int,
    n_unlabeled: int,
) -> tuple[Rung, ...]:
    """Return what is certain, what is confident, and what is undecided.

    The claim is certain, and `improved` if it is about an improvement. `model` is the one in the
    file, None if that is the supervised one.
    """
    scores = "This is about scores, not about probabilities or wrong predictions."
    is_open = model is None or n_differing > 0
    undecided = "Whether another model is better than the supervised one."
    if model is not None:
        undecided = (
            f"Whether the {model} model makes fewer errors than the supervised one. They "
            f"differ on {n_differing:,} of the {count(n_unlabeled, 'unlabeled row')}."
            if n_differing
            else f"Nothing about errors: the {model} model predicts the same class as the "
            "supervised one for every unlabeled row."
        )
    return (
        Rung("certain", improved, (claim, scores) if improved else (claim,)),
        Rung("confident", bool(facts and facts.chosen), tuple(_confident(facts, why_not))),
        Rung("undecided", is_open, (undecided, AUDIT) if is_open else (undecided,)),
    )


def _confident(facts: ConfidentFacts | None, why_not: str) -> Iterator[str]:
    """Yield what the labels show with confidence, and what that assumes."""
    if facts is None:
        yield f"Not known: {why_not}"
        return
    level = f"{100.0 * facts.level:g} %"
    if not facts.chosen:
        names = listed([each.name for each in facts.candidates])
        yield (
            f"Nothing: {count(facts.n_labeled, 'label')} do not show, with {level} confidence, "
            f"that a step towards {names} lowers the Brier score of the supervised model."
        )
        return
    sample = "a random sample of" if facts.is_sample else "the"
    rest = 1.0 - sum(each.step for each in facts.chosen)
    parts = [("the supervised model", rest), *((each.name, each.step) for each in facts.chosen)]
    blend = listed([f"{percent(step)} {name}" for name, step in parts if step > 0.0])
    yield (
        f"With {level} confidence, the Brier score of the stacked model on {sample} "
        f"{count(facts.n_unlabeled, 'unlabeled row')} is lower than that of the supervised model "
        f"by at least {number(-facts.largest_change, 2)}; the estimate is "
        f"{number(-facts.expected_change, 2)}. Its probabilities are a blend: {blend}."
    )
    yield (
        "Likely, not proved: this holds in large samples, if labels are missing completely at "
        "random, and if the model fitted to all labels does as well as the cross-validated ones."
    )
