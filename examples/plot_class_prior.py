"""
What is it worth to know the share of a class?
==============================================

Registries, earlier years or other hospitals may tell you how frequent a class is. ``class_prior``
excludes all labelings that contradict this; the guarantee is then about the remaining ones. It is
only as valid as the stated share.
"""

# %%
# 30 labels of the breast cancer data. 63 % of the rows are benign.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.model_selection import mask_labels

X, y_true = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
y = mask_labels(y_true, n_labeled=30, stratify=True, random_state=3)
share = y_true[y == -1].mean()


def fitted(class_prior):
    """Return the classifier that believes this about the share of benign rows."""
    return ProjectedLeastSquaresClassifier(alpha=1.0, class_prior=class_prior).fit(X, y)


def true_change(clf):
    """Return by how much the loss changed, now that the labels are known after all."""
    losses = [
        np.sum((model.decision_function(X) + 0.5 - y_true) ** 2)
        + clf.certificate_.penalty * np.sum(model.coef_**2)
        for model in (clf, clf.supervised_)
    ]
    return losses[0] - losses[1]


# %%
# Left: the narrower the interval around the true share, the more is guaranteed; on this table the
# gain is small, and needs a share known to within a few points. Right: what happens if a share is
# stated exactly but is wrong. The guarantee (dashed) is about labelings with the stated share; the
# true change in loss (solid) violates it once the stated share is far from the truth. When in
# doubt, give an interval, or nothing.
widths = np.array([0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35])
gains = [
    fitted((max(share - w, 0.0), min(share + w, 1.0))).certificate_.guaranteed_improvement
    for w in widths
]
stated = np.linspace(0.2, 0.95, 16)
wrong = [fitted(float(each)) for each in stated]

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(widths, gains, "o-", color="C0", label="true share ± half width")
left.axhline(
    fitted(None).certificate_.guaranteed_improvement, color="grey", linestyle="--", label="without"
)
left.set(title="What an interval buys", xlabel="half width", ylabel="guaranteed improvement")
left.set_ylim(bottom=0)
left.legend()
right.plot(stated, [true_change(clf) for clf in wrong], "o-", color="C0", label="true change")
right.plot(
    stated,
    [clf.certificate_.worst_case for clf in wrong],
    "--",
    color="C1",
    label="guaranteed at most",
)
right.axvline(share, color="grey", linestyle=":", label="true share")
right.axhline(0, color="grey", linewidth=1)
right.set(title="What a wrong share costs", xlabel="stated share", ylabel="change in squared loss")
right.legend()
plt.show()
