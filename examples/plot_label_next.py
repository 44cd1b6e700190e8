"""
Which rows should I label next?
===============================

If you can afford twenty more labels, which rows should get them? ``suggest_labels`` selects the
rows whose labels most reduce the expected squared error of least squares on *all* rows. The
selection does not depend on the new labels, so all twenty rows can be labeled in one batch.
"""

# %%
# Handwritten digits, 3 against 8, with 40 labels. The alternatives: random rows, and the rows that
# the model is least sure about.
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
# Means over twelve draws. From ten rows on, suggested rows reduce the squared loss most, which is
# what they are chosen for. Rows that the model is least sure about hardly reduce it; they may be
# the better choice if only the error rate matters.
fig, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for marker, (name, values) in zip("osv", losses.items(), strict=True):
    ax.plot(sizes, np.mean(values, axis=0), f"{marker}-", label=name)
ax.set(title="More labels in addition to 40, mean of twelve draws", xlabel="more labels")
ax.set_ylabel("mean squared error on all rows")
ax.legend()
plt.show()

# %%
# The summary predicts the gain before any row has been labeled.
print(suggest_labels(X, y, 20).summary())
