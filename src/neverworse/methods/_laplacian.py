"""Least squares that is smooth along a graph of neighbours: manifold regularisation."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import linalg, sparse
from scipy.sparse import csgraph
from sklearn.neighbors import kneighbors_graph
from sklearn.utils._param_validation import Interval

from neverworse._typing import Mask, Matrix, Vector
from neverworse._words import documented_like
from neverworse.estimators import (
    KERNEL_CONSTRAINTS,
    FitInput,
    IndicatorClassifier,
    KernelModel,
    LeastSquaresClassifier,
    known_labels,
    landmarks_of_all,
    space_of_all,
)
from neverworse.projection import TrainingRows, Weights
from neverworse.rows import Rows


@documented_like(LeastSquaresClassifier)
class LaplacianLeastSquaresClassifier(KernelModel, IndicatorClassifier):
    r"""Least squares classifier whose scores change little between neighbours.

    Minimises, over functions in the space of a kernel, and labeled rows with targets coded 0 and 1,

    .. math:: \sum_i s_i (f(x_i) - y_i)^2 + \alpha \lVert f \rVert^2 + \beta \sum_{j, k} w_{jk}
              (f(x_j) - f(x_k))^2 .

    The last sum is over pairs of labeled and unlabeled rows, of which :math:`w_{jk}` is 1 if one is
    among the nearest neighbours of the other, and 0 if not: it is small where classes are separated
    by a gap between rows. If they are not, the classifier may well be worse than the supervised
    one; `audit` says what is certain.

    Parameters
    ----------
    alpha : float, default=0.01
        Ridge penalty of the function.
    beta : float, default=0.1
        Penalty of differences between neighbours. With 0, unlabeled rows play no part.
    n_neighbors : int, default=10
        Neighbours of each row, by Euclidean distance.
    normalized : bool, default=False
        Whether scores are divided by the roots of the numbers of neighbours before they are
        compared (the normalised Laplacian of the graph).
    kernel : {"linear", "rbf", "laplacian", "poly"} or callable, default="rbf"
        By scikit-learn's name, or a function of two rows.
    gamma : float or None, default=None
        Of the kernels "rbf", "laplacian" and "poly". None: one over the number of columns.
    {degree, coef0, n_components, random_state, fit_intercept, missing_label}

    Attributes
    ----------
    {classes_, intercept_, dual_coef_, landmarks_, gamma_, n_features_in_, feature_names_in_}

    See Also
    --------
    LeastSquaresClassifier : The supervised counterpart.

    References
    ----------
    M. Belkin, P. Niyogi and V. Sindhwani, "Manifold regularization: a geometric framework for
    learning from labeled and unlabeled examples", Journal of Machine Learning Research 7 (2006),
    2399-2434.

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
    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "normalized": ["boolean"],
        "fit_intercept": ["boolean"],
        "missing_label": "no_validation",
        **KERNEL_CONSTRAINTS,
        "gamma": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(
        self,
        alpha: float = 0.01,
        beta: float = 0.1,
        *,
        n_neighbors: int = 10,
        normalized: bool = False,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        n_components: int | None = None,
        random_state: Any = None,
        fit_intercept: bool = True,
        missing_label: Any = "auto",
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.n_neighbors = n_neighbors
        self.normalized = normalized
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.random_state = random_state
        self.fit_intercept = fit_intercept
        self.missing_label = missing_label

    def _fit_rows(self, given: FitInput) -> None:
        if self.kernel == "precomputed":
            raise ValueError(
                "kernel='precomputed' has no distances between rows, which a graph of neighbours "
                "needs. Name the kernel, and pass rows."
            )
        known = known_labels(given, self.missing_label)
        training, landmarks = TrainingRows(given.rows, known.labels), None
        gamma = self.gamma
        if self.kernel != "linear":
            landmarks = landmarks_of_all(self, known.labels)
            gamma = 1.0 / given.rows.n_columns if gamma is None else float(gamma)
        space = space_of_all(self, training, gamma, landmarks)
        weights = known.labels.weights_where(~known.labels.unlabeled)
        used = np.ones(given.rows.n_rows, bool) if given.weights is None else given.weights > 0.0
        graph = self._laplacian(given.rows, used)
        rows = space.training(training).rows
        solution = self._solve(
            rows.take(np.flatnonzero(used)), known.labels.target[:, used], weights[used], graph
        )
        space.store(self, solution.snapped(self._threshold))
        self.classes_ = known.classes

    def _laplacian(self, rows: Rows, used: Mask) -> sparse.csr_array:
        """Return the Laplacian of the graph of neighbours, of rows with a weight."""
        X = rows.take(np.flatnonzero(used))
        n_neighbors = min(self.n_neighbors, len(X) - 1)
        if not n_neighbors:
            return sparse.csr_array((len(X), len(X)))
        near = kneighbors_graph(X, n_neighbors)
        return sparse.csr_array(csgraph.laplacian(near.maximum(near.T), normed=self.normalized))

    def _solve(
        self, Z: Matrix, target: Matrix, weights: Vector, graph: sparse.csr_array
    ) -> Weights:
        """Return the weights of the features Z, by their normal equations."""
        n_features = Z.shape[1]
        if self.fit_intercept:
            Z = np.column_stack([Z, np.ones(len(Z))])
        matrix = Z.T @ (weights[:, None] * Z) + float(self.beta) * (Z.T @ (graph @ Z))
        matrix.flat[: n_features * (len(matrix) + 1) : len(matrix) + 1] += float(self.alpha)
        right = Z.T @ (weights * target).T
        found = linalg.solve(matrix, right, assume_a="sym").T
        intercept = found[:, n_features] if self.fit_intercept else np.zeros(len(found))
        return Weights(found[:, :n_features], intercept)
