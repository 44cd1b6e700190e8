"""
Does semi-supervised learning help on my data?
==============================================

A few labels cannot say much. But you can cross-validate on the labeled rows and compare methods
*fold by fold*: differences are estimated far more precisely than the scores themselves.
"""

# %%
# Three data sets from scikit-learn, in which 60 rows keep their label. Replace them with your own.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

from neverworse import ICLSClassifier, LeastSquaresClassifierCV, ProjectedLeastSquaresClassifier
from neverworse.methods import SupervisedClassifier
from neverworse.model_selection import RepeatedStratifiedLabeledKFold, mask_labels

X_digits, digit = load_digits(return_X_y=True)
some = np.isin(digit, (3, 8))
tables = {
    "breast cancer": load_breast_cancer(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "digits 3 and 8": (X_digits[some], digit[some]),
}
methods = {
    "projected": ProjectedLeastSquaresClassifier(),
    "ICLS": ICLSClassifier(),
    "logistic regression": SupervisedClassifier(LogisticRegression()),
    "self-training": SelfTrainingClassifier(LogisticRegression(), max_iter=3),
}

# %%
# Test folds contain labeled rows only; every training fold contains all unlabeled rows.
cv = RepeatedStratifiedLabeledKFold(n_splits=4, n_repeats=2, random_state=0)


def brier_scores(method, X, y):
    """Return the Brier score of each fold."""
    pipe = make_pipeline(StandardScaler(), method)
    return -cross_val_score(pipe, X, y, cv=cv, scoring="neg_brier_score")


differences = {}
for name, (X, y_true) in tables.items():
    y = mask_labels(y_true, n_labeled=60, stratify=True, random_state=1)
    baseline = brier_scores(LeastSquaresClassifierCV(), X, y)
    for label, method in methods.items():
        differences[name, label] = brier_scores(method, X, y) - baseline

# %%
# Each dot is a fold, the bar is the mean. Left of zero is better than the supervised baseline,
# least squares. The projected classifier stays close to zero: it changes only what is better for
# every labeling. Self-training gains on some tables; but compare it with the logistic regression
# that it wraps, which sees labeled rows only. Only the difference between these two is due to the
# unlabeled rows; the rest is due to a different model.
fig, axes = plt.subplots(1, len(tables), figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, name in zip(axes, tables, strict=True):
    for height, label in enumerate(methods):
        folds = differences[name, label]
        ax.plot(folds, np.full(len(folds), height), "o", color="C0", alpha=0.4)
        ax.plot(folds.mean(), height, "|", color="black", markersize=22, markeredgewidth=2)
    ax.axvline(0, color="grey", linewidth=1)
    ax.set(title=name, xlabel="Brier score minus baseline's")
axes[0].set_yticks(range(len(methods)), methods)
axes[0].margins(y=0.25)
fig.suptitle("Change in Brier score on held-out folds, for four methods on three tables")
plt.show()
