"""The scores of rows that are left out, where the library adds up what they are worth."""

import numpy as np

from neverworse.projection import leave_one_out as add_up_left_out


def leave_one_out(rows, target, weights, alphas, fit_intercept=True):
    """The scores of all rows with a weight; NaN for the others."""
    targets = np.atleast_2d(target)
    numbered = np.vstack([targets, np.arange(targets.shape[1])])  # the order is not that of rows
    found = add_up_left_out(rows, numbered, weights, alphas, _as_they_are, fit_intercept)
    scores = np.full((len(alphas), *targets.shape), np.nan)
    for some, numbers in found:
        scores[..., numbers.astype(int)] = some[:, :-1]
    return scores[:, 0] if np.ndim(target) == 1 else scores


def _as_they_are(scores, target, weights):
    return [(scores, target[-1])]  # lists are added up as well
