r"""Kernels: features of which the linear path makes models that are not linear.

With the kernel matrix :math:`K = LL'` of some landmarks, the features of a row are
:math:`k(x) L'^{-1}`, and a function with the coefficients β of these has the squared norm
:math:`\lVert \beta \rVert^2`. If all rows are landmarks nothing is left out; fewer are Nyström's
approximation. Everything else is the linear path.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from scipy.linalg import lapack
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_distances, pairwise_kernels
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from neverworse._typing import AnyArray, Indices, Matrix
from neverworse.projection import EPS, LARGEST_GRAM, Labels, Start, TrainingRows, Weights
from neverworse.rows import FeatureMap, Rows, TrapezoidRows, with_features

# What is tried for gamma="loo", in units of one over the mean (squared) distance between rows.
GAMMAS = np.logspace(-2, 2, 9)
MAX_MEASURED_ROWS = 500  # at most this many rows give the mean distance
MATRIX_TOLERANCE = 1e-8  # for symmetry and negative eigenvalues, relative to the largest element
RANK_TOLERANCE = 1e-13  # for pivots of the kernel matrix, relative to its largest element
# Up to this gamma ||x||², squared distances are computed as ||x||² - 2 x·y + ||y||².
LARGEST_EXPANDED = 100.0
LARGEST_PREDICTION_ERROR = 1e-6  # a warning is given if rounding errors may be larger
MAX_ROUNDS = 25  # of the search for labels to start a projection with

KERNEL_CONSTRAINTS: dict[str, list[Any] | str] = {
    "kernel": [StrOptions({"linear", "rbf", "laplacian", "poly", "precomputed"}), callable],
    "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"loo"}), None],
    "degree": [Interval(Real, 0, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "n_components": [Interval(Integral, 1, None, closed="left"), None],
    "random_state": ["random_state"],
}


@dataclass(frozen=True)
class Kernel:
    """The kernel between rows and landmarks, as a function of blocks of rows."""

    metric: Any  # scikit-learn's name, or a callable
    settings: dict[str, Any]  # of scikit-learn's function
    landmarks: AnyArray  # rows; for a precomputed kernel, their indices among its columns

    def __call__(self, block: Matrix) -> Matrix:
        if self.metric == "precomputed":
            return block[:, self.landmarks]
        if self.is_far:  # ||x||² - 2 x·y + ||y||² would cancel
            return np.exp(-self.settings["gamma"] * cdist(block, self.landmarks, "sqeuclidean"))
        # Values that are not finite are found in the sums over rows, and reported by row.
        with config_context(assume_finite=True), np.errstate(over="ignore", invalid="ignore"):
            return pairwise_kernels(
                block, self.landmarks, metric=self.metric, filter_params=True, **self.settings
            )

    @property
    def is_far(self) -> bool:
        if self.metric != "rbf":
            return False
        squares = np.einsum("ij,ij->i", self.landmarks, self.landmarks)
        return bool(self.settings["gamma"] * float(squares.max(initial=0.0)) > LARGEST_EXPANDED)


class LinearSpace:
    """The features are the columns of X."""

    one_unit: ClassVar[bool] = False  # whether all features have the same unit
    of_landmarks: TrapezoidRows | None = None  # features of all rows, if these are the landmarks

    def training(self, training: TrainingRows) -> TrainingRows:
        return training

    def points(self, points: Any) -> Any:
        return points

    def store(self, model: Any, weights: Weights) -> None:
        model._set_weights(weights)

    def words(self) -> str:
        return ""


@dataclass(frozen=True)
class FeatureSpace(LinearSpace):
    one_unit: ClassVar[bool] = True
    kernel: Kernel
    lower: Matrix  # (n_landmarks, n_landmarks): L
    exact: bool  # whether all rows are landmarks
    gamma: float | None = None
    of_landmarks: TrapezoidRows | None = None

    def training(self, training: TrainingRows) -> TrainingRows:
        rows: Rows | None = self.of_landmarks
        if rows is None or rows.n_rows != training.rows.n_rows:
            rows = with_features(training.rows, self._map, keep=True)
        return TrainingRows(rows, training.labels)

    @property
    def _map(self) -> FeatureMap:
        return FeatureMap(self.kernel, len(self.lower), self.lower)

    def points(self, points: Any) -> Any:
        return points if isinstance(points, str) else self._map(points)

    def store(self, model: Any, weights: Weights) -> None:
        """Give a model the weights of these features, as weights of the kernel's columns."""
        model.landmarks_, model.gamma_ = self.kernel.landmarks, self.gamma
        dual = self._map.coef_of_values(weights.coef)
        largest = float(np.einsum("ij,ij->i", self.lower, self.lower).max())  # of the kernel
        error = EPS * largest * float(np.abs(dual).sum(axis=1).max())
        if error > LARGEST_PREDICTION_ERROR:
            warnings.warn(
                f"Predictions may be off by {error:.0e}: the kernel is nearly the same for some "
                f"rows that get very different scores. Raise alpha, or gamma ({self.gamma}).",
                ConvergenceWarning,
                stacklevel=2,
            )
        model._set_weights(Weights(dual, weights.intercept))

    def words(self) -> str:
        metric = self.kernel.metric
        name = metric if isinstance(metric, str) else getattr(metric, "__name__", "user's")
        gamma = "" if self.gamma is None else f" (gamma {self.gamma:.4g})"
        kernel = f"the {name} kernel{gamma}"
        return kernel if self.exact else f"{len(self.lower):,} Nyström features of {kernel}"


def kernel_of(model: Any) -> FeatureMap | None:
    """Return the kernel between rows and the landmarks of a fitted model; None if it is linear."""
    if model.kernel == "linear":
        return None
    return FeatureMap(_kernel(model, model.gamma_, model.landmarks_), len(model.landmarks_))


def _kernel(model: Any, gamma: float | None, landmarks: AnyArray) -> Kernel:
    settings = {"gamma": gamma, "degree": model.degree, "coef0": model.coef0}
    return Kernel(model.kernel, {} if callable(model.kernel) else settings, landmarks)


def spaces(model: Any, training: TrainingRows, landmarks: Indices | None) -> Iterator[Any]:
    """Yield the spaces of a model to choose from, each with labeled rows in its features."""
    if model.kernel == "linear":
        yield LinearSpace(), training
        return
    labels = training.labels
    known = np.flatnonzero(labels.weights_where(~labels.unlabeled) > 0.0)
    if landmarks is None:
        landmarks = _choose_landmarks(model, known, "labeled")
    rows, target, weights = training.labeled()
    if model.n_components is None:  # leave out rows without a weight, so that these are few
        rows, target = training.rows.some(known), labels.target[:, known]
        weights = None if labels.weights is None else labels.weights[known]
    inside = TrainingRows(rows, Labels(target, np.zeros(target.shape[1]), weights))
    at = training.rows.take(landmarks)
    for gamma in _gammas(model, at):
        space = feature_space(model, at, landmarks, gamma)
        yield space, space.training(inside)


def _choose_landmarks(model: Any, indices: Indices, which: str) -> Indices:
    """Return landmarks among rows: all of them, or `n_components` at random."""
    if model.n_components is None and len(indices) > LARGEST_GRAM:
        raise ValueError(
            f"kernel={model.kernel!r} needs the kernel of all pairs of {len(indices):,} {which} "
            f"rows, but the limit is {LARGEST_GRAM:,}. Set n_components, for example to 500."
        )
    if model.n_components is None or model.n_components >= len(indices):
        return indices
    random = check_random_state(model.random_state)
    return np.sort(random.choice(indices, model.n_components, replace=False))


def space_of_all(
    model: Any, training: TrainingRows, gamma: float | None, landmarks: Indices | None
) -> LinearSpace:
    """Return the space of functions of all rows, for a given gamma if the kernel has one."""
    if landmarks is None:
        return LinearSpace()
    return feature_space(model, training.rows.take(landmarks), landmarks, gamma)


def landmarks_of_all(model: Any, labels: Labels) -> Indices | None:
    """Return the landmarks of a model of all rows with a weight; None if it is linear."""
    if model.kernel == "linear":
        return None
    used = np.flatnonzero(labels.weights_where(np.ones(len(labels.width), bool)))
    return _choose_landmarks(model, used, "labeled and unlabeled")


def feature_space(model: Any, at: Matrix, landmarks: Indices, gamma: float | None) -> FeatureSpace:
    """Return the features of the kernel at these landmarks, without linearly dependent ones."""
    points = landmarks if model.kernel == "precomputed" else at
    matrix = _kernel(model, gamma, points)(at)
    _check(matrix, given=model.kernel == "precomputed" or callable(model.kernel))
    factor, order = _pivoted_cholesky(matrix)
    rank = factor.shape[1]
    kernel = _kernel(model, gamma, points[order[:rank]])
    exact = model.n_components is None
    of_landmarks = TrapezoidRows(factor, order) if exact and matrix.any() else None
    return FeatureSpace(kernel, factor[:rank], exact, gamma, of_landmarks)


def _pivoted_cholesky(matrix: Matrix) -> tuple[Matrix, Indices]:
    """Return the factor L of a kernel matrix, a triangle and combinations of its rows, in order."""
    diagonal = float(np.diag(matrix).max(initial=0.0))
    lower, pivots, rank, _ = lapack.dpstrf(matrix.T, lower=1, tol=RANK_TOLERANCE * diagonal)
    order, factor = pivots - 1, np.tril(lower)
    if rank < len(matrix):
        others, rest = factor[rank:, :rank], order[rank:]
        left = matrix[np.ix_(rest, rest)] - others @ others.T
        if _largest(left) > MATRIX_TOLERANCE * _largest(matrix):
            raise ValueError(
                "The kernel matrix has negative eigenvalues, so that squared norms would be "
                f"negative: down to {np.linalg.eigvalsh(matrix)[0]:.2g}. Use a positive "
                "semi-definite kernel, or set negative eigenvalues to zero: values, V = "
                "np.linalg.eigh(K); K = (V * values.clip(0)) @ V.T."
            )
    if not rank:  # the kernel is zero everywhere
        return np.eye(len(matrix), 1), order
    return factor[:, :rank], order


def _check(matrix: Matrix, given: bool) -> None:
    """Refuse kernels that are not finite or, where they were `given`, not symmetric."""
    largest = _largest(matrix)
    if not np.isfinite(largest):
        raise ValueError(
            "The kernel of some rows is not finite. Look for NaN and infinity in X, rescale its "
            "columns, and with kernel='poly' use a whole degree."
        )
    if given and _largest(difference := matrix - matrix.T) > MATRIX_TOLERANCE * largest:
        i, j = np.unravel_index(difference.argmax(), matrix.shape)
        raise ValueError(
            f"The kernel matrix is not symmetric: rows {i} and {j} have {matrix[i, j]:.6g} and "
            f"{matrix[j, i]:.6g}. Pass K(X, X); if it should be symmetric, (K + K.T) / 2."
        )


def _largest(matrix: Matrix) -> float:
    """Return the largest absolute value, without a copy."""
    return max(float(matrix.max(initial=0.0)), -float(matrix.min(initial=0.0)))


def _gammas(model: Any, at: Matrix) -> list[float | None]:
    if model.kernel == "precomputed" or callable(model.kernel):
        if model.gamma is not None:
            raise ValueError(
                f"gamma={model.gamma!r} has no meaning for kernel={model.kernel!r}. Leave it out."
            )
        return [None]
    if model.gamma != "loo":
        return [1.0 / at.shape[1] if model.gamma is None else float(model.gamma)]
    few = at[np.linspace(0, len(at) - 1, min(len(at), MAX_MEASURED_ROWS)).astype(int)]
    if model.kernel == "poly":
        sizes = np.einsum("ij,ij->i", few, few)
    else:
        metric = "sqeuclidean" if model.kernel == "rbf" else "manhattan"
        sizes = pairwise_distances(few, metric=metric)
    mean = float(sizes.mean())
    return (GAMMAS / (mean if mean > 0.0 and np.isfinite(mean) else 1.0)).tolist()


def start_of_projection(
    rows: TrapezoidRows, labels: Labels, supervised: Weights, alpha: float, fit_intercept: bool
) -> Start | None:
    r"""Return the solution of a projection up to rounding errors, if a kernel tells all rows apart.

    `rows` are the features L of all rows, and `supervised` are weights of these features.

    The projection moves the supervised function f by a function :math:`v = Ka + b` that is zero at
    all rows but a few: N, the labeled ones and those whose imputed label is in a corner. With
    :math:`P = K^{-1}`, f + v is least squares for labels y if

    .. math:: s \, v + \alpha a = s \, (y - g), \qquad 1'a = -1'a_f, \qquad g = f + \alpha a_f / s ,

    where s are the weights of the rows and :math:`a_f` belongs to f. In N, y is known and
    :math:`a = P v - b P 1`, which gives v; elsewhere v is zero, which gives y. Labels that leave
    their range join N, and rows of N leave it if v does not push their label into its corner: the
    primal-dual active set method. The solver checks what comes out, and goes on from there.
    """
    if not rows.n_columns == rows.n_rows == len(labels.width) or not alpha:
        return None
    if len(labels.target) > 1 or labels.totals is not None or not labels.unlabeled.any():
        return None
    n, lower, order = rows.n_rows, rows.lower, rows.order
    low, unlabeled = labels.target[0, order].astype(np.float64), labels.unlabeled[order]
    high = low + labels.width[order]
    s = np.ones(n) if labels.weights is None else labels.weights[order]
    of_supervised = _solve(lower, supervised.coef[0], transposed=True)
    g = lower @ supervised.coef[0] + supervised.intercept[0] + alpha * of_supervised / s
    half = _solve(lower, np.ones(n)) if fit_intercept else np.zeros(n)
    of_one = _solve(lower, half, transposed=True)  # P1
    size = float(half @ half) or 1.0
    # Columns of the inverse of L and their products, each computed when it is needed.
    half_inverse, products = np.zeros((n, n), order="F"), np.zeros((n, n))
    solved = np.zeros(n, bool)
    at_low, at_high = unlabeled & (g < low), unlabeled & (g > high)
    for _ in range(MAX_ROUNDS):
        known = ~unlabeled | at_low | at_high
        at, new = np.flatnonzero(known), np.flatnonzero(known & ~solved)
        half_inverse[:, new] = _solve(lower, (np.arange(n)[:, None] == new).astype(np.float64))
        solved |= known
        pairs = np.ix_(new, np.flatnonzero(solved))
        products[pairs] = half_inverse[:, new].T @ half_inverse[:, solved]
        products[pairs[::-1]] = products[pairs]
        matrix = products[np.ix_(at, at)]
        matrix -= np.outer(of_one[at] / size, of_one[at])
        matrix *= alpha
        matrix.flat[:: len(at) + 1] += s[at]
        right = s * (np.where(at_high, high, low) - g) + alpha * of_supervised.sum() / size * of_one
        v = np.zeros(n)
        try:
            factor = linalg.cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return None
        v[at] = linalg.cho_solve(factor, right[at], check_finite=False)
        b = (of_one @ v + of_supervised.sum()) / size if fit_intercept else 0.0
        coef = _solve(lower, v - b)
        y = g + alpha / s * _solve(lower, coef, transposed=True)
        below = np.where(known, at_low & (v >= 0.0), y < low)
        above = np.where(known, at_high & (v <= 0.0), y > high)
        if np.array_equal(below, at_low) and np.array_equal(above, at_high):
            found = np.empty((1, n))
            found[0, order] = np.where(known, np.where(at_high, high, low), y)
            return Start(Weights(coef[None], np.array([b])), found)
        at_low, at_high = below, above
    return None


def _solve(lower: Matrix, x: Matrix, transposed: bool = False) -> Matrix:
    return linalg.solve_triangular(lower, x, trans=int(transposed), lower=True, check_finite=False)


@dataclass(eq=False, repr=False, kw_only=True)
class KernelModel:
    """Parameters of estimators with a kernel; mixed into linear models."""

    # Model files that were written before there were kernels get these defaults.
    kernel: Any = "linear"
    gamma: Any = None
    degree: float = 3
    coef0: float = 1
    n_components: int | None = None
    random_state: Any = None


def kernel_transformers(model: Any) -> list[Any]:
    """Return scikit-learn's transformers from rows to their kernel with a model's landmarks."""
    from sklearn.preprocessing import FunctionTransformer

    at = model.landmarks_
    kernel = _kernel(model, model.gamma_, at)
    if kernel.is_far:
        unit = np.full(at.shape[1], model.gamma_)
        distances = FunctionTransformer(
            cdist, kw_args={"XB": at, "metric": "sqeuclidean", "w": unit}
        )
        return [distances.fit(at), FunctionTransformer(np.negative), FunctionTransformer(np.exp)]
    settings = {"Y": at, "metric": model.kernel, "filter_params": True}
    return [FunctionTransformer(pairwise_kernels, kw_args=settings | kernel.settings).fit(at)]
