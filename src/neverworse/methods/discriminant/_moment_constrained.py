"""Linear discriminant analysis whose moments agree with those of all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from sklearn.utils._param_validation import StrOptions

from neverworse._typing import Matrix
from neverworse.methods.discriminant._family import Family
from neverworse.methods.discriminant._gaussian import GaussianClasses
from neverworse.methods.discriminant._sample import Sample
from neverworse.methods.discriminant._semi_supervised import SemiSupervisedDiscriminant
from neverworse.methods.discriminant._subspace import SingularCovarianceError, Subspace
from neverworse.projection import Labels, Observer
from neverworse.projection.coordinates.gram import EPS


class MomentConstrainedDiscriminantAnalysis(SemiSupervisedDiscriminant):
    r"""Linear discriminant analysis whose total mean and covariance are those of all rows.

    The parameters of linear discriminant analysis are tied to moments that no label has an
    influence on: the mean m and the covariance T of all rows,

    .. math:: \sum_k p_k \mu_k = m , \qquad
              \Sigma + \sum_k p_k (\mu_k - m) (\mu_k - m)' = T ,

    with :math:`p_k` the shares of the classes. The supervised parameters satisfy this for the mean
    :math:`m_l` and the covariance :math:`T_l` of the labeled rows. They are moved by the map

    .. math:: x \mapsto A (x - m_l) + m , \qquad A T_l A' = T ,

    so that they satisfy it for all rows. Where unlabeled rows come from elsewhere than labeled
    ones, or classes have other shares among them, this moves the classifier in a wrong direction:
    nothing is guaranteed.

    Parameters
    ----------
    root : {"invariant", "symmetric"}, default="invariant"
        Which of the matrices A is taken.

        - "invariant": :math:`(T T_l^{-1})^{1/2}`, for which predictions do not depend on the units
          of the columns, or on any other linear map of these (Loog 2014).
        - "symmetric": :math:`T^{1/2} T_l^{-1/2}`, of symmetric square roots (Loog 2012).
    covariance : {"full", "spherical"}, default="full"
        With "spherical" the means are shifted by :math:`m - m_l`, and that is all. Together with
        ``priors="uniform"`` this is the constrained nearest mean classifier of Loog (2010).
    priors, alpha, missing_label
        See `LinearDiscriminantClassifier`. Both T and :math:`T_l` include α. The shares
        :math:`p_k` are those of the labeled rows, whatever `priors`.

    Attributes
    ----------
    classes_, coef_, intercept_, priors_, means_, covariance_, rank_ : arrays and int
        See `LinearDiscriminantClassifier`.
    supervised_ : LinearDiscriminantClassifier
        The supervised baseline, fitted to the labeled rows.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only if X has column names that are all strings.

    References
    ----------
    M. Loog, "Constrained parameter estimation for semi-supervised learning: the case of the nearest
    mean classifier", ECML PKDD (2010), 291-304.

    M. Loog, "Semi-supervised linear discriminant analysis using moment constraints", Partially
    Supervised Learning (2012), 32-41.

    M. Loog, "Semi-supervised linear discriminant analysis through moment-constraint parameter
    estimation", Pattern Recognition Letters 37 (2014), 24-31.

    Examples
    --------
    >>> from neverworse.methods import MomentConstrainedDiscriminantAnalysis
    >>> X = [[0.0], [1.0], [4.0], [5.0], [6.0], [8.0]]
    >>> clf = MomentConstrainedDiscriminantAnalysis().fit(X, [0, 0, 1, 1, -1, -1])
    >>> clf.predict([[3.0], [4.5]])
    array([0, 1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **SemiSupervisedDiscriminant._parameter_constraints,
        "root": [StrOptions({"invariant", "symmetric"})],
    }

    def __init__(
        self,
        root: str = "invariant",
        *,
        covariance: str = "full",
        priors: Any = None,
        alpha: float = 0.0,
        missing_label: Any = "auto",
    ) -> None:
        self.root = root
        self.covariance = covariance
        self.priors = priors
        self.alpha = alpha
        self.missing_label = missing_label

    def _move(
        self,
        start: GaussianClasses,
        sample: Sample,
        family: Family,
        labels: Labels,  # noqa: ARG002
        observer: Observer | None,  # noqa: ARG002
    ) -> GaussianClasses:
        shares = sample.known[:, 0] / sample.labeled_weight
        apart = start.means - shares @ start.means  # now from the centre of all rows, which is m
        if family.spherical:
            return replace(start, means=apart)
        labeled = start.covariance + (apart.T * shares) @ apart
        together = sample.scatter / sample.total
        together[np.diag_indices_from(together)] += family.alpha
        matrix = _ROOTS[self.root](labeled, together, start.space)
        covariance = matrix @ start.covariance @ matrix.T
        return replace(start, means=apart @ matrix.T, covariance=(covariance + covariance.T) / 2.0)


def _invariant(labeled: Matrix, together: Matrix, space: Subspace) -> Matrix:
    """Return (T T_l⁻¹)^½ in the subspace, from the basis in which both are diagonal."""
    basis, inverse = space.basis, space.inverse
    of_labeled = basis.T @ labeled @ basis
    values, common = linalg.eigh(basis.T @ together @ basis, of_labeled)
    root = of_labeled @ (common * np.sqrt(np.maximum(values, 0.0))) @ common.T
    return _extended(root, basis, inverse)


def _symmetric(labeled: Matrix, together: Matrix, space: Subspace) -> Matrix:
    """Return T^½ T_l^-½ in the subspace."""
    basis = linalg.qr(space.basis, mode="economic")[0]
    values, vectors = linalg.eigh(basis.T @ labeled @ basis)
    if values[0] <= len(values) * EPS * values[-1]:
        raise SingularCovarianceError  # the units of the columns are too different
    inverse_root = (vectors / np.sqrt(values)) @ vectors.T
    values, vectors = linalg.eigh(basis.T @ together @ basis)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T @ inverse_root
    return _extended(root, basis, basis)


def _extended(matrix: Matrix, basis: Matrix, inverse: Matrix) -> Matrix:
    """Return a map of coordinates as one of rows, which leaves all other directions alone."""
    change: Matrix = inverse @ (matrix - np.eye(len(matrix))) @ basis.T
    return change + np.eye(len(change))


_ROOTS = {"invariant": _invariant, "symmetric": _symmetric}
