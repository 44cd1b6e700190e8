"""Which model goes into the model file: chosen, fitted to all rows, decided on, and audited."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from neverworse._typing import Indices, Matrix, Vector
from neverworse._words import count
from neverworse.estimators import DelegatingClassifier, audit
from neverworse.projection import Box, Simplex
from neverworse.rows import Rows
from neverworse.study._decision import decision_of, wanted_of
from neverworse.study._fit import TableFit
from neverworse.study._held_out import Progress, silent
from neverworse.study._methods import (
    COMPILED,
    METHODS,
    NEIGHBOURS,
    OURS,
    PROJECTED,
    STACKED,
    SUPERVISED,
    TunedClassifier,
    fitted,
    method_names,
    reason_of,
    standard_methods,
)
from neverworse.study._settings import AUTO, FitSettings
from neverworse.study._side_by_side import Predicted, ScoredRows
from neverworse.study._stacked import Stacked, check_stacked, plain
from neverworse.study._study import AuditFacts, Comparison, ModelFacts, Verdict
from neverworse.tables import DecidedClassifier, TableClassifier, TableError, nearest, outputs

# Methods that read rows chunk by chunk, or learn from the labeled ones alone.
OUT_OF_CORE = (*OURS, "logistic regression", "random forest", "gradient boosting")
BLOCK = 100_000  # rows that are predicted at a time, if the table is not in memory


@dataclass(frozen=True)
class Chosen:
    """The model in the model file, and what it says of the unlabeled rows.

    Scores of the predicted classes are least squares scores of a linear model of neverworse,
    otherwise probabilities, or distances from the boundary if there are none.
    """

    model: TableClassifier
    facts: ModelFacts
    codes: Indices  # predicted classes
    supervised: Indices  # those that the supervised model predicts with the same threshold
    scores: Vector
    probabilities: Matrix | None


def named(text: str) -> str:
    """Return the name of a model as it is written here; case and hyphens are free.

    `ValueError`, with a message for people, if there is no such model.
    """
    spelled = {plain(name): name for name in (AUTO, STACKED, *METHODS)}
    name = spelled.pop(plain(text), None)
    if name == NEIGHBOURS:
        raise ValueError(
            f"{NEIGHBOURS} classifies rows by the rows of the table, so its model would be the "
            "table itself. Choose another --model."
        )
    if name is None:
        others = [each for each in spelled.values() if each != NEIGHBOURS]
        raise ValueError(f"There is no model {text!r} for --model. {nearest(text, others)}")
    return name


def check_choice(fit: TableFit, settings: FitSettings) -> None:
    """Raise `TableError` if a model cannot be what is wanted, before others are compared."""
    wanted_of(fit, settings)
    if settings.model == AUTO:
        return
    n_classes = len(fit.target.classes)
    if settings.model not in (STACKED, *method_names(n_classes)):
        raise TableError(f"{settings.model} is for two classes, and there are {n_classes}.")
    obstacle = _obstacle(settings.model, fit)
    if obstacle is not None:
        raise TableError(f"{obstacle} Choose another --model.")


def _obstacle(name: str, fit: TableFit) -> str | None:
    """Return why a method makes no model file for a table, if it does not."""
    if name == NEIGHBOURS:
        return f"{NEIGHBOURS} classifies rows by the rows of the table, so it makes no model file."
    if not isinstance(fit.features, Rows) or name in (STACKED, *OUT_OF_CORE):
        return None
    return f"{name} needs all rows in memory (--memory GB), and this table is larger than that."


def choose(
    fit: TableFit,
    settings: FitSettings,
    verdict: Verdict,
    comparison: Comparison | None,
    scored: ScoredRows,
    stacked: Stacked,
    *,
    seed: int = 0,
    told: Progress = silent,
) -> Chosen:
    """Fit the model that is wanted to all rows, and say what is known about it.

    `TableError`, with a message for people, if it cannot be fitted, or its threshold not be found.
    """
    check_choice(fit, settings)
    wanted = wanted_of(fit, settings)
    name, words = _resolved(settings.model, verdict, comparison, fit)
    if name == STACKED:
        check_stacked(stacked)
        method, estimator = stacked.method, stacked.model
    else:
        method = standard_methods(fit.classifier, [name], seed=seed)[name]
        told(f"fitting {name}", 0.0)
        estimator = _estimator(name, method, fit)
    decision, supervised = None, scored.predictions[0]
    if wanted.anything:
        found, decision = decision_of(name, method, estimator, fit, wanted, comparison, seed, told)
        estimator = DecidedClassifier(estimator, **found)
        # Otherwise rows would differ by the threshold alone. Scores of other methods are of another
        # kind, so that their calibration means nothing here.
        same = found if name in OURS else found | {"sigmoids": None}
        baseline = DecidedClassifier(fit.classifier.supervised_, **same)
        supervised = _outputs(baseline, fit, scored)[0]
    codes, scores, shares = _said(name, estimator, fit, scored)
    model = copy(fit.model)
    model.estimator_, model.baseline_ = estimator, fit.classifier.supervised_
    certified = name == PROJECTED or (name == SUPERVISED and bool(fit.model.certificate_.reason))
    parts = [name]
    if name == STACKED and stacked.facts is not None:
        parts += [each.name for each in stacked.facts.chosen]
    compiled = any(part in COMPILED for part in parts)
    facts = ModelFacts(
        name=name,
        asked=settings.model,
        certified=certified,
        compiled=compiled,
        words=(*words, *_words(name, certified, compiled, decision is not None, stacked)),
        decision=decision,
        audit=_audit(fit, scored, codes, shares),
    )
    return Chosen(model, facts, codes, supervised, scores, shares)


def _resolved(
    asked: str, verdict: Verdict, comparison: Comparison | None, fit: TableFit
) -> tuple[str, tuple[str, ...]]:
    """Return the name of a method, and what has to be said about how it was found."""
    failures = {} if comparison is None else comparison.failures
    if asked in failures:
        raise TableError(f"{asked} failed: {failures[asked]} Choose another --model.")
    if asked != AUTO:
        return asked, ()
    obstacle = _obstacle(verdict.model, fit)
    if obstacle is None:
        return verdict.model, ()
    return SUPERVISED if fit.model.certificate_.reason else PROJECTED, (obstacle,)


def _estimator(name: str, method: Any, fit: TableFit) -> Any:
    """Return the classifier of the features, fitted to all rows that it uses."""
    if name == SUPERVISED:
        return fit.classifier.supervised_
    if name == PROJECTED:
        return _lean(fit.classifier)
    X, y, weights = fit.features, fit.target.codes, fit.weights
    if isinstance(X, Rows) and isinstance(method, TunedClassifier):  # which learns from labels
        labeled = np.flatnonzero(fit.target.labeled)
        X, y = X.take(labeled), y[labeled]
        weights = None if weights is None else weights[labeled]
    try:
        model = fitted(method, X, y, weights)
    except Exception as error:
        raise TableError(f"{name} failed: {reason_of(error)} Choose another --model.") from None
    while isinstance(model, DelegatingClassifier):
        model = model.estimator_
    return _lean(model)


def _lean(model: Any) -> Any:
    """Return a model without what it says about each row that it was fitted to."""
    lean = copy(model)
    vars(lean).pop("_soft_labels_", None)
    return lean


def _said(
    name: str, estimator: Any, fit: TableFit, scored: ScoredRows
) -> tuple[Indices, Vector, Matrix | None]:
    """Return classes, scores and probabilities of the unlabeled rows."""
    if name in (SUPERVISED, PROJECTED) and not isinstance(estimator, DecidedClassifier):
        of_classes = (scored.supervised if name == SUPERVISED else scored.projected)[
            scored.unlabeled
        ]
        codes = scored.predictions[0 if name == SUPERVISED else 1]
        return codes, of_classes[np.arange(len(codes)), codes], nearest_shares(of_classes)
    return _outputs(estimator, fit, scored)


def _outputs(
    estimator: Any, fit: TableFit, scored: ScoredRows
) -> tuple[Indices, Vector, Matrix | None]:
    parts = [outputs(estimator, X) for X in _blocks(fit.features, scored.unlabeled)]
    codes, scores = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    shares = [part[2] for part in parts if part[2] is not None]
    return codes, scores, np.vstack(shares) if shares else None


def _blocks(features: Any, chosen: Any) -> Iterator[Any]:
    """Yield the chosen rows of a table, in pieces if it is not in memory."""
    if not isinstance(features, Rows):
        yield features[chosen]
        return
    rows = np.flatnonzero(chosen)
    for start in range(0, len(rows), BLOCK):
        yield features.take(rows[start : start + BLOCK])


def nearest_shares(scores: Matrix) -> Matrix:
    """Return the probabilities nearest to least squares scores of all classes."""
    if scores.shape[1] > 2:
        return Simplex().project(scores.T).T
    second = Box().project(scores[:, 1])
    return np.column_stack([1.0 - second, second])


def _audit(fit: TableFit, scored: ScoredRows, codes: Indices, shares: Matrix | None) -> AuditFacts:
    """Compare with the supervised model on the unlabeled rows, whatever their classes are."""
    n_classes = len(scored.classes)
    before: Any
    after: Any
    response: Literal["predict_proba", "error"]
    if shares is None:
        response, loss = "error", "share of wrong classes"
        before, after = (Predicted(each, n_classes) for each in (scored.predictions[0], codes))
        same = np.array_equal(codes, scored.predictions[0])
    else:
        response, loss = "predict_proba", "Brier score of the probabilities"
        once = 1 if n_classes == 2 else slice(None)  # the first of two classes says nothing more
        before = nearest_shares(scored.supervised[scored.unlabeled])[:, once]
        after = shares[:, once]
        same = np.array_equal(after, before)
    worst = best = 0.0
    if not same:
        unknown = np.full(len(codes), np.nan)
        # What --prior says about these rows holds here, too.
        prior = {
            int(float(code)): (low, high)
            for code, low, high in fit.classifier.certificate_.assumptions.class_prior
        }
        found = audit(
            *(after, before, unknown[:, None], unknown),
            response=response,
            sample_weight=None if fit.weights is None else fit.weights[scored.unlabeled],
            class_prior=prior or None,
            missing_label=np.nan,
        )
        worst, best = found.worst_case, found.best_case
    conditions = fit.model.certificate_.assumptions.conditions()
    where = f"on the {count(len(codes), 'unlabeled row')}, whatever their classes are{conditions}"
    words = _audit_words(loss, worst, best, where, same)
    return AuditFacts(response, worst, best, worst <= 0.0, words)


def _audit_words(loss: str, worst: float, best: float, where: str, same: bool) -> str:
    if same:
        return f"The {loss} is that of the supervised model {where}."
    if worst <= 0.0:
        return (
            f"The {loss} is never higher than that of the supervised model {where}: it is "
            f"{-worst:.3g} to {-best:.3g} lower."
        )
    lower = f"{-best:.3g} lower" if best < 0.0 else "never lower"
    return (
        f"The {loss} may be up to {worst:.3g} higher than that of the supervised model, or "
        f"{lower}, {where.replace('whatever', 'depending on what')}."
    )


def _words(
    name: str, certified: bool, compiled: bool, decided: bool, stacked: Stacked
) -> Iterator[str]:
    yield f"model.skops holds the {name} model."
    if name == SUPERVISED and not certified:
        yield "The certificate is about the projected one, which is compared with it."
    elif name == STACKED and not stacked.has_moved:
        yield (
            "It is the supervised one: no candidate is shown to be better. The certificate is "
            "about the projected one."
        )
    elif name == STACKED:
        yield (
            "Nothing is certain about it: the certificate is about the projected model. It is "
            "likely better than the supervised one, in Brier score: see what is confident."
        )
        if decided:
            yield "That is about its probabilities before threshold and calibration."
    elif not certified:
        yield "Nothing is proved about it: the certificate is about the projected model."
    elif decided:
        yield (
            "The certificate is about its scores: threshold and calibration are not covered by it."
        )
    if compiled:
        yield (
            "It predicts with compiled code, which believes the numbers in a file. Keep the file "
            "where nobody else can change it, and open it with: neverworse predict model.skops "
            "TABLE --trust-compiled (or neverworse audit)."
        )
