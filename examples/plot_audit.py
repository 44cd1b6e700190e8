"""
How do I audit someone else's model?
====================================

A colleague, a vendor or another library offers a model that "uses the unlabeled rows". Is it
better than what you have? ``audit`` takes any two fitted classifiers and says what is certain,
whatever the missing labels are.
"""

# %%
# The baseline is a logistic regression on 60 labels; the candidates come from scikit-learn.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import LinearSVC

from neverworse import audit
from neverworse.model_selection import mask_labels

X, y_true = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
y = mask_labels(y_true, n_labeled=60, stratify=True, random_state=0)
known = y != -1
baseline = LogisticRegression().fit(X[known], y[known])
candidates = {
    "self-training": SelfTrainingClassifier(LogisticRegression()).fit(X, y),
    "label spreading": LabelSpreading(kernel="knn", n_neighbors=10).fit(X, y),
    "random forest": RandomForestClassifier(100, random_state=0).fit(X[known], y[known]),
    "calibrated SVM": CalibratedClassifierCV(LinearSVC()).fit(X[known], y[known]),
    "more penalty": LogisticRegression(C=0.3).fit(X[known], y[known]),
}
found = {name: audit(model, baseline, X, y) for name, model in candidates.items()}

# %%
# Each bar spans the possible differences in Brier score, over all labelings of the unlabeled rows.
# Every bar contains zero: no candidate is certainly better, and none certainly worse. The cross is
# the difference on the 60 labeled rows, the dot the true difference, which is known here. They may
# lie on opposite sides of zero.
fig, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
for height, (name, result) in enumerate(found.items()):
    ax.plot(
        [result.best_case, result.worst_case], [height] * 2, "-", color="C0", linewidth=5, alpha=0.5
    )
    ax.plot(result.known_difference, height, "x", color="black")
    scores = [
        brier_score_loss(y_true, model.predict_proba(X)[:, 1])
        for model in (candidates[name], baseline)
    ]
    ax.plot(np.subtract(*scores), height, "o", color="C1")
ax.axvline(0, color="grey", linewidth=1)
ax.set_yticks(range(len(found)), found)
ax.set(title="Brier score minus the baseline's: possible, on labeled rows, true")
ax.set_xlabel("left of zero: better than the baseline")
plt.show()

# %%
# The same in words. As a next step, a few more labels can decide
# (:ref:`sphx_glr_gallery_plot_few_labels_decide.py`).
print(found["self-training"].summary())
