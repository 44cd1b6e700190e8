"""Coordinates in which the quadratic part of the loss is the identity, by the Gram matrix.

For rows E with weights S and a penalty α that leaves the intercept alone, the loss has the second
derivative 2H with H = E'SE + αP. Everything downstream works in coordinates z with v = Tz and
T'HT = I: any conditioning and any scale of the features ends here.

T comes from a factor of the centred second moments of the rows: Cholesky where these have digits
enough. Where columns depend on each other, eigenvectors: one-hot columns add up to one, and
duplicates differ by nothing. The Gram matrix shows which directions may be such, but squares the
singular values, so that one of 1e-8 looks like one of zero; the scores of the few directions in
question tell. Orthogonal factors of the rows themselves, where nothing else does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from neverworse._typing import Indices, Mask, Matrix, Vector
from neverworse.projection.coordinates import EPS, HIGH, Points, WhitenedCoordinates, svd
from neverworse.rows import Rows, Standard, reduce_rows

# A centred sum of squares below this fraction of the raw one has lost half of its digits to
# cancellation: shift the rows and add up again.
CANCELLATION = 1e-8
# Sums of squares beyond these leave too little room for what is computed from them.
SMALLEST_SQUARE, LARGEST_SQUARE = 1e-200, 1e200


class NonFiniteError(ValueError):
    """The rows hold NaN or infinity (or numbers whose squares are too large)."""


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows, for columns measured from their mean."""

    rows: Rows  # the rows that were summed, shifted where that was needed for accuracy
    total: float  # sum of the weights
    # (n_columns,): weighted mean of `rows` (after their shift); zeros where nothing was centred
    mean: Vector
    raw: Vector  # (n_columns,): weighted sum of squares of `rows`: the size of what was added up
    # (n_columns,): False for columns that say nothing: constant with an intercept, zero without
    varies: Mask
    spread: Vector  # (n_columns,): weighted sum of (x - mean)²
    gram: Matrix  # (n_columns, n_columns): weighted sum of (x - mean)(x - mean)', if asked for

    @property
    def centre(self) -> Vector:
        """The mean of the rows, before any shift."""
        return self.mean if self.rows.shift is None else self.mean + self.rows.shift


def moments(rows: Rows, weights: Vector | None, centre: bool, products: bool = True) -> Moments:
    """Add up the second moments of `rows`, about their weighted mean if `centre`.

    Without `products`, for every column alone: no matrix of columns by columns is made.
    """
    sums = _add_up(rows, weights, centre, products)
    doubtful = np.flatnonzero(sums.spread <= CANCELLATION * sums.raw)
    if centre and doubtful.size:
        varies = sums.varies.copy()
        low, high = rows.ranges(doubtful, weights)
        varies[doubtful] = low < high
        if varies[doubtful].any() and rows.shift is None:
            sums = _add_up(rows.shifted(sums.mean), weights, centre, products)
        # Beside rows of much larger weight, others may be lost in the rounding of the mean.
        varies &= sums.spread > 0.0
        sums = replace(sums, varies=varies, spread=np.where(varies, sums.spread, 0.0))
    if products and not sums.varies.all():
        sums = replace(sums, gram=np.where(np.outer(sums.varies, sums.varies), sums.gram, 0.0))
    return sums


column_moments = partial(moments, products=False)


def _add_up(rows: Rows, weights: Vector | None, centre: bool, products: bool) -> Moments:
    if products:
        gram, sums = rows.gram(weights)
        raw = np.diag(gram).copy()
    else:
        gram, raw = np.empty((0, 0)), rows.squares(weights)
        sums = rows.weighted_sum(np.ones(rows.n_rows) if weights is None else weights)
    finite = np.isfinite(gram).all() and np.isfinite(sums).all()
    if not (finite and (raw < LARGEST_SQUARE).all()):
        raise NonFiniteError("the squares of the rows are not finite, or too large")
    tiny = np.flatnonzero(raw < SMALLEST_SQUARE)
    if rows.shift is None and tiny.size:
        low, high = rows.ranges(tiny, weights)
        for j in tiny[(low <= high) & ((low < 0.0) | (high > 0.0))].tolist():
            raise ValueError(
                f"The values of column {j} of X (or the sample weights) are so small that weighted "
                "squares vanish in floating point. Rescale the column, for example with "
                "sklearn.preprocessing.StandardScaler."
            )
    total = float(rows.n_rows if weights is None else weights.sum())
    mean, spread = np.zeros(rows.n_columns), raw
    if centre and total > 0:
        mean = sums / total
        if products:
            gram -= total * np.outer(mean, mean)
        spread = np.diag(gram) if products else np.maximum(raw - total * mean**2, 0.0)
    return Moments(rows, total, mean, raw, raw > 0, spread, gram)


# Gram matrices are good enough as long as their condition number (columns brought to equal length,
# null space left out) leaves eight digits. Beyond, orthogonal factors of the rows themselves.
WELL_CONDITIONED = 1e-8
CLEAR = 1e3  # times the rounding errors of the Gram matrix: eigenvalues that are kept
AFFORDABLE = 1e7  # numbers in a dense copy of the rows


@dataclass(frozen=True)
class CentredFactor:
    """A triangular or orthogonal factor of the centred, penalised Gram matrix."""

    moments: Moments
    # (n_columns, rank): T with T'(gram + αI)T = I; its columns are orthogonal to `null_space`
    basis: Matrix
    null_space: Matrix  # (n_columns, nullity): directions in which no row differs
    # (n_targets, n_columns): the least squares solution for the targets, if these were given and
    # the orthogonal factor was needed
    solution: Matrix | None = None

    def minimum_norm(self, coef: Matrix) -> Matrix:
        """Return the shortest weights (in columns) that score all rows as `coef` does."""
        if not self.null_space.size:
            return coef
        # Subtracting a combination of null vectors, row by row, keeps the digits of small weights
        # of large features; an orthogonal projection would not.
        return coef - self.null_space @ np.linalg.lstsq(self.null_space, coef, rcond=None)[0]


def factor(
    rows: Rows,
    weights: Vector | None,
    alpha: float,
    fit_intercept: bool,
    targets: Matrix | None = None,
) -> CentredFactor:
    """Factor the Gram matrix of the rows (centred with an intercept) plus α times the identity.

    Targets, centred as well, are solved for only where the rows are too ill-conditioned for the
    Gram matrix, because there they must be part of the factorisation.
    """
    # The penalty acts outside of the rows' span as well, where rows without weight may be.
    whole = alpha == 0.0 or weights is None or bool((weights > 0.0).all())
    if whole and is_few_rows(rows, weights):
        return factor_rows(rows, weights, alpha, fit_intercept, targets)
    sums = moments(rows, weights, centre=fit_intercept)
    varying = _Varying(sums, weights, alpha, targets).factor()
    idle = np.flatnonzero(~sums.varies)
    if alpha == 0.0 or not idle.size:
        return varying
    # Columns in which no row differs carry no information, but the penalty acts on their weights.
    alone = np.zeros((rows.n_columns, len(idle)))
    alone[idle, np.arange(len(idle))] = 1.0 / np.sqrt(alpha)
    return replace(varying, basis=np.column_stack([varying.basis, alone]))


class _Varying:
    """The part of the Gram matrix that belongs to columns in which rows differ."""

    def __init__(
        self, sums: Moments, weights: Vector | None, alpha: float, targets: Matrix | None
    ) -> None:
        self.sums = sums
        self.weights = weights
        self.alpha = alpha
        self.targets = targets
        self.active = np.flatnonzero(sums.varies)  # these columns
        # What brings them to equal length
        self.scale = 1.0 / np.sqrt(np.diag(sums.gram)[self.active] + alpha)
        self.gram = sums.gram[np.ix_(self.active, self.active)]
        self.gram *= np.outer(self.scale, self.scale)
        self.gram[np.diag_indices_from(self.gram)] = 1.0

    def factor(self) -> CentredFactor:
        d = self.sums.rows.n_columns
        if not self.active.size:
            nothing = np.zeros((d, 0))
            solution = None if self.targets is None else np.zeros((len(self.targets), d))
            return CentredFactor(self.sums, nothing, nothing, solution)
        return self._cholesky() or self._eigenvectors() or self._orthogonal()

    def _cholesky(self) -> CentredFactor | None:
        triangle, failed = lapack.dpotrf(self.gram, lower=0, clean=1)
        if failed:
            return None
        rcond, _ = lapack.dpocon(triangle, np.abs(self.gram).sum(axis=0).max(), uplo="U")
        if rcond <= WELL_CONDITIONED:
            return None
        inverse, _ = lapack.dtrtri(triangle, lower=0)
        return self._of_scaled(inverse, np.zeros((len(self.active), 0)))

    def _eigenvectors(self) -> CentredFactor | None:
        """Split the rows' range from their null space, if these are far apart and there is no α.

        With A for the scaled, centred rows: eigenvectors of A'A give a basis T of the range with
        T'A'AT = I, and candidates V for the null space. An eigenvector of the Gram matrix has an
        error of `lost` / λ in the direction of an eigenvalue λ, and a score of `lost` / √λ: too
        much to be told from a small singular value. But the pass that computes the scores AV also
        gives A'AV, and V - TT'A'AV has the scores (I - ATT'A')AV: those outside of the range of
        AT. What is left of an exact dependency is the rounding of AV itself, and what is left of
        another one is its singular value.
        """
        if self.alpha > 0.0:
            return None
        values, vectors = linalg.eigh(self.gram, check_finite=False)
        share = self._rounding()
        lost = share * self._noise() * values[-1]  # centring subtracts squares
        n_null = int(np.sum(values <= lost))
        clear = max(WELL_CONDITIONED * values[-1], CLEAR * lost)
        if not n_null or n_null == len(values) or values[n_null] <= clear:
            return None
        basis = vectors[:, n_null:] / np.sqrt(values[n_null:])
        candidates = vectors[:, :n_null]
        directions = np.zeros((n_null, self.sums.rows.n_columns))
        directions[:, self.active] = (self.scale[:, None] * candidates).T
        squares, products = self.sums.rows.spread_along(directions, self.sums.mean, self.weights)
        in_range = (products[:, self.active] * self.scale) @ basis
        outside = linalg.eigvalsh(squares - in_range @ in_range.T)
        if outside[-1] > share**2 * values[-1]:
            return None
        return self._of_scaled(basis, candidates - basis @ in_range.T)

    def _orthogonal(self) -> CentredFactor:
        """Factor ill-conditioned or rank-deficient rows without squaring their condition number."""
        rows, k = self.sums.rows, len(self.active)
        targets = np.zeros((0, rows.n_rows)) if self.targets is None else self.targets
        standard = Standard(self.active, self.sums.mean[self.active], self.scale)
        penalty = np.zeros((k, k + len(targets)))
        penalty[:, :k] = np.diag(np.sqrt(self.alpha) * self.scale)
        triangle = reduce_rows([rows.triangle(standard, self.weights, targets), penalty])
        left, singular, right = linalg.svd(triangle[:k, :k], lapack_driver="gesvd")
        rank = int(np.sum(singular > self._rounding() * singular[0]))
        centred = self._of_scaled(right[:rank].T / singular[:rank], right[rank:].T)
        if self.targets is None:
            return centred
        return replace(centred, solution=(triangle[:k, k:].T @ left[:, :rank]) @ centred.basis.T)

    def _of_scaled(self, basis: Matrix, null_space: Matrix) -> CentredFactor:
        """Return the factor that has this basis and this null space for columns of equal length."""
        if not null_space.size and len(self.active) == self.sums.rows.n_columns:
            return CentredFactor(self.sums, self.scale[:, None] * basis, null_space)
        whole = np.zeros((self.sums.rows.n_columns, basis.shape[1] + null_space.shape[1]))
        whole[self.active] = self.scale[:, None] * np.hstack([basis, null_space])
        bare = CentredFactor(self.sums, *np.hsplit(whole, [basis.shape[1]]))
        return replace(bare, basis=bare.minimum_norm(bare.basis))

    def _rounding(self) -> float:
        """Return up to which share of the largest a singular value may be nothing but rounding."""
        # Errors of sums grow with both sides of the matrix.
        size = max(len(self.active), np.sqrt(self.sums.rows.n_rows))
        return float(8 * size * EPS * self._noise())

    def _noise(self) -> float:
        """Return what floating point cannot know: the data's rounding, relative to the spread."""
        return float(np.sqrt(np.max(self.sums.raw[self.active] * self.scale**2, initial=1.0)))


def is_few_rows(rows: Rows, weights: Vector | None) -> bool:
    """Whether rows with a weight are fewer than columns, and fit into memory when dense."""
    n_used = rows.n_rows if weights is None else int(np.count_nonzero(weights))
    fewer = rows.n_columns > HIGH and n_used < rows.n_columns
    return fewer and n_used * rows.n_columns <= AFFORDABLE


def factor_rows(
    rows: Rows, weights: Vector | None, alpha: float, fit_intercept: bool, targets: Matrix | None
) -> CentredFactor:
    """Factor the rows themselves. The basis spans them, and has no need to span more."""
    sums = column_moments(rows, weights, centre=fit_intercept)
    s = np.ones(rows.n_rows) if weights is None else weights
    used = np.flatnonzero(s > 0.0)
    root = np.sqrt(s[used])
    centred = sums.rows.take(used)
    centred -= sums.mean
    centred[:, ~sums.varies] = 0.0
    centred *= root[:, None]
    left, singular, right = svd(centred)
    # What floating point cannot know: the rounding of the factors, and of the data.
    size = max(float(singular.max(initial=0.0)), float(np.sqrt(sums.raw.max(initial=0.0))))
    kept = singular > 8 * np.sqrt(rows.n_columns) * EPS * size
    left, singular, right = left[:, kept], singular[kept], right[kept]
    damped = 1.0 / np.sqrt(singular**2 + alpha)
    basis: Matrix = right.T * damped
    solution = None
    if targets is not None:
        solution = ((targets[:, used] * root) @ (left * (singular * damped))) @ basis.T
    return CentredFactor(sums, basis, np.zeros((rows.n_columns, 0)), solution)


BLOCK_COLUMNS = 100  # of a basis at once: fewer are slower, more leave less to save


@dataclass(frozen=True)
class GramCoordinates(WhitenedCoordinates):
    """A basis T of the weights with T'HT = I."""

    rows: Rows
    mean: Vector
    basis: Matrix  # (n_columns, rank): T, without its row for the intercept
    offset: Vector
    column_norms: Vector
    idle: Indices  # columns in which no row differs from the mean: exactly zero once centred

    whitens_copies = True

    def coef(self, z: Matrix) -> Matrix:
        return z @ self.basis.T

    def adjoint_coef(self, gradient: Matrix) -> Matrix:
        return gradient @ self.basis

    def adjoint(self, weighted_sum: Matrix, total: Vector) -> Matrix:
        centred = np.multiply(total[:, None], -self.mean)
        centred += weighted_sum
        centred[:, self.idle] = 0.0
        whitened = np.multiply(total[:, None], self.offset)
        for columns, height in self._blocks:
            whitened[:, columns] += centred[:, :height] @ self.basis[:height, columns]
        return whitened

    @cached_property
    def _blocks(self) -> list[tuple[slice, int]]:
        """Columns of the basis, and how many of its rows they need: a triangle has zeros below."""
        found = [slice(lo, lo + BLOCK_COLUMNS) for lo in range(0, self.rank, BLOCK_COLUMNS)]
        used = (np.flatnonzero(self.basis[:, columns].any(axis=1)) for columns in found)
        return [
            (columns, rows[-1] + 1) for columns, rows in zip(found, used, strict=True) if rows.size
        ]

    def with_total(self, size: float) -> GramCoordinates:
        basis = np.column_stack([self.basis, np.zeros(len(self.basis))])
        return replace(self, basis=basis, offset=np.append(self.offset, size))

    def rotated(self, rotation: Matrix) -> GramCoordinates:
        return replace(self, basis=self.basis @ rotation, offset=self.offset @ rotation)

    def form(self, points: Points) -> Matrix:
        if points.rows is None:
            basis = self.to_weights(np.eye(self.rank))
            columns = np.column_stack([basis.coef, basis.intercept])
            return columns @ columns.T
        gram, sums = points.rows.shifted(self.centre).gram(points.weights)
        if not np.isfinite(gram).all():
            raise NonFiniteError("the Gram matrix of the points is not finite")
        form = self.basis.T @ gram @ self.basis
        if points.with_one:
            cross = np.outer(sums @ self.basis, self.offset)
            total = points.rows.n_rows if points.weights is None else points.weights.sum()
            form += cross + cross.T + total * np.outer(self.offset, self.offset)
        return form


def whiten(
    rows: Rows, weights: Vector | None, alpha: float, fit_intercept: bool
) -> GramCoordinates:
    """Return coordinates in which the loss of these rows has the identity as its quadratic part."""
    centred = factor(rows, weights, alpha, fit_intercept)
    sums, basis = centred.moments, centred.basis
    idle = np.flatnonzero(~sums.varies)
    offset = np.zeros(basis.shape[1])
    found = GramCoordinates(sums.rows, sums.mean, basis, offset, np.sqrt(sums.raw), idle)
    return found.with_intercept(sums.total if fit_intercept else 0.0)
