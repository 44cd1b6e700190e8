"""
Can I use labels that I only half believe?
==========================================

A rule, a cheap test or a hurried annotator says "probably yes". As a *hard* label this may be
wrong; as a *bound* on the probability it can be right. ``label_bounds`` takes a lower and an upper
bound for each row.
"""

# %%
# 20 labeled rows, and a cheap test for some of the others, which is right with a probability of at
# least 80 %.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.model_selection import mask_labels

X, y_true = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
shares = [0.0, 0.1, 0.25, 0.5, 0.75, 1.0]


def fitted(seed, share):
    """Return the classifier after this share of the unlabeled rows was tested."""
    y = mask_labels(y_true, n_labeled=20, stratify=True, random_state=seed)
    unlabeled = np.random.default_rng(seed).permutation(np.flatnonzero(y == -1))
    tested = unlabeled[: int(share * len(unlabeled))]
    bounds = np.full((len(y), 2), np.nan)  # of the share of class 1; NaN: nothing is known
    bounds[tested] = np.where(y_true[tested, None] == 1, [0.8, 1.0], [0.0, 0.2])
    return ProjectedLeastSquaresClassifier(alpha=1.0).fit(X, y, label_bounds=bounds), y


def errors(model, y):
    """Return the share of unlabeled rows that are classified wrongly."""
    return np.mean(model.predict(X[y == -1]) != y_true[y == -1])


# %%
# Every bound excludes labelings, so the guaranteed improvement can only grow. The error rate,
# about which nothing is guaranteed, falls as well here. Thick lines are means over five draws,
# thin lines single draws.
gains, rates = np.empty((5, len(shares))), np.empty((5, len(shares)))
for seed in range(5):
    for k, share in enumerate(shares):
        clf, y = fitted(seed, share)
        gains[seed, k] = clf.certificate_.guaranteed_improvement
        rates[seed, k] = errors(clf, y)
baseline = np.mean(
    [errors(clf.supervised_, y) for clf, y in (fitted(seed, 0.0) for seed in range(5))]
)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for ax, values in ((left, gains), (right, 100 * rates)):
    ax.plot(shares, values.T, color="C0", alpha=0.3, linewidth=1)
    ax.plot(shares, values.mean(axis=0), "o-", color="C0", label="projected")
    ax.set_xlabel("share of unlabeled rows that were tested")
    ax.set_ylim(bottom=0)
left.set(title="What is guaranteed grows", ylabel="guaranteed improvement")
right.axhline(100 * baseline, color="C1", linestyle="--", label="supervised, without tests")
right.set(title="Errors on unlabeled rows fall", ylabel="%")
right.legend()
plt.show()
