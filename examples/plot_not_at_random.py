"""
What if labels are not missing at random?
=========================================

In practice, the rows to label are rarely drawn at random: urgent cases come first, or cheap ones.
The certificate assumes nothing about this. Statements *with confidence* do, and this example shows
the difference.
"""

# %%
# Three ways in which 60 of 569 rows may have been chosen for labeling.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from neverworse import ProjectedLeastSquaresClassifier

X, y_true = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
ways = {
    "at random": np.ones(len(y_true)),
    "large tumours first": np.exp(1.5 * X[:, 0]),
    "malignant rarely": np.where(y_true == 0, 0.2, 1.0),
}


def labeled_by(weights, seed):
    """Return y in which 60 rows, drawn with these weights, keep their label."""
    rng = np.random.default_rng(seed)
    keep = rng.choice(len(y_true), 60, replace=False, p=weights / weights.sum())
    y = np.full(len(y_true), -1)
    y[keep] = y_true[keep]
    return y


def true_change(clf):
    """Return by how much the loss changed, now that the labels are known after all."""
    losses = [
        np.sum((model.decision_function(X) + 0.5 - y_true) ** 2)
        + clf.certificate_.penalty * np.sum(model.coef_**2)
        for model in (clf, clf.supervised_)
    ]
    return losses[0] - losses[1]


# %%
# Left, the certificate: each bar spans all possible changes in loss, the dot is the true change.
# However rows were chosen, dots lie on their bars, and bars end at or left of zero. Right,
# ``class_prior="confidence"``, which estimates the share of benign rows among the unlabeled rows
# from the labeled ones. If rows are chosen at random, one interval in twenty may miss the truth
# (the cross). If they are chosen in the other ways, all intervals miss it (red), and conclusions
# based on them are wrong. Use it only if you know how rows were chosen.
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
ticks = []
for k, (name, weights) in enumerate(ways.items()):
    for seed in range(4):
        height = 5 * k + seed
        y = labeled_by(weights, seed)
        certain = ProjectedLeastSquaresClassifier(alpha=1.0).fit(X, y)
        interval = (certain.certificate_.best_case, certain.certificate_.worst_case)
        left.plot(interval, [height] * 2, "-", color="C0", linewidth=4)
        left.plot(true_change(certain), height, "ko", markersize=5)
        confident = ProjectedLeastSquaresClassifier(alpha=1.0, class_prior="confidence").fit(X, y)
        ((_, *bounds),) = confident.certificate_.assumptions.class_prior
        share = y_true[y == -1].mean()
        colour = "C0" if bounds[0] <= share <= bounds[1] else "C3"
        right.plot(bounds, [height] * 2, "-", color=colour, linewidth=4)
        right.plot(share, height, "kx", markersize=6)
    ticks.append((5 * k + 1.5, name))
left.axvline(0, color="grey", linewidth=1)
left.set_yticks(*zip(*ticks, strict=True))
left.set(title="Certificate: always holds", xlabel="change in squared loss")
right.set(title="Confidence: only if at random", xlabel="share of benign rows")
plt.show()
