"""Self-learning: a classifier that labels the unlabeled rows and learns from these labels."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, ClassVar, Self

from sklearn.base import _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from neverworse._docs import documented_like
from neverworse._typing import AnyArray, Vector
from neverworse.estimators import (
    CallbackSupportMixin,
    DelegatingClassifier,
    LabeledRows,
    LeastSquaresClassifier,
    ProjectedLeastSquaresClassifier,
    explains_conversion,
    observed_fit,
)
from neverworse.methods._references import SupervisedClassifier
from neverworse.methods._self_learning_trainers import (
    NOTHING_TO_LEARN,
    Learned,
    RefittingTrainer,
    StopReason,
    learn_from_itself,
    learn_least_squares,
    learn_soft,
)
from neverworse.projection import Observer


@documented_like(SupervisedClassifier, ProjectedLeastSquaresClassifier)
class SelfLearningClassifier(CallbackSupportMixin, DelegatingClassifier):  # type: ignore[misc]
    r"""Self-learning: with hard labels of any classifier, or with soft labels of least squares.

    The classifier is fitted to the labeled rows, and labels all unlabeled rows. It is then fitted
    to all rows with these labels and labels the unlabeled rows again, until the labels stop
    changing. Nothing guarantees that this improves on the supervised classifier: where its first
    labels are wrong, it learns its own mistakes. See `ProjectedLeastSquaresClassifier` for a
    classifier that is never worse, and `audit` for what is certain about this one.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Any classifier of scikit-learn, pipelines and searches included; X is passed on to it as it
        is. None: ``LeastSquaresClassifier()``. For a linear `LeastSquaresClassifier` without
        `class_weight`, the Gram matrix of all rows is computed once, and each retraining takes one
        pass over the rows. A `gamma` that leave-one-out chooses is chosen once, for the labeled
        rows; a penalty is chosen in each retraining.
    labels : {"hard", "soft"}, default="hard"
        "hard": the classes that the classifier predicts. "soft": for a `LeastSquaresClassifier`
        (linear or with a kernel), the scores brought into [0, 1], or into the simplex of several
        classes. Weights and soft labels then minimise the loss together, among *all* soft labels,
        and the answer is unique: the optimistic counterpart of the projection.
    max_iter : int, default=100
        Maximum number of retrainings.
    {missing_label, verbose}

    Attributes
    ----------
    {classes_}
    estimator_ : classifier
        Fitted to all rows with the labels `labels_`; it makes the predictions.
    supervised_ : classifier
        The supervised baseline, fitted to the labeled rows.
    labels_ : array of shape (n_unlabeled,)
        Labels of the unlabeled rows, in their order (with soft labels, their largest shares).
    soft_labels_ : array of shape (n_unlabeled,) or (n_unlabeled, n_classes)
        With ``labels="soft"``: the share of the second of two classes, or of every class.
    n_iter_ : int
        Number of retrainings.
    stop_reason_ : {"converged", "cycle", "max_iter", "callback"}
        Why it ended: `estimator_` predicts `labels_` itself; labels came back that had been left
        before, so that they would repeat forever; after `max_iter` retrainings; or because a
        callback asked for it.
    cycle_length_ : int or None
        Number of labelings that would repeat forever: 1 if the labels have converged, at least 2
        in a cycle. None if it was stopped before that was known.
    {n_features_in_, feature_names_in_}

    See Also
    --------
    ProjectedLeastSquaresClassifier : Never worse than the supervised classifier.
    sklearn.semi_supervised.SelfTrainingClassifier : Adds confident labels one after another, and
        never changes them again.

    Notes
    -----
    For least squares, self-learning is descent. With targets coded 0 and 1, let

    .. math:: J(w, q) = \sum_i s_i (x_i \cdot w - y_i)^2 + \sum_j s_j (u_j \cdot w - q_j)^2
              + \alpha \lVert w \rVert^2

    for labeled rows :math:`x_i`, unlabeled rows :math:`u_j` and hard labels
    :math:`q_j \in \{0, 1\}`. Retraining minimises J over w. Labeling minimises it over q, row by
    row: 1 is the nearer label exactly where the score exceeds 1/2 (of several classes, the
    indicator of the largest score is the nearest one). So J never increases. If retraining leaves
    J as it was, then the old weights were already fitted to the new labels; they give all rows the
    same scores, so the labels stay and it has converged. Otherwise J is now smaller than it was
    for every labeling before, and none of them can come back. There are finitely many labelings:
    in exact arithmetic self-learning of least squares converges, without cycles. It finds a local
    minimum of J among many, the one that the supervised weights lead to. Other classifiers, which
    do not minimise one function in both steps, may run in cycles.

    With soft labels :math:`q_j \in [0, 1]`, J is convex in w and q together. Labeling by the
    clipped scores is a projected gradient step on q that never overshoots. Steps are accelerated
    here, and end when no label moves by more than 1e-6.

    `sample_weight` is passed on to the classifier, whatever metadata that requests.

    References
    ----------
    G. J. McLachlan, "Iterative reclassification procedure for constructing an asymptotically
    optimal rule of allocation in discriminant analysis", Journal of the American Statistical
    Association 70 (1975), 365-369.

    D. Yarowsky, "Unsupervised word sense disambiguation rivaling supervised methods", Annual
    Meeting of the Association for Computational Linguistics 33 (1995), 189-196.

    J. H. Krijthe and M. Loog, "Optimistic semi-supervised least squares classification",
    International Conference on Pattern Recognition 23 (2016), 1677-1682.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse.methods import SelfLearningClassifier
    >>> X = [[0.0], [1.0], [2.0], [7.0], [8.0], [9.0], [10.0]]
    >>> y = [0, -1, -1, -1, -1, -1, 1]
    >>> clf = SelfLearningClassifier().fit(X, y)
    >>> clf.labels_
    array([0, 0, 1, 1, 1])
    >>> clf.stop_reason_
    'converged'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **DelegatingClassifier._parameter_constraints,
        "labels": [StrOptions({"hard", "soft"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
    }

    supervised_: Any
    labels_: AnyArray
    n_iter_: int
    stop_reason_: StopReason
    cycle_length_: int | None

    def __init__(
        self,
        estimator: Any = None,
        *,
        labels: str = "hard",
        max_iter: int = 100,
        missing_label: Any = "auto",
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.labels = labels
        self.max_iter = max_iter
        self.missing_label = missing_label
        self.verbose = verbose

    @documented_like(SupervisedClassifier.fit)
    @explains_conversion
    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        {X, y, sample_weight}

        Returns
        -------
        self : object
        """
        with self._fitting(X, sample_weight) as (estimator, X, weights):
            metadata = {} if weights is None else {"sample_weight": weights}
            with observed_fit(self, X, y, metadata, self.verbose) as observer:
                learned = self._learn(estimator, X, y, weights, observer)
            self.labels_ = self.classes_[learned.codes]
            if learned.soft is not None:
                self.soft_labels_ = learned.soft
            self.n_iter_ = learned.n_iter
            self.stop_reason_, self.cycle_length_ = learned.stop_reason, learned.cycle_length
        self._warn_if_not_converged()
        return self

    def _learn(
        self, estimator: Any, X: Any, y: Any, weights: Vector | None, observer: Observer | None
    ) -> Learned:
        if self.labels == "soft":
            self.supervised_, self.estimator_, learned = learn_soft(
                estimator, X, y, weights, self.missing_label, self.max_iter, observer
            )
            self.classes_ = self.supervised_.classes_
            return learned
        # A subclass may do something else, and weights of classes change with the labels.
        simple = type(estimator) is LeastSquaresClassifier and estimator.class_weight is None
        if simple and estimator.kernel == "linear":
            found = learn_least_squares(
                estimator, X, y, weights, self.missing_label, self.max_iter, observer
            )
            if found is not None:
                self.supervised_, self.estimator_, learned = found
                self.classes_ = self.supervised_.classes_
                return learned
        rows = LabeledRows.split(X, y, self.missing_label, weights)
        self.classes_ = rows.classes
        self.supervised_ = self.estimator_ = rows.labeled().fit(estimator)
        if not rows.unlabeled.any():
            return NOTHING_TO_LEARN
        if getattr(estimator, "gamma", None) == "loo":  # labels of its own would confirm any
            estimator = clone(estimator).set_params(gamma=self.supervised_.gamma_)
        trainer = RefittingTrainer(rows, estimator, self.supervised_)
        learned = learn_from_itself(trainer, self.max_iter, observer)
        self.estimator_ = trainer.model
        return learned

    def _warn_if_not_converged(self) -> None:
        what = {
            "cycle": f"The labels run in a cycle of {self.cycle_length_}",
            "max_iter": f"The labels still change after max_iter={self.max_iter} retrainings",
        }.get(self.stop_reason_)
        if what:
            warnings.warn(
                f"{what}: estimator_ does not predict the labels_ that it was fitted to.",
                ConvergenceWarning,
                stacklevel=2,
            )
