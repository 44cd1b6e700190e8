"""Self-learning: a classifier that labels the unlabeled rows and learns from these labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from neverworse import estimators
from neverworse._budget import Budget
from neverworse._iterations import accelerated_gradient
from neverworse._typing import AnyArray, Matrix, Vector
from neverworse._words import documented_like
from neverworse.methods._base import ObservedMixin, warn_not_converged
from neverworse.methods._references import SupervisedClassifier
from neverworse.projection import EPS, GramCoordinates, Labels, TrainingRows, Weights, whiten
from neverworse.rows import as_rows, single_threaded_blas

THRESHOLD = 0.5  # of scores on targets coded 0 and 1
SETTLED = 1e-6  # soft labels that move by less have converged
MAX_SCORE_ERROR = 1e-10  # rounding error of scores, relative to the residuals


@documented_like(SupervisedClassifier, estimators.ProjectedLeastSquaresClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class SelfLearningClassifier(ObservedMixin, SupervisedClassifier):
    r"""Self-learning: with hard labels of any classifier, or with soft labels of least squares.

    The classifier is fitted to the labeled rows, and labels all unlabeled rows. It is then fitted
    to all rows with these labels and labels the unlabeled rows again, until the labels stop
    changing. Nothing guarantees that this improves on the supervised classifier: where its first
    labels are wrong, it learns its own mistakes.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Any classifier of scikit-learn, pipelines and searches included. None:
        ``LeastSquaresClassifier()``, which takes two passes over the rows per retraining.
        Leave-one-out chooses `gamma` once, for the labeled rows, and penalties in each retraining.
    labels : {"hard", "soft"}, default="hard"
        "hard": the classes that the classifier predicts. "soft": for a `LeastSquaresClassifier`
        (linear or with a kernel), the scores clipped to [0, 1], or projected onto the simplex of
        several classes. Weights and soft labels then minimise the loss together, and are unique:
        the optimistic counterpart of the projection.
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
        Labels of the unlabeled rows (with soft labels, the class with the largest share).
    soft_labels_ : array of shape (n_unlabeled,) or (n_unlabeled, n_classes)
        With ``labels="soft"``: the share of the second of two classes, or of every class.
    n_iter_ : int
        Number of retrainings.
    stop_reason_ : {"converged", "cycle", "max_iter", "callback"}
        Why it ended; "converged": `estimator_` predicts `labels_`; "cycle": earlier ones came back.
    cycle_length_ : int or None
        Number of labelings that would repeat: 1 if they have converged, None if not known.
    {n_features_in_, feature_names_in_}

    Notes
    -----
    For least squares, self-learning is descent. Retraining minimises over w, and labeling over q,

    .. math:: J(w, q) = \sum_i s_i (x_i \cdot w - y_i)^2 + \sum_j s_j (u_j \cdot w - q_j)^2
              + \alpha \lVert w \rVert^2 ,

    for labeled rows :math:`x_i` and unlabeled rows :math:`u_j` with targets coded 0 and 1. With
    hard labels this converges to one of many local minima. With soft labels, J is convex in both
    together; accelerated steps end when no label moves by more than 1e-6. Other classifiers, which
    do not minimise one function in both steps, may run in cycles.

    References
    ----------
    McLachlan, Journal of the American Statistical Association 70 (1975), 365-369. Yarowsky, Annual
    Meeting of the Association for Computational Linguistics 33 (1995), 189-196. Krijthe and Loog,
    International Conference on Pattern Recognition 23 (2016), 1677-1682.

    Examples
    --------
    >>> from neverworse.methods import SelfLearningClassifier
    >>> X = [[0.0], [1.0], [2.0], [7.0], [8.0], [9.0], [10.0]]
    >>> y = [0, -1, -1, -1, -1, -1, 1]
    >>> clf = SelfLearningClassifier().fit(X, y)
    >>> clf.labels_
    array([0, 0, 1, 1, 1])
    """

    estimator: Any = field(default=None, kw_only=False)
    labels: str = "hard"
    max_iter: int = 100
    missing_label: Any = "auto"
    verbose: int = 0

    def _learn(self, estimator: Any, X: Any, y: Any, weights: Vector | None) -> None:
        # A subclass may do something else, and weights of classes change with the labels.
        simple = type(estimator) is estimators.LeastSquaresClassifier
        simple = simple and estimator.class_weight is None and estimator.rcond is None
        if self.labels == "soft" and not simple:
            raise ValueError(
                "labels='soft' minimises the squared loss over weights and soft labels together: "
                "estimator has to be a LeastSquaresClassifier without class_weight and rcond."
            )
        limit = self.max_iter if self.labels == "soft" else None
        with self._observed(X, y, weights, limit) as budget:
            codes, given = None, (estimator, X, y, weights, budget)
            if self.labels == "soft" or (simple and estimator.kernel == "linear"):
                codes = self._learn_whitened(*given)
            if codes is None:
                codes = self._learn_by_refits(*given)
        self.labels_ = self.classes_[codes]
        unfinished = {
            "cycle": f"The labels run in a cycle of {self.cycle_length_}",
            "max_iter": f"The labels still change after max_iter={self.max_iter} retrainings",
        }
        if self.stop_reason_ in unfinished:
            warn_not_converged(
                f"{unfinished[self.stop_reason_]}: estimator_ does not predict the labels_ that "
                "it was fitted to."
            )

    def _learn_by_refits(
        self, estimator: Any, X: Any, y: Any, weights: Vector | None, budget: Budget
    ) -> AnyArray:
        rows = estimators.LabeledRows.split(X, y, self.missing_label, weights)
        self.classes_ = rows.classes
        self.supervised_ = rows.labeled().fit(estimator)
        if getattr(estimator, "gamma", None) == "loo":  # predicted labels would confirm any gamma
            estimator = clone(estimator).set_params(gamma=self.supervised_.gamma_)

        def predicted(model: Any) -> AnyArray:
            # Of all rows, because selecting the unlabeled ones would copy most of X.
            found = np.asarray(model.predict(rows.X))[rows.unlabeled]
            return estimators.predicted_codes(type(model).__name__, found, rows.classes)

        def retrain(codes: AnyArray) -> AnyArray:
            rows.codes[rows.unlabeled] = codes
            self.estimator_ = rows.fit(estimator)
            return predicted(self.estimator_)

        return self._alternate(predicted(self.supervised_), retrain, budget)

    @single_threaded_blas()
    def _learn_whitened(
        self, estimator: Any, X: Any, y: Any, weights: Vector | None, budget: Budget
    ) -> AnyArray | None:
        """Learn least squares; None if there are no hard labels to learn, or not enough digits."""
        estimator._validate_params()
        supervised, retrained = clone(estimator), clone(estimator)
        types = [np.float64, np.float32]
        checked = validate_data(supervised, X, accept_sparse="csr", dtype=types, estimator=self)
        estimators.copy_input_checks(supervised, retrained)
        with estimators.explained_overflow(checked, type(self).__name__):
            rows = as_rows(checked)
            given = estimators.FitInput(rows, y, weights)
            known = estimators.known_labels(given, self.missing_label)
            labels, training = known.labels, TrainingRows(rows, known.labels)
            supervised._fit_training(training)
            self.classes_ = supervised.classes_ = retrained.classes_ = known.classes
            self.supervised_, self.estimator_ = supervised, retrained
            gamma = getattr(supervised, "gamma_", None)
            landmarks = estimators.landmarks_of_all(estimator, labels)
            space = estimators.space_of_all(estimator, training, gamma, landmarks)
            features = space.training(training).rows
            alpha = supervised.alpha_
            whitening = whiten(features, weights, alpha, supervised.fit_intercept)
            trainer = WhitenedTrainer(whitening, labels, alpha)
            if self.labels == "hard":
                error = whitening.column_norms[:, None] * whitening.basis
                error[whitening.idle] = 0.0  # these columns are left out of all sums
                loses_digits = EPS * np.linalg.norm(error) > MAX_SCORE_ERROR
                if loses_digits or not labels.unlabeled.any():
                    return None
            start = np.atleast_2d(supervised.decision_function(X).T)[:, labels.unlabeled]
            learn = self._soften if self.labels == "soft" else self._harden
            q = learn(trainer, start + THRESHOLD, budget)
            space.store(retrained, trainer.weights(q, near=trainer.weights(q)))
            retrained.alpha_ = alpha
        return _codes(q)

    def _soften(self, trainer: WhitenedTrainer, scores: Matrix, budget: Budget) -> Matrix:
        """Minimise the loss over weights and soft labels, from the supervised scores on."""
        shape = trainer.labels.shape.at(np.flatnonzero(trainer.labels.unlabeled))
        moved = np.inf

        def step(ahead: Matrix) -> Matrix:
            nonlocal moved
            new = shape.project(trainer.scores(trainer.weights(ahead)))
            moved = float(np.abs(new - ahead).max(initial=0.0))
            budget.spend()
            budget.report(f"soft labels moved by up to {moved:.1e}", new.shape[1])
            return new

        q = accelerated_gradient(
            shape.project(scores),
            step=step,
            extrapolate=lambda here, before, momentum: here + momentum * (here - before),
            uphill=lambda ahead, new, here: bool(np.vdot(ahead - new, new - here) > 0.0),
            stop=lambda _: budget.exhausted or moved <= SETTLED,
        )
        self.soft_labels_ = q.T if len(q) > 1 else q[0]
        stopped = "max_iter" if budget.n_iter == self.max_iter else "callback"
        self.n_iter_, self.cycle_length_ = budget.n_iter, 1 if moved <= SETTLED else None
        self.stop_reason_ = "converged" if moved <= SETTLED else stopped
        return q

    def _harden(self, trainer: WhitenedTrainer, scores: Matrix, budget: Budget) -> Matrix:
        """Label and retrain in turns, from the supervised scores on."""

        def one_hot(codes: AnyArray) -> Matrix:
            return np.eye(len(scores))[:, codes] if len(scores) > 1 else codes[None] + 0.0

        def retrain(codes: AnyArray) -> AnyArray:
            return _codes(trainer.scores(trainer.weights(one_hot(codes))))

        return one_hot(self._alternate(_codes(scores), retrain, budget))

    def _alternate(
        self, new: AnyArray, retrain: Callable[[AnyArray], AnyArray], budget: Budget
    ) -> AnyArray:
        """Label and retrain until labels agree or repeat; return those of the last retraining."""
        seen = {hash(new.tobytes()): 0}  # the labelings so far, and after how many retrainings
        self.stop_reason_, self.cycle_length_ = "max_iter", None
        for n_iter in range(1, self.max_iter + 1):
            codes, budget.n_iter = new, n_iter
            new = retrain(codes)
            n_changed = int(np.count_nonzero(new != codes))
            budget.report(f"retraining, then {n_changed:,} labels changed", len(codes))
            before = seen.setdefault(hash(new.tobytes()), n_iter)
            if before < n_iter or budget.exhausted:
                reason = "callback" if before == n_iter else "cycle" if n_changed else "converged"
                self.stop_reason_, self.cycle_length_ = reason, n_iter - before or None
                break
        self.n_iter_ = n_iter
        return codes


@dataclass(frozen=True)
class WhitenedTrainer:
    """Trains least squares on all rows in whitened coordinates.

    With w = Tz, T'HT = I and H = E'SE + αP, the weights for the labels y are z = T'E'Sy.
    """

    whitening: GramCoordinates
    labels: Labels
    alpha: float

    def weights(self, q: Matrix, near: Weights | None = None) -> Weights:
        """Return the weights for labels of the unlabeled rows; with more digits from near ones."""
        s, target = self.labels.weights, self.labels.target.astype(np.float64)
        target[:, self.labels.unlabeled] = q
        if near is not None:
            target -= self.whitening.rows.scores(near.coef, near.intercept)
        if s is not None:  # scores of rows without a weight may overflow
            target = np.multiply(s, target, out=np.zeros_like(target), where=s > 0.0)
        z = self.whitening.adjoint(self.whitening.rows.weighted_sum(target), target.sum(axis=1))
        if near is not None:
            z -= self.alpha * self.whitening.adjoint_coef(near.coef)
        found = self.whitening.to_weights(z)
        return (found if near is None else near + found).snapped(THRESHOLD)

    def scores(self, weights: Weights) -> Matrix:
        """Return the scores of the unlabeled rows."""
        scores = self.whitening.rows.scores(weights.coef, weights.intercept - THRESHOLD)
        return scores[:, self.labels.unlabeled] + THRESHOLD


def _codes(scores: Matrix) -> AnyArray:
    """Return the class with the largest score of each row."""
    return scores.argmax(axis=0) if len(scores) > 1 else (scores[0] > THRESHOLD).astype(np.intp)
