"""The study of a fit: the numbers and sentences of its report, and the model that follows."""

from __future__ import annotations

import datetime as dt
import platform
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any, TypeVar

import numpy as np

from neverworse import __version__
from neverworse._typing import Indices
from neverworse.estimators import class_scores
from neverworse.rows import Rows, as_rows
from neverworse.study import _methods, _study
from neverworse.study._choice import Chosen, check_choice, choose, stack
from neverworse.study._comparison import Compared, RowKind, learning_curve
from neverworse.study._fit import FitSettings, TableFit
from neverworse.study._held_out import Progress
from neverworse.study._verdict import Evidence, claim, ladder, verdict_of
from neverworse.tables import TableError

N_BINS = 40
MOST_CHANGED = 500
PACKAGES = ("numpy", "scipy", "scikit-learn", "pyarrow", "skops")

Part = TypeVar("Part")


def assess(
    fit: TableFit,
    settings: FitSettings,
    *,
    files: Sequence[_study.FileFacts],
    command: str,
    compare_all: bool = False,
    curves: bool = True,
    seed: int = 0,
    notify: Progress = lambda *_: None,
) -> tuple[_study.Study, ScoredRows, Chosen]:
    """Compute everything in the report of a fit, and make the model that was chosen.

    `command` reproduces the fit. With `compare_all`, all methods are compared: otherwise those of
    the paper, and the chosen one. `TableError` if the model cannot be made.
    """
    check_choice(fit, settings)
    names, certificate = fit.target.class_names, fit.model.certificate_
    scored, notes = ScoredRows(fit), list(fit.notes)
    wanted = _methods.METHODS if compare_all else (*_methods.OURS, settings.model)
    methods = _methods.standard_methods(fit.classifier, wanted, seed=seed)
    notify("moving towards candidates", 0.0)
    stacked = stack(fit, settings, seed)
    if settings.model == _methods.STACKED and stacked.facts is None:
        raise TableError(f"There is no stacked model: {stacked.why_not} Choose another --model.")
    if settings.model == _methods.STACKED or stacked.has_moved:
        methods[_methods.STACKED] = stacked.method

    def unless_impossible(problem: str, compute: Callable[..., Part], *given: Any) -> Part | None:
        try:
            return compute(*given)
        except ValueError as error:
            notes.append(f"{problem} {error}")
            return None

    compare = partial(Compared, classes=names, positive=fit.positive, notify=notify, seed=seed)
    compared = unless_impossible("Methods were not compared.", compare, methods, *fit.rows)
    drawn: dict[RowKind, _study.Curve | None] = {"unlabeled": None, "labeled": None}
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
    has_weights = fit.classifier.kernel == "linear" and model in (
        _methods.SUPERVISED,
        _methods.PROJECTED,
    )
    if compared is not None and not has_weights:
        problem = "The importance of columns was not computed."
        of_features = fit.model.preparation_.feature_columns_
        importance = unless_impossible(problem, compared.importance, model, of_features)
    proved, (weights, intercepts) = claim(certificate), coefficients(fit)
    study = _study.Study(
        version=__version__,
        made=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        command=command,
        settings=_settings(fit, settings, seed),
        packages={"python": platform.python_version()} | {name: version(name) for name in PACKAGES},
        data=evidence.data,
        verdict=verdict_of(evidence, chosen.facts),
        ladder=ladder(
            proved,
            evidence.guarantee == "improved",
            stacked.facts,
            stacked.why_not,
            model=model,
            n_differing=int(np.sum(chosen.codes != chosen.supervised)),
            n_unlabeled=len(chosen.codes),
        ),
        confident=stacked.facts,
        certificate=certificate.to_dict(),
        claim=proved,
        certificate_words=certificate.summary(),
        scores=scored.scores(),
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


def _settings(fit: TableFit, settings: FitSettings, seed: int) -> dict[str, _study.Scalar]:
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
        "threshold": str(settings.threshold),
        "calibrate": settings.calibrate,
        "weights": settings.weight,
        "positive": settings.positive,
        "seed": seed,
    }


def _data(
    fit: TableFit, settings: FitSettings, files: Sequence[_study.FileFacts], scored: ScoredRows
) -> _study.DataFacts:
    target, preparation = fit.target, fit.model.preparation_
    n_unlabeled = int((~target.labeled).sum())
    n_classes, names = len(target.classes), target.class_names
    predicted = (np.bincount(each, minlength=n_classes).tolist() for each in scored.predictions)
    columns = [_study.ColumnFacts(settings.target, "target", "labels", n_unlabeled, 0, "target")]
    if settings.id is not None:
        columns.append(_study.ColumnFacts(settings.id, "id", "names the rows", 0, 0, "id"))
    if settings.weight is not None:
        columns.append(
            _study.ColumnFacts(settings.weight, "weight", "weights of rows", 0, 0, "weight")
        )
    made = Counter(preparation.feature_columns_)
    for plan in preparation.plans_:
        of_plan = plan.name, plan.kind, plan.note, plan.n_missing, made[plan.name], plan.read_as
        columns.append(_study.ColumnFacts(*of_plan, fit.looks.get(plan.name, "")))
    return _study.DataFacts(
        files=tuple(files),
        target=settings.target,
        n_rows=len(target.codes),
        n_labeled=len(target.codes) - n_unlabeled,
        n_unlabeled=n_unlabeled,
        n_features=len(preparation.feature_columns_),
        classes=tuple(map(_study.ClassFacts, names, target.counts(), *predicted)),
        positive=None if fit.positive is None else names[fit.positive],
        columns=tuple(columns),
    )


class ScoredRows:
    """Scores of both models on all rows of a table: 1 for rows of the class, 0 for all others."""

    def __init__(self, fit: TableFit) -> None:
        models, unlabeled = (fit.classifier.supervised_, fit.classifier), ~fit.target.labeled
        self.classes, self.codes = fit.target.class_names, fit.target.codes
        self.positive, self.row_names, self.unlabeled = fit.positive, fit.row_names, unlabeled
        scores = [class_scores(model, fit.features) for model in models]
        self.supervised, self.projected = scores  # n_rows x n_classes
        # The classes that the two models give to the unlabeled rows, and their imputed labels.
        self.predictions: list[Indices] = [each[unlabeled].argmax(axis=1) for each in scores]
        soft = np.asarray(fit.classifier.soft_labels_)
        self.soft_labels = np.column_stack([1.0 - soft, soft]) if soft.ndim == 1 else soft

    def scores(self) -> tuple[_study.Scores, ...]:
        """Return histograms of the scores, for each class that is shown."""
        found = []
        for k in _shown(self.classes, self.positive):
            both = np.stack([self.supervised[:, k], self.projected[:, k]])
            # A few outliers must not squeeze all other rows into one bin.
            low, high = np.quantile(both, [0.002, 0.998])
            edges = np.linspace(min(low, -0.05), max(high, 1.05), N_BINS + 1)
            both = np.clip(both, edges[0], edges[-1])  # outliers are in the outermost bins
            others = self.classes[1 - k] if len(self.classes) == 2 else "other classes"
            own, groups = self.codes == k, []
            for name, rows in [
                (self.classes[k], own),
                (others, ~own & ~self.unlabeled),
                ("unlabeled", self.unlabeled),
            ]:
                counts = (tuple(np.histogram(scores[rows], edges)[0].tolist()) for scores in both)
                groups.append(_study.ScoreGroup(name, int(rows.sum()), *counts))
            found.append(_study.Scores(self.classes[k], tuple(edges.tolist()), tuple(groups)))
        return tuple(found)

    def changes(self) -> _study.Changes:
        """Return the unlabeled rows whose predicted class changed, largest changes first."""
        first, second = self.predictions
        changed = np.flatnonzero(first != second)
        before, after = (
            scores[self.unlabeled][changed, second[changed]]
            for scores in (self.supervised, self.projected)
        )
        order = np.argsort(-np.abs(after - before), kind="stable")[:MOST_CHANGED]
        rows = tuple(
            _study.ChangedRow(
                str(self.row_names[int(row)]),
                self.classes[first[row]],
                self.classes[second[row]],
                float(before[k]),
                float(after[k]),
                float(self.soft_labels[row, second[row]]),
            )
            for k, row in zip(order, changed[order], strict=True)
        )
        return _study.Changes(len(changed), len(first), rows)


def _shown(classes: Sequence[str], positive: int | None) -> Sequence[int]:
    """Return the classes that are shown: of two, the positive one is enough."""
    if len(classes) > 2:
        return range(len(classes))
    return [1 if positive is None else positive]


def coefficients(
    fit: TableFit,
) -> tuple[tuple[_study.Coefficient, ...], tuple[_study.Coefficient, ...]]:
    """Return the weights and the intercepts of a linear model.

    The intercept is the score where all features are 0; the scaled one, where all are at their
    means.
    """
    classifier, preparation = fit.classifier, fit.model.preparation_
    if classifier.kernel != "linear":
        return (), ()
    classes = fit.target.class_names
    two = len(classes) == 2
    rows = fit.features if isinstance(fit.features, Rows) else as_rows(fit.features)
    means = rows.weighted_sum(np.ones(rows.n_rows)) / rows.n_rows
    deviations = np.sqrt(np.maximum(rows.squares() / rows.n_rows - means**2, 0.0))
    units, offsets = preparation.units(), preparation.offsets()
    named = list(
        zip(preparation.get_feature_names_out().tolist(), preparation.feature_columns_, strict=True)
    )
    models = classifier.supervised_, classifier
    at_zero, at_mean = (
        [class_scores(model, place[None])[0] for model in models]
        for place in (-offsets / units, means)
    )
    # Scores of two classes add up to 1, and the model has those of the second.
    of_models = [np.vstack([-m.coef_, m.coef_]) if two else m.coef_ for m in models]
    weights, intercepts = [], []
    for k in _shown(classes, fit.positive):
        before, after = (of_classes[k] for of_classes in of_models)
        values = before / units, after / units, before * deviations, after * deviations
        weights += [
            _study.Coefficient(*words, classes[k], *map(float, of_feature))
            for words, *of_feature in zip(named, *values, strict=True)
        ]
        scores = (float(of_classes[k]) for of_classes in (*at_zero, *at_mean))
        intercepts.append(_study.Coefficient("intercept", "", classes[k], *scores))
    return tuple(weights), tuple(intercepts)
