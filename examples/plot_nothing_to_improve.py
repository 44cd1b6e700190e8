"""
When can nothing be improved, and why?
======================================

A fit may report that nothing can be improved. That is not a failure of the method: certain
improvement is possible only where scores of the supervised classifier lie outside [0, 1].
"""

# %%
# The same table with 20, 60 and 300 labels, without a penalty and with a penalty chosen by
# leave-one-out.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.model_selection import mask_labels

X, y_true = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)

# %%
# The grey band is [0, 1]. If labels were drawn with the scores in the band as probabilities, any
# other scores would be worse on average; so some labeling makes them worse, and no method can be
# certain. Scores outside the band can be improved for certain. A penalty moves scores into the
# band, and so do more labels; the fewer lie outside, the less is guaranteed.
fig, axes = plt.subplots(2, 3, figsize=(9, 5), sharex=True, layout="constrained")
for row, alpha in zip(axes, (0.0, "loo"), strict=True):
    for ax, n_labeled in zip(row, (20, 60, 300), strict=True):
        y = mask_labels(y_true, n_labeled=n_labeled, stratify=True, random_state=0)
        clf = ProjectedLeastSquaresClassifier(alpha=alpha).fit(X, y)
        scores = clf.supervised_.decision_function(X[y == -1]) + 0.5
        outside = np.mean((scores < 0) | (scores > 1))
        ax.axvspan(0, 1, color="0.88")
        ax.hist(np.clip(scores, -2, 3), bins=np.linspace(-2, 3, 41), color="C0")
        gain = clf.certificate_.guaranteed_improvement
        ax.set_title(f"{outside:.0%} outside: at least {gain:.2f} lower", fontsize=9)
        ax.set_yticks([])
    row[0].set_ylabel("no penalty" if alpha == 0.0 else "penalty by leave-one-out")
for ax, n_labeled in zip(axes[1], (20, 60, 300), strict=True):
    ax.set_xlabel(f"supervised score, {n_labeled} labels")
fig.suptitle("Supervised scores of the unlabeled rows, and what is guaranteed")
plt.show()

# %%
# The certificate says why. "inside" means that the supervised weights lie in the constraint set:
# some labeling gives exactly these weights.
y = mask_labels(y_true, n_labeled=60, stratify=True, random_state=0)
clf = ProjectedLeastSquaresClassifier(alpha=1000.0).fit(X, y)
print(clf.certificate_.reason)
print(clf.certificate_.summary())
