"""What classifiers say that know two classes only."""

from __future__ import annotations

from neverworse._typing import AnyArray
from neverworse.estimators._labels import shown_classes


def check_two_classes(classes: AnyArray) -> None:
    """Raise an error that names the ways out if there are more than two classes."""
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: y has "
            f"labels of {len(classes)} classes ({shown_classes(classes)}). Fit one classifier for "
            "each class, on labels that say whether a row is of this class and that keep the "
            "marker of unlabeled rows, and predict the class with the largest decision_function. "
            "(OneVsRestClassifier of scikit-learn would take unlabeled rows for rows of another "
            "class.) Or use L2SVMClassifier or ProjectedLeastSquaresClassifier, which know several "
            "classes."
        )
