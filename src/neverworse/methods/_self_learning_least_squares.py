"""Self-learning of least squares: one Gram matrix, then one reading of the rows per retraining.

In coordinates z that whiten all rows, w = Tz with T'HT = I and H = E'SE + αP, the weights for the
labels y are z = T'E'Sy. From weights that were fitted to other labels they are one step away,

    z(y) = z + T'(E'S(y - Ew) - αPw) ,

and labels, residuals and their sum all come from the scores Ew of one pass. The step is also a
step of iterative refinement: what rounding has left in w does not stay there.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from scipy import linalg
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from neverworse._typing import AnyArray, Vector
from neverworse.estimators._classifier import IndicatorClassifier
from neverworse.estimators._known_labels import KnownLabels, known_labels
from neverworse.estimators._least_squares import LeastSquaresClassifier
from neverworse.estimators._linear import (
    copy_input_checks,
    explained_overflow,
    stored_weights,
)
from neverworse.methods._self_learning_loop import NOTHING_TO_LEARN, Learned, learn_from_itself
from neverworse.projection import Observer, TrainingRows, Weights, solve_least_squares
from neverworse.projection.coordinates.gram import EPS, Whitening, whiten
from neverworse.projection.coordinates.moments import moments
from neverworse.rows import Rows, as_rows
from neverworse.rows._threads import single_threaded_blas

# Rounding errors of the sums over rows are measured by the lengths of the columns. What they make
# of the scores, relative to the residuals, must not exceed this; otherwise every labeling is solved
# for anew.
ACCURATE = 1e-10
# Who refuses bad input, as people see it.
NAME = "SelfLearningClassifier"


class LeastSquaresSelfLearner(IndicatorClassifier):
    """Fits a least squares classifier by self-learning; what `SelfLearningClassifier` runs.

    Parameters
    ----------
    estimator : LeastSquaresClassifier
        Says how to fit.
    missing_label : "auto" or scalar
    max_iter : int

    Attributes
    ----------
    supervised_, retrained_ : LeastSquaresClassifier
        Copies of the estimator, fitted to the labeled rows, and to all rows.
    learned_ : Learned
    """

    _skips_rows: ClassVar[bool] = False

    supervised_: LeastSquaresClassifier
    retrained_: LeastSquaresClassifier
    learned_: Learned

    def __init__(
        self, estimator: LeastSquaresClassifier, missing_label: Any, max_iter: int
    ) -> None:
        self.estimator = estimator
        self.missing_label = missing_label
        self.max_iter = max_iter

    def learn(self, X: Any, y: Any, weights: Vector | None, observer: Observer | None) -> Self:
        """Check X, and learn from it."""
        self.estimator._validate_params()
        X = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            estimator=NAME,
        )
        with explained_overflow(X, NAME):
            self._fit_rows(as_rows(X), y, weights, None, observer)
        return self

    @single_threaded_blas()
    def _fit_rows(
        self, rows: Rows, y: Any, weights: Vector | None, bounds: Any, observer: Observer | None
    ) -> None:
        known = known_labels(y, self.missing_label, rows.n_rows, weights, bounds)
        self.classes_ = known.classes
        self.supervised_ = clone(self.estimator)
        self.supervised_._fit_training(TrainingRows(rows, known.labels), known.classes)
        copy_input_checks(self, self.supervised_)
        if not known.labels.unlabeled.any():
            self.retrained_, self.learned_ = self.supervised_, NOTHING_TO_LEARN
            return
        trainer = self._trainer(rows, known)
        self.learned_ = learn_from_itself(trainer, self.max_iter, observer)
        self.retrained_ = clone(self.estimator)
        self.retrained_._set_weights(trainer.settled(self.learned_.codes).snapped(self._threshold))
        self.retrained_.classes_ = known.classes
        copy_input_checks(self, self.retrained_)

    def _trainer(self, rows: Rows, known: KnownLabels) -> _SteppingTrainer | _SolvingTrainer:
        options: dict[str, Any] = {
            "alpha": float(self.estimator.alpha),
            "fit_intercept": self.estimator.fit_intercept,
            "rcond": self.estimator.rcond,
        }
        start = stored_weights(self.supervised_)
        whitening = _coordinates(rows, known.labels.weights, **options)
        error = whitening.column_norms[:, None] * whitening.basis
        error[whitening.idle] = 0.0  # these columns are left out of all sums
        if EPS * np.linalg.norm(error) > ACCURATE:
            return _SolvingTrainer(rows, known, start, options)
        return _SteppingTrainer(whitening, known, start, options["alpha"])


class _Trainer:
    """Weights of a linear classifier, and the labels that they give to the rows."""

    def __init__(self, rows: Rows, known: KnownLabels, start: Weights) -> None:
        self.rows = rows
        self.labels = known.labels
        self.weights = start
        self.n_classes = len(known.classes)
        self.codes = np.zeros(rows.n_rows, np.min_scalar_type(self.n_classes - 1))

    def _assign(self, t: Vector, rows: slice) -> None:
        """Give rows the class of their largest score, where t is the score less one half."""
        self.codes[rows] = t > 0.0 if t.ndim == 1 else t.argmax(axis=0)

    def _target(self, rows: slice) -> Vector:
        """Return the labels of rows as targets, known or assigned."""
        codes = self.codes[rows]
        several = self.labels.target.ndim > 1
        assigned = np.arange(self.n_classes)[:, None] == codes if several else codes
        return np.where(self.labels.unlabeled[rows], assigned, self.labels.target[..., rows])


class _SteppingTrainer(_Trainer):
    """Retrains by a step in whitened coordinates."""

    def __init__(
        self, whitening: Whitening, known: KnownLabels, start: Weights, alpha: float
    ) -> None:
        super().__init__(whitening.rows, known, start)
        self.whitening = whitening
        self.alpha = alpha
        self.next = start  # the weights for the labels that `label` has last given
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
        """Read the rows once; return the weights for their labels, perhaps after labeling them."""
        s = self.labels.weights

        def weigh(t: Vector, rows: slice) -> Vector:
            if assign:
                self._assign(t, rows)
            target = self._target(rows)
            residual = target - (t + 0.5) if self.is_fitted else target
            if s is None:
                return residual
            # Rows without a weight may score anything, even infinity.
            return np.multiply(s[rows], residual, out=np.zeros_like(residual), where=s[rows] > 0.0)

        w = self.weights
        _, summed, total = self.rows.scores_and_sum(w.coef, w.intercept - 0.5, weigh)
        z = self.whitening.adjoint(summed, total)
        if not self.is_fitted:
            return self.whitening.to_weights(z)
        return w + self.whitening.to_weights(z - self.alpha * self.whitening.adjoint_coef(w.coef))


class _SolvingTrainer(_Trainer):
    """Retrains from nothing, for rows so ill-conditioned that steps would lose digits."""

    def __init__(
        self, rows: Rows, known: KnownLabels, start: Weights, options: dict[str, Any]
    ) -> None:
        super().__init__(rows, known, start)
        self.options = options

    def label(self) -> AnyArray:
        """See `Trainer`."""
        t = self.rows.scores(self.weights.coef, self.weights.intercept - 0.5)
        self._assign(t, slice(None))
        return self.codes[self.labels.unlabeled]

    def retrain(self) -> None:
        """See `Trainer`."""
        target = self._target(slice(None))
        self.weights = solve_least_squares(self.rows, target, self.labels.weights, **self.options)

    def settled(self, codes: AnyArray) -> Weights:  # noqa: ARG002
        """Return the weights for these labels, to which they were fitted last."""
        return self.weights


def _coordinates(
    rows: Rows, weights: Vector | None, alpha: float, fit_intercept: bool, rcond: float | None
) -> Whitening:
    """Return coordinates of all directions, or of those that `solve_least_squares` keeps."""
    if rcond is None:
        return whiten(rows, weights, alpha, fit_intercept)
    sums = moments(rows, weights, centre=fit_intercept)
    values, vectors = linalg.eigh(sums.gram + alpha * np.eye(rows.n_columns))
    kept = values > rcond * max(values[-1], 0.0)
    basis = vectors[:, kept] / np.sqrt(values[kept])
    offset = np.zeros(basis.shape[1])
    if fit_intercept:
        basis = np.column_stack([basis, np.zeros(len(basis))])
        offset = np.append(offset, 1.0 / np.sqrt(sums.total))
    idle = np.flatnonzero(~sums.varies)
    return Whitening(sums.rows, sums.mean, basis, offset, np.sqrt(sums.raw), idle)
