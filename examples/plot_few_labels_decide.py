"""
How few labels decide between two models?
=========================================

Only the rows on which two models predict different classes matter for the difference of their
error rates. ``SequentialAudit`` draws such rows one at a time. You may look at its result after
every label and stop at any time: its statements remain valid.
"""

# %%
# Least squares against logistic regression, fitted to the same 40 labels.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from neverworse import LeastSquaresClassifierCV, SequentialAudit
from neverworse.model_selection import mask_labels

X, y_true = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
y = mask_labels(y_true, n_labeled=40, stratify=True, random_state=2)
known, unlabeled = y != -1, y == -1
baseline = LeastSquaresClassifierCV().fit(X, y)
candidate = LogisticRegression().fit(X[known], y[known])
question = SequentialAudit(baseline, candidate, X[unlabeled], random_state=0)

# %%
# Label one row at a time, and record the confidence interval for the difference of the error
# rates.
answers, intervals = [0], [question.interval_]
while question.verdict_ == "undecided":
    rows = question.next(1)
    question.record(rows, y_true[unlabeled][rows])
    answers.append(answers[-1] + 1)
    intervals.append(question.interval_)

# %%
# The interval closes in on the truth (dashed), and labeling stops as soon as there is a verdict,
# after a few of the 529 rows. The verdict "not worse" is a weaker statement than an interval
# entirely below zero, so it may come a little earlier.
low, high = 100 * np.transpose(intervals)
truth = np.mean(candidate.predict(X[unlabeled]) != y_true[unlabeled]) - np.mean(
    baseline.predict(X[unlabeled]) != y_true[unlabeled]
)
fig, ax = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
ax.fill_between(answers, low, high, step="post", color="C0", alpha=0.35, label="95 % interval")
ax.axhline(100 * truth, color="C1", linestyle="--", label="truth")
ax.axhline(0, color="grey", linewidth=1)
ax.set(
    title=f"After {answers[-1]} labels: {question.verdict_}",
    xlabel="labels",
    ylabel="candidate's error rate minus baseline's, points",
)
ax.legend()
plt.show()
print(question.summary())
