"""A calibration that takes the marker of unlabeled rows for a class, noticed in time."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

CALIBRATION = "sklearn.calibration"


def refuse_calibration(markers: Sequence[Any]) -> None:
    """Raise if scikit-learn's calibration fits the caller, and calibrates markers as well.

    `CalibratedClassifierCV` makes a class of every value in y before it fits anything. Then it
    pairs the scores of our classes with the wrong ones of its own, without a word. Nothing that it
    passes on tells so, neither to the estimator nor to the splitter. What tells are its classes,
    found where it is waiting for `fit` to return.

    Parameters
    ----------
    markers : sequence
        Values that mark unlabeled rows, in y or by the settings of the estimator.
    """
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == CALIBRATION:
            known = frame.f_locals
            classes = known.get("classes", getattr(known.get("self"), "classes_", ()))
            taken = [marker for marker in markers if marker in list(classes)]
            if taken:
                raise ValueError(_message(taken[0]))
        frame = frame.f_back


def _message(marker: Any) -> str:
    shown = repr(marker.item() if hasattr(marker, "item") else marker)
    return (
        f"CalibratedClassifierCV takes {shown}, the marker of unlabeled rows, for a class: its "
        "probabilities would be wrong. Fit it to the labeled rows, and give the others to the "
        "estimator inside: CalibratedClassifierCV(WithUnlabeledRows(estimator, X[unlabeled]))"
        ".fit(X[labeled], y[labeled]), with neverworse.model_selection.WithUnlabeledRows."
    )
