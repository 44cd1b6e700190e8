"""Look at a fit from all sides: the numbers of a report."""

from __future__ import annotations

import datetime as dt
import platform
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from neverworse import __version__
from neverworse.projection import Certificate
from neverworse.projection.words import count, number
from neverworse.study._coefficients import coefficients
from neverworse.study._comparison import Compared, compare
from neverworse.study._curves import labeled_curve, unlabeled_curve
from neverworse.study._fit import AUTO, FitSettings, TableFit
from neverworse.study._importance import permutation_importance
from neverworse.study._methods import PROJECTED, SUPERVISED, standard_methods
from neverworse.study._scored import ScoredRows
from neverworse.study._study import (
    ClassFacts,
    ColumnFacts,
    Curve,
    DataFacts,
    FileFacts,
    Importance,
    Scalar,
    Study,
)
from neverworse.study._threshold import ThresholdRule
from neverworse.study._verdict import Evidence, Guarantee, verdict_of

PACKAGES = ("numpy", "scipy", "scikit-learn", "pyarrow", "skops")

Progress = Callable[[str, float], None]


def assess(
    fit: TableFit,
    settings: FitSettings,
    *,
    files: Sequence[FileFacts],
    command: str,
    more_methods: bool = False,
    curves: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Study, ScoredRows]:
    """Compute everything that a report says about a fit.

    Parameters
    ----------
    fit : TableFit
    settings : FitSettings
    files : sequence of FileFacts
    command : str
        That does the same again.
    more_methods : bool
        Whether to compare with self-learning, TSVM and label spreading as well.
    curves : bool
        Whether to compute learning curves.
    seed : int
    progress : callable, optional
        Called with what is being done, and which share of it is done.

    Returns
    -------
    study : Study
    scored : ScoredRows
    """
    told = progress or _silent
    names = fit.target.class_names
    scored = ScoredRows.of(
        fit.classifier, fit.features, fit.target.codes, names, fit.weights, fit.row_names
    )
    notes = list(fit.notes)
    compared = _comparison(fit, more_methods, seed, told, notes)
    unlabeled, labeled = _curves(fit, seed, told, notes) if curves and compared else (None, None)
    weights, intercepts = coefficients(fit.classifier, fit.model.preparation_, fit.features, names)
    certificate = fit.model.certificate_
    comparison = None if compared is None else compared.comparison
    data, changes = _data(fit, settings, files, scored), scored.changes()
    evidence = Evidence(
        guarantee=_guarantee(certificate),
        claim=claim(certificate),
        penalised=certificate.penalty > 0.0,
        no_room=certificate.reason == "inside",
        has_prior=bool(settings.prior),
        data=data,
        changes=changes,
        comparison=comparison,
        # Weights of classes make scores that are no probabilities: no Brier score tells.
        better=() if compared is None or settings.class_weight else compared.better,
        labeled_curve=labeled,
        telling=fit.telling,
        thresholded=str(settings.threshold) != str(ThresholdRule()),
    )
    verdict = verdict_of(evidence)
    model = verdict.model if settings.model == AUTO else settings.model
    study = Study(
        version=__version__,
        made=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        command=command,
        settings=_settings(fit, settings, seed),
        packages=_packages(),
        data=data,
        verdict=verdict,
        certificate=certificate.to_dict(),
        claim=evidence.claim,
        certificate_words=certificate.summary(),
        scores=scored.scores(),
        changes=changes,
        coefficients=weights,
        intercepts=intercepts,
        importance=_importance(fit, model, seed, told, notes) if compared else None,
        unlabeled_curve=unlabeled,
        labeled_curve=labeled,
        comparison=comparison,
        notes=tuple(notes),
    )
    return study, scored


def _silent(what: str, share: float) -> None:
    """Show no progress."""


def claim(certificate: Certificate) -> str:
    """Return what is proved, in one sentence for people who know nothing of squared losses."""
    where = (
        f"the {count(certificate.n_unlabeled, 'unlabeled row')}"
        if certificate.rows == "unlabeled"
        else f"all {certificate.n_labeled + certificate.n_unlabeled:,} rows"
    )
    weighted = certificate.class_weight and certificate.rows == "all"
    included = [
        *(["ridge penalty included"] if certificate.penalty else []),
        *(["labeled rows weighted by class"] if weighted else []),
    ]
    if included:
        where += f", {' and '.join(included)},"
    conditions = certificate.assumptions.conditions()
    if certificate.reason:
        why = (
            f"some classes of the unlabeled rows{conditions} would give exactly this model, so "
            "that no other is better whatever they are"
            if certificate.reason == "inside"
            else "no improvement was found that is certain whatever the classes of the unlabeled "
            f"rows are{conditions}"
        )
        return f"The projected model is the supervised one: {why}."
    if not certificate.holds:
        return (
            "No guarantee: with some classes of the unlabeled rows, this model's squared error on "
            f"{where} would be larger than that of the model of the labeled rows alone."
        )
    least = certificate.guaranteed_improvement
    highest = certificate.supervised_loss[1]
    share = f" ({100.0 * least / highest:.2g} %)" if 0.0 < highest < np.inf else ""
    return (
        f"Whatever the true classes of the {count(certificate.n_unlabeled, 'unlabeled row')} are"
        f"{conditions}, this model's squared error on {where} is at least {number(least)}{share} "
        f"lower than that of a model of the {certificate.n_labeled:,} labeled rows alone."
    )


def _guarantee(certificate: Certificate) -> Guarantee:
    if certificate.reason:
        return "same"
    return "improved" if certificate.holds else "none"


def _comparison(
    fit: TableFit, more_methods: bool, seed: int, told: Progress, notes: list[str]
) -> Compared | None:
    methods = standard_methods(
        fit.classifier, compare=more_methods, n_classes=len(fit.target.classes), seed=seed
    )
    try:
        return compare(
            methods,
            fit.features,
            fit.target.codes,
            classes=fit.target.class_names,
            positive=fit.positive,
            sample_weight=fit.weights,
            seed=seed,
            progress=lambda done, total: told("comparing methods", done / total),
        )
    except ValueError as error:
        notes.append(f"Methods were not compared. {error}")
        return None


def _importance(
    fit: TableFit, model: str, seed: int, told: Progress, notes: list[str]
) -> Importance | None:
    if model in (SUPERVISED, PROJECTED):
        return None  # their weights say what matters
    methods = standard_methods(
        fit.classifier, compare=True, n_classes=len(fit.target.classes), seed=seed
    )
    told("importance of columns", 0.0)
    try:
        return permutation_importance(
            model,
            methods[model],
            fit.features,
            fit.target.codes,
            fit.model.preparation_.feature_columns_,
            sample_weight=fit.weights,
            seed=seed,
            progress=lambda done, total: told("importance of columns", done / total),
        )
    except ValueError as error:
        notes.append(f"The importance of columns was not computed. {error}")
        return None


def _curves(
    fit: TableFit, seed: int, told: Progress, notes: list[str]
) -> tuple[Curve | None, Curve | None]:
    found: list[Curve | None] = []
    for name, curve in (("unlabeled", unlabeled_curve), ("labeled", labeled_curve)):
        told(f"learning curve of {name} rows", 0.0)
        try:
            found.append(
                curve(
                    fit.classifier,
                    fit.features,
                    fit.target.codes,
                    sample_weight=fit.weights,
                    seed=seed,
                )
            )
        except ValueError as error:
            notes.append(f"There is no learning curve of {name} rows. {error}")
            found.append(None)
        told(f"learning curve of {name} rows", 1.0)
    return found[0], found[1]


def _settings(fit: TableFit, settings: FitSettings, seed: int) -> dict[str, Scalar]:
    prior = settings.prior
    if not isinstance(prior, str):
        parts = ((name or fit.target.class_names[1], *bounds) for name, bounds in prior.items())
        prior = ", ".join(f"{name}: {low:g} to {high:g}" for name, low, high in parts) or "none"
    return {
        "target": settings.target,
        "distance": settings.distance,
        "alpha": fit.classifier.supervised_.alpha_,
        "alpha_chosen_by": "leave-one-out" if settings.alpha == "loo" else None,
        "constraint_alpha": fit.classifier.certificate_.penalty,
        "class prior": prior,
        "class weight": settings.class_weight,
        "model": settings.model,
        "threshold": str(settings.threshold),
        "calibrate": settings.calibrate,
        "weights": settings.weight,
        "positive": settings.positive,
        "seed": seed,
    }


def _packages() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _data(
    fit: TableFit,
    settings: FitSettings,
    files: Sequence[FileFacts],
    scored: ScoredRows,
) -> DataFacts:
    target = fit.target
    n_classes = len(target.classes)
    before, after = (np.bincount(found, minlength=n_classes) for found in scored.predictions)
    classes = tuple(
        ClassFacts(name, count, int(before[k]), int(after[k]))
        for k, (name, count) in enumerate(zip(target.class_names, target.counts(), strict=True))
    )
    return DataFacts(
        files=tuple(files),
        target=settings.target,
        n_rows=len(target.codes),
        n_labeled=int(target.labeled.sum()),
        n_unlabeled=int((~target.labeled).sum()),
        n_features=len(fit.model.preparation_.feature_columns_),
        classes=classes,
        positive=None if fit.positive is None else target.class_names[fit.positive],
        columns=_columns(fit, settings),
    )


def _columns(fit: TableFit, settings: FitSettings) -> tuple[ColumnFacts, ...]:
    preparation = fit.model.preparation_
    n_unlabeled = int((~fit.target.labeled).sum())
    facts = [ColumnFacts(settings.target, "target", "labels", n_unlabeled, 0, "target")]
    if settings.id is not None:
        facts.append(ColumnFacts(settings.id, "id", "names the rows", 0, 0, "id"))
    if settings.weight is not None:
        facts.append(ColumnFacts(settings.weight, "weight", "weights of rows", 0, 0, "weight"))
    n_features = Counter(preparation.feature_columns_)
    for plan in preparation.plans_:
        made = n_features[plan.name]
        look = fit.looks.get(plan.name, "")
        facts.append(
            ColumnFacts(
                *(plan.name, plan.kind, plan.note, plan.n_missing, made, plan.read_as, look)
            )
        )
    return tuple(facts)
