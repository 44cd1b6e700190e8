"""
What does the constraint set look like?
=======================================

Every labeling of the unlabeled rows, hard or soft, gives a least squares classifier. All of them
together form the *constraint set*. With one feature and an intercept, a classifier has two
weights, so the set can be drawn.
"""

# %%
# One feature of the breast cancer data; ten rows keep their label.
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.model_selection import mask_labels
from neverworse.plots import ConstraintSetDisplay

X, y_true = load_breast_cancer(return_X_y=True)
x = StandardScaler().fit_transform(X[:, [27]])  # "worst concave points"
y = mask_labels(y_true, n_labeled=10, stratify=True, random_state=0)

# %%
# The supervised weights lie outside the set: *no* labeling of the unlabeled rows would give them,
# so they are certainly not the oracle's. The projected weights are the nearest point of the set,
# in the distance shown by the ellipses. The oracle, which knows all labels, is somewhere in the
# set; here we know where. The angle at the projected weights is never acute, so wherever in the
# set the oracle is, it is nearer to the projected weights than to the supervised ones. That is the
# whole proof.
clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(x, y)
display = ConstraintSetDisplay.from_estimator(clf, x, y, y_true=y_true)
display.ax_.set_title("Weights that some labeling gives, and the projection onto them", pad=42)
plt.show()

# %%
# The certificate says how much lower the loss is, at least and at most.
print(clf.certificate_.summary())
