"""
Does it work for regression?
============================

Yes, if targets are known to lie in a range, such as test scores between 0 and 100 or a disease
index with a fixed scale. Then ``ProjectedLeastSquaresRegressor`` is never worse in squared error
on all rows than least squares on the rows with a target.
"""

# %%
# Of 442 patients, 15 have a known target, a disease index between 25 and 346.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from neverworse import ProjectedLeastSquaresRegressor
from neverworse.model_selection import mask_labels

X, y_true = load_diabetes(return_X_y=True)
y = mask_labels(y_true, n_labeled=15, random_state=0)
unlabeled = np.isnan(y)
reg = ProjectedLeastSquaresRegressor(target_bounds=(25, 346), alpha=0.0).fit(X, y)

# %%
# Many supervised predictions lie outside the range; the projection moves them back as far as is
# certain to help. The wider the range, the less is certain, and once every supervised prediction
# lies within it, nothing can be improved for certain.
spare = np.array([0, 50, 100, 200, 400, 800])
fits = [
    ProjectedLeastSquaresRegressor(target_bounds=(25 - s, 346 + s), alpha=0.0).fit(X, y)
    for s in spare
]
errors = [np.mean((fit.predict(X[unlabeled]) - y_true[unlabeled]) ** 2) for fit in fits]
baseline = np.mean((reg.supervised_.predict(X[unlabeled]) - y_true[unlabeled]) ** 2)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.axhspan(25, 346, color="0.9")
for model, style, name in ((reg.supervised_, "C1s", "supervised"), (reg, "C0o", "projected")):
    left.plot(
        y_true[unlabeled], model.predict(X[unlabeled]), style, markersize=3, alpha=0.6, label=name
    )
left.set(title="Predictions for rows without a target", xlabel="true target", ylabel="prediction")
left.legend()
right.plot(spare, errors, "C0o-", label="projected")
right.axhline(baseline, color="C1", linestyle="--", label="supervised")
right.set(title="The wider the range, the less is certain", ylabel="mean squared error")
right.set_xlabel("range widened by this much on each side")
right.set_ylim(bottom=0)
right.legend()
plt.show()
