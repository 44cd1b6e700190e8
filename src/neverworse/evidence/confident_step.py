"""The confident step: how far labels that a model has not seen allow to move it.

Moving scores g by a step towards candidates, g + Σ aₖ tₖ, changes the squared loss by
a'Ga - 2a'b per row, where G holds the mean products of the differences t, and b the mean of
t·(y - g). G takes no labels. Of b, out-of-fold rows give an estimate, and a lower confidence bound
in one direction: towards one candidate, or towards a blend of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import linalg, optimize, special

from neverworse._typing import Indices, Matrix, Vector
from neverworse._words import count, number, printed

# A candidate that differs from the baseline by less (mean square) is the same one, rounded.
SAME = 1e-20
# Squares are raised by this share of the mean one, where some candidates are nearly the same.
JITTER = 1e-9
N_ORDERS = 10  # random orders of the rows, over which a blend is averaged
N_PARTS = 20  # of the rows; the weights of the blend are updated after each
LARGE = 1e4  # weight of the constraint Σa ≤ 1, relative to the size of the differences


@dataclass(frozen=True)
class OutOfFold:
    """Out-of-fold comparisons of candidates with the baseline: all that a step depends on.

    `products` and `squares` are t·(y - g) and t·t of each labeled row and candidate, by models that
    have not seen its label; `gram` has the mean products of the differences t, over the unlabeled
    rows. Without any, everything is about new rows.
    """

    names: list[str]
    products: Matrix
    squares: Matrix
    gram: Matrix
    n_unlabeled: int
    weights: Vector | None = None

    def sample(self, *, control_variate: bool = False) -> Sample:
        """Return numbers of which b is the mean; with control variates, of a smaller variance."""
        n = len(self.products)
        s = np.ones(n) if self.weights is None else self.weights / self.weights.mean()
        if not (control_variate and self.n_unlabeled):
            return Sample(self.products, s, self.gram, n - 1, self.n_unlabeled)
        centred = self.squares - s @ self.squares / n
        spread = s @ centred**2
        slopes = s @ (centred * self.products) / np.where(spread > 0.0, spread, 1.0)
        values = self.products - slopes * (self.squares - np.diag(self.gram))
        return Sample(values, s, self.gram, n - 2, self.n_unlabeled)


@dataclass(frozen=True)
class Sample:
    """Rows of numbers, one for each candidate, whose mean estimates b."""

    values: Matrix
    s: Vector  # weights of rows; their mean is 1
    gram: Matrix
    df: int  # degrees of freedom of variances
    n_unlabeled: int

    @property
    def mean(self) -> Vector:
        """The estimate of b."""
        return self.s @ self.values / len(self.s)

    @property
    def spread(self) -> Matrix:
        """Weighted deviations of the rows from their mean."""
        return self.s[:, None] * (self.values - self.mean)

    def variance(self, own: Any, others: Any) -> Any:
        """Return the variance of a mean of labeled rows less that of unlabeled ones.

        Both are given by the sums of squared deviations that labeled rows would have.
        """
        return own / len(self.s) / self.df + others / self.df / (self.n_unlabeled or np.inf)

    def bound(self, b: Any, variance: Any, delta: float) -> Any:
        """Return lower confidence bounds, by Student's distribution."""
        return b - special.stdtrit(self.df, 1.0 - delta) * np.sqrt(variance)


@dataclass(frozen=True)
class Direction:
    """One way to move, with what is known about it."""

    weights: Vector  # of the candidates, with the sum 1; steps are multiples
    square: float  # mean square of the move
    b: float  # the estimate of the mean of (move)·(y - g)
    low: float  # its lower confidence bound

    @property
    def step(self) -> float:
        """The multiple that makes the worst change, a²·square - 2a·low, smallest."""
        if self.low <= 0.0 or self.square <= SAME:
            return 0.0
        return min(self.low / self.square, 1.0)

    def change(self, b: float) -> float:
        """Return the change of the loss per row by the step, if b is what is given."""
        return self.step * (self.step * self.square - 2.0 * b)


def best_direction(sample: Sample, delta: float) -> Direction:
    """Return the best of the ways towards one candidate.

    Each has a lower confidence bound at level δ/k, so that all of them hold together.
    """
    squares, b, low = np.diag(sample.gram), sample.mean, lower_bounds(sample, delta)
    each = np.eye(len(b))
    found = [Direction(each[k], float(squares[k]), b[k], low[k]) for k in range(len(b))]
    return min(found, key=lambda one: one.change(one.low))


def lower_bounds(sample: Sample, delta: float) -> Vector:
    """Return lower confidence bounds of b for all candidates, which hold together."""
    sums = np.sum(sample.spread**2, axis=0)
    return sample.bound(sample.mean, sample.variance(sums, sums), delta / len(sums))


def joint_direction(sample: Sample, delta: float) -> Direction:
    r"""Return the way towards a blend of the candidates, whose weights are found row by row.

    Rows are gone through in a random order. The weights :math:`w_i` of a row are those that look
    best on rows before it, so that :math:`w_i \cdot (d_i - b)` are differences of a martingale: the
    mean of :math:`w_i \cdot d_i` estimates :math:`\bar w \cdot b` without any bias, however the
    weights were chosen, and its variance is the mean of their squares. The blend is
    :math:`\bar w`. Of several orders, the mean is taken; its variance is not larger than the mean.
    """
    n = len(sample.values)
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(n), (N_ORDERS, 1)), axis=1)
    followed = np.array([_followed(sample, order) for order in orders])
    each = np.mean(followed, axis=0)
    weights = sample.s @ each / n
    own = np.einsum("mnk,nk->mn", followed, sample.spread)
    variance = sample.variance(np.sum(own**2) / N_ORDERS, np.sum((sample.spread @ weights) ** 2))
    b = float(sample.s @ np.einsum("nk,nk->n", each, sample.values)) / n
    low = float(sample.bound(b, variance, delta))
    return Direction(weights, float(weights @ sample.gram @ weights), b, low)


def _followed(sample: Sample, order: Indices) -> Matrix:
    """Return for each row the weights that look best on rows before it.

    At first, all candidates have the same: as if as many rows as there are candidates had shown
    that to be best. Where none looks better than the baseline, the weights stay as they are.
    """
    n, k = sample.values.shape
    found, weights = np.empty((n, k)), np.full(k, 1.0 / k)
    total, seen = sample.gram.sum(axis=1), float(k)
    for rows in np.array_split(order, min(n, N_PARTS)):
        best = best_weights(sample.gram, total / seen)
        weights = best / best.sum() if best.any() else weights
        found[rows] = weights
        total = total + sample.s[rows] @ sample.values[rows]
        seen += float(sample.s[rows].sum())
    return found


def best_weights(gram: Matrix, b: Vector) -> Vector:
    """Return the weights a ≥ 0, Σa ≤ 1 with the least a'Ga - 2b'a."""
    k, size = len(b), float(np.trace(gram))
    if size <= SAME:
        return np.zeros(k)
    factor = linalg.cholesky(gram + JITTER * size / k * np.eye(k))
    aim = linalg.solve_triangular(factor, b, trans=1)
    found = optimize.nnls(factor, aim)[0]
    if found.sum() > 1.0:
        heavy = LARGE * np.sqrt(size)
        found = optimize.nnls(np.vstack([factor, np.full(k, heavy)]), np.append(aim, heavy))[0]
    return found / max(1.0, float(found.sum()))


@dataclass(frozen=True)
class Evidence:
    """Confidence bounds on the improvement by candidates, from out-of-fold labels, and the step.

    Attributes
    ----------
    names : list of str
        The candidates.
    steps : array of shape (n_candidates,)
        How far the model is moved from the baseline towards each candidate: 0 is the baseline, 1
        the candidate.
    chosen : list of str
        Candidates with a positive step.
    estimates : array of shape (n_candidates,)
        Estimates of b, the mean of t·(y - g) for the difference t = candidate - baseline. A step a
        changes the loss by a²G - 2ab per row, so that a positive b means that some step improves.
    covariance : array of shape (n_candidates, n_candidates)
        Covariance of the estimates.
    lower_bounds : array of shape (n_candidates,)
        Simultaneous lower confidence bounds of b.
    gram : array of shape (n_candidates, n_candidates)
        Mean products of the differences t.
    expected_change, largest_change : float
        Change of the loss per row by the steps: the estimate, and its upper confidence bound. The
        bound is never positive, and 0 for the baseline itself.
    differences : array of shape (n_labeled, n_candidates)
        Out-of-fold loss of each candidate minus that of the baseline, for each labeled row.
    level : float
    combine : {"best", "joint"}
    control_variate : bool
    loss : str
        "Brier score" or "squared loss of the scores".
    n_labeled, n_unlabeled : int
        Without unlabeled rows, the statement is about new rows from the same distribution.
    assumptions : tuple of str
        Assumptions of the statement.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from neverworse import SafeStackingClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(200, 1))
    >>> y = np.where(np.arange(200) < 60, np.abs(X[:, 0]) < 0.5, -1)  # least squares cannot do that
    >>> candidates = [("tree", DecisionTreeClassifier(max_depth=2, random_state=0))]
    >>> evidence = SafeStackingClassifier(candidates=candidates, random_state=0).fit(X, y).evidence_
    >>> evidence.chosen
    ['tree']
    >>> bool(evidence.largest_change < 0)
    True
    """

    names: list[str]
    steps: Vector
    estimates: Vector
    covariance: Matrix
    lower_bounds: Vector
    gram: Matrix
    expected_change: float
    largest_change: float
    differences: Matrix
    level: float
    combine: str
    control_variate: bool
    loss: str
    n_labeled: int
    n_unlabeled: int
    assumptions: tuple[str, ...] = field(
        default=(
            "labels are missing completely at random",
            "there are enough labeled rows for means to be nearly normal",
            "what holds for models fitted without one fold holds for those fitted to all labels",
        )
    )

    @property
    def chosen(self) -> list[str]:
        """Candidates with a positive step."""
        return [name for name, step in zip(self.names, self.steps, strict=True) if step > 0.0]

    @property
    def statement(self) -> str:
        """The claim in one sentence."""
        if not self.chosen:
            return (
                f"The model is the baseline: at level {self.level:.3g}, {self.n_labeled:,} labels "
                "show no candidate to be better."
            )
        rows = "new rows from the same distribution"
        if self.n_unlabeled:
            rows = f"the {count(self.n_unlabeled, 'unlabeled row')}"
        return printed(
            f"Confident, not certain: with probability {self.level:.3g} the {self.loss} on {rows} "
            f"is not larger than the baseline's; it is lower by {number(-self.expected_change)} "
            f"(estimate), and by at least {number(-self.largest_change)} (bound)."
        )

    def summary(self) -> str:
        """Return the statement, the steps and the assumptions as a paragraph."""
        parts = [self.statement]
        if self.chosen:
            taken = zip(self.names, self.steps, strict=True)
            told = ", ".join(f"{step:.2f} towards {name!r}" for name, step in taken if step > 0.0)
            parts.append(f"Step: {told}.")
            parts.append(f"This assumes that {'; that '.join(self.assumptions)}.")
        return " ".join(parts)


def find_step(
    found: OutOfFold, level: float, combine: str, control_variate: bool, loss: str
) -> Evidence:
    """Return the step that out-of-fold rows allow at a level, with the evidence for it."""
    sample, delta = found.sample(control_variate=control_variate), 1.0 - level
    direction = (best_direction if combine == "best" else joint_direction)(sample, delta)
    products = sample.spread.T @ sample.spread
    return Evidence(
        names=found.names,
        steps=direction.step * direction.weights,
        estimates=sample.mean,
        covariance=sample.variance(products, products),
        lower_bounds=lower_bounds(sample, delta),
        gram=found.gram,
        expected_change=direction.change(direction.b),
        largest_change=direction.change(direction.low),
        differences=found.squares - 2.0 * found.products,
        level=level,
        combine=combine,
        control_variate=control_variate and found.n_unlabeled > 0,
        loss=loss,
        n_labeled=len(found.products),
        n_unlabeled=found.n_unlabeled,
    )
