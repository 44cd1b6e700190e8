"""How the least squares fit to all other rows scores every row, in closed form, by passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from neverworse._typing import Indices, Mask, Matrix, Vector
from neverworse.projection.coordinates import EPS, MOST_ROWS, suited, svd
from neverworse.projection.coordinates.gram import moments
from neverworse.projection.coordinates.kernel import row_space
from neverworse.rows import (
    BLOCK,
    Rows,
    Standard,
    add_pairs,
    map_in_threads,
    reduce_rows,
    single_threaded_blas,
)

# ``measure(scores, target, weights)``: what is added up, of some rows. Scores have the shape
# (n_alphas, n_targets, n_rows) and targets that of (n_targets, n_rows). Can be pickled.
Measure = Callable[[Vector, Matrix, Vector], Any]
# Where rows are interpolated, there is a formula at no cost for all that is smaller than this.
CLOSE = 1e-2
# Singular values that differ by no more than this factor are all known to twelve digits.
EVEN = 1e4
# One minus the leverage, which errors are divided by, is trusted if it is this many times larger
# than rounding errors: never below the first of these bounds, and always beyond the second.
TRUSTED = 1e5
DOUBTFUL = (1e-6, 1e-4)


@single_threaded_blas()
def leave_one_out(
    rows: Rows,
    target: Matrix,
    weights: Vector | None,
    alphas: Vector,
    measure: Measure,
    fit_intercept: bool = True,
    one_unit: bool = False,
) -> Any:
    r"""Add up what the scores of rows are worth, each by the fit without that row.

    The fit without row i minimises (and is the shortest one of many, if the penalty is zero)

    .. math:: \sum_{j \ne i} s_j (x_j \cdot w + b - y_j)^2 + \alpha \lVert w \rVert^2

    It need not be made: with the error :math:`e_i` of the fit to all rows and the leverage
    :math:`h_i`, the derivative of its score for row i by :math:`y_i`, the error without row i is
    :math:`e_i / (1 - h_i)`. One decomposition serves all penalties. Where :math:`1 - h_i` has no
    digits left, other formulas take its place: "Leave-one-out" in docs/mathematics.md has them all.

    Rows without a weight play no part. A score is NaN only for a row that alone has a weight, with
    an intercept. `one_unit` is that of `solve_least_squares`; for `measure`, see `Measure`.
    """
    if not np.all(np.greater_equal(alphas, 0.0)):
        raise ValueError(f"alphas must not be negative, got {list(alphas)}.")
    if weights is None:
        weights = np.ones(rows.n_rows)
    if not weights.any():
        raise ValueError("weights must not all be zero: give some row a positive weight.")
    alphas = np.asarray(alphas, dtype=np.float64)
    n_used = int(np.count_nonzero(weights))
    kind = suited(rows, n_used)
    # The products of rows do if these are few, and no penalty is zero.
    if kind == "kernel" or (one_unit and n_used <= rows.n_columns and (alphas > 0.0).all()):
        space = row_space(rows, weights, fit_intercept)
        target, weights = target[:, space.used], weights[space.used]
        centre = np.average(target, axis=1, weights=weights) if fit_intercept else np.zeros(1)
        errors = space.left_out_errors(target - centre[:, None], alphas, fit_intercept)
        return measure(target - errors, target, weights)
    if kind == "matrix-free":
        raise ValueError(
            f"Leave-one-out takes an (n_features, n_features) or (n_rows, n_rows) matrix: X has "
            f"{rows.n_columns:,} columns and more than {MOST_ROWS:,} labeled rows. Set alpha "
            "yourself, or choose it by cross-validation."
        )
    fit = Fit(rows, target, weights, alphas, fit_intercept)
    known = LeftOut(target, weights)
    args = (fit.decomposed, measure)
    found, parts = fit.moments.rows.fold(add_up, add_pairs, *args, known=[known])
    doubtful = np.concatenate([np.empty(0, np.intp), *parts])
    if not doubtful.size:
        return found
    errors = np.empty((len(alphas), len(target), len(doubtful)))
    alone = fit.are_alone(doubtful)
    if alone.any():
        errors[:, :, alone] = fit.errors_of_alone(doubtful[alone])
    for k in np.flatnonzero(~alone):
        i = doubtful[[k]]
        errors[:, :, [k]] = fit.without(i).errors_outside(i)
    target = target[:, doubtful]
    return found + measure(target - errors, target, weights[doubtful])


@dataclass(frozen=True)
class LeftOut:
    """What passes know about rows."""

    target: Matrix  # (n_targets, n_rows)
    weights: Vector  # (n_rows,)
    start: int = 0  # which of all rows is the first of these

    def at(self, rows: slice) -> LeftOut:
        return LeftOut(self.target[:, rows], self.weights[rows], self.start + rows.start)


@dataclass(frozen=True)
class Decomposed:
    """A fit as passes need it; letters as in `leave_one_out`."""

    varies: Mask  # (n_columns,): columns in which rows differ
    mean: Vector  # (n_columns,): of the rows
    means: Vector  # (n_targets,): of the targets
    basis: Matrix  # (n_varying, rank): turns centred rows into z
    eigenvalues: Vector  # (rank,)
    projected: Matrix  # (n_targets, rank): the vectors c
    total: float  # sum of the weights; infinite without intercept, which then has no part in h
    alphas: Vector  # (n_alphas,)
    interpolates: bool  # whether there are no more rows than weights to fit
    doubt: float  # how small 1 - h can be without doubt

    @property
    def damping(self) -> Matrix:
        """1 / (λ + α), of shape (rank, n_alphas)."""
        return 1.0 / (self.eigenvalues[:, None] + self.alphas)

    @property
    def kept(self) -> Matrix:
        """λ / (λ + α), of shape (rank, n_alphas)."""
        return self.eigenvalues[:, None] * self.damping

    def scores(self, factors: Matrix, z: Matrix) -> Vector:
        """Return Σ c_k f_k z_k for factors f, of shape (n_alphas, n_targets, n_rows)."""
        shape = (len(self.alphas), len(self.projected))
        coefs = (factors.T[:, None, :] * self.projected).reshape(np.prod(shape), len(factors))
        return (coefs @ z.T).reshape(*shape, len(z))

    def errors(self, block: Matrix, target: Matrix, weights: Vector) -> tuple[Vector, Mask]:
        """Return e / (1 - h), of shape (n_alphas, n_targets, n_rows), and where it is accurate."""
        z = (block - self.mean)[:, self.varies] @ self.basis
        squares = weights[:, None] * z**2
        left = (1.0 - weights / self.total - (squares @ self.kept).T)[:, None]  # 1 - h
        errors: Vector = target - self.means[:, None] - self.scores(self.kept, z)
        with np.errstate(divide="ignore", invalid="ignore"):
            errors /= left
            if self.interpolates:  # with α cancelled; 0 / 0 for the only row
                cancelled = self.scores(self.damping, z)
                cancelled /= (squares @ self.damping).T[:, None]
                return np.where(left <= CLOSE, cancelled, errors), np.ones(len(block), bool)
        return errors, left[:, 0].min(axis=0, initial=1.0) > self.doubt


def add_up(
    rows: Rows, fit: Decomposed, measure: Measure, known: LeftOut
) -> tuple[Any, list[Indices]]:
    """Return the sum of a measure over rows, each scored by all others, and those in doubt."""

    def part(bounds: tuple[int, int]) -> tuple[Any, list[Indices]]:
        found, (start, stop) = nothing, bounds
        for lo in range(start, stop, step):
            own = known.at(slice(lo, min(lo + step, stop)))
            used = np.flatnonzero(own.weights)
            block = rows.block(lo, lo + len(own.weights))[used]
            errors, clear = fit.errors(block, own.target[:, used], own.weights[used])
            sure = used[clear]
            target = own.target[:, sure]
            measured = measure(target - errors[..., clear], target, own.weights[sure])
            found = add_pairs(found, (measured, [own.start + used[~clear]]))
        return found

    no_scores = np.empty((len(fit.alphas), len(known.target), 0))
    # A few arrays of errors for all penalties stay in cache.
    step = max(128, 2 * BLOCK // max(1, len(fit.alphas) * len(known.target)))
    nothing = measure(no_scores, known.target[:, :0], known.weights[:0]), list[Indices]()
    return reduce(add_pairs, map_in_threads(part, rows.parts()), nothing)


def _are_independent(rows: Matrix) -> Mask:
    """Say which rows are no combination of the others (of zero rows, none is)."""
    # Neither the lengths of the rows nor those of the columns matter, so they shall not.
    for axis in (0, 1):
        length = np.sqrt(np.sum(rows**2, axis=axis, keepdims=True))
        rows = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)
    if not rows.size:
        return np.zeros(len(rows), dtype=bool)
    left, singular, _ = svd(rows)
    left = left[:, singular > max(rows.shape) * EPS * singular[0]]
    return np.sum(left**2, axis=1) > 1.0 - DOUBTFUL[0]


class Fit:
    """Least squares for some targets and some penalties; letters as in `leave_one_out`."""

    decomposed: Decomposed  # what passes over rows need
    # (n_varying, rank): its basis for other rows, which may differ where no row does
    shortest: Matrix

    def __init__(
        self, rows: Rows, targets: Matrix, weights: Vector, alphas: Vector, fit_intercept: bool
    ) -> None:
        self.rows, self.fit_intercept = rows, fit_intercept
        self.targets, self.weights, self.alphas = targets, weights, alphas
        self.moments = moments(rows, weights, centre=fit_intercept)
        # Columns in which rows differ: what rounding leaves of others is no information
        self.columns = np.flatnonzero(self.moments.varies)
        # The relative error of orthogonal factors, which grows with both sides of the matrix
        rounding = 8.0 * EPS * max(len(self.columns), float(np.sqrt(rows.n_rows)))
        means = np.zeros(len(targets))
        if fit_intercept:
            means = np.average(targets, axis=1, weights=weights)
        # R with R'R = weighted, centred Gram matrix, and r with R'r = X'S (targets - means): by
        # orthogonal factors of the rows, bordered by their targets.
        width, mean = len(self.columns), self.moments.mean[self.columns]
        border = weights, targets - means[:, None]
        found = self.moments.rows.triangle(Standard(self.columns, mean, np.ones(width)), *border)
        triangle, crossed = np.hsplit(reduce_rows([found])[:width], [width])
        basis, self.shortest, eigenvalues, condition = self._eigenvectors(triangle, rounding)
        self.decomposed = Decomposed(
            varies=self.moments.varies,
            mean=self.moments.mean,
            means=means,
            basis=basis,
            eigenvalues=eigenvalues,
            projected=crossed.T @ triangle @ basis,
            total=self.moments.total if fit_intercept else np.inf,
            alphas=alphas,
            interpolates=bool(np.count_nonzero(weights) <= len(eigenvalues) + fit_intercept),
            doubt=float(np.clip(TRUSTED * rounding * condition, *DOUBTFUL)),
        )

    def without(self, indices: Indices) -> Fit:
        """Return the fit without some rows."""
        weights = self.weights.copy()
        weights[indices] = 0.0
        return Fit(self.rows, self.targets, weights, self.alphas, self.fit_intercept)

    def errors_of_alone(self, indices: Indices) -> Vector:
        """Return the errors of rows that are alone, each by the fit without it."""
        rest = self.without(indices)
        errors = rest.errors_outside(indices)
        z, outside = rest.split(indices)
        noise = np.diag(1.0 / np.sqrt(self.weights[indices]))
        common = np.full((len(z), int(self.fit_intercept)), 1.0 / np.sqrt(rest.moments.total))
        for alpha, kept, error in zip(self.alphas, rest.decomposed.kept.T, errors, strict=True):
            # M = factor @ factor' = triangle' @ triangle
            shared = np.column_stack([z * np.sqrt(kept), common, noise])
            factor = np.column_stack([outside, np.sqrt(alpha) * shared])
            triangle = linalg.qr(factor.T, mode="r", check_finite=False)[0][: len(z)]
            inverse = linalg.solve_triangular(triangle, np.eye(len(z)))
            error[:] = (error @ inverse) @ inverse.T / np.sum(inverse**2, axis=1)
        return errors

    def errors_outside(self, indices: Indices) -> Vector:
        """Return e of rows that have no weight."""
        z, _ = self.split(indices)
        fit = self.decomposed
        return (self.targets[:, indices] - fit.means[:, None]) - fit.scores(fit.kept, z)

    def split(self, indices: Indices) -> tuple[Matrix, Matrix]:
        """Return z of rows that have no weight, and their components where no other row differs."""
        rows, varies = self.moments.rows, self.moments.varies
        # No rounding where all rows with weight are equal.
        like_all = rows.take(np.flatnonzero(self.weights)[:1])
        taken = rows.take(indices) - np.where(varies, self.moments.mean, like_all)
        idle, varying = taken[:, ~varies], taken[:, varies]
        z = varying @ self.shortest
        eigenvalues = self.decomposed.eigenvalues
        if len(eigenvalues) == len(self.columns):
            return z, idle
        varying -= (z * eigenvalues) @ self.shortest.T
        return z, np.column_stack([idle, varying])

    def are_alone(self, doubtful: Indices) -> Mask:
        """Say of which rows it is certain that they are alone."""
        others = self.weights.copy()
        others[doubtful] = 0.0
        # Columns in which all others are equal; without intercept, equal to zero.
        lowest, highest = self.rows.ranges(self.columns, others)
        equal = lowest == highest if self.fit_intercept else (lowest == 0.0) & (highest == 0.0)
        own = np.flatnonzero(equal)
        return _are_independent(self.rows.take(doubtful)[:, self.columns[own]] - lowest[own])

    def _eigenvectors(
        self, triangle: Matrix, rounding: float
    ) -> tuple[Matrix, Matrix, Vector, float]:
        """Return eigenvectors and values of R'R, without squaring the condition number of R.

        The vectors are divided by the roots of their eigenvalues: once to be multiplied with the
        rows, once with others. The last number says by how much rounding errors have grown.

        If columns have any scale, or depend on each other: which directions there are is decided
        for columns of equal length, as it must not depend on their scales. But the penalty is one
        of the columns as they are. One-sided Jacobi rotations find their singular values, each to
        full accuracy, from the factor of full rank.
        """
        if not self.columns.size:
            return triangle, triangle, np.zeros(0), 1.0
        _, singular, right = svd(triangle)
        if len(right) == len(self.columns) and EVEN * singular[-1] >= singular[0]:
            basis = right.T / singular
            return basis, basis, singular**2, float(singular[0] / singular[-1])
        length = np.sqrt(np.sum(triangle**2, axis=0))
        _, singular, right = svd(triangle / length)
        # What floating point cannot know: the rounding of the data, measured against their spread.
        noise = np.max(np.sqrt(self.moments.raw[self.columns]) / length, initial=1.0)
        rank = max(1, int(np.sum(singular > rounding * noise * singular[0])))
        condition = float(singular[0] / singular[rank - 1])
        singular, right = singular[:rank, None], right[:rank]
        # 2: rows and columns of any scale; 0: with singular vectors on this side.
        uneven, vectors, rotation, scale, _, failed = lapack.dgejsv(
            (singular * right * length).T, joba=2, jobu=0, jobv=0
        )
        if failed:
            raise linalg.LinAlgError("the singular values of the rows were not found")
        uneven *= scale[0] / scale[1]
        # The eigenvectors have entries that are small beside others, and known less well. This
        # product has not; it differs only in directions in which no row does.
        basis = (right / singular / length).T @ rotation
        shortest = basis if rank == len(length) else vectors / uneven
        return basis, shortest, uneven**2, condition
