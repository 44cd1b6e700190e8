"""What is handed on to estimators of other people: known labels, and weights that they take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import _num_samples, has_fit_parameter

from neverworse._typing import AnyArray, Indices, Vector
from neverworse.estimators._labels import native_dtype, shown, shown_classes
from neverworse.estimators._row_weights import checked_weights


def copy_for_known_labels(estimator: Any) -> Any:
    """Return an unfitted copy of an estimator, which will be fitted to labeled rows only.

    An estimator of neverworse that is to find out what marks unlabeled rows would take a class -1
    for that. Here no row is unlabeled, so that it is told that null values would be.
    """
    copied = clone(estimator)
    undecided = [
        name
        for name, value in copied.get_params().items()
        if name.split("__")[-1] == "missing_label" and isinstance(value, str) and value == "auto"
    ]
    return copied.set_params(**dict.fromkeys(undecided, np.nan)) if undecided else copied


def weights_for(estimators: Iterable[Any], X: Any, sample_weight: Any) -> Vector:
    """Return checked weights of rows, which all of the estimators take."""
    for estimator in estimators:
        _check_takes_weights(estimator)
    return checked_weights(sample_weight, _num_samples(X))


def predicted_codes(name: str, predicted: Any, classes: AnyArray) -> Indices:
    """Return the positions of predicted classes among all classes."""
    given = native_dtype(np.asarray(predicted))
    codes: Indices = np.searchsorted(classes, given)
    unknown = classes[np.minimum(codes, len(classes) - 1)] != given
    if unknown.any():
        raise ValueError(
            f"{name} predicts {shown(given[unknown][0])}, which is none of the classes of the "
            f"labeled rows ({shown_classes(classes)})."
        )
    return codes


def _check_takes_weights(estimator: Any) -> None:
    if has_fit_parameter(estimator, "sample_weight"):
        return
    routed = get_config()["enable_metadata_routing"]
    if routed and get_routing_for_object(estimator).consumes("fit", ["sample_weight"]):
        return
    raise ValueError(
        f"sample_weight was given, but {type(estimator).__name__} does not take it in fit. Leave "
        "it out, or choose an estimator that does. (A pipeline or a search does once metadata "
        "routing of scikit-learn is enabled and one of its steps requests sample_weight.)"
    )
