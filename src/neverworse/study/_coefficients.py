"""Weights before and after the projection, in the units of the table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neverworse._typing import Matrix, Vector
from neverworse.estimators import ProjectedLeastSquaresClassifier, stored_weights
from neverworse.rows import Rows, as_rows
from neverworse.study._study import Coefficient
from neverworse.tables import TablePreparation


def coefficients(
    classifier: ProjectedLeastSquaresClassifier,
    preparation: TablePreparation,
    features: Matrix | Rows,
    classes: Sequence[str],
) -> tuple[tuple[Coefficient, ...], tuple[Coefficient, ...]]:
    """Return the weights of all features, and the intercepts.

    A weight is what the score gains with one more unit of the feature: a year, a kilogram, or being
    at a level of a category instead of the most frequent one. Times the standard deviation of the
    feature, weights of different features can be compared. The intercept is the score where all
    features are 0: in original units, or if each is counted in standard deviations from its mean,
    which is the score at the mean of all rows. Of two classes all are those of the second.
    """
    names = classes[1:] if len(classes) == 2 else classes
    features_named = preparation.get_feature_names_out().tolist()
    means, deviations = _moments(features)
    units, offsets = preparation.units(), preparation.offsets()
    weights, intercepts = [], []
    for k, class_name in enumerate(names):
        before, after = classifier.supervised_.coef_[k], classifier.coef_[k]
        weights += [
            Coefficient(*words, class_name, *map(float, values))
            for words, values in zip(
                zip(features_named, preparation.feature_columns_, strict=True),
                zip(
                    before / units,
                    after / units,
                    before * deviations,
                    after * deviations,
                    strict=True,
                ),
                strict=True,
            )
        ]
        at_zero, at_mean = (
            [
                float(stored_weights(model).intercept[k] + model.coef_[k] @ place)
                for model in (classifier.supervised_, classifier)
            ]
            for place in (-offsets / units, means)
        )
        intercepts.append(Coefficient("intercept", "", class_name, *at_zero, *at_mean))
    return tuple(weights), tuple(intercepts)


def _moments(features: Matrix | Rows) -> tuple[Vector, Vector]:
    """Return the means and the standard deviations of the features, without a copy of them."""
    rows = features if isinstance(features, Rows) else as_rows(features)
    mean = rows.weighted_sum(np.ones(rows.n_rows)) / rows.n_rows
    return mean, np.sqrt(np.maximum(rows.squares() / rows.n_rows - mean**2, 0.0))
