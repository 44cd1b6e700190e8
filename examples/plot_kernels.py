"""
What if a straight line is not enough?
======================================

With a kernel, scores are no longer linear in the columns, but nothing else changes: the supervised
classifier is projected onto the constraint set, and the certificate says what is guaranteed.
"""

# %%
# Two half moons; 14 rows keep their label.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.preprocessing import StandardScaler

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.model_selection import mask_labels

X, y_true = make_moons(300, noise=0.15, random_state=0)
X = StandardScaler().fit_transform(X)
y = mask_labels(y_true, n_labeled=14, stratify=True, random_state=1)
known = y != -1

# %%
# The width of the kernel and the penalty are chosen by exact leave-one-out on the labeled rows.
linear = ProjectedLeastSquaresClassifier().fit(X, y)
curved = ProjectedLeastSquaresClassifier(kernel="rbf", gamma="loo").fit(X, y)
untuned = ProjectedLeastSquaresClassifier(kernel="rbf", gamma=1.0, alpha=1e-3).fit(X, y)

# %%
# A line cannot follow the moons; a kernel comes closer. The dashed line is the supervised
# boundary, the colours are the predictions of the projected classifier. With a penalty chosen by
# leave-one-out, nothing can be improved for certain. With a small penalty (right), supervised
# scores go far beyond 0 and 1, and the squared loss is certainly lower. The error rate on the
# unlabeled rows, about which nothing is guaranteed, stays the same.
grid = np.stack(np.meshgrid(np.linspace(-2.2, 2.2, 120), np.linspace(-2.4, 2.4, 120)), axis=-1)
fig, axes = plt.subplots(1, 3, figsize=(10, 4.2), sharey=True, layout="constrained")
for ax, clf, name in (
    (axes[0], linear, "linear"),
    (axes[1], curved, "rbf, tuned"),
    (axes[2], untuned, "rbf, small penalty"),
):
    before, after = (
        model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
        for model in (clf.supervised_, clf)
    )
    ax.contourf(
        *np.moveaxis(grid, -1, 0), after, levels=[-99, 0, 99], colors=["C0", "C1"], alpha=0.2
    )
    ax.contour(*np.moveaxis(grid, -1, 0), before, levels=[0], colors="black", linestyles="--")
    ax.scatter(*X[~known].T, s=6, c="0.45")
    ax.scatter(*X[known].T, s=60, c=np.where(y[known] == 1, "C1", "C0"), edgecolors="black")
    errors = [
        np.mean(model.predict(X[~known]) != y_true[~known]) for model in (clf.supervised_, clf)
    ]
    ax.set_title(
        f"{name}: at least {clf.certificate_.guaranteed_improvement:.2f} lower\n"
        f"errors {errors[0]:.1%} supervised, {errors[1]:.1%} projected",
        fontsize=10,
    )
    ax.set(xticks=[], yticks=[])
plt.show()

# %%
print(untuned.certificate_.summary())
