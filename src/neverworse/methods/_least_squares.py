"""Least squares with updated second moments, and with a graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy import linalg, sparse
from scipy.sparse import csgraph
from sklearn.neighbors import kneighbors_graph

from neverworse import estimators
from neverworse._words import documented_like
from neverworse.methods._base import CONSTRAINTS, POSITIVE, Constraints
from neverworse.projection import TrainingRows, Weights, solve_least_squares


@documented_like(estimators.LeastSquaresClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class UpdatedSecondMomentClassifier(estimators.IndicatorClassifier):
    r"""Least squares classifier with the second moments of labeled and unlabeled rows.

    The second moments of the features are estimated from all rows, and their products with the
    target from the labeled ones. With targets :math:`y_i \in \{0, 1\}`,

    .. math:: w = \left( \frac{n_l}{n_l + n_u} E'SE + \alpha I \right)^{-1} X'S (y - \bar y) ,
              \qquad b = \bar y - \bar e \cdot w ,

    where X and E are the labeled and all rows, centred at the mean :math:`\bar e` of *all* rows,
    :math:`\bar y` is the mean target of the labeled rows, S holds row weights, and :math:`n_l` and
    :math:`n_u` are their sums over labeled and unlabeled rows. It helps where there are hardly more
    labeled rows than columns, and hurts where targets are linear in the features.

    Parameters
    ----------
    alpha : float, default=0.0
        Ridge penalty, as in `LeastSquaresClassifier`.
    fit_intercept : bool, default=True
        Whether to fit b. Without it, neither rows nor targets are centred.
    {rcond, missing_label}

    Attributes
    ----------
    {classes_, coef_, intercept_, n_features_in_, feature_names_in_}

    References
    ----------
    Shaffer, The American Statistician 45 (1991), 269-273.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import LeastSquaresClassifier
    >>> from neverworse.methods import UpdatedSecondMomentClassifier
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 50)) + 0.5 * truth[:, None]
    >>> y = np.where(np.arange(1000) < 52, truth, -1)
    >>> round(LeastSquaresClassifier().fit(X, y).score(X, truth), 2)
    0.6
    >>> round(UpdatedSecondMomentClassifier().fit(X, y).score(X, truth), 2)
    0.83
    """

    _skips_rows: ClassVar[bool] = False
    _parameter_constraints: ClassVar[Constraints] = (
        estimators.LeastSquaresClassifier._parameter_constraints
    )

    alpha: float = field(default=0.0, kw_only=False)
    fit_intercept: bool = True
    rcond: float | None = None
    missing_label: Any = "auto"

    def _fit_rows(self, given: estimators.FitInput) -> None:
        known = self._read_labels(given)
        rows, weights, target = given.rows, given.weights, known.labels.target
        labeled = ~known.labels.unlabeled
        s = known.labels.weights_where(labeled)
        total = float(rows.n_rows if weights is None else weights.sum())
        ratio = total / float(s.sum())
        mean = np.average(target, axis=1, weights=s) * self.fit_intercept
        residual = np.where(labeled, target - mean[:, None], 0.0)
        solution = solve_least_squares(
            rows,
            ratio * residual,
            weights,
            alpha=ratio * float(self.alpha),
            fit_intercept=self.fit_intercept,
            rcond=self.rcond,
        )
        solution += Weights(np.zeros_like(solution.coef), mean)
        self._set_weights(solution.snapped(self._threshold))


@documented_like(estimators.LeastSquaresClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class LaplacianLeastSquaresClassifier(estimators.KernelModel, estimators.IndicatorClassifier):
    r"""Least squares classifier whose scores change little between neighbours.

    Minimises, over functions in the space of a kernel, and labeled rows with targets coded 0 and 1,

    .. math:: \sum_i s_i (f(x_i) - y_i)^2 + \alpha \lVert f \rVert^2 + \beta \sum_{j, k} w_{jk}
              (f(x_j) - f(x_k))^2 .

    The last sum is over pairs of labeled and unlabeled rows, of which :math:`w_{jk}` is 1 if one is
    among the nearest neighbours of the other, and 0 if not. If classes are not separated by a gap
    between rows, the classifier may well be worse than the supervised one.

    Parameters
    ----------
    alpha : float, default=0.01
        Ridge penalty of the function.
    beta : float, default=0.1
        Penalty of differences between neighbours. With 0, unlabeled rows play no part.
    kernel : {"linear", "rbf", "laplacian", "poly"} or callable, default="rbf"
        By scikit-learn's name, or a function of two rows.
    gamma : float or None, default=None
        Of the kernels "rbf", "laplacian" and "poly". None: 1 / n_features.
    {degree, coef0, n_components, random_state}
    n_neighbors : int, default=10
        Neighbours of each row, by Euclidean distance.
    {fit_intercept, missing_label}

    Attributes
    ----------
    {classes_, intercept_, dual_coef_, landmarks_, gamma_, n_features_in_, feature_names_in_}

    References
    ----------
    Belkin, Niyogi and Sindhwani, Journal of Machine Learning Research 7 (2006), 2399-2434.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from neverworse.methods import LaplacianLeastSquaresClassifier
    >>> X, truth = make_moons(300, noise=0.1, random_state=0)
    >>> y = np.where(np.arange(300) < 8, truth, -1)
    >>> clf = LaplacianLeastSquaresClassifier(gamma=5.0).fit(X, y)
    >>> round(clf.score(X, truth), 2)
    0.99
    """

    _skips_rows: ClassVar[bool] = True
    _parameter_constraints: ClassVar[Constraints] = {
        **CONSTRAINTS,
        **estimators.KERNEL_CONSTRAINTS,
        "gamma": [*POSITIVE, None],
    }

    alpha: float = field(default=0.01, kw_only=False)
    beta: float = field(default=0.1, kw_only=False)
    kernel: Any = "rbf"
    n_neighbors: int = 10
    fit_intercept: bool = True
    missing_label: Any = "auto"

    def _fit_rows(self, given: estimators.FitInput) -> None:
        if self.kernel == "precomputed":
            raise ValueError(
                "kernel='precomputed' gives no distances between rows for the graph of neighbours. "
                "Name the kernel, and pass the rows."
            )
        known = self._read_labels(given)
        training, landmarks = TrainingRows(given.rows, known.labels), None
        gamma = self.gamma
        if self.kernel != "linear":
            landmarks = estimators.landmarks_of_all(self, known.labels)
            gamma = 1.0 / given.rows.n_columns if gamma is None else float(gamma)
        space = estimators.space_of_all(self, training, gamma, landmarks)
        s = np.ones(given.rows.n_rows) if given.weights is None else given.weights
        used = np.flatnonzero(s)
        weights = known.labels.weights_where(~known.labels.unlabeled)[used]
        X, Z = given.rows.take(used), space.training(training).rows.take(used)
        graph = sparse.csr_array((len(X), len(X)))  # its Laplacian
        if len(X) > 1:
            near = kneighbors_graph(X, min(self.n_neighbors, len(X) - 1))
            graph = sparse.csr_array(csgraph.laplacian(near.maximum(near.T)))
        n_features = Z.shape[1]
        if self.fit_intercept:
            Z = np.column_stack([Z, np.ones(len(Z))])
        matrix = Z.T @ (weights[:, None] * Z) + float(self.beta) * (Z.T @ (graph @ Z))
        matrix.flat[: n_features * (len(matrix) + 1) : len(matrix) + 1] += float(self.alpha)
        right = Z.T @ (weights * known.labels.target[:, used]).T
        found = linalg.solve(matrix, right, assume_a="sym").T
        intercept = found[:, n_features] if self.fit_intercept else np.zeros(len(found))
        space.store(self, Weights(found[:, :n_features], intercept).snapped(self._threshold))
