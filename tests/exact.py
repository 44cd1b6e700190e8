"""The worst and the best labeling, in rational arithmetic, and problems with restricted labels."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import optimize, sparse

from neverworse import ProjectedLeastSquaresClassifier

MOST_STEPS = 3000  # of Newton's method; ordinary problems take a tenth of a hundredth


def loss_penalty(clf):
    """The penalty in the loss that the guarantee of a classifier is about, by its parameters."""
    same = clf.constraint_alpha == "same"
    return Fraction(clf.supervised_.alpha_ if same else clf.constraint_alpha)


def exact_extremes(clf, problem):
    """Largest and smallest loss difference over all labelings, of the weights as stored.

    Returns two pairs: of the scores with the penalty, and of the probabilities, which have none.
    """
    transductive = clf.distance == "unlabeled" if isinstance(clf.distance, str) else False
    semi, supervised = _weights(clf), _weights(clf.supervised_)
    alpha = loss_penalty(clf)
    penalty = alpha * (sum(w * w for w in semi[0]) - sum(w * w for w in supervised[0]))
    of_scores, of_probabilities = [penalty, penalty], [Fraction(0), Fraction(0)]
    ones = np.ones(len(problem.y))
    for x, y, s in zip(problem.X, problem.y, problem.weights_or(ones), strict=True):
        if s == 0 or (transductive and y != -1):
            continue
        row = [Fraction(float(value)) for value in x]
        f, g = _score(row, semi), _score(row, supervised)
        s = Fraction(float(s))
        clipped = (min(max(score, Fraction(0)), Fraction(1)) for score in (f, g))
        for sums, (after, before) in ((of_scores, (f, g)), (of_probabilities, clipped)):
            labels = (0, 1) if y == -1 else (int(y),)
            differences = [(after - q) ** 2 - (before - q) ** 2 for q in labels]
            sums[0] += s * max(differences)
            sums[1] += s * min(differences)
    return of_scores, of_probabilities


def _weights(clf):
    half = Fraction(1, 2)
    return [Fraction(float(w)) for w in clf.coef_[0]], Fraction(float(clf.intercept_[0])) + half


def _score(row, weights):
    coef, intercept = weights
    return sum((x * w for x, w in zip(row, coef, strict=True)), intercept)


# Several classes, bounds of labels and class priors


def full_bounds(y, n_classes, bounds=None):
    """Lower and upper bound of the share of every class in every row, as nested Fractions.

    Parameters
    ----------
    y : array of int
        Codes of the classes, -1 where unlabeled.
    n_classes : int
    bounds : array of shape (n, 2) or (n, n_classes, 2), optional
        As `label_bounds`; NaN where nothing is known.

    Returns
    -------
    list with a list of pairs for each row
    """
    rows = []
    for j, label in enumerate(y):
        if label >= 0:
            rows.append([(Fraction(int(k == label)),) * 2 for k in range(n_classes)])
            continue
        pairs = [(Fraction(0), Fraction(1))] * n_classes
        if bounds is not None:
            given = np.asarray(bounds)[j]
            if given.ndim == 1:
                low, high = _pair(given)
                pairs = [(1 - high, 1 - low), (low, high)]
            else:
                pairs = [_pair(pair) for pair in given]
        rows.append(pairs)
    return rows


def _pair(given):
    low, high = given
    low = Fraction(0) if np.isnan(low) else Fraction(float(low))
    return low, Fraction(1) if np.isnan(high) else Fraction(float(high))


@dataclass
class ExactDifference:
    """The loss of a classifier less that of its supervised one, as a function of the labels.

    The difference is ``known - 2 Σ s_j y_j·t_j`` for labels y_j that are shares of the classes
    (two classes have one score, but labels of two shares here as well: their first share has no
    effect).

    Attributes
    ----------
    known : Fraction
    t : list of lists of Fraction
        Difference of the scores of each row that counts, for every class.
    s : list of Fraction
        Weights of these rows.
    bounds : list of lists of pairs
        Bounds of their labels.
    open : list of bool
        Which of them are unlabeled.
    """

    known: Fraction
    t: list
    s: list
    bounds: list
    open: list

    @classmethod
    def of(cls, clf, X, y, weights=None, bounds=None):
        """Evaluate the stored weights of a classifier; y holds codes of its classes and -1."""
        n_classes = len(clf.classes_)
        semi, supervised = _all_weights(clf), _all_weights(clf.supervised_)
        alpha = loss_penalty(clf)
        squares = [sum(w * w for coef, _ in m for w in coef) for m in (semi, supervised)]
        known = alpha * (squares[0] - squares[1])
        per_row = full_bounds(y, n_classes, bounds)
        transductive = isinstance(clf.distance, str) and clf.distance == "unlabeled"
        found = cls(known, [], [], [], [])
        for j, x in enumerate(X):
            s = Fraction(1) if weights is None else Fraction(float(weights[j]))
            is_open = any(high > low for low, high in per_row[j])
            if s == 0 or (transductive and not is_open):
                continue
            row = [Fraction(float(value)) for value in x]
            g = [_score(row, w) for w in supervised]
            t = [_score(row, w) - at for w, at in zip(semi, g, strict=True)]
            found.known += s * sum(a * (a + 2 * b) for a, b in zip(t, g, strict=True))
            found.t.append([Fraction(0), *t] if len(t) == 1 else t)
            found.s.append(s)
            found.bounds.append(per_row[j])
            found.open.append(is_open)
        return found

    def at(self, labels):
        """Return the difference for labels of all rows that count, as lists of shares."""
        pulled = sum(
            s * sum(a * b for a, b in zip(label, t, strict=True))
            for s, label, t in zip(self.s, labels, self.t, strict=True)
        )
        return self.known - 2 * pulled

    def extremes(self):
        """Return the largest and the smallest difference over all labels within their bounds."""
        worst = self.at([fill(t, b) for t, b in zip(self.t, self.bounds, strict=True)])
        other = [[-a for a in t] for t in self.t]
        best = self.at([fill(t, b) for t, b in zip(other, self.bounds, strict=True)])
        return worst, best

    def weight(self):
        """Return the weight of all unlabeled rows."""
        return sum(s for s, is_open in zip(self.s, self.open, strict=True) if is_open)

    def extremes_of_two_classes(self, low, high):
        """The same where the share of the second class among the unlabeled rows is restricted.

        A fractional knapsack: labels are moved where that costs least.
        """
        worst = self.at(self._knapsack(low, high, 1))
        return worst, self.at(self._knapsack(low, high, -1))

    def _knapsack(self, low, high, sign):
        weight = self.weight()
        low, high = low * weight, high * weight
        labels, movable, total = [], [], Fraction(0)
        for j, (s, t, b, is_open) in enumerate(
            zip(self.s, self.t, self.bounds, self.open, strict=True)
        ):
            cost, (bottom, top) = sign * t[1], b[1]
            share = top if cost < 0 else bottom
            labels.append(share)
            if is_open:
                total += s * share
                movable.append((cost, j))
        if total > high:  # less where it costs least: from the labels with the smallest gain
            for _, j in sorted(movable, reverse=True):
                step = min((total - high) / self.s[j], labels[j] - self.bounds[j][1][0])
                labels[j] -= step
                total -= step * self.s[j]
        elif total < low:
            for _, j in sorted(movable):
                step = min((low - total) / self.s[j], self.bounds[j][1][1] - labels[j])
                labels[j] += step
                total += step * self.s[j]
        assert low <= total <= high  # else, the problem has no labeling at all
        return [[1 - share, share] for share in labels]

    def upper_bound(self, shares, multiplier):
        """Return a bound of the largest difference where the shares of classes are restricted.

        Linear programming duality: true for every multiplier of the totals, and equal to the
        largest difference for the best one.
        """
        weight = self.weight()
        pulled = sum(
            max(low * weight * m, high * weight * m)
            for (low, high), m in zip(shares, multiplier, strict=True)
        )
        for s, t, b, is_open in zip(self.s, self.t, self.bounds, self.open, strict=True):
            shift = multiplier if is_open else [Fraction(0)] * len(t)
            shifted = [a + m for a, m in zip(t, shift, strict=True)]
            label = fill(shifted, b)
            pulled -= s * sum(a * c for a, c in zip(label, shifted, strict=True))
        return self.known + 2 * pulled

    def extremes_with_shares(self, shares):
        """Bounds of the largest and the smallest difference where shares are restricted.

        Proved for every multiplier of the shares; the one that linear programs find makes them as
        good as equal to the largest and the smallest difference.
        """
        flipped = ExactDifference(
            -self.known, [[-a for a in t] for t in self.t], self.s, self.bounds, self.open
        )
        return self._best_upper_bound(shares), -flipped._best_upper_bound(shares)

    def _best_upper_bound(self, shares):
        t, s, (lower, upper) = self.as_floats()
        low, high = np.array([[float(v) for v in pair] for pair in shares]).T * s.sum()
        best = self.upper_bound(shares, [Fraction(0)] * len(t))
        multiplier, size = np.zeros(len(t)), np.inf
        for _ in range(3):  # each program looks closer at labels that are all but on their kink
            kept = multiplier - np.clip(multiplier, -size, size)
            near = _near_kink(t + kept[:, None], lower, upper, 10.0 * size)
            _, labels, found = share_program(near, s, lower, upper, low, high)
            totals, off = labels @ s, 1e-9 * s.sum()
            inside = (totals > low + off) & (totals < high - off)
            moving = (labels > lower + 1e-9) & (labels < upper - 1e-9)
            rough = as_fractions(kept + found)
            for candidate in (rough, self._exact_multiplier(rough, inside, moving)):
                bound = self.upper_bound(shares, candidate)
                if bound <= best:
                    best, multiplier = bound, np.array(candidate, dtype=float)
            size = 1e-3 * min(size, float(np.abs(t).max()))
        return best

    def _exact_multiplier(self, rough, inside, moving):
        """Return the multiplier that makes all classes equal between which a label lies."""
        exact = [Fraction(0) if is_free else None for is_free in inside]
        rows = [t for t, is_open in zip(self.t, self.open, strict=True) if is_open]
        while None in exact:
            links = [
                (k, known, t)
                for t, between in zip(rows, moving.T, strict=True)
                for k in np.flatnonzero(between)
                for known in np.flatnonzero(between)
                if exact[k] is None and exact[known] is not None
            ]
            if links:
                k, known, t = links[0]
                exact[k] = exact[known] + t[known] - t[k]
            else:
                k = exact.index(None)
                exact[k] = rough[k]
        return exact

    def as_floats(self):
        """Return t, s and bounds of the unlabeled rows as arrays: (K, n), (n,) and (2, K, n)."""
        rows = [j for j, is_open in enumerate(self.open) if is_open]
        t = np.array([[float(a) for a in self.t[j]] for j in rows]).T
        s = np.array([float(self.s[j]) for j in rows])
        bounds = np.array([[[float(v) for v in pair] for pair in self.bounds[j]] for j in rows])
        return t, s, bounds.transpose(2, 1, 0)


def fill(t, bounds):
    """Return the label within its bounds that minimises label·t, shares adding up to one."""
    label = [low for low, _ in bounds]
    room = 1 - sum(label)
    for k in sorted(range(len(t)), key=lambda k: t[k]):
        step = max(min(room, bounds[k][1] - label[k]), Fraction(0))
        label[k] += step
        room -= step
    return label


def nearest_shares(x, bounds):
    """Return the label within its bounds that is nearest to x, shares adding up to one.

    What is subtracted from all of x solves a piecewise linear equation, between two of its kinks.
    """

    def shares(less):
        return [min(max(a - less, low), high) for a, (low, high) in zip(x, bounds, strict=True)]

    kinks = sorted(a - end for a, pair in zip(x, bounds, strict=True) for end in pair)
    totals = [sum(shares(k)) for k in kinks]  # from largest to smallest
    last = sum(total >= 1 for total in totals) - 1
    left, above = kinks[last], totals[last]
    right, below = (kinks[last + 1], totals[last + 1]) if above > 1 else (left, above)
    return shares(left if above == 1 else left + (above - 1) / (above - below) * (right - left))


def supervised_range(clf, X, y, weights=None, bounds=None):
    """Smallest and largest penalised loss of the baseline over all labelings, from its weights.

    The largest one is that of labels in corners, which bounds of several classes have many of: of
    these, those are tried that fill the classes from the smallest score on.
    """
    supervised, n_classes = _all_weights(clf.supervised_), len(clf.classes_)
    penalty = loss_penalty(clf) * sum(w * w for coef, _ in supervised for w in coef)
    least = most = penalty
    transductive = isinstance(clf.distance, str) and clf.distance == "unlabeled"
    per_row = full_bounds(y, n_classes, bounds)
    counts = [weights is None or s > 0 for s in (y if weights is None else weights)]
    is_open = [any(high > low for low, high in pairs) for pairs in per_row]
    # With nothing unlabeled there is nothing to leave out.
    transductive = transductive and any(a and b for a, b in zip(counts, is_open, strict=True))
    for j, x in enumerate(X):
        if not counts[j] or (transductive and not is_open[j]):
            continue
        s = Fraction(1) if weights is None else Fraction(float(weights[j]))
        row = [Fraction(float(value)) for value in x]
        g = [_score(row, w) for w in supervised]
        pairs = per_row[j] if len(g) > 1 else per_row[j][1:]
        if len(g) == 1:
            (low, high), score = pairs[0], g[0]
            nearest, far = [min(max(score, low), high)], [[low], [high]]
        else:
            nearest = nearest_shares(g, pairs)
            orders = [
                g,
                *([a if i != k else min(g) - 1 for i, a in enumerate(g)] for k in range(len(g))),
            ]
            far = [fill(order, pairs) for order in orders]
        least += s * _squared(g, nearest)
        most += s * max(_squared(g, label) for label in far)
    return least, most


def exact_probabilities(clf, X, y, weights=None, bounds=None):
    """Largest and smallest difference of the squared loss of probabilities, over all labelings."""
    n_classes = len(clf.classes_)
    models = _all_weights(clf), _all_weights(clf.supervised_)
    per_row = full_bounds(y, n_classes, bounds)
    transductive = isinstance(clf.distance, str) and clf.distance == "unlabeled"
    whole, worst, best = [(Fraction(0), Fraction(1))] * n_classes, Fraction(0), Fraction(0)
    for j, x in enumerate(X):
        s = Fraction(1) if weights is None else Fraction(float(weights[j]))
        if s == 0 or (transductive and not any(high > low for low, high in per_row[j])):
            continue
        row = [Fraction(float(value)) for value in x]
        scores = [[_score(row, w) for w in model] for model in models]
        pairs = per_row[j]
        if len(scores[0]) == 1:
            after, before = ([Fraction(0), min(max(v, Fraction(0)), Fraction(1))] for [v] in scores)
        else:
            after, before = (nearest_shares(v, whole) for v in scores)
        t = [a - b for a, b in zip(after, before, strict=True)]
        known = sum(a * (a + 2 * b) for a, b in zip(t, before, strict=True))
        for sign in (1, -1):
            label = fill([sign * a for a in t], pairs)
            value = s * (known - 2 * sum(a * b for a, b in zip(label, t, strict=True)))
            worst, best = (worst + value, best) if sign == 1 else (worst, best + value)
    return worst, best


def _squared(scores, label):
    return sum((a - b) ** 2 for a, b in zip(scores, label, strict=True))


def check_supervised_loss(clf, X, y, weights=None, bounds=None):
    """Compare the bounds of the baseline's loss with its exact range."""
    low, high = clf.certificate_.supervised_loss
    least, most = supervised_range(clf, X, y, weights, bounds)
    assert 0.0 <= low <= least
    assert most <= high


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


def as_fractions(values):
    """Return an array as nested lists of Fractions of exactly these floating point numbers."""
    array = np.asarray(values, dtype=float)
    if array.ndim == 0:
        return Fraction(float(array))
    return [as_fractions(value) for value in array]


def _all_weights(clf):
    half = Fraction(1, 2)
    return [
        ([Fraction(float(w)) for w in coef], Fraction(float(intercept)) + half)
        for coef, intercept in zip(clf.coef_, clf.intercept_, strict=True)
    ]


# Random problems with restricted labels


@dataclass
class Restricted:
    """A problem of `tests.problems` with more classes, bounds of labels or a class prior.

    Attributes
    ----------
    X, y, weights, settings
        As in `tests.problems.Problem`; y holds codes of `n_classes` classes and -1.
    bounds : array or None
        As `label_bounds`.
    shares : array of shape (n_classes, 2) or None
        Bounds of the shares of all classes among the unlabeled rows.
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    settings: dict
    n_classes: int
    bounds: np.ndarray | None = None
    shares: np.ndarray | None = None

    def fit(self, **more):
        prior = self.shares
        if prior is not None and self.n_classes == 2:
            prior = tuple(prior[1])
        # A solver that never ends would be found by its steps, not by a clock.
        given = {"class_prior": prior, "max_iter": MOST_STEPS, **self.settings, **more}
        clf = ProjectedLeastSquaresClassifier(**given)
        return clf.fit(self.X, self.y, sample_weight=self.weights, label_bounds=self.bounds)

    def exact(self, clf):
        return ExactDifference.of(clf, self.X, self.y, self.weights, self.bounds)

    def s(self):
        return np.ones(len(self.y)) if self.weights is None else self.weights

    def float_bounds(self):
        """Lower and upper bounds as arrays of shape (n_classes, n)."""
        found = np.array(full_bounds(self.y, self.n_classes, self.bounds), dtype=float)
        return found[:, :, 0].T, found[:, :, 1].T

    def open(self):
        """Which rows are unlabeled: not fixed by their bounds either, and of some weight."""
        lower, upper = self.float_bounds()
        return (upper > lower).any(axis=0) & (self.s() > 0)

    def random_labels(self, rng):
        """Labels of all rows within their bounds, of shape (n_classes, n): corners and others."""
        lower, upper = self.float_bounds()
        labels = np.empty_like(lower)
        toward = rng.normal(size=lower.shape)
        for j in range(lower.shape[1]):
            pairs = list(zip(as_fractions(lower[:, j]), as_fractions(upper[:, j]), strict=True))
            labels[:, j] = [float(v) for v in fill(list(toward[:, j]), pairs)]
            if rng.random() < 0.3:
                other = [float(v) for v in fill(list(rng.normal(size=len(pairs))), pairs)]
                labels[:, j] += rng.random() * (other - labels[:, j])
        return labels


def check_certificate(certificate, worst, best):
    """Compare a certificate with the exact extremes over all labelings."""
    assert worst <= certificate.worst_case
    assert best >= certificate.best_case
    if certificate.distance in ("all", "unlabeled"):
        assert worst <= 0
        assert certificate.holds
        assert certificate.guaranteed_improvement >= 0


def with_classes(problem, rng, n_classes):
    """Replace the two classes of a problem by more, each with a labeled row of some weight."""
    n, y = len(problem.y), problem.y.copy()
    n_classes = min(n_classes, n - 1)
    signal = np.asarray(problem.X, dtype=float)
    signal = (signal - signal.mean(axis=0)) / (signal.std(axis=0) + 1e-300)
    scores = rng.normal(size=(n_classes, signal.shape[1])) @ signal.T
    truth = (rng.uniform(0, 2) * scores + rng.normal(size=(n_classes, n))).argmax(axis=0)
    labeled = np.flatnonzero(y != -1)
    missing = n_classes - len(labeled)
    if missing > 0:
        labeled = np.r_[labeled, np.flatnonzero(y == -1)[:missing]]
    labeled = rng.permutation(labeled)
    truth[labeled[:n_classes]] = rng.permutation(n_classes)
    y[:] = -1
    y[labeled] = truth[labeled]
    weights = None if problem.weights is None else problem.weights.copy()
    if weights is not None:
        first = labeled[:n_classes]
        weights[first] = np.maximum(weights[first], 0.1)
    return Restricted(problem.X, y, weights, dict(problem.settings), n_classes)


def with_bounds(problem, rng, share=0.6):
    """Restrict the labels of some unlabeled rows: intervals, sets of classes, soft labels."""
    n, k = len(problem.y), problem.n_classes
    bounds = np.full((n, k, 2), np.nan)
    for j in np.flatnonzero((problem.y == -1) & (rng.random(n) < share)):
        kind = rng.integers(4)
        if kind == 0 and k > 2:  # one of some classes
            excluded = rng.permutation(k)[: rng.integers(1, k - 1)]
            bounds[j, excluded, 1] = 0.0
        elif kind == 1 and rng.random() < 0.4:  # a soft label, in numbers that add up exactly
            parts = rng.multinomial(64, np.ones(k) / k) / 64
            bounds[j] = parts[:, None]
        else:
            at = rng.dirichlet(np.ones(k))
            lower = at - rng.uniform(0.02, 0.5, k)
            upper = at + rng.uniform(0.02, 0.5, k)
            bounds[j] = np.column_stack([np.maximum(lower, 0), np.minimum(upper, 1)])
            bounds[j][rng.random((k, 2)) < 0.2] = np.nan
    problem.bounds = bounds if k > 2 else bounds[:, 1]
    return problem


def with_shares(problem, rng):
    """Restrict the shares of classes to an interval, sometimes a point, that can be met."""
    problem.shares = None
    seen = problem.open()
    if not seen.any():
        return problem
    s = problem.s()[seen]
    labels = sum(problem.random_labels(rng)[:, seen] for _ in range(8)) / 8
    shares = labels @ s / s.sum()
    if rng.random() < 0.3:  # a point: numbers that add up exactly
        shares = np.round(shares * 2**40) / 2**40
        largest = shares.argmax()
        shares[largest] -= shares.sum() - 1.0
        problem.shares = np.column_stack([shares, shares])
        return problem
    around = rng.uniform(0.001, rng.choice([0.01, 0.2]), (2, problem.n_classes))
    low, high = np.maximum(shares - around[0], 0.0), np.minimum(shares + around[1], 1.0)
    if rng.random() < 0.3:
        free = rng.random(problem.n_classes) < 0.5
        low[free], high[free] = 0.0, 1.0
    if problem.n_classes == 2:  # the second class says it all
        low[0], high[0] = 1.0 - high[1], 1.0 - low[1]
    problem.shares = np.column_stack([low, high])
    return problem


def share_program(t, s, lower, upper, low, high):
    """Minimise Σ s y·t over labels y within bounds whose totals Σ s y are within low and high.

    Returns the value, the labels of shape (n_classes, n), and the multiplier of the totals.
    """
    n_classes, n = t.shape
    size, total = float(np.abs(t).max()) or 1.0, float(s.sum())
    each = sparse.kron(sparse.eye_array(n_classes), s[None, :] / total)
    found = optimize.linprog(
        (s * t).ravel() / (size * total),
        A_ub=sparse.vstack([each, -each]),
        b_ub=np.concatenate([high / total + 1e-13, 1e-13 - low / total]),
        A_eq=sparse.kron(np.ones((1, n_classes)), sparse.eye_array(n)),
        b_eq=np.ones(n),
        bounds=np.column_stack([lower.ravel(), upper.ravel()]),
        method="highs",
        options={"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0, found.message
    above, below = found.ineqlin.marginals.reshape(2, n_classes)
    return found.fun * size * total, found.x.reshape(n_classes, n), size * (below - above)
