"""What was decided on for a model: its threshold and its calibration, in numbers and words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from neverworse.projection.words import count
from neverworse.study._comparison import _truth
from neverworse.study._comparison_words import fold_words
from neverworse.study._decision import MOST_FOLDS, Wanted, decide, nested_numbers
from neverworse.study._fit import FitSettings, TableFit
from neverworse.study._sample import draw_sample
from neverworse.study._study import DecisionFacts, Numbers, Study
from neverworse.study._threshold import ThresholdRule
from neverworse.tables import TableError

MOST_UNLABELED = 20_000  # in each of the fits that decide


def wanted_of(fit: TableFit, settings: FitSettings) -> Wanted:
    """Return what is to be decided on for a table, after a check that it can be."""
    rule, names = settings.threshold, fit.target.class_names
    if rule != ThresholdRule():
        if len(names) != 2:
            raise TableError(
                f"--threshold is for two classes, and there are {len(names)}. Leave it out: the "
                "class with the largest probability is predicted."
            )
        first, second = fit.target.counts()
        if settings.positive is None and rule.kind != "balanced" and first == second:
            raise TableError(
                f"--threshold {rule} is about the class that is looked for, and both have "
                f"{count(first, 'label')}. Say which one it is: --positive {names[1]}."
            )
    wanted = Wanted(rule, fit.positive if len(names) == 2 else None, settings.calibrate)
    rarest = int(np.argmin(fit.target.counts()))
    if wanted.needs_labels and fit.target.counts()[rarest] < 2:
        asked = "--calibrate" if wanted.calibrate else f"--threshold {rule}"
        raise TableError(
            f"{asked} goes by labeled rows that are held out, which takes two of every class at "
            f"least, and {names[rarest]!r} has {count(fit.target.counts()[rarest], 'label')}. "
            "Label more rows, or give the threshold as a number."
        )
    return wanted


def decision_of(
    name: str,
    method: Any,
    estimator: Any,
    fit: TableFit,
    study: Study,
    wanted: Wanted,
    seed: int,
    told: Callable[[str, float], None],
) -> tuple[dict[str, Any], DecisionFacts]:
    """Decide on threshold and calibration, and test that on rows that it has not seen.

    Parameters
    ----------
    name : str
    method : classifier
        Unfitted.
    estimator : classifier
        The same, fitted to all rows.
    fit : TableFit
    study : Study
    wanted : Wanted
    seed : int
    told : callable
        Told about the progress.

    Returns
    -------
    settings : dict
        Of a `DecidedClassifier`.
    facts : DecisionFacts
    """
    if not (wanted.calibrate or hasattr(estimator, "predict_proba")):
        raise TableError(f"{name} has no probabilities for --threshold. Add --calibrate.")
    what = "deciding on " + ("the calibration" if wanted.calibrate else "the threshold")
    told(what, 0.0)
    try:
        sample = draw_sample(
            fit.features,
            fit.target.codes,
            fit.weights,
            MOST_UNLABELED,
            seed,
            fits_per_split=MOST_FOLDS + 1.0,
        )
    except ValueError as error:  # one label of a class, or one of a positive weight
        if wanted.needs_labels:
            raise TableError(str(error)) from None
        settings = {"positive": wanted.positive, "threshold": wanted.rule.value, "sigmoids": None}
        return settings, _facts(fit, study, name, wanted, settings, 0, None)
    settings = decide(method, sample, np.arange(len(sample.y)), wanted, seed)
    truth = _truth(sample, fit.target.class_names, fit.positive)
    numbers = nested_numbers(method, sample, truth, wanted, seed, lambda share: told(what, share))
    n_folds = min(MOST_FOLDS, int(np.bincount(truth.codes).min()))
    return settings, _facts(fit, study, name, wanted, settings, n_folds, numbers)


def _facts(
    fit: TableFit,
    study: Study,
    name: str,
    wanted: Wanted,
    settings: dict[str, Any],
    n_folds: int,
    numbers: Numbers | None,
) -> DecisionFacts:
    positive = None if wanted.positive is None else fit.target.class_names[wanted.positive]
    threshold = settings["threshold"]
    codes = fit.target.codes[fit.target.labeled].astype(np.intp)
    words = [
        *_threshold_words(wanted, positive, threshold),
        *(fold_words(fit.target.class_names, codes, n_folds) if wanted.needs_labels else ()),
        *_tested_words(study, name, wanted, positive, numbers),
    ]
    return DecisionFacts(
        rule=str(wanted.rule),
        positive=positive,
        threshold=threshold,
        calibrated=wanted.calibrate,
        n_folds=n_folds,
        numbers=numbers,
        words=tuple(words),
    )


def _threshold_words(
    wanted: Wanted, positive: str | None, threshold: float | None
) -> Iterator[str]:
    if wanted.calibrate:
        yield (
            "Probabilities are calibrated by Platt's sigmoid, fitted to labeled rows that were "
            "held out."
        )
    if threshold is None:
        return
    how = wanted.rule.words
    if wanted.rule.kind != "fixed":
        how += ", on labeled rows that were held out"
    yield f"{positive!r} is predicted where its probability is at least {threshold:.4g}: {how}."


def _tested_words(
    study: Study, name: str, wanted: Wanted, positive: str | None, numbers: Numbers | None
) -> Iterator[str]:
    if numbers is None:
        yield "How well this does on other rows was not tested: that takes three labels of a class."
        return
    error, balanced = numbers.error, numbers.balanced_accuracy
    found = ["calibration"] if wanted.calibrate else []
    found += ["threshold"] if wanted.rule.kind != "fixed" else []
    how = f", with {' and '.join(found)} found in each training fold alone" if found else ""
    words = (
        f"Tested on held-out rows{how}: error {error.value:.3f} (95 % interval {error.low:.3f} to "
        f"{error.high:.3f}), balanced accuracy {balanced.value:.3f}"
    )
    for each in numbers.classes:
        if each.name == positive:
            words += f", recall of {positive!r} {each.recall.value:.3f}"
            if each.precision is not None:
                words += f", precision {each.precision.value:.3f}"
            words += f", F1 {each.f1.value:.3f}"
    yield f"{words}."
    if wanted.calibrate and numbers.brier is not None and numbers.log_loss is not None:
        yield (
            f"Its probabilities have a Brier score of {numbers.brier.value:.4f} there, and a log "
            f"loss of {numbers.log_loss.value:.3f}."
        )
    if wanted.rule.kind == "cost" and wanted.positive is not None:
        yield _costs(study, name, wanted.rule, wanted.positive, numbers)


def _costs(study: Study, name: str, rule: ThresholdRule, positive: int, numbers: Numbers) -> str:
    words = f"It costs {_cost(rule, positive, numbers):.3g} per held-out row"
    if study.comparison is not None:
        others = {each.method: each.numbers for each in study.comparison.methods}
        if name in others:
            words += f"; a threshold of 0.5, {_cost(rule, positive, others[name]):.3g}"
    return f"{words}."


def _cost(rule: ThresholdRule, positive: int, numbers: Numbers) -> float:
    """Return what a row costs on average."""
    confusion = np.asarray(numbers.confusion)
    missed = confusion[positive, 1 - positive]
    alarms = confusion[1 - positive, positive]
    return float((rule.miss * missed + rule.alarm * alarms) / confusion.sum())
