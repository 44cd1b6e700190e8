"""The confident step: how far out-of-fold labels allow a model to move towards candidates.

Moving scores g by a step towards candidates, g + Σ aₖ tₖ, changes the squared loss by
a'Ga - 2a'b per row, where G holds the mean products of the differences t, and b the mean of
t·(y - g). G does not depend on labels. For b, out-of-fold rows give an estimate, and a lower
confidence bound in one direction: towards one candidate, or towards a blend of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, optimize, special

from neverworse._typing import Indices, Matrix, Vector
from neverworse._words import count, number, printed

SAME = 1e-20  # a mean square below which a difference from the baseline is rounding error
JITTER = 1e-9  # of the diagonal of the Gram matrix, added to it: candidates may be nearly equal
N_ORDERS = 10  # random orders of the rows, over which a blend is averaged
N_PARTS = 20  # of the rows; the weights of the blend are updated after each
LARGE = 1e4  # weight of the constraint Σa ≤ 1, relative to the size of the differences


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
    lower_bounds : array of shape (n_candidates,)
        Simultaneous lower confidence bounds of b.
    gram : array of shape (n_candidates, n_candidates)
        Mean products of the differences t over the unlabeled rows.
    expected_change, largest_change : float
        Change of the loss per row by the steps: the estimate, and its upper confidence bound. The
        bound is never positive, and 0 for the baseline itself.
    products, squares : arrays of shape (n_labeled, n_candidates)
        Out-of-fold t·(y - g) and t·t, from models that have not seen the label of the row.
    differences : array of shape (n_labeled, n_candidates)
        Out-of-fold loss of each candidate minus that of the baseline, for each labeled row.
    weights : array of shape (n_labeled,) or None
    level, combine, control_variate
        As in `SafeStackingClassifier`.
    loss : {"Brier score", "squared loss of the scores"}
    n_labeled, n_unlabeled : int
    assumptions : tuple of str

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
    products: Matrix
    squares: Matrix
    gram: Matrix
    n_unlabeled: int
    weights: Vector | None = None
    level: float = 0.95
    combine: str = "joint"
    control_variate: bool = False
    loss: str = "Brier score"
    assumptions: tuple[str, ...] = (
        "labels are missing completely at random",
        "there are enough labeled rows for means to be nearly normal",
        "what holds for models fitted without one fold holds for those fitted to all labels",
    )

    # Results are computed when they are first used, and then stored, also in model files.

    @cached_property
    def _direction(self) -> Direction:
        return best_direction(self) if self.combine == "best" else joint_direction(self)

    @cached_property
    def steps(self) -> Vector:
        return self._direction.step * self._direction.weights

    @cached_property
    def expected_change(self) -> float:
        return self._direction.change(self._direction.b)

    @cached_property
    def largest_change(self) -> float:
        return self._direction.change(self._direction.low)

    @cached_property
    def estimates(self) -> Vector:
        return self._s @ self._values / self.n_labeled

    @cached_property
    def lower_bounds(self) -> Vector:
        sums = np.sum(self._deviations**2, axis=0)
        return self._bound(self.estimates, self._variance(sums, sums), len(sums))

    @cached_property
    def differences(self) -> Matrix:
        return self.squares - 2.0 * self.products

    @cached_property
    def n_labeled(self) -> int:
        return len(self.products)

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
        if not self.chosen:
            return self.statement
        steps = zip(self.names, self.steps, strict=True)
        moves = ", ".join(f"{step:.2f} towards {name!r}" for name, step in steps if step > 0.0)
        assumed = "; that ".join(self.assumptions)
        return f"{self.statement} Step: {moves}. This assumes that {assumed}."

    @property
    def _s(self) -> Vector:
        """Weights of the rows, with a mean of 1."""
        if self.weights is None:
            return np.ones(self.n_labeled)
        return self.weights / self.weights.mean()

    @property
    def _df(self) -> int:
        """Degrees of freedom."""
        return self.n_labeled - (2 if self.control_variate else 1)

    @property
    def _values(self) -> Matrix:
        """Numbers whose mean estimates b; with control variates, of a smaller variance."""
        if not self.control_variate:
            return self.products
        centred = self.squares - self._s @ self.squares / self.n_labeled
        spread = self._s @ centred**2
        slopes = self._s @ (centred * self.products) / np.where(spread > 0.0, spread, 1.0)
        return self.products - slopes * (self.squares - np.diag(self.gram))

    @property
    def _deviations(self) -> Matrix:
        return self._s[:, None] * (self._values - self.estimates)

    def _variance(self, own: Any, others: Any) -> Any:
        """Return the variance of a mean of labeled rows minus that of unlabeled ones.

        Both are given by the sums of squared deviations that labeled rows would have.
        """
        return (own / self.n_labeled + others / (self.n_unlabeled or np.inf)) / self._df

    def _bound(self, b: Any, variance: Any, n_bounds: int = 1) -> Any:
        """Return lower confidence bounds that hold simultaneously, by Student's distribution."""
        quantile = special.stdtrit(self._df, 1.0 - (1.0 - self.level) / n_bounds)
        return b - quantile * np.sqrt(variance)


@dataclass(frozen=True)
class Direction:
    """A direction to move in, with what is known about it."""

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
        """Return the change of the loss per row by the step, for a given b."""
        return self.step * (self.step * self.square - 2.0 * b)


def best_direction(found: Evidence) -> Direction:
    """Return the direction towards a single candidate with the largest proved improvement."""
    facts = np.column_stack([np.diag(found.gram), found.estimates, found.lower_bounds])
    directions = map(Direction, np.eye(len(facts)), *facts.T.tolist())
    return min(directions, key=lambda one: one.change(one.low))


def joint_direction(found: Evidence) -> Direction:
    r"""Return the direction towards a blend of the candidates, with weights found row by row.

    The weights :math:`w_i` of a row are those that look best on rows before it, in a random order,
    so that the mean of :math:`w_i \cdot d_i` estimates :math:`\bar w \cdot b` without any bias, and
    its variance is the mean square of :math:`w_i \cdot (d_i - b)`. The blend is :math:`\bar w`. The
    mean over several orders has a variance that is not larger (docs/evidence_mathematics.md).
    """
    n, s, values, deviations = found.n_labeled, found._s, found._values, found._deviations
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(n), (N_ORDERS, 1)), axis=1)
    each = np.array([_sequential_weights(found.gram, values, s, order) for order in orders])
    weights = s @ each.mean(axis=0) / n
    own = np.einsum("mnk,nk->mn", each, deviations)
    variance = found._variance(np.sum(own**2) / N_ORDERS, np.sum((deviations @ weights) ** 2))
    b = float(s @ np.einsum("nk,nk->n", each.mean(axis=0), values)) / n
    low = float(found._bound(b, variance))
    return Direction(weights, float(weights @ found.gram @ weights), b, low)


def _sequential_weights(gram: Matrix, values: Matrix, s: Vector, order: Indices) -> Matrix:
    """Return for each row the weights that look best on rows before it.

    At first all candidates have the same weight, as if as many rows as there are candidates had
    shown that to be best. Where none looks better than the baseline, the weights do not change.
    """
    n, k = values.shape
    found, weights = np.empty((n, k)), np.full(k, 1.0 / k)
    total, seen = gram.sum(axis=1), float(k)
    for rows in np.array_split(order, min(n, N_PARTS)):
        best = best_weights(gram, total / seen)
        weights = best / best.sum() if best.any() else weights
        found[rows] = weights
        total = total + s[rows] @ values[rows]
        seen += float(s[rows].sum())
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
