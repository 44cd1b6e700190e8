"""How the experiments are run: as the paper's text says, or as its code did."""

from __future__ import annotations

from dataclasses import dataclass

# MASS::ginv, the pseudo-inverse of the published code, leaves out what is smaller than this
# fraction of the largest singular value: the square root of the machine epsilon.
GINV_CUTOFF = 2.0**-26


@dataclass(frozen=True)
class Protocol:
    """What the text of the paper and its code do differently.

    Attributes
    ----------
    name : {"code", "text"}
    cutoff : float or None
        Directions of the rows whose singular value in the Gram matrix is at most this fraction of
        the largest are left out of least squares. None: it is solved exactly.
    svm_alpha : float
        Penalty of the support vector machines.
    svm_scaling : {"sum", "mean"}
        Of the loss of the transductive machine. The supervised one always has the sum.
    positive_rounding : {"score", "svmlin"}
        Of the number of positive rows of the transductive machine.
    principal_components : bool
        Whether the robustness experiment starts with the principal components that hold 99 % of
        the variance.
    fewest_labels : int
        Labeled rows at least, in the robustness experiment and in learning curves.
    fewest_labels_in_folds : int
        The same in cross-validation.
    largest_size : int
        Unlabeled rows at most in the learning curves.
    pooled_folds : bool
        Whether the error of a cross-validation is that of all rows together, or the mean of the
        errors of the folds.
    """

    name: str
    cutoff: float | None
    svm_alpha: float
    svm_scaling: str
    positive_rounding: str
    principal_components: bool
    fewest_labels: int
    fewest_labels_in_folds: int
    largest_size: int
    pooled_folds: bool

    def n_labeled(self, n_features: int) -> int:
        """Return the number of labeled rows for robustness and learning curves."""
        return max(2 * n_features, self.fewest_labels)

    def n_labeled_in_folds(self, n_features: int) -> int:
        """Return the number of labeled rows for cross-validation."""
        return max(n_features + 5, self.fewest_labels_in_folds)


PROTOCOLS = {
    "code": Protocol(
        name="code",
        cutoff=GINV_CUTOFF,
        svm_alpha=0.1,
        svm_scaling="mean",
        positive_rounding="svmlin",
        principal_components=True,
        fewest_labels=10,
        fewest_labels_in_folds=20,
        largest_size=1024,
        pooled_folds=False,
    ),
    "text": Protocol(
        name="text",
        cutoff=None,
        svm_alpha=0.01,
        svm_scaling="sum",
        positive_rounding="score",
        principal_components=False,
        fewest_labels=2,
        fewest_labels_in_folds=2,
        largest_size=512,
        pooled_folds=True,
    ),
}

# What is done neither as the text says nor as the code did, for the header of the results.
CORRECTIONS = {
    "Folds": "in the published code the last fold tests the pair of rows that was set aside for "
    "the last but one, and never its own. Here every row is tested once.",
    "Pseudo-inverse": "the published code truncates the Gram matrices of labeled rows and of all "
    "rows apart from each other, so that the supervised solution may lie outside the space in "
    "which it is projected, where the theorem says nothing. Here directions that the "
    "pseudo-inverse for all training rows leaves out are left out of all rows first, for all "
    "least squares methods; the one for labeled rows may then leave out more.",
    "Projection": "the published code stops L-BFGS-B early. Here the projection is exact.",
    "Random numbers": "the published runs shared random states between parallel workers, so that "
    "on Sonar only 14 of the 20 repeats of the cross-validation are distinct. Here every repeat "
    "has a seed of its own.",
    "TSVM": "SVMlin returns NaN on some badly scaled samples. This implementation does not.",
}
