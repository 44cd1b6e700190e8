"""
Does it work with a million rows?
=================================

A fit needs a Gram matrix and a handful of passes over the rows. A million unlabeled rows take
seconds, about as long as ridge regression on them, and the rows are never copied as a whole.
"""

# %%
# Two Gaussian classes in 20 dimensions, 200 labels, and from a thousand to a million rows.
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.datasets import make_two_gaussians

sizes = [1_000, 10_000, 100_000, 1_000_000]
X_all, y_all = make_two_gaussians(max(sizes), 20, random_state=0)


def seconds(function):
    """Return how long a call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


Ridge().fit(X_all[:100], y_all[:100])  # what is loaded on first use should not count
fits, ridges, certificates = [], [], []
for size in sizes:
    X = X_all[:size]
    y = np.where(np.arange(size) < 200, y_all[:size], -1)
    clf = ProjectedLeastSquaresClassifier(alpha=0.0)
    fits.append(seconds(lambda clf=clf, X=X, y=y: clf.fit(X, y)))
    ridges.append(seconds(lambda X=X: Ridge().fit(X, y_all[: len(X)])))
    certificates.append(clf.certificate_)

# %%
# Both axes are logarithmic: time grows in proportion to the number of rows. The certificate is as
# exact as for a small table.
fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
ax.loglog(sizes, fits, "o-", label="fit, with its certificate")
ax.loglog(sizes, ridges, "s--", color="grey", label="scikit-learn's Ridge, all labels known")
ax.set(title="Seconds to fit, on this machine", xlabel="rows", ylabel="seconds")
ax.legend()
plt.show()

# %%
print(certificates[-1].summary())

# %%
# The same estimators also read data that do not fit into memory, from Parquet files or a Dask
# cluster: see "Beyond memory" in the user guide.
