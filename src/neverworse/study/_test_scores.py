"""How a fitted model does on test rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from neverworse._typing import Vector
from neverworse.estimators._audit_models import _has_score
from neverworse.estimators._classifier import IndicatorClassifier


def error_and_loss(
    model: Any, X: Any, y: Vector, weights: Vector | None
) -> tuple[float, float | None]:
    """Return error rate and mean quadratic loss on test rows.

    The loss is that of scores for targets 0 and 1, summed over more than two classes; None if the
    model has no such scores.
    """
    error = float(np.average(model.predict(X) != y, weights=weights))
    if not _has_score(model):
        return error, None
    scores = model.decision_function(X) + IndicatorClassifier._threshold
    if scores.ndim == 1:
        losses = (scores - (y == model.classes_[1])) ** 2
    else:
        losses = ((scores - (y[:, None] == model.classes_)) ** 2).sum(axis=1)
    return error, float(np.average(losses, weights=weights))
