"""Label, retrain, and again, until the labels stop changing or repeat.

Any classifier is fitted again and again. For least squares, one Gram matrix and one pass over the
rows per retraining are enough. In coordinates z that whiten all rows, w = Tz with T'HT = I and
H = E'SE + αP, the weights for the labels y are z = T'E'Sy. From weights that were fitted to other
labels they are one step away,

    z(y) = z + T'(E'S(y - Ew) - αPw) ,

and labels, residuals and their sum all come from the scores Ew of one pass. The step is also a
step of iterative refinement: what rounding has left in w does not stay there.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from scipy import linalg
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from neverworse._accelerated_gradient import accelerated_gradient
from neverworse._budget import Budget
from neverworse._typing import AnyArray, Matrix, Vector
from neverworse.estimators import (
    FitInput,
    KnownLabels,
    LabeledRows,
    LeastSquaresClassifier,
    copy_input_checks,
    explained_overflow,
    known_labels,
    landmarks_of_all,
    predicted_codes,
    space_of_all,
    stored_weights,
)
from neverworse.projection import (
    EPS,
    GramCoordinates,
    Observer,
    TrainingRows,
    Weights,
    moments,
    whiten,
)
from neverworse.rows import Rows, as_rows, single_threaded_blas

# Rounding errors of the sums over rows are measured by the lengths of the columns. What they make
# of the scores, relative to the residuals, must not exceed this; otherwise the classifier
# is fitted anew each time.
MAX_SCORE_ERROR = 1e-10
# Who refuses bad input, as people see it.
NAME = "SelfLearningClassifier"

StopReason = Literal["converged", "cycle", "max_iter", "callback"]


class Trainer(Protocol):
    """A classifier that is fitted to labels of its own."""

    def label(self) -> AnyArray:
        """Label the unlabeled rows by the present classifier; return the codes of their classes."""

    def retrain(self) -> None:
        """Fit the classifier to all rows, with the labels that `label` has last given."""


@dataclass(frozen=True)
class Learned:
    """How self-learning ended."""

    codes: AnyArray  # (n_unlabeled,): the labels to which the classifier was last fitted
    n_iter: int  # how often it was retrained
    stop_reason: StopReason
    # how many labelings repeat forever: one if the labels have converged. None if unknown
    cycle_length: int | None = None
    soft: Vector | None = None  # soft labels, if these were learned


# Without unlabeled rows the first fit is the fit to all rows.
NOTHING_TO_LEARN = Learned(np.zeros(0, np.uint8), 1, "converged", 1)


def learn_from_itself(trainer: Trainer, max_iter: int, observer: Observer | None) -> Learned:
    """Alternate labels and retraining until they agree, repeat, or `max_iter` retrainings are done.

    Of former labelings only hashes are kept.
    """
    budget = Budget(None, None, observer, "iterations")
    new = trainer.label()
    seen = {_digest(new): 0}
    for n_iter in range(1, max_iter + 1):
        codes, budget.n_iter = new, n_iter
        trainer.retrain()
        new = trainer.label()
        n_changed = int(np.count_nonzero(new != codes))
        budget.report(f"retraining, then {n_changed:,} labels changed", len(codes))
        if not n_changed:
            return Learned(codes, n_iter, "converged", 1)
        before = seen.setdefault(_digest(new), n_iter)
        if before < n_iter:
            return Learned(codes, n_iter, "cycle", n_iter - before)
        if budget.exhausted:
            return Learned(codes, n_iter, "callback")
    return Learned(codes, max_iter, "max_iter")


def _digest(codes: AnyArray) -> bytes:
    return hashlib.blake2b(codes.tobytes(), digest_size=16).digest()


class RefittingTrainer:
    """Retrains any classifier: a fresh copy is fitted each time. `start` gives the first labels."""

    def __init__(self, rows: LabeledRows, estimator: Any, start: Any) -> None:
        self.rows = rows
        self.estimator = estimator
        self.model = start

    def label(self) -> AnyArray:
        """See `Trainer`."""
        rows = self.rows
        # Of all rows, because taking the unlabeled ones out would copy most of X.
        predicted = np.asarray(self.model.predict(rows.X))[rows.unlabeled]
        codes = predicted_codes(type(self.model).__name__, predicted, rows.classes)
        rows.codes[rows.unlabeled] = codes
        return codes.astype(np.min_scalar_type(len(rows.classes) - 1))

    def retrain(self) -> None:
        """See `Trainer`."""
        self.model = self.rows.fit(self.estimator)


@single_threaded_blas()
def learn_least_squares(
    estimator: LeastSquaresClassifier,
    X: Any,
    y: Any,
    weights: Vector | None,
    missing_label: Any,
    max_iter: int,
    observer: Observer | None,
) -> tuple[LeastSquaresClassifier, LeastSquaresClassifier, Learned] | None:
    """Return copies of the estimator, fitted to the labeled rows and by self-learning.

    Or None, for rows so ill-conditioned that steps would lose digits.
    """
    estimator._validate_params()
    supervised, retrained = clone(estimator), clone(estimator)
    X = validate_data(
        supervised,
        X,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        estimator=NAME,
    )
    copy_input_checks(supervised, retrained)
    with explained_overflow(X, NAME):
        rows = as_rows(X)
        known = known_labels(FitInput(rows, y, weights), missing_label)
        supervised._fit_training(TrainingRows(rows, known.labels))
        supervised.classes_ = retrained.classes_ = known.classes
        if not known.labels.unlabeled.any():
            return supervised, supervised, NOTHING_TO_LEARN
        whitening = _coordinates(rows, weights, supervised)
        error = whitening.column_norms[:, None] * whitening.basis
        error[whitening.idle] = 0.0  # these columns are left out of all sums
        if EPS * np.linalg.norm(error) > MAX_SCORE_ERROR:
            return None
        trainer = SteppingTrainer(whitening, known, supervised)
        learned = learn_from_itself(trainer, max_iter, observer)
        retrained._set_weights(trainer.settled(learned.codes).snapped(retrained._threshold))
        retrained.alpha_ = supervised.alpha_
    return supervised, retrained, learned


SETTLED = 1e-6  # soft labels that move by less


@single_threaded_blas()
def learn_soft(
    estimator: Any,
    X: Any,
    y: Any,
    weights: Vector | None,
    missing_label: Any,
    max_iter: int,
    observer: Observer | None,
) -> tuple[LeastSquaresClassifier, LeastSquaresClassifier, Learned]:
    """Return copies of the estimator, fitted to the labeled rows and with the best soft labels."""
    if type(estimator) is not LeastSquaresClassifier or estimator.class_weight is not None:
        raise ValueError(
            "labels='soft' minimises the squared loss over weights and soft labels together: "
            "estimator has to be a LeastSquaresClassifier without class_weight."
        )
    settings = {"missing_label": missing_label}
    supervised = clone(estimator).set_params(**settings).fit(X, y, sample_weight=weights)
    first = supervised.decision_function(X) + 0.5
    retrained = clone(estimator).set_params(**settings)
    X = validate_data(retrained, X, accept_sparse="csr", dtype=[np.float64, np.float32])
    known = known_labels(FitInput(as_rows(X), y, weights), missing_label)
    labels, retrained.classes_ = known.labels, known.classes
    training = TrainingRows(as_rows(X), labels)
    gamma, landmarks = getattr(supervised, "gamma_", None), landmarks_of_all(estimator, labels)
    space = space_of_all(estimator, training, gamma, landmarks)
    rows, alpha = space.training(training).rows, float(supervised.alpha_)
    whitening = whiten(rows, weights, alpha, estimator.fit_intercept)
    shape, free = labels.shape, labels.unlabeled
    s = np.ones(rows.n_rows) if weights is None else weights

    def fitted(q: Matrix) -> Weights:
        every = labels.target.copy()
        every[:, free] = q
        summed = whitening.rows.weighted_sum(s * every)
        return whitening.to_weights(whitening.adjoint(summed, (s * every).sum(axis=1)))

    def labeled_by(w: Weights) -> Matrix:
        return shape.at(np.flatnonzero(free)).project(rows.scores(w.coef, w.intercept)[:, free])

    q = shape.at(np.flatnonzero(free)).project(np.atleast_2d(first.T)[:, free])
    budget, moved = Budget(max_iter, None, observer, "iterations"), np.inf

    def step(ahead: Matrix) -> Matrix:
        nonlocal moved
        new = labeled_by(fitted(ahead))
        moved = float(np.abs(new - ahead).max(initial=0.0))
        budget.spend()
        budget.report(f"soft labels moved by up to {moved:.1e}", int(np.count_nonzero(free)))
        return new

    q = accelerated_gradient(
        q,
        step=step,
        extrapolate=lambda here, before, momentum: here + momentum * (here - before),
        uphill=lambda ahead, new, here: bool(np.vdot(ahead - new, new - here) > 0.0),
        stop=lambda _: budget.exhausted or moved <= SETTLED,
    )
    space.store(retrained, fitted(q).snapped(retrained._threshold))
    retrained.alpha_ = alpha
    codes = q.argmax(axis=0) if len(q) > 1 else (q[0] > 0.5).astype(np.intp)
    soft = q.T if len(q) > 1 else q[0]
    reason: StopReason = "max_iter" if budget.n_iter == max_iter else "callback"
    learned = Learned(codes, budget.n_iter, reason, None, soft)
    if moved <= SETTLED:
        learned = Learned(codes, budget.n_iter, "converged", 1, soft)
    return supervised, retrained, learned


class SteppingTrainer:
    """Retrains least squares by a step in whitened coordinates."""

    def __init__(
        self, whitening: GramCoordinates, known: KnownLabels, supervised: LeastSquaresClassifier
    ) -> None:
        self.whitening = whitening
        self.labels = known.labels
        self.n_classes = len(known.classes)
        self.codes = np.zeros(whitening.rows.n_rows, np.min_scalar_type(self.n_classes - 1))
        self.alpha = float(supervised.alpha)
        self.weights = stored_weights(supervised)
        self.next = self.weights  # those for the labels that `label` has last given
        # The supervised weights may lie outside of the coordinates, so no step leads from them.
        self.is_fitted = False

    def label(self) -> AnyArray:
        """See `Trainer`."""
        self.next = self._read(assign=True)
        return self.codes[self.labels.unlabeled]

    def retrain(self) -> None:
        """See `Trainer`."""
        self.weights, self.is_fitted = self.next, True

    def settled(self, codes: AnyArray) -> Weights:
        """Return the weights for these labels, to which they were fitted last: now refined."""
        if not np.array_equal(codes, self.codes[self.labels.unlabeled]):
            self.codes[self.labels.unlabeled] = codes
            self.next = self._read(assign=False)
        return self.next

    def _read(self, assign: bool) -> Weights:
        """Make one pass; return the weights for the labels, perhaps after labeling the rows."""
        s, w = self.labels.weights, self.weights

        def weigh(t: Vector, rows: slice) -> Vector:
            if assign:  # the class of the largest score, of which t is one half less
                self.codes[rows] = t[0] > 0.0 if len(t) == 1 else t.argmax(axis=0)
            target = self._target(rows)
            residual = target - (t + 0.5) if self.is_fitted else target
            if s is None:
                return residual
            # Rows without a weight may score anything, even infinity.
            return np.multiply(s[rows], residual, out=np.zeros_like(residual), where=s[rows] > 0.0)

        _, summed, total = self.whitening.rows.scores_and_sum(w.coef, w.intercept - 0.5, weigh)
        z = self.whitening.adjoint(summed, total)
        if not self.is_fitted:
            return self.whitening.to_weights(z)
        return w + self.whitening.to_weights(z - self.alpha * self.whitening.adjoint_coef(w.coef))

    def _target(self, rows: slice) -> Vector:
        """Return the labels of rows as targets, known or assigned."""
        codes = self.codes[rows]
        several = self.labels.shape.is_coupled
        assigned = np.arange(self.n_classes)[:, None] == codes if several else codes[None]
        return np.where(self.labels.unlabeled[rows], assigned, self.labels.target[:, rows])


def _coordinates(
    rows: Rows, weights: Vector | None, supervised: LeastSquaresClassifier
) -> GramCoordinates:
    """Return coordinates of all directions, or of those that `rcond` leaves."""
    alpha, fit_intercept = float(supervised.alpha), supervised.fit_intercept
    if supervised.rcond is None:
        return whiten(rows, weights, alpha, fit_intercept)
    sums = moments(rows, weights, centre=fit_intercept)
    values, vectors = linalg.eigh(sums.gram + alpha * np.eye(rows.n_columns))
    kept = values > supervised.rcond * max(values[-1], 0.0)
    basis = vectors[:, kept] / np.sqrt(values[kept])
    offset, idle = np.zeros(basis.shape[1]), np.flatnonzero(~sums.varies)
    found = GramCoordinates(sums.rows, sums.mean, basis, offset, np.sqrt(sums.raw), idle)
    return found.with_total(1.0 / np.sqrt(sums.total)) if fit_intercept else found
