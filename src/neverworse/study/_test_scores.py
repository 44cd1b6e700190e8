"""How a fitted model does on test rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from neverworse._typing import Vector
from neverworse.estimators import class_scores, has_class_scores


def error_and_loss(
    model: Any, X: Any, y: Vector, weights: Vector | None
) -> tuple[float, float | None]:
    """Return error rate and mean quadratic loss on test rows.

    The loss is that of scores for targets 0 and 1, summed over more than two classes; None if the
    model has no such scores.
    """
    error = float(np.average(model.predict(X) != y, weights=weights))
    if not has_class_scores(model):
        return error, None
    squares = (class_scores(model, X) - (y[:, None] == model.classes_)) ** 2
    # The two columns of two classes say the same thing twice.
    losses = squares[:, 1] if squares.shape[1] == 2 else squares.sum(axis=1)
    return error, float(np.average(losses, weights=weights))
