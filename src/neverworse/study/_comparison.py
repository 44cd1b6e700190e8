"""Methods compared on labeled rows that were held out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import has_fit_parameter

from neverworse._typing import Indices, Vector
from neverworse.model_selection import RepeatedStratifiedLabeledKFold
from neverworse.study._comparison_words import Result, words_of
from neverworse.study._methods import NearestLabelSpreading, guarantee_of
from neverworse.study._resampling import Mean, holm
from neverworse.study._sample import Sample, draw_sample
from neverworse.study._study import Comparison, MethodFacts
from neverworse.study._test_scores import error_and_loss

Progress = Callable[[int, int], None]

USUAL_METHODS = 3
MOST_NEIGHBOURS = 3_000  # unlabeled rows, if a method looks at all pairs of rows


def compare(
    methods: Mapping[str, Any],
    X: Any,
    y: Vector,
    *,
    sample_weight: Vector | None = None,
    max_unlabeled: int = 20_000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Compare methods by repeated cross-validation on the labeled rows.

    All methods get the same folds and the same unlabeled rows. Unlabeled rows train in every fold
    and are never scored. Whatever a method chooses, such as a penalty, it chooses in its own `fit`,
    which sees no label of a test row.

    Parameters
    ----------
    methods : mapping of str to classifier
        Unfitted; the first is the one that all others are compared with.
    X : array or sparse array of shape (n_rows, n_features)
    y : array of shape (n_rows,)
        Codes of the classes, NaN where unlabeled.
    sample_weight : array of shape (n_rows,), optional
        For fits of all methods that take it, and for the means over test rows.
    max_unlabeled : int, default=20_000
        So many unlabeled rows at most, drawn at random; fewer if X has many columns or classes, and
        with label spreading, whose time grows with their square.
    seed : int, default=0
    progress : callable, optional
        Called with the number of fits so far and of all fits.

    Returns
    -------
    comparison : Comparison

    Raises
    ------
    ValueError
        If a class has one label only. The message is meant for people.

    Notes
    -----
    Standard errors and p-values allow for training folds that overlap, see `Mean`, and p-values
    for the number of methods (Holm).
    """
    if any(isinstance(method, NearestLabelSpreading) for method in methods.values()):
        max_unlabeled = min(max_unlabeled, MOST_NEIGHBOURS)
    sample = draw_sample(
        X, y, sample_weight, max_unlabeled, seed, fits_per_split=len(methods) / USUAL_METHODS
    )
    measured = _measure(methods, sample, seed, progress)
    results = _results(measured, sample.test_share)
    facts = tuple(
        MethodFacts(
            method=result.method,
            error=result.error.value,
            error_se=result.error.se,
            loss=None if result.loss is None else result.loss.value,
            loss_se=None if result.loss is None else result.loss.se,
            difference=result.difference.value,
            difference_se=result.difference.se,
            p_value=result.p_value,
            guarantee=guarantee_of(methods[result.method]),
            seconds=float(np.mean(measured[result.method].seconds)),
        )
        for result in results
    )
    guaranteed = {fact.method for fact in facts if fact.guarantee != "none"}
    return Comparison(
        sample.n_folds,
        sample.n_repeats,
        sample.n_unlabeled,
        facts,
        words_of(results, guaranteed, sample.rows_in_words),
    )


@dataclass(frozen=True)
class _Measured:
    """What was measured for a method in each fold."""

    errors: Vector
    losses: Vector  # NaN if the method has no scores that are labels
    seconds: Vector


def _measure(
    methods: Mapping[str, Any], sample: Sample, seed: int, progress: Progress | None
) -> dict[str, _Measured]:
    folds = RepeatedStratifiedLabeledKFold(
        sample.n_folds, sample.n_repeats, seed, missing_label=np.nan
    )
    n_splits = folds.get_n_splits()
    measured = {name: _Measured(*(np.full(n_splits, np.nan) for _ in range(3))) for name in methods}
    done = 0
    for split, (train, test) in enumerate(folds.split(sample.X, sample.y)):
        for name, method in methods.items():
            error, loss, seconds = _fit_and_test(method, sample, train, test)
            into = measured[name]
            into.errors[split], into.seconds[split] = error, seconds
            into.losses[split] = np.nan if loss is None else loss
            done += 1
            if progress is not None:
                progress(done, n_splits * len(methods))
    return measured


def _fit_and_test(
    method: Any, sample: Sample, train: Indices, test: Indices
) -> tuple[float, float | None, float]:
    model, weights = clone(method), {}
    if sample.weights is not None and has_fit_parameter(model, "sample_weight"):
        weights = {"sample_weight": sample.weights[train]}
    X, y = sample.X[train], sample.y[train]
    with warnings.catch_warnings():
        # Test errors are what counts, of methods that did not converge too.
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = perf_counter()
        model.fit(X, y, **weights)
        seconds = perf_counter() - start
    of_tests = None if sample.weights is None else sample.weights[test]
    error, loss = error_and_loss(model, sample.X[test], sample.y[test], of_tests)
    return error, loss, seconds


def _results(measured: Mapping[str, _Measured], test_share: float) -> list[Result]:
    """Return means over the folds, and of differences from the first method."""

    def mean(values: Vector) -> Mean | None:
        return None if np.isnan(values).any() else Mean.over_folds(values, test_share)

    first = next(iter(measured.values()))
    differences = [
        Mean.over_folds(each.errors - first.errors, test_share) for each in measured.values()
    ]
    p_values = [None, *holm([difference.p_value for difference in differences[1:]])]
    return [
        Result(
            name,
            Mean.over_folds(each.errors, test_share),
            mean(each.losses),
            difference,
            mean(each.losses - first.losses),
            p_value,
        )
        for (name, each), difference, p_value in zip(
            measured.items(), differences, p_values, strict=True
        )
    ]
