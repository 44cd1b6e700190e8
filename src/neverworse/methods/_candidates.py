"""The models that one is chosen from: a list of them, or one with several parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import is_classifier, is_regressor

from neverworse.estimators._wrapped import copy_for_known_labels

Named = list[tuple[str, Any]]  # estimators with their names


def named_candidates(estimators: Any, param_list: Any) -> Named:
    """Return the candidates with their names, as they were given.

    Parameters
    ----------
    estimators, param_list
        Parameters of `MetricModelSelection`.
    """
    if isinstance(estimators, list):
        return estimators
    return [
        (", ".join(f"{name}={value!r}" for name, value in params.items()), estimators)
        for params in param_list or [{}]
    ]


def candidates_to_fit(estimators: Any, param_list: Any) -> Named:
    """Return copies of the candidates with their names; raise an error if that is impossible."""
    if isinstance(estimators, list):
        _check_list(estimators, param_list)
    else:
        _check_param_list(param_list)
    candidates = named_candidates(estimators, param_list)
    _check_kind(candidates)
    copies = [(name, copy_for_known_labels(estimator)) for name, estimator in candidates]
    if param_list is not None:
        for (_, estimator), params in zip(copies, param_list, strict=True):
            estimator.set_params(**params)
    return copies


def _check_list(estimators: Any, param_list: Any) -> None:
    if param_list is not None:
        raise ValueError(
            "param_list is for one estimator, but estimators is a list. Leave one of them out."
        )
    if not estimators or not all(
        isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)
        for pair in estimators
    ):
        raise ValueError(
            "estimators has to be a list of (name, estimator), from simple to complex, with at "
            f"least one of them. Got: {estimators!r}"
        )


def _check_param_list(param_list: Any) -> None:
    if not param_list:
        raise ValueError(
            "estimators is one estimator: pass a list of parameters as param_list, from simple to "
            "complex, or a list of (name, estimator) as estimators."
        )
    if not all(isinstance(params, Mapping) for params in param_list):
        raise ValueError(
            "param_list has to be a list of dicts, each with the parameters of one candidate. "
            f"Got: {param_list!r}"
        )


def _check_kind(candidates: Named) -> None:
    """Check that the candidates are all classifiers, or all regressors."""
    kinds = [
        "classifier" if is_classifier(e) else "regressor" if is_regressor(e) else "neither"
        for _, e in candidates
    ]
    if "neither" in kinds or len(set(kinds)) > 1:
        told = ", ".join(f"{n!r}: {kind}" for (n, _), kind in zip(candidates, kinds, strict=True))
        raise ValueError(f"Candidates have to be all classifiers, or all regressors. Got: {told}.")
