"""
How do I select a model without cheating?
=========================================

If the table has unlabeled rows, plain cross-validation counts them as errors. If you drop them, it
tests a model that nobody will use. The folds of ``neverworse.model_selection`` avoid both.
"""

# %%
# 60 labels, and held-out rows to check the result. In practice you would not have these.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

from neverworse import ICLSClassifier, ProjectedLeastSquaresClassifier
from neverworse.model_selection import StratifiedLabeledKFold, mask_labels

X_all, y_all = load_breast_cancer(return_X_y=True)
models = {
    "projected": ProjectedLeastSquaresClassifier(),
    "ICLS": ICLSClassifier(),
    "self-training": SelfTrainingClassifier(LogisticRegression(), max_iter=3),
}
plain = StratifiedKFold(5, shuffle=True, random_state=0)
labeled = StratifiedLabeledKFold(5, shuffle=True, random_state=0)

# %%
# For each draw of labels: the cross-validated accuracy, and the accuracy on new rows.
said_plain, said_labeled, truth, colours = [], [], [], []
for seed in range(3):
    X, X_new, y_true, y_new = train_test_split(X_all, y_all, test_size=0.4, random_state=seed)
    y = mask_labels(y_true, n_labeled=60, stratify=True, random_state=seed)
    for k, model in enumerate(models.values()):
        pipe = make_pipeline(StandardScaler(), model)
        said_plain.append(cross_val_score(pipe, X, y, cv=plain).mean())
        said_labeled.append(cross_val_score(pipe, X, y, cv=labeled).mean())
        truth.append(pipe.fit(X, y).score(X_new, y_new))
        colours.append(f"C{k}")

# %%
# Plain folds count every unlabeled row as an error, for any model, so accuracies are near the
# share of labeled rows. Folds of labeled rows come as close to the truth (the diagonal) as 60
# labels allow.
fig, axes = plt.subplots(1, 2, figsize=(8.5, 4), sharey=True, layout="constrained")
for ax, said, title in (
    (axes[0], said_plain, "Plain folds"),
    (axes[1], said_labeled, "Folds of labeled rows"),
):
    ax.scatter(said, truth, c=colours, s=40)
    ax.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=1)
    ax.set(title=title, xlabel="accuracy by cross-validation", xlim=(0, 1), ylim=(0.6, 1))
axes[0].set_ylabel("accuracy on new rows")
for k, name in enumerate(models):
    axes[0].plot([], [], "o", color=f"C{k}", label=name)
axes[0].legend(loc="lower right")
plt.show()

# %%
error_plain, error_labeled = (
    np.abs(np.subtract(said, truth)).mean() for said in (said_plain, said_labeled)
)
print(
    f"off by {error_plain:.2f} with plain folds, by {error_labeled:.2f} with folds of labeled rows"
)
