"""The model in the model file: chosen, fitted to all rows, decided on, and audited."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from neverworse._typing import Indices, Matrix, Vector
from neverworse._words import count
from neverworse.estimators import DelegatingClassifier, audit
from neverworse.evidence import FEWEST_LABELS, SafeStackingClassifier
from neverworse.rows import Rows
from neverworse.study import _methods
from neverworse.study._decision import decision_of, decision_settings
from neverworse.study._fit import FitSettings, TableFit
from neverworse.study._held_out import LEVEL, MOST_LABELED, USUAL_FOLDS, draw_sample
from neverworse.study._methods import AUTO, NEIGHBOURS, OURS, PROJECTED, STACKED, SUPERVISED
from neverworse.study._side_by_side import Predicted
from neverworse.study._study import (
    AuditFacts,
    CandidateFacts,
    Comparison,
    ConfidentFacts,
    ModelFacts,
    Verdict,
)
from neverworse.tables import DecidedClassifier, TableClassifier, TableError, outputs

# Methods that read rows chunk by chunk, or learn from the labeled ones alone.
OUT_OF_CORE = (*OURS, "logistic regression", "random forest", "gradient boosting")
# Unlabeled rows in each fit of stacking: self-learning takes a second with four times as many.
MOST_UNLABELED = 5_000
BLOCK = 100_000  # rows that are predicted at a time, if the table is not in memory

Outputs = tuple[Indices, Vector, Matrix | None]  # predicted classes, their scores, probabilities


@dataclass(frozen=True)
class Chosen:
    """The model in the model file, and its predictions for the unlabeled rows."""

    model: TableClassifier
    facts: ModelFacts
    codes: Indices  # predicted classes
    supervised: Indices  # those that the supervised model predicts with the same threshold
    scores: Vector  # of the predicted classes, see `tables.outputs`
    probabilities: Matrix | None


@dataclass(frozen=True)
class Stacked:
    """The supervised model, moved towards candidates as far as the labels allow."""

    facts: ConfidentFacts | None  # None if there is no stacked model
    why_not: str = ""
    model: Any = None  # fitted; the supervised model itself, if nothing is shown to be better
    method: Any = None  # the same steps, to be fitted to other rows

    @property
    def parts(self) -> dict[str, Any]:
        """The methods, by name, that `method` consists of."""
        names = [each.name for each in self.facts.chosen] if self.facts else []
        return dict(zip([SUPERVISED, *names], self.method.parts, strict=True))

    @property
    def has_moved(self) -> bool:
        return self.facts is not None and bool(self.facts.chosen)


def stack(fit: TableFit, settings: FitSettings, seed: int = 0) -> Stacked:
    """Move the supervised model towards the candidates, with at most a sample of unlabeled rows."""
    if reason := _no_stacking(fit, settings):
        return Stacked(None, reason)
    names = SUPERVISED, *settings.candidates
    methods = _methods.standard_methods(fit.classifier, names, seed=seed)
    baseline = methods.pop(SUPERVISED)
    try:
        sample = draw_sample(*fit.rows, MOST_UNLABELED, seed, fits_per_split=len(methods))
    except ValueError as error:  # too few labels of a class
        return Stacked(None, _methods.reason_of(error))
    try:
        most = int(np.bincount(sample.y[: sample.n_labeled].astype(np.intp)).max())
        unfitted = SafeStackingClassifier(
            baseline,
            list(methods.items()),
            level=LEVEL,
            cv=min(USUAL_FOLDS, most),
            response="predict_proba",
            missing_label=np.nan,
            random_state=seed,
        )
        stacking = _methods.fitted(unfitted, sample.X, sample.y, sample.weights)
    except Exception as error:  # of any candidate
        reason = _methods.reason_of(error)
        return Stacked(None, f"a fit failed. {reason} Choose others: --candidates.")
    evidence, model = stacking.evidence_, stacking.model_
    weights = sample.weights_of(slice(sample.n_labeled))
    differences = np.average(evidence.differences, axis=0, weights=weights)
    columns = zip(evidence.names, evidence.steps, differences, strict=True)
    facts = ConfidentFacts(
        tuple(CandidateFacts(name, float(step), float(d)) for name, step, d in columns),
        evidence.level,
        evidence.n_labeled,
        evidence.n_unlabeled,
        sample.n_unlabeled < int((~fit.target.labeled).sum()),
        evidence.expected_change,
        evidence.largest_change,
    )
    if facts.chosen:  # the model file has only what predicts
        model.candidates = [(name, _core(each)) for name, each in model.candidates]
    candidates = [methods[each.name] for each in facts.chosen]
    steps = [each.step for each in facts.chosen]
    return Stacked(facts, "", model, _methods.SteppedClassifier(baseline, candidates, steps))


def _no_stacking(fit: TableFit, settings: FitSettings) -> str | None:
    """Return why there is no stacked model, if that is known before candidates are fitted."""
    used = fit.target.labeled if fit.weights is None else fit.target.labeled & (fit.weights > 0.0)
    n_labels = int(used.sum())
    if not settings.candidates:
        return "it was turned off (--candidates none)."
    if settings.class_weight:
        return "with --class-weight, scores are not probabilities that could be compared."
    if n_labels < FEWEST_LABELS:
        return f"it needs at least {FEWEST_LABELS} labeled rows, and there are {n_labels}."
    if n_labels > MOST_LABELED:  # a model of some labels would be compared with one of all
        return (
            f"there are more than {MOST_LABELED:,} labels, too many to fit all candidates several "
            "times. Compare methods on held-out rows: --compare."
        )
    return None


def check_choice(fit: TableFit, settings: FitSettings) -> None:
    """Raise `TableError` if the chosen model cannot be made, before methods are compared."""
    if settings.is_decided:
        decision_settings(fit, settings)
    if settings.model == AUTO:
        return
    n_classes = len(fit.target.classes)
    if settings.model not in (STACKED, *_methods.method_names(n_classes)):
        raise TableError(f"{settings.model} is for two classes, and there are {n_classes}.")
    if obstacle := _obstacle(settings.model, fit):
        raise TableError(f"{obstacle} Choose another --model.")


def _obstacle(name: str, fit: TableFit) -> str | None:
    """Return why a method makes no model file for a table, if it does not."""
    if name == NEIGHBOURS:
        return f"{NEIGHBOURS} needs the rows of the table to predict, so it has no model file."
    if not isinstance(fit.features, Rows) or name in (STACKED, *OUT_OF_CORE):
        return None
    return f"{name} needs all rows in memory (--memory GB), and this table is larger than that."


def choose(
    fit: TableFit,
    settings: FitSettings,
    verdict: Verdict,
    comparison: Comparison | None,
    stacked: Stacked,
    seed: int = 0,
) -> Chosen:
    """Fit the chosen model to all rows, and find out what is known about it."""
    name, words = _resolved(settings.model, verdict, comparison, fit)
    if name == STACKED:
        method, estimator = stacked.method, stacked.model
    else:
        method = _methods.standard_methods(fit.classifier, [name], seed=seed)[name]
        estimator = _estimator(name, method, fit)
    supervised = fit.classifier.supervised_
    before = _outputs(supervised, fit)
    decision, baseline_codes = None, before[0]
    if settings.is_decided:
        wanted = decision_settings(fit, settings)
        found, decision = decision_of(name, method, estimator, fit, wanted, comparison, seed)
        estimator = DecidedClassifier(estimator, **found)
        # Otherwise rows would differ by the threshold alone. Scores of other methods are of another
        # kind, so that their calibration means nothing here.
        same = found if name in OURS else found | {"sigmoids": None}
        baseline_codes = _outputs(DecidedClassifier(supervised, **same), fit)[0]
    after = before if estimator is supervised else _outputs(estimator, fit)
    model = copy(fit.model)
    model.estimator_, model.baseline_ = estimator, supervised
    certified = name == PROJECTED or (name == SUPERVISED and bool(fit.model.certificate_.reason))
    parts = stacked.parts if name == STACKED else [name]
    compiled = any(part in _methods.COMPILED for part in parts)
    facts = ModelFacts(
        name=name,
        certified=certified,
        compiled=compiled,
        words=(*words, *_words(name, certified, compiled, decision is not None, stacked)),
        decision=decision,
        audit=_audit(fit, before, after),
    )
    codes, scores, shares = after
    return Chosen(model, facts, codes, baseline_codes, scores, shares)


def _resolved(
    asked: str, verdict: Verdict, comparison: Comparison | None, fit: TableFit
) -> tuple[str, tuple[str, ...]]:
    """Return the name of a method, and notes on how it was found."""
    failures = {} if comparison is None else comparison.failures
    if asked in failures:
        raise TableError(f"{asked} failed: {failures[asked]} Choose another --model.")
    if asked != AUTO:
        return asked, ()
    if obstacle := _obstacle(verdict.model, fit):
        return SUPERVISED if fit.model.certificate_.reason else PROJECTED, (obstacle,)
    return verdict.model, ()


def _estimator(name: str, method: Any, fit: TableFit) -> Any:
    """Return the classifier of the features, fitted to all rows that it uses."""
    if name == SUPERVISED:
        return fit.classifier.supervised_
    model = fit.classifier
    if name != PROJECTED:
        X, y, weights = fit.rows
        if isinstance(X, Rows) and isinstance(method, _methods.TunedClassifier):
            labeled = np.flatnonzero(fit.target.labeled)  # it learns from these alone
            X, y = X.take(labeled), y[labeled]
            weights = None if weights is None else weights[labeled]
        try:
            model = _core(_methods.fitted(method, X, y, weights))
        except Exception as error:
            reason = _methods.reason_of(error)
            raise TableError(f"{name} failed: {reason} Choose another --model.") from None
    small = copy(model)
    small.__dict__.pop("_soft_labels_", None)  # of all rows, which would be in the model file
    return small


def _core(model: Any) -> Any:
    while isinstance(model, DelegatingClassifier):
        model = model.estimator_
    return model


def _outputs(estimator: Any, fit: TableFit) -> Outputs:
    """Return predictions for the unlabeled rows."""
    features, rows = fit.features, np.flatnonzero(~fit.target.labeled)
    if not isinstance(features, Rows):
        return outputs(estimator, features[rows])
    blocks = (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))
    parts = [outputs(estimator, features.take(block)) for block in blocks]
    codes, scores = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    shares = [part[2] for part in parts if part[2] is not None]
    return codes, scores, np.vstack(shares) if shares else None


def _audit(fit: TableFit, before: Outputs, after: Outputs) -> AuditFacts:
    """Compare with the supervised model on the unlabeled rows, whatever their classes are."""
    n_classes, n_rows = len(fit.target.classes), len(after[0])
    response: Literal["predict_proba", "error"] = "error" if after[2] is None else "predict_proba"
    if response == "error":
        loss, same = "share of wrong classes", np.array_equal(after[0], before[0])
        models: list[Any] = [Predicted(each[0], n_classes) for each in (after, before)]
    else:
        loss, once = "Brier score of the probabilities", 1 if n_classes == 2 else slice(None)
        models = [np.asarray(each[2])[:, once] for each in (after, before)]
        same = np.array_equal(*models)
    assumptions = fit.classifier.certificate_.assumptions
    worst = best = 0.0
    if not same:
        unknown = np.full(n_rows, np.nan)
        # The class prior of --prior holds here, too.
        prior = {int(float(code)): (low, high) for code, low, high in assumptions.class_prior}
        found = audit(
            models[0],
            models[1],
            unknown[:, None],
            unknown,
            response=response,
            sample_weight=None if fit.weights is None else fit.weights[~fit.target.labeled],
            class_prior=prior or None,
            missing_label=np.nan,
        )
        worst, best = found.worst_case, found.best_case
    rows = f"on the {count(n_rows, 'unlabeled row')}"
    conditions = fit.model.certificate_.assumptions.conditions()
    always = f"{rows}, whatever their classes are{conditions}"
    if same:
        words = f"The {loss} is that of the supervised model {always}."
    elif worst <= 0.0:
        words = (
            f"The {loss} is never higher than that of the supervised model {always}: it is "
            f"{-worst:.3g} to {-best:.3g} lower."
        )
    else:
        lower = f"{-best:.3g} lower" if best < 0.0 else "never lower"
        words = (
            f"The {loss} may be up to {worst:.3g} higher than that of the supervised model, or "
            f"{lower}, {rows}, depending on what their classes are{conditions}."
        )
    return AuditFacts(response, worst, best, worst <= 0.0, words)


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
