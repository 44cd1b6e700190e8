"""The worst and the best labeling, in rational arithmetic: no rounding anywhere."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def exact_extremes(clf, problem):
    """Largest and smallest loss difference over all labelings, of the weights as stored."""
    transductive = clf.distance == "unlabeled" if isinstance(clf.distance, str) else False
    semi, supervised = _weights(clf), _weights(clf.supervised_)
    worst = best = Fraction(0)
    ones = np.ones(len(problem.y))
    for x, y, s in zip(problem.X, problem.y, problem.weights_or(ones), strict=True):
        if s == 0 or (transductive and y != -1):
            continue
        row = [Fraction(float(value)) for value in x]
        f, g = _score(row, semi), _score(row, supervised)
        at_zero, at_one = f * f - g * g, (f - 1) ** 2 - (g - 1) ** 2
        s = Fraction(float(s))
        if y == -1:
            worst += s * max(at_zero, at_one)
            best += s * min(at_zero, at_one)
        else:
            known = s * (at_one if y else at_zero)
            worst, best = worst + known, best + known
    alpha = Fraction(clf.constraint_alpha)
    penalty = alpha * (sum(w * w for w in semi[0]) - sum(w * w for w in supervised[0]))
    return worst + penalty, best + penalty


def _weights(clf):
    half = Fraction(1, 2)
    return [Fraction(float(w)) for w in clf.coef_[0]], Fraction(float(clf.intercept_[0])) + half


def _score(row, weights):
    coef, intercept = weights
    return sum((x * w for x, w in zip(row, coef, strict=True)), intercept)
