"""The worst and the best labeling, in rational arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import optimize, sparse
from sklearn.base import is_classifier

from tests.rationals import Rationals, aligned, fill, nearest_shares, spent


@dataclass
class ExactLosses:
    """Losses of a model and its baseline on some rows, as functions of their labels.

    Attributes
    ----------
    f, g : Rationals of shape (n, k)
        Scores of the model and of the baseline: one for two classes or a regression, else one for
        every class.
    s : Rationals of shape (n,)
        Weights of the rows, of which none is zero.
    lower, upper : Rationals of shape (n, k)
        Bounds of the labels (of the second class) or of the targets.
    penalties : pair of Rationals
        Part of the loss of the model and of the baseline that depends on no label.
    shares : array of shape (n_classes, 2), optional
        Bounds of the shares of all classes among the unlabeled rows.
    """

    f: Rationals
    g: Rationals
    s: Rationals
    lower: Rationals
    upper: Rationals
    penalties: Any = (0, 0)
    shares: Any = None

    @classmethod
    def of(cls, model, X, lower, upper, weights=None, shares=None):
        """Evaluate the stored weights of an estimator and its `supervised_`."""
        s = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
        both = [_weights(m) for m in (model, model.supervised_)]
        if both[0].n.shape[1] == 1:  # of labels, the second share says it all
            lower, upper = lower[:, -1:], upper[:, -1:]
        kept = s > 0
        unlabeled = kept & _differ(lower, upper)
        if isinstance(model.distance, str) and model.distance == "unlabeled" and unlabeled.any():
            kept = unlabeled
        E = Rationals.of(np.column_stack([X, np.ones(len(X))])[kept])
        alpha = loss_penalty(model)
        penalties = [(w[:-1] * w[:-1]).sum() * alpha for w in both]
        f, g = (E @ w for w in both)
        return cls(f, g, Rationals.of(s[kept]), lower[kept], upper[kept], penalties, shares)

    @property
    def open(self):
        """Which rows are unlabeled: their label or target is not known exactly."""
        return _differ(self.lower, self.upper)

    def extremes(self, claimed=None):
        """Return the largest and the smallest difference of the losses over all labels.

        With shares of several classes, they are bounds: proved for every multiplier of the shares,
        and for the one that linear programs find as good as equal to these differences. The search
        for it ends early if it has proved that they lie within a claimed pair.
        """
        t = self.f - self.g
        known = (self.s * (t * (self.f + self.g)).sum(axis=1)).sum()
        known += self.penalties[0] - self.penalties[1]
        enough = None, None
        if claimed is not None:
            worst, best = (Rationals.of(value) for value in claimed)
            enough = (known - worst) * Fraction(1, 2), (best - known) * Fraction(1, 2)
        pulled = self._least(t, enough[0]), -self._least(-t, enough[1])
        return tuple((known - least * 2).fraction() for least in pulled)

    def _least(self, t, enough):
        """Return the smallest sum of s label·t over all labels, or a lower bound of it."""
        if self.shares is None:
            return self._pulled(t, self._corners(t))
        if t.n.shape[1] == 1:
            return self._knapsack(t, *Rationals.of(self.shares[1]))
        return self._best_lower_bound(t, Rationals.of(self.shares), enough)

    def _pulled(self, t, labels):
        return (self.s * (labels * t).sum(axis=1)).sum()

    def _corners(self, t):
        """Return the labels within their bounds that minimise label·t in every row."""
        (lower, upper), one = aligned(self.lower, self.upper)
        if t.n.shape[1] == 1:
            return Rationals(np.where(t.n < 0, upper, lower), one)
        return Rationals(fill(t.n, lower, upper, one), one)

    def _knapsack(self, t, low, high):
        """Return the smallest sum for two classes: labels are moved where that costs least."""
        weight, cost = self.s[self.open].sum(), t.n[:, 0]
        ends = [self.s * bounds[:, 0] for bounds in (self.lower, self.upper)]
        fixed = self.s[~self.open] * self.lower[~self.open, 0]
        given = aligned(*ends, low * weight + fixed.sum(), high * weight + fixed.sum())
        (bottom, top, low, high), one = given
        share = np.where(cost < 0, top, bottom)
        order = np.argsort(cost)
        if (less := share.sum() - high) > 0:  # where it costs least: the smallest gains
            order = order[::-1]
            share[order] -= spent(less, (share - bottom)[order])
        elif (more := low - share.sum()) > 0:
            share[order] += spent(more, (top - share)[order])
        assert low <= share.sum() <= high  # else, the problem has no labeling at all
        return (Rationals(share, one) * t[:, 0]).sum()

    def _lower_bound(self, t, shares, multiplier):
        """Return a lower bound by the duality of linear programming."""
        shifted = t + multiplier * Rationals(self.open[:, None].astype(int))
        (low, high), one = aligned(shares[:, 0] * multiplier, shares[:, 1] * multiplier)
        totals = Rationals(np.maximum(low, high), one).sum() * self.s[self.open].sum()
        return self._pulled(shifted, self._corners(shifted)) - totals

    def _best_lower_bound(self, exact_t, shares, enough):
        seen = self.open
        t, lower, upper = (a[seen].floats().T for a in (exact_t, self.lower, self.upper))
        s = self.s[seen].floats()
        low, high = shares.floats().T * s.sum()
        best = self._lower_bound(exact_t, shares, Rationals.of(np.zeros(len(t))))
        multiplier, size = np.zeros(len(t)), np.inf
        for _ in range(3):  # each program looks closer at labels that are all but on their kink
            if enough is not None and (best - enough).n >= 0:
                break
            kept = multiplier - np.clip(multiplier, -size, size)
            near = _near_kink(t + kept[:, None], lower, upper, 10.0 * size)
            _, labels, found = share_program(near, s, lower, upper, low, high)
            totals, off = labels @ s, 1e-9 * s.sum()
            inside = (totals > low + off) & (totals < high - off)
            moving = (labels > lower + 1e-9) & (labels < upper - 1e-9)
            rough = Rationals.of(kept + found)
            for candidate in (rough, _exact_multiplier(rough, exact_t[seen], inside, moving)):
                bound = self._lower_bound(exact_t, shares, candidate)
                if (bound - best).n >= 0:
                    best, multiplier = bound, candidate.floats()
            size = 1e-3 * min(size, float(np.abs(t).max()))
        return best

    def clipped(self):
        """Return the losses of the probabilities, as `predict_proba` returns them."""
        both = []
        for scores in (self.f, self.g):
            if scores.n.shape[1] == 1:
                both.append(Rationals(np.clip(scores.n, 0, scores.d), scores.d))
            else:
                ones = np.ones(scores.n.shape)
                both.append(nearest_shares(scores, 0.0 * ones, ones))
        return replace(self, f=both[0], g=both[1], penalties=(0, 0))

    def baseline_range(self):
        """Smallest and largest loss of the baseline over all labels.

        The largest one is that of labels in corners, which bounds of several classes have many of:
        of these, those are tried that fill the classes from the smallest score on.
        """
        (g, lower, upper), one = aligned(self.g, self.lower, self.upper)
        if g.shape[1] == 1:
            nearest = Rationals(np.clip(g, lower, upper), one)
            far = [lower, upper]
        else:
            nearest = nearest_shares(self.g, self.lower, self.upper)
            first = np.eye(g.shape[1], dtype=int).astype(object) * (g.max() - g.min() + 1)
            far = [fill(g - row, lower, upper, one) for row in (0 * first[0], *first)]
        error = self.g - nearest
        least = (self.s * (error * error).sum(axis=1)).sum() + self.penalties[1]
        squares = np.max([((g - label) ** 2).sum(axis=1) for label in far], axis=0)
        most = (self.s * Rationals(squares, one**2)).sum() + self.penalties[1]
        return least.fraction(), most.fraction()


def _differ(lower, upper):
    """Return in which rows bounds are not equal."""
    return ((upper - lower).n > 0).any(axis=1)


def loss_penalty(model):
    """The penalty in the loss that the guarantee of an estimator is about, by its parameters."""
    same = model.constraint_alpha == "same"
    return Fraction(model.supervised_.alpha_ if same else model.constraint_alpha)


def _weights(model):
    """The weights of all columns and of the intercept, for scores on targets coded 0 and 1."""
    coef = np.atleast_2d(model.coef_)
    intercept = Rationals.of(np.broadcast_to(model.intercept_, len(coef)))
    if is_classifier(model):
        intercept += Fraction(1, 2)
    (coef, intercept), one = aligned(coef, intercept)
    return Rationals(np.vstack([coef.T, intercept]), one)


def _exact_multiplier(rough, t, inside, moving):
    """Return the multiplier that makes all classes equal between which a label lies."""
    (rough, t), one = aligned(rough, t)
    exact = [0 if is_free else None for is_free in inside]
    while None in exact:
        links = [
            (k, known, row)
            for row, between in zip(t, moving.T, strict=True)
            for k in np.flatnonzero(between)
            for known in np.flatnonzero(between)
            if exact[k] is None and exact[known] is not None
        ]
        if links:
            k, known, row = links[0]
            exact[k] = exact[known] + row[known] - row[k]
        else:
            k = exact.index(None)
            exact[k] = rough[k]
    return Rationals(exact, one)


def _near_kink(t, lower, upper, size):
    """Return scores relative to the class in which a label ends, and no farther from it than size.

    A constant in all scores of a row makes no difference, and neither does how large a difference
    is that decides a label anyway.
    """
    order = np.argsort(t, axis=0)
    room = np.take_along_axis(upper - lower, order, axis=0).cumsum(axis=0)
    left = 1.0 - lower.sum(axis=0)
    last = np.minimum((room < left).sum(axis=0), len(t) - 1)
    pivot = np.take_along_axis(t, order, axis=0)[last, np.arange(t.shape[1])]
    return np.clip(t - pivot, -size, size)


def share_program(t, s, lower, upper, low, high):
    """Minimise Σ s y·t over labels y within bounds whose totals Σ s y are within low and high.

    Returns the value, the labels of shape (n_classes, n), and the multiplier of the totals.
    """
    n_classes, n = t.shape
    size, total = float(np.abs(t).max()) or 1.0, float(s.sum())
    each = sparse.kron(sparse.eye_array(n_classes), s[None] / total, format="csr")
    found = optimize.linprog(
        (s * t).ravel() / (size * total),
        A_ub=sparse.vstack([each, -each]),
        b_ub=np.concatenate([high / total + 1e-13, 1e-13 - low / total]),
        A_eq=sparse.hstack([sparse.eye_array(n)] * n_classes),
        b_eq=np.ones(n),
        bounds=np.column_stack([lower.ravel(), upper.ravel()]),
        method="highs",
        options={"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0, found.message
    above, below = found.ineqlin.marginals.reshape(2, n_classes)
    return found.fun * size * total, found.x.reshape(n_classes, n), size * (below - above)


# Certificates


def check_certificate(model, exact):
    """Compare all numbers of a certificate with the exact ones over all labels."""
    certificate = model.certificate_
    worst, best = exact.extremes((certificate.worst_case, certificate.best_case))
    assert worst <= certificate.worst_case
    assert best >= certificate.best_case
    if certificate.distance in ("all", "unlabeled"):
        assert worst <= 0
        assert certificate.holds
        assert certificate.guaranteed_improvement >= 0
    low, high = certificate.supervised_loss
    least, most = exact.baseline_range()
    assert 0.0 <= low <= least
    assert most <= high
    if is_classifier(model):
        claimed = certificate.probability_worst_case, certificate.probability_best_case
        worst, best = exact.clipped().extremes(claimed)
        assert worst <= claimed[0]
        assert best >= claimed[1]
