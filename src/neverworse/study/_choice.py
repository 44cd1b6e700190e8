"""The model in the model file: chosen, fitted to all rows, decided on, and audited."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from neverworse import tables
from neverworse._typing import Indices, Mask, Matrix, Vector
from neverworse._words import count
from neverworse.estimators import DelegatingClassifier, audit
from neverworse.evidence import FEWEST_LABELS, SafeStackingClassifier
from neverworse.model_selection import StratifiedLabeledKFold
from neverworse.rows import Rows
from neverworse.study import _methods, _study
from neverworse.study._fit import FitSettings, TableFit, ThresholdRule
from neverworse.study._held_out import (
    LEVEL,
    MAX_UNLABELED,
    MOST_FOLDS,
    MOST_LABELED,
    HeldOut,
    Sample,
    Truth,
    draw_sample,
    numbers,
    taken,
)
from neverworse.study._methods import AUTO, MODELS, OURS, PROJECTED, STACKED, SUPERVISED

# Methods that need no more rows in memory than the labeled ones and a sample of the others.
LEARN_FROM_LABELED = ("logistic regression", "random forest", "gradient boosting")
OUT_OF_CORE = (*OURS, STACKED, *LEARN_FROM_LABELED)
# Unlabeled rows in each fit of stacking: self-learning takes a second with four times as many.
MOST_UNLABELED = 5_000
BLOCK = 100_000  # rows that are predicted at a time
MIN_LABELS = 3  # of each class: one is held out, and two are left to be held out in turn


@dataclass(frozen=True)
class Chosen:
    """The model in the model file, and its predictions for the unlabeled rows."""

    model: tables.TableClassifier
    facts: _study.ModelFacts
    codes: Indices  # predicted classes
    supervised: Indices  # those that the supervised model predicts with the same threshold
    scores: Vector  # of the predicted classes, see `tables.outputs`
    probabilities: Matrix


@dataclass(frozen=True)
class Stacked:
    """The supervised model, moved towards candidates as far as the labels allow."""

    facts: _study.ConfidentFacts | None  # None if there is no stacked model
    why_not: str = ""
    model: Any = None  # fitted; the supervised model itself, if nothing is shown to be better
    method: Any = None  # the same steps, to be fitted to other rows

    @property
    def has_moved(self) -> bool:
        return self.facts is not None and bool(self.facts.chosen)


def stack(fit: TableFit, settings: FitSettings, seed: int = 0) -> Stacked:
    """Move the supervised model towards the candidates, with at most a sample of unlabeled rows."""
    labeled = fit.target.labeled
    n_labels = np.count_nonzero(labeled if fit.weights is None else fit.weights[labeled])
    reason = None
    if not settings.candidates:
        reason = "it was turned off (--candidates none)."
    elif settings.class_weight:
        reason = "with --class-weight, scores are not probabilities that could be compared."
    elif n_labels < FEWEST_LABELS:
        reason = f"it needs at least {FEWEST_LABELS} labeled rows, and there are {n_labels}."
    elif n_labels > MOST_LABELED:  # a model of some labels would be compared with one of all
        reason = f"there are more than {MOST_LABELED:,} labels. To compare methods: --compare."
    if reason:
        return Stacked(None, reason)
    names = SUPERVISED, *settings.candidates
    methods = _methods.standard_methods(fit.classifier, names, seed=seed)
    baseline = methods.pop(SUPERVISED)
    try:
        sample = draw_sample(*fit.rows, MOST_UNLABELED, seed, fits_per_split=len(methods))
        most = int(np.bincount(sample.y[: sample.n_labeled].astype(np.intp)).max())
        unfitted = SafeStackingClassifier(
            baseline,
            list(methods.items()),
            level=LEVEL,
            cv=min(MOST_FOLDS, most),
            response="predict_proba",
            missing_label=np.nan,
            random_state=seed,
        )
        stacking = _methods.fitted(unfitted, sample.X, sample.y, sample.weights)
    except Exception as error:  # too few labels, or that of any candidate
        return Stacked(None, f"{_methods.reason_of(error)} To choose others: --candidates.")
    evidence, model = stacking.evidence_, stacking.model_
    weights = sample.weights[: sample.n_labeled]
    differences = np.average(evidence.differences, axis=0, weights=weights)
    tried = map(
        _study.CandidateFacts, evidence.names, evidence.steps.tolist(), differences.tolist()
    )
    rows = evidence.level, evidence.n_labeled, evidence.n_unlabeled
    is_sample = sample.n_unlabeled < int((~labeled).sum())
    changes = evidence.expected_change, evidence.largest_change
    facts = _study.ConfidentFacts(tuple(tried), *rows, is_sample, *changes)
    if facts.chosen:  # the model file has only what predicts
        model.candidates = [(name, _core(each)) for name, each in model.candidates]
    candidates = [methods[each.name] for each in facts.chosen]
    steps = [each.step for each in facts.chosen]
    return Stacked(facts, "", model, _methods.SteppedClassifier(baseline, candidates, steps))


def check_choice(fit: TableFit, settings: FitSettings) -> None:
    """Raise `TableError` if the chosen model cannot be made, before methods are compared."""
    rule, names, counts = settings.threshold, fit.target.class_names, fit.target.counts()
    if rule != ThresholdRule() and len(names) != 2:
        raise tables.TableError(
            f"--threshold is for two classes, and there are {len(names)}. Leave it out: the class "
            "with the largest probability is predicted."
        )
    is_about_one = rule.kind != "balanced" and rule != ThresholdRule()
    if is_about_one and settings.positive is None and counts[0] == counts[1]:
        raise tables.TableError(
            f"--threshold {rule} is about the positive class, and both classes have "
            f"{count(counts[0], 'label')}. Say which one is positive: --positive {names[1]}."
        )
    rarest = int(np.argmin(counts))
    if settings.is_decided and counts[rarest] < MIN_LABELS:
        raise tables.TableError(
            "--threshold and --calibrate are tested on held-out labeled rows, which takes at least "
            f"{MIN_LABELS} of every class, and {names[rarest]!r} has "
            f"{count(counts[rarest], 'label')}. Label more rows, or leave these options out."
        )
    if settings.model != AUTO and (obstacle := _obstacle(settings.model, fit)):
        raise tables.TableError(f"{obstacle} Choose another --model.")


def _obstacle(name: str, fit: TableFit) -> str | None:
    """Return why a method makes no model file for a table, if it does not."""
    if name not in MODELS:
        return f"{name} gives no probabilities for new rows, so it has no model file."
    if not isinstance(fit.features, Rows) or name in OUT_OF_CORE:
        return None
    return f"{name} needs all rows in memory (--memory GB), and this table is larger than that."


def choose(
    fit: TableFit,
    settings: FitSettings,
    recommended: str,
    comparison: _study.Comparison | None,
    stacked: Stacked,
    seed: int = 0,
) -> Chosen:
    """Fit the chosen model to all rows, and find out what is known about it."""
    name, obstacle = settings.model, None
    if name == AUTO:
        name, obstacle = recommended, _obstacle(recommended, fit)
        if obstacle:
            name = SUPERVISED if fit.model.certificate_.reason else PROJECTED
    elif comparison is not None and name in comparison.failures:
        raise tables.TableError(
            f"{name} failed: {comparison.failures[name]} Choose another --model."
        )
    if name == STACKED:
        method, estimator = stacked.method, stacked.model
    else:
        method = _methods.standard_methods(fit.classifier, [name], seed=seed)[name]
        estimator = _estimator(name, method, fit)
    supervised = fit.classifier.supervised_
    before = _outputs(supervised, fit)
    decision, baseline_codes = None, before[0]
    if settings.is_decided:
        found, decision = _decision(method, fit, settings, seed)
        estimator = tables.DecidedClassifier(estimator, **found)
        # Otherwise rows would differ by the threshold alone. Scores of other methods are of another
        # kind, so that their calibration means nothing here.
        same = found if name in OURS else found | {"sigmoids": None}
        baseline_codes = _outputs(tables.DecidedClassifier(supervised, **same), fit)[0]
    after = before if estimator is supervised else _outputs(estimator, fit)
    model = copy(fit.model)
    model.estimator_, model.baseline_ = estimator, supervised
    certified = name == PROJECTED or (name == SUPERVISED and bool(fit.model.certificate_.reason))
    parts = [each.name for each in stacked.facts.chosen] if stacked.facts else []
    compiled = any(part in _methods.COMPILED for part in (parts if name == STACKED else [name]))
    said = _words(name, certified, compiled, decision is not None, stacked)
    words = (*filter(None, [obstacle]), *said)
    codes, scores, shares = after
    facts = _study.ModelFacts(
        name, certified, compiled, words, decision, _audit(fit, before[2], shares)
    )
    return Chosen(model, facts, codes, baseline_codes, scores, shares)


def _estimator(name: str, method: Any, fit: TableFit) -> Any:
    """Return the classifier of the features, fitted to all rows that it uses."""
    if name == SUPERVISED:
        return fit.classifier.supervised_
    model = fit.classifier
    if name != PROJECTED:
        X, y, weights = fit.rows
        if name in LEARN_FROM_LABELED:
            labeled = np.flatnonzero(fit.target.labeled)
            X, y = taken(X, labeled), y[labeled]
            weights = None if weights is None else weights[labeled]
        try:
            model = _core(_methods.fitted(method, X, y, weights))
        except Exception as error:
            reason = _methods.reason_of(error)
            raise tables.TableError(f"{name} failed: {reason} Choose another --model.") from None
    small = copy(model)
    small.__dict__.pop("_soft_labels_", None)  # of all rows, which would be in the model file
    return small


def _core(model: Any) -> Any:
    while isinstance(model, DelegatingClassifier):
        model = model.estimator_
    return model


def _outputs(estimator: Any, fit: TableFit) -> tuple[Indices, Vector, Matrix]:
    """Return the predicted classes of the unlabeled rows, their scores, and probabilities."""
    rows = np.flatnonzero(~fit.target.labeled)
    blocks = (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))
    parts = [tables.outputs(estimator, taken(fit.features, block)) for block in blocks]
    codes, scores, shares = (np.concatenate(each) for each in zip(*parts, strict=True))
    return codes, scores, shares


def decide(
    method: Any, sample: Sample, rows: Indices, settings: FitSettings, positive: int, seed: int
) -> dict[str, Any]:
    """Return the settings of a `DecidedClassifier`, from some rows of a sample, by position."""
    rule, calibrate, sigmoids = settings.threshold, settings.calibrate, None
    threshold = None if rule == ThresholdRule() else rule.value
    if calibrate or rule.kind != "fixed":
        y, scored, tested = sample.y[rows], [], []
        for train, test in _folds(y[~np.isnan(y)], seed).split(rows, y):
            model, X = _methods.fit_fold(method, sample, rows[train]), sample.X[rows[test]]
            scored.append(
                tables.calibration_scores(model, X) if calibrate else model.predict_proba(X)
            )
            tested.append(rows[test])
        shares, held_out = np.vstack(scored), np.concatenate(tested)
        codes, weights = sample.y[held_out].astype(np.intp), sample.weights[held_out]
        if calibrate:
            first = int(shares.shape[1] == 1)  # one score is that of the second class
            columns = enumerate(shares.T, first)
            sigmoids = np.array([platt(each, codes == k, weights) for k, each in columns])
            shares = tables.calibrated(shares, sigmoids)
        if rule.kind != "fixed":
            threshold = rule.threshold(shares[:, positive], codes == positive, weights)
    return {"positive": positive, "threshold": threshold, "sigmoids": sigmoids}


def nested_numbers(
    method: Any, sample: Sample, truth: Truth, settings: FitSettings, positive: int, seed: int
) -> _study.Numbers:
    """Return how well a method does with what `decide` chooses in each training fold."""
    splits = list(_folds(truth.codes, seed).split(sample.X, sample.y))
    models = []
    for train, _ in splits:
        found = decide(method, sample, train, settings, positive, seed)
        models.append(tables.DecidedClassifier(_methods.fit_fold(method, sample, train), **found))
    return numbers(truth, HeldOut.of(models, splits, sample, n_repeats=1))


def _folds(codes: Vector | Indices, seed: int) -> StratifiedLabeledKFold:
    n_folds = min(MOST_FOLDS, int(np.unique(codes, return_counts=True)[1].min()))
    return StratifiedLabeledKFold(n_folds, shuffle=True, random_state=seed, missing_label=np.nan)


def platt(scores: Vector, positive: Mask, weights: Vector) -> tuple[float, float]:
    """Return slope and offset of Platt's sigmoid: logistic regression with targets inside 0 and 1.

    J. Platt, "Probabilistic outputs for support vector machines" (Advances in Large Margin
    Classifiers, 1999). Such a target makes a row a part of both classes.
    """
    n_positive, n_negative = weights[positive].sum(), weights[~positive].sum()
    high, low = (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0)
    target = np.where(positive, high, low)
    centre, spread = float(np.mean(scores)), float(np.std(scores)) or 1.0
    z = ((scores - centre) / spread)[:, None]
    model = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(
        np.vstack([z, z]),
        np.repeat([1, 0], len(z)),
        sample_weight=np.concatenate([weights * target, weights * (1.0 - target)]),
    )
    slope = float(model.coef_[0, 0]) / spread
    return slope, float(model.intercept_[0]) - slope * centre


def _decision(
    method: Any, fit: TableFit, settings: FitSettings, seed: int
) -> tuple[dict[str, Any], _study.DecisionFacts]:
    """Return the settings of a `DecidedClassifier` of a method, and what is known about them."""
    names, words = fit.target.class_names, []
    positive = fit.positive if len(names) == 2 and fit.positive is not None else 1
    try:
        sample = draw_sample(*fit.rows, MAX_UNLABELED, seed, fits_per_split=MOST_FOLDS + 1.0)
        found = decide(method, sample, np.arange(len(sample.y)), settings, positive, seed)
        truth = Truth.of(sample, names, fit.positive)
        tested = nested_numbers(method, sample, truth, settings, positive, seed)
    except ValueError as error:  # too few labels with a positive weight
        raise tables.TableError(str(error)) from None
    rule, threshold = settings.threshold, found["threshold"]
    if settings.calibrate:
        words.append("Probabilities are calibrated by Platt's sigmoid, fitted to held-out rows.")
    if threshold is not None:
        words.append(
            f"{names[positive]!r} is predicted where its probability is at least {threshold:.4g} "
            f"(--threshold {rule})."
        )
    words.append("This is tested on held-out rows, by what each training fold alone would decide.")
    of_class = names[positive] if len(names) == 2 else None
    facts = str(rule), of_class, threshold, settings.calibrate, tested
    return found, _study.DecisionFacts(*facts, tuple(words))


def _audit(fit: TableFit, before: Matrix, after: Matrix) -> _study.AuditFacts:
    """Compare with the supervised model on the unlabeled rows, whatever their classes are."""
    once = 1 if before.shape[1] == 2 else slice(None)
    # The class prior of --prior holds here, too.
    known = fit.classifier.certificate_.assumptions.class_prior
    prior = {int(float(code)): (low, high) for code, low, high in known}
    found = audit(
        after[:, once],
        before[:, once],
        None,
        np.full(len(after), np.nan),
        response="predict_proba",
        sample_weight=None if fit.weights is None else fit.weights[~fit.target.labeled],
        class_prior=prior or None,
        missing_label=np.nan,
    )
    words = "The candidate is the model in the file, the baseline the supervised one."
    facts = found.response, found.worst_case, found.best_case, found.holds
    return _study.AuditFacts(*facts, f"{found.summary()} {words}")


def _words(
    name: str, certified: bool, compiled: bool, decided: bool, stacked: Stacked
) -> Iterator[str]:
    yield f"model.skops holds the {name} model."
    if not certified:
        yield "Nothing is proved about it: the certificate is about the projected model."
    if name == STACKED:
        yield (
            "It is likely better than the supervised one in Brier score: see Confident."
            if stacked.has_moved
            else "It is the supervised one: no candidate is shown to be better."
        )
    if decided and (certified or name == STACKED):
        yield "These statements are about its scores, before threshold and calibration."
    if compiled:
        yield (
            "It predicts with compiled code, which trusts the numbers in the file. Keep the file "
            "where nobody else can change it, and open it with: neverworse predict model.skops "
            "TABLE --trust-compiled (or neverworse audit)."
        )
