"""
Which rows should I label next?
===============================

If you can pay for twenty more labels, which rows should get them? ``suggest_labels`` names those
that lower the expected squared error of least squares on *all* rows most. It looks at rows, not
at labels, so that all twenty can be labeled at once.
"""

# %%
# Handwritten digits, 3 against 8, with 40 labels. The alternatives: rows at random, and rows
# that the model is least sure of.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from neverworse import LeastSquaresClassifier, suggest_labels
from neverworse.model_selection import mask_labels

X, digit = load_digits(return_X_y=True)
chosen = np.isin(digit, (3, 8))
X, y_true = StandardScaler().fit_transform(X[chosen]), (digit[chosen] == 8).astype(int)
sizes = [0, 5, 10, 20, 40]


def loss(y):
    """Return the mean squared error of the scores on all rows."""
    scores = LeastSquaresClassifier(alpha=10.0).fit(X, y).decision_function(X) + 0.5
    return np.mean((scores - y_true) ** 2)


def with_labels(y, rows):
    """Return labels with those of more rows."""
    return np.where(np.isin(np.arange(len(y)), rows), y_true, y)


losses = {"suggested": [], "at random": [], "least sure": []}
for seed in range(12):
    y = mask_labels(y_true, n_labeled=40, stratify=True, random_state=seed)
    unlabeled = np.flatnonzero(y == -1)
    scores = LeastSquaresClassifier(alpha=10.0).fit(X, y).decision_function(X[unlabeled])
    orders = {
        "suggested": suggest_labels(X, y, max(sizes)).rows,
        "at random": np.random.default_rng(seed).permutation(unlabeled),
        "least sure": unlabeled[np.argsort(np.abs(scores))],
    }
    for name, order in orders.items():
        losses[name].append([loss(with_labels(y, order[:size])) for size in sizes])

# %%
# Means of twelve draws. From ten rows on, suggested rows help the squared loss most, which is
# what they are chosen for. Rows that the model is least sure of hardly lower it; they may be
# the better choice where only the error rate matters.
fig, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for marker, (name, values) in zip("osv", losses.items(), strict=True):
    ax.plot(sizes, np.mean(values, axis=0), f"{marker}-", label=name)
ax.set(title="Twelve draws of 40 labels, and more beside them", xlabel="more labels")
ax.set_ylabel("mean squared error on all rows")
ax.legend()
plt.show()

# %%
# It also says what to expect, before anybody has labeled anything.
print(suggest_labels(X, y, 20).summary())
