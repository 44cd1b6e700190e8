"""
Why does a tuned baseline matter?
=================================

"Never worse than the supervised classifier" is worth only as much as that classifier. Against a
weak baseline, improvements are large and certain, but mean little.
"""

# %%
# 40 labels of the breast cancer data, with penalties from far too small to far too large. Held-out
# rows show how good a classifier is.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.model_selection import mask_labels

X, y_true = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
X, X_new, y_true, y_new = train_test_split(X, y_true, test_size=0.4, random_state=0)
alphas = np.logspace(-3, 4, 15)
draws = [mask_labels(y_true, n_labeled=40, stratify=True, random_state=seed) for seed in range(5)]


def new_loss(clf):
    """Return the mean squared error of the scores of rows that were held out."""
    return np.mean((clf.decision_function(X_new) + 0.5 - y_new) ** 2)


def measure(alpha):
    """Return guaranteed improvement, supervised and projected loss, as means over the draws."""
    fits = [ProjectedLeastSquaresClassifier(alpha=alpha).fit(X, y) for y in draws]
    return np.mean(
        [
            (c.certificate_.guaranteed_improvement, new_loss(c.supervised_), new_loss(c))
            for c in fits
        ],
        axis=0,
    )


gain, supervised, projected = np.array([measure(alpha) for alpha in alphas]).T
tuned_gain, tuned_supervised, tuned_projected = measure("loo")
tuned = np.median([ProjectedLeastSquaresClassifier().fit(X, y).supervised_.alpha_ for y in draws])

# %%
# Left: the guaranteed improvement is largest where the baseline is worst. Right: the loss of both
# on new rows. The best projected classifier has the penalty that leave-one-out finds (the dashed
# line), where little is left to improve. So leave-one-out is the default, and ``alpha=0.0``, the
# setting of the paper, has to be set explicitly.
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(alphas, gain, "o-", color="C2")
left.set(title="Guaranteed improvement", ylabel="squared loss, sum", yscale="symlog")
left.set_ylim(bottom=0)
right.plot(alphas, supervised, "s--", color="C1", label="supervised")
right.plot(alphas, projected, "o-", color="C0", label="projected")
right.set(title="Loss on new rows", ylabel="mean squared error", yscale="log")
right.legend()
for ax in (left, right):
    ax.axvline(tuned, color="grey", linestyle="--")
    ax.set(xscale="log", xlabel="penalty alpha")
plt.show()

# %%
print(f"by leave-one-out: supervised {tuned_supervised:.3f}, projected {tuned_projected:.3f}")
