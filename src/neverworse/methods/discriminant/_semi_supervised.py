"""What the semi-supervised discriminant classifiers share: the baseline and the unlabeled rows."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import special
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from neverworse._typing import AnyArray, Mask, Matrix, Vector
from neverworse.estimators._linear import copy_input_checks
from neverworse.methods.discriminant._base import DiscriminantClassifier
from neverworse.methods.discriminant._family import Family
from neverworse.methods.discriminant._gaussian import GaussianClasses
from neverworse.methods.discriminant._sample import Sample, one_hot
from neverworse.methods.discriminant._supervised import LinearDiscriminantClassifier
from neverworse.projection import Labels, Observer, Progress, TrainingRows
from neverworse.projection.solver.budget import Budget


class SemiSupervisedDiscriminant(DiscriminantClassifier):
    """Base of discriminant classifiers that start from the supervised one."""

    supervised_: LinearDiscriminantClassifier

    def _fit_training(
        self,
        training: TrainingRows,
        classes: AnyArray,
        family: Family,
        observer: Observer | None,
    ) -> GaussianClasses:
        supervised = LinearDiscriminantClassifier(
            covariance=self.covariance,
            priors=self.priors,
            alpha=self.alpha,
            missing_label=self.missing_label,
        )
        start = supervised._fit_training(training, classes, family, None)
        supervised._set_model(start, classes)
        copy_input_checks(self, supervised)
        self.supervised_ = supervised
        labels = training.labels
        weights = self._row_weights(labels)
        sample = Sample.of(training.rows, one_hot(labels), weights, labels.unlabeled)
        family = replace(family, space=start.space)
        centred = start.about(sample.centre)
        if not sample.free.any():
            self._keep(centred, sample, family, labels)
            return start
        return self._move(centred, sample, family, labels, observer)

    def _row_weights(self, labels: Labels) -> Vector:
        """Return the weights of all rows in the likelihood."""
        return np.ones(len(labels.width)) if labels.weights is None else labels.weights

    @abstractmethod
    def _move(
        self,
        start: GaussianClasses,
        sample: Sample,
        family: Family,
        labels: Labels,
        observer: Observer | None,
    ) -> GaussianClasses:
        """Return the classes that all rows give, and set the attributes of the method.

        Parameters
        ----------
        start : GaussianClasses
            The supervised ones, about the centre of the sample.
        sample : Sample
            All rows.
        family : Family
        labels : Labels
        observer : callable, optional
            Told about the progress.
        """

    def _keep(self, start: GaussianClasses, sample: Sample, family: Family, labels: Labels) -> None:
        """Set the attributes of the method where no unlabeled row has a weight."""


class SoftLabelDiscriminant(SemiSupervisedDiscriminant):
    """Base of discriminant classifiers that find soft labels of unlabeled rows, step by step."""

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **SemiSupervisedDiscriminant._parameter_constraints,
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "max_time": [Interval(Real, 0, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    tol: float
    max_iter: int | None
    max_time: float | None
    verbose: int

    soft_labels_: Vector
    n_iter_: int
    converged_: bool

    def _budget(self, observer: Observer | None) -> Budget:
        """Return what counts the steps, and reports them in words that suit them."""
        if observer is None:
            return Budget(self.max_iter, self.max_time)
        tell = observer

        def told(progress: Progress) -> bool | None:
            return tell(replace(progress, steps="iterations"))

        return Budget(self.max_iter, self.max_time, told)

    def _set_soft_labels(
        self, soft_labels: Matrix, unlabeled: Mask, n_iter: int, converged: bool
    ) -> None:
        """Set what was found, for soft labels of shape (n_classes, n_rows)."""
        found = soft_labels[:, unlabeled]
        self.soft_labels_ = found[1].copy() if len(found) == 2 else np.ascontiguousarray(found.T)
        self.n_iter_ = max(1, n_iter)  # scikit-learn wants at least one
        self.converged_ = converged

    def _keep(self, start: GaussianClasses, sample: Sample, family: Family, labels: Labels) -> None:
        super()._keep(start, sample, family, labels)
        self._set_soft_labels(posteriors(sample.scores(start.linear)), labels.unlabeled, 1, True)

    def _warn_unless_converged(self) -> None:
        if not self.converged_:
            warnings.warn(
                f"{type(self).__name__} has not converged after {self.n_iter_} steps. Raise "
                "max_iter, max_time or tol; if that does not help, rescale the features.",
                ConvergenceWarning,
                stacklevel=2,
            )


def posteriors(scores: Matrix) -> Matrix:
    """Return the probabilities of the classes, for scores of shape (n_classes, n_rows)."""
    probabilities: Matrix = special.softmax(scores, axis=0)
    return probabilities
