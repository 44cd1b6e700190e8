"""From the parameters of an estimator to a projection, and back to its attributes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array

from neverworse._typing import Matrix
from neverworse.estimators._linear import stored_weights
from neverworse.projection import (
    Assumptions,
    Observer,
    ProjectionResult,
    TrainingRows,
    project,
)

Supervised = TypeVar("Supervised")

DISTANCES = ("all", "labeled", "unlabeled", "euclidean")


def run_projection(
    estimator: Any,
    training: TrainingRows,
    supervised: Any,
    distance: Any,
    assumptions: Assumptions,
    observer: Observer | None,
) -> ProjectionResult:
    """Project the supervised model, and set what all projected estimators have as attributes.

    Parameters
    ----------
    estimator : estimator
        Has the parameters of the projection.
    training : TrainingRows
    supervised : LinearModel
        The fitted baseline, with its penalty.
    distance : str or array
        Checked.
    assumptions : Assumptions
        What the certificate has to say about the labels.
    observer : callable, optional
        Told about the progress.
    """
    same = estimator.constraint_alpha == "same"
    result = project(
        training,
        stored_weights(supervised),
        distance=distance,
        alpha=supervised.alpha_ if same else estimator.constraint_alpha,
        supervised_alpha=supervised.alpha_,
        fit_intercept=estimator.fit_intercept,
        threshold=estimator._threshold,
        assumptions=assumptions,
        solver=estimator.solver,
        tol=estimator.tol,
        max_iter=estimator.max_iter,
        max_time=estimator.max_time,
        observer=observer,
    )
    certificate = result.certificate
    if not (certificate.converged or certificate.stopped_early):
        warnings.warn(
            "The solver made no more progress at a relative duality gap of "
            f"{certificate.duality_gap:.1g}. What the certificate says is true all the "
            "same; to improve more, rescale the features or raise tol.",
            ConvergenceWarning,
            stacklevel=2,
        )
    estimator.supervised_ = supervised
    estimator.certificate_ = certificate
    estimator.n_iter_ = max(1, result.n_iter)  # scikit-learn wants at least one
    estimator._set_weights(result.weights)
    return result


def baseline_of(
    estimator: Any,
    given: Callable[..., Supervised],
    chosen: Callable[..., Supervised],
    **settings: Any,
) -> Supervised:
    """Return the unfitted baseline: least squares with a given penalty, or with a chosen one."""
    settings |= {
        "fit_intercept": estimator.fit_intercept,
        "missing_label": estimator.missing_label,
    }
    if estimator.alpha != "loo":
        return given(float(estimator.alpha), rcond=estimator.rcond, **settings)
    if estimator.rcond is not None:
        raise ValueError("alpha='loo' takes no rcond. Set alpha to a number, or rcond to None.")
    return chosen(**settings)


def checked_distance(estimator: Any) -> Any:
    """Return the distance of the estimator, as an array if it is one."""
    if isinstance(estimator.distance, str):
        return estimator.distance
    D: Matrix = check_array(estimator.distance, dtype=np.float64, input_name="distance")
    if D.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"distance is an array with {D.shape[1]} columns, but X has "
            f"{estimator.n_features_in_} features. Its rows are points at which two models are "
            "compared, so it needs the columns of X."
        )
    if not D.any() and not estimator.fit_intercept:
        raise ValueError("distance is an array of zeros: it cannot tell models apart.")
    return D
