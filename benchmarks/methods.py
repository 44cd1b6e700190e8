"""Semi-supervised methods beside each other, and beside those of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass

from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from data import two_gaussians
from neverworse import ICLSClassifier, ProjectedLeastSquaresClassifier, methods
from timing import seconds

SIZES = (1_000, 10_000, 100_000)
N_LABELED, D = 500, 100
LARGEST_MATRIX = 4e9  # bytes; what needs a larger n x n matrix is not run
REFERENCE = "scikit-learn SelfTrainingClassifier(LogisticRegression())"


@dataclass(frozen=True)
class Row:
    """Seconds and error on the unlabeled rows, or None where the method was not run."""

    method: str
    size: int
    seconds: float | None
    error: float | None


def _penalties():
    """Return candidates for model selection, from simple to complex."""
    return [(f"C={c:g}", LogisticRegression(C=c)) for c in (1e-3, 1e-2, 1e-1, 1.0)]


METHODS = {
    "ProjectedLeastSquaresClassifier": ProjectedLeastSquaresClassifier,
    "ICLSClassifier": ICLSClassifier,
    "SelfLearningClassifier": methods.SelfLearningClassifier,
    "UpdatedSecondMomentClassifier": methods.UpdatedSecondMomentClassifier,
    "L2SVMClassifier": methods.L2SVMClassifier,
    "TransductiveSVMClassifier": methods.TransductiveSVMClassifier,
    '… method="annealing"': lambda: methods.TransductiveSVMClassifier(method="annealing"),
    "SafeSVMClassifier": lambda: methods.SafeSVMClassifier(random_state=0),
    "EntropyRegularizedLogisticRegression": methods.EntropyRegularizedLogisticRegression,
    "LinearDiscriminantClassifier": methods.LinearDiscriminantClassifier,
    "EMDiscriminantAnalysis": methods.EMDiscriminantAnalysis,
    "MomentConstrainedDiscriminantAnalysis": methods.MomentConstrainedDiscriminantAnalysis,
    "ImplicitlyConstrainedDiscriminantAnalysis": (
        methods.ImplicitlyConstrainedDiscriminantAnalysis
    ),
    "ContrastivePessimisticDiscriminantAnalysis": (
        methods.ContrastivePessimisticDiscriminantAnalysis
    ),
    "MetricModelSelection(four LogisticRegression)": lambda: methods.MetricModelSelection(
        _penalties()
    ),
    "NullCategoryNoiseModel": lambda: methods.NullCategoryNoiseModel(random_state=0),
    REFERENCE: lambda: SelfTrainingClassifier(LogisticRegression(max_iter=1000)),
    "scikit-learn LabelSpreading(gamma=1 / d)": lambda: LabelSpreading(gamma=1.0 / D),
    'scikit-learn LabelSpreading(kernel="knn")': lambda: LabelSpreading(kernel="knn"),
}
# Methods that hold a matrix of all rows by all rows.
PAIRWISE = {"scikit-learn LabelSpreading(gamma=1 / d)"}


def compare(sizes, say):
    """Fit every method once to each size; return a `Row` for each."""
    rows = []
    for size in sizes:
        X, y, truth = two_gaussians(N_LABELED, size, D)
        for name, make in METHODS.items():
            if name in PAIRWISE and 8.0 * len(X) ** 2 > LARGEST_MATRIX:
                rows.append(Row(name, size, None, None))
                continue
            say(f"{name}, n_u = {size:,}")
            model = make()
            took = seconds(lambda model=model, X=X, y=y: model.fit(X, y))
            wrong = model.predict(X[N_LABELED:]) != truth[N_LABELED:]
            rows.append(Row(name, size, took, float(wrong.mean())))
    return rows
