"""The confident step: how far labels that a model has not seen allow to move it.

Moving scores g by a step towards candidates, g + Σ aₖ tₖ, changes the squared loss by
a'Ga - 2a'b per row, where G holds the mean products of the differences t, and b the mean of
t·(y - g). G takes no labels. Of b, out-of-fold rows give an estimate and a confidence region;
the step makes the most of its worst case.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import linalg, optimize, special

from neverworse._typing import Matrix, Vector
from neverworse._words import card, count, number

# A candidate that differs from the baseline by less (mean square) is the same one, rounded.
SAME = 1e-20
# Variances are raised by this share of the mean one, where some candidates are nearly the same.
JITTER = 1e-9


@dataclass(frozen=True)
class OutOfFold:
    """What folds say about candidates: everything that a step depends on.

    Attributes
    ----------
    names : list of str
    products : array of shape (n_labeled, n_candidates)
        t·(y - g) of each labeled row, by models that have not seen its label.
    gram : array of shape (n_candidates, n_candidates)
        Mean products of the differences, over the rows that the statement is about.
    n_unlabeled : int
        How many rows these are; 0 if it is about new rows.
    weights : array of shape (n_labeled,) or None
    controls : array of shape (n_labeled, n_candidates) or None
        t·(p - g), with a prediction p of the label in place of the label.
    control_means : array of shape (n_candidates,) or None
        Their means over the unlabeled rows, where no label is needed.
    """

    names: list[str]
    products: Matrix
    gram: Matrix
    n_unlabeled: int
    weights: Vector | None = None
    controls: Matrix | None = None
    control_means: Vector | None = None

    def estimate(self) -> tuple[Vector, Matrix, int]:
        """Return the estimate of b, its covariance, and the degrees of freedom of the latter."""
        n = len(self.products)
        s = np.ones(n) if self.weights is None else self.weights / self.weights.mean()
        values, shift, n_fitted = self.products, np.zeros(len(self.names)), 1
        if self.controls is not None and self.control_means is not None:
            slopes = _slopes(values, self.controls, s)
            values, shift = values - slopes * self.controls, slopes * self.control_means
            n_fitted = 2
        mean = s @ values / n
        spread = s[:, None] * (values - mean)
        variance = 1.0 / n + (1.0 / self.n_unlabeled if self.n_unlabeled else 0.0)
        return mean + shift, variance * (spread.T @ spread) / (n - n_fitted), n - n_fitted


def _slopes(values: Matrix, controls: Matrix, s: Vector) -> Vector:
    """Return by how much the values change with their controls, by least squares."""
    centred = controls - s @ controls / len(s)
    squares = s @ centred**2
    varies = squares > 0.0
    covariance = s @ (centred * (values - s @ values / len(s)))
    return np.where(varies, covariance / np.where(varies, squares, 1.0), 0.0)


def best_step(b: Vector, covariance: Matrix, gram: Matrix, df: int, delta: float) -> Vector:
    """Return a step towards one candidate: the one whose worst case improves most.

    Each candidate has a lower confidence bound of b at level δ/k, so that all of them hold
    together.

    Parameters
    ----------
    b, covariance, gram : arrays
        For k candidates.
    df : int
        Degrees of freedom of the covariance.
    delta : float
        Probability with which the statement may fail.
    """
    low = lower_bounds(b, covariance, df, delta)
    squares = np.diag(gram)
    usable = squares > SAME
    sizes = np.clip(low / np.where(usable, squares, 1.0), 0.0, 1.0) * usable
    gains = sizes * (2.0 * low - sizes * squares)
    steps = np.zeros(len(b))
    best = int(np.argmax(gains))
    if gains[best] > 0.0:
        steps[best] = sizes[best]
    return steps


def lower_bounds(b: Vector, covariance: Matrix, df: int, delta: float) -> Vector:
    """Return lower confidence bounds of b that hold together, by Student's distribution."""
    quantile = special.stdtrit(df, 1.0 - delta / len(b))
    return b - quantile * np.sqrt(np.diag(covariance))


def joint_step(b: Vector, covariance: Matrix, gram: Matrix, delta: float) -> Vector:
    """Return the steps a ≥ 0, Σa ≤ 1 with the least a'Ga - 2b'a + 2κ √(a'Va), κ² = χ²(k, 1-δ).

    The last term is the worst case over the confidence ellipsoid of b. It is zero at a = 0, so
    any steps with a negative value are safe, however exactly they were found.

    Parameters
    ----------
    b, covariance, gram, delta
        As in `best_step`; V is the covariance.
    """
    k = len(b)
    kappa = float(np.sqrt(special.chdtri(k, delta)))
    usable = np.diag(gram) > SAME
    steps = np.zeros(k)
    if not usable.any():
        return steps
    b, gram = b[usable], gram[np.ix_(usable, usable)]
    v = covariance[np.ix_(usable, usable)]
    v = v + JITTER * np.trace(v) / len(b) * np.eye(len(b))
    start = _best_ray(b, v, gram, kappa)
    if start.any():
        steps[usable] = _descend(start, b, v, gram, kappa)
    return steps


def worst_case(a: Vector, b: Vector, v: Matrix, gram: Matrix, kappa: float) -> float:
    """Return the largest change of the loss per row while b lies in the confidence region."""
    return float(a @ gram @ a - 2.0 * (b @ a) + 2.0 * kappa * np.sqrt(max(float(a @ v @ a), 0.0)))


def _best_ray(b: Vector, v: Matrix, gram: Matrix, kappa: float) -> Vector:
    """Return a start along the direction u ≥ 0 with the largest b'u / √(u'Vu); zeros if ≤ κ.

    That direction minimises u'Vu/2 - b'u over u ≥ 0. If even there the confidence region reaches
    zero, no steps have a negative worst case.
    """
    if not v.any():
        u = np.maximum(b, 0.0)
    else:
        factor = linalg.cholesky(v)
        u = optimize.nnls(factor, linalg.solve_triangular(factor, b, trans=1))[0]
    gain = float(b @ u - kappa * np.sqrt(u @ v @ u))
    if gain <= 0.0:
        return np.zeros(len(b))
    return u * min(gain / float(u @ gram @ u), 1.0 / float(u.sum()))


def _descend(start: Vector, b: Vector, v: Matrix, gram: Matrix, kappa: float) -> Vector:
    """Return the best steps found from a start with a negative worst case."""
    scale = -worst_case(start, b, v, gram, kappa)

    def value(a: Vector) -> tuple[float, Vector]:
        root = np.sqrt(max(float(a @ v @ a), float(np.finfo(float).tiny)))
        gradient = 2.0 * (gram @ a - b + kappa * (v @ a) / root)
        return worst_case(a, b, v, gram, kappa) / scale, gradient / scale

    found = optimize.minimize(
        value,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(b),
        constraints=optimize.LinearConstraint(np.ones((1, len(b))), -np.inf, 1.0),
        options={"ftol": 1e-12, "maxiter": 500},
    ).x
    found = np.where(found > 1e-9, found, 0.0)
    found /= max(1.0, float(found.sum()))
    better = worst_case(found, b, v, gram, kappa) < worst_case(start, b, v, gram, kappa)
    return found if better else start


@dataclass(frozen=True)
class Evidence:
    """What out-of-fold labels say about candidates, and the step that they allow.

    Attributes
    ----------
    names : list of str
        The candidates.
    steps : array of shape (n_candidates,)
        How far the baseline was moved towards each: 0 is the baseline, 1 the candidate.
    chosen : list of str
        Candidates with a positive step.
    estimates : array of shape (n_candidates,)
        Estimates of b, the mean of t·(y - g) for the difference t = candidate - baseline. A step a
        changes the loss by a²G - 2ab per row, so that a positive b means that some step improves.
    covariance : array of shape (n_candidates, n_candidates)
        Of the estimates, as those of the rows that the statement is about.
    lower_bounds : array of shape (n_candidates,)
        Of b; all of them hold together at the level.
    gram : array of shape (n_candidates, n_candidates)
        Mean products of the differences t.
    expected_change, largest_change : float
        Change of the loss per row by the steps: the estimate, and its upper confidence bound. The
        bound is never positive, and 0 for the baseline itself.
    differences : array of shape (n_labeled, n_candidates)
        Out-of-fold loss of each candidate less that of the baseline, for each labeled row in the
        order of the rows.
    level : float
    combine : {"best", "joint"}
    control_variate : bool
    loss : str
        What it is about: "Brier score" or "squared loss of the scores".
    n_labeled, n_unlabeled : int
        Without unlabeled rows, the statement is about new rows from the same distribution.
    assumptions : tuple of str
        What the statement takes for granted.
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
            "labels are missing completely at random: labeled and unlabeled rows are alike",
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
        """What is claimed, in one sentence."""
        rows = (
            f"the {count(self.n_unlabeled, 'unlabeled row')}"
            if self.n_unlabeled
            else "new rows from the same distribution"
        )
        if not self.chosen:
            return (
                f"The model is the baseline: at level {self.level:.3g}, {self.n_labeled:,} labels "
                "show no candidate to be better."
            )
        return (
            f"Confident, not certain: with probability {self.level:.3g} the {self.loss} on {rows} "
            f"is not larger than the baseline's; it is lower by {number(-self.expected_change)} "
            f"(estimate), and by at least {number(-self.largest_change)} (bound)."
        )

    def summary(self) -> str:
        """Return the statement, the steps and the assumptions as a paragraph for people."""
        parts = [self.statement]
        if self.chosen:
            taken = zip(self.names, self.steps, strict=True)
            told = ", ".join(f"{step:.2f} towards {name!r}" for name, step in taken if step > 0.0)
            parts.append(f"Step: {told}.")
            parts.append(f"This assumes that {'; that '.join(self.assumptions)}.")
        return " ".join(parts)

    def _repr_html_(self) -> str:
        moved = bool(self.chosen)
        title, colour = ("Confident", "#15803d") if moved else ("Baseline", "#6b7280")
        columns = zip(self.names, self.steps, self.lower_bounds, strict=True)
        numbers = [
            ("expected change of the loss per row", number(self.expected_change)),
            (f"largest change at level {self.level:.3g}", number(self.largest_change)),
            ("labeled rows", f"{self.n_labeled:,}"),
            ("unlabeled rows", f"{self.n_unlabeled:,}"),
            *(
                (f"step towards {name} (bound of b: {number(low)})", f"{a:.3f}")
                for name, a, low in columns
            ),
        ]
        return card(title, colour, self.summary(), numbers)


def confident_step(
    found: OutOfFold, level: float, combine: str, loss: str, differences: Matrix
) -> Evidence:
    """Return the step that out-of-fold rows allow, with the evidence for it.

    Parameters
    ----------
    found : OutOfFold
    level : float
        Probability of the statement.
    combine : {"best", "joint"}
    loss : str
        What the loss is called.
    differences : array of shape (n_labeled, n_candidates)
        See `Evidence`.
    """
    b, covariance, df = found.estimate()
    delta, gram = 1.0 - level, found.gram
    if combine == "best":
        steps = best_step(b, covariance, gram, df, delta)
        kappa = float(special.stdtrit(df, 1.0 - delta / len(b)))
    else:
        steps = joint_step(b, covariance, gram, delta)
        kappa = float(np.sqrt(special.chdtri(len(b), delta)))
    return Evidence(
        names=found.names,
        steps=steps,
        estimates=b,
        covariance=covariance,
        lower_bounds=lower_bounds(b, covariance, df, delta),
        gram=gram,
        expected_change=float(steps @ gram @ steps - 2.0 * (b @ steps)),
        largest_change=worst_case(steps, b, covariance, gram, kappa),
        differences=differences,
        level=level,
        combine=combine,
        control_variate=found.controls is not None,
        loss=loss,
        n_labeled=len(found.products),
        n_unlabeled=found.n_unlabeled,
    )
