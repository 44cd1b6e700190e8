"""
How few labels decide between two models?
=========================================

Two models differ on some rows only, and only these rows matter for their error rates.
``SequentialAudit`` draws them one after another. It may be looked at after every answer, and
stopped at any time: its statements stay true.
"""

# %%
# A least squares classifier with 40 labels against a logistic regression with the same labels.
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
# Answer one row at a time, as somebody at a desk would, and note the interval for the
# difference of the error rates.
answers, intervals = [0], [question.interval_]
while question.verdict_ == "undecided":
    rows = question.next(1)
    question.record(rows, y_true[unlabeled][rows])
    answers.append(answers[-1] + 1)
    intervals.append(question.interval_)

# %%
# The interval closes in on the truth (dashed), and labeling stops as soon as the verdict is
# out, after a few of the 529 rows. The verdict "not worse" asks for less than an interval of
# which both ends lie below zero, so it may come a little earlier.
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
    ylabel="candidate's error rate less baseline's, points",
)
ax.legend()
plt.show()
print(question.summary())
