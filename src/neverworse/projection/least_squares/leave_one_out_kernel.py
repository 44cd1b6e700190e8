"""Leave-one-out scores where rows are fewer than columns, from the kernel of the rows."""

from __future__ import annotations

import numpy as np

from neverworse._typing import Vector
from neverworse.projection.coordinates.kernel import RowSpace

INSIDE = 1e-8  # a row with so small a share in the directions that no row fits is in none of them


def leave_one_out_by_kernel(
    space: RowSpace, residual: Vector, alphas: Vector, fit_intercept: bool
) -> Vector:
    r"""Return the errors of all rows of the space, each by the fit to all others.

    Let U be the eigenvectors of the weighted kernel with eigenvalues λ, N an orthonormal basis of
    what they (and the intercept) leave, where λ is zero, and r the centred targets times the roots
    of the weights. A fit with penalty α leaves the share α / (λ + α) of every direction, so

    .. math::
        \frac{e_i}{1 - h_i} = \frac{\sum_k U_{ik} \frac{\alpha}{\lambda_k + \alpha} (U'r)_k +
        (NN'r)_i}{\sum_k U_{ik}^2 \frac{\alpha}{\lambda_k + \alpha} + (NN')_{ii}}

    (divided by the root of the weight of row i). Nothing cancels. Without penalty this is the ratio
    of the last terms; or, where a row has no part in N, that of the first ones with α divided out.

    Parameters
    ----------
    space : RowSpace
        Of the rows with a weight.
    residual : array of shape (n_targets, n_used)
        Targets less their mean.
    alphas : array of shape (n_alphas,)
    fit_intercept : bool

    Returns
    -------
    array of shape (n_alphas, n_targets, n_used)
    """
    left, root = space.left, space.root
    weighted = residual * root
    along = weighted @ left
    rest = weighted - along @ left.T
    one = root / np.linalg.norm(root) if fit_intercept else np.zeros(len(root))
    # The share in N, as what all others leave: a rounding error where nothing is left.
    share = 1.0 - np.einsum("ik,ik->i", left, left) - one**2
    share = np.where(share > INSIDE, share, 0.0)
    rest = np.where(share > 0.0, rest - (rest @ one)[:, None] * one, 0.0)
    errors = np.empty((len(alphas), *residual.shape))
    for error, alpha in zip(errors, alphas, strict=True):
        damping = 1.0 / (space.values + alpha)
        above, below = (along * damping) @ left.T, (left**2) @ damping
        fitted = (share > 0.0) & (alpha == 0.0)
        factor = np.where(fitted, 0.0, alpha if alpha > 0.0 else 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):  # the only row: 0 / 0
            error[:] = (factor * above + rest) / (factor * below + share) / root
    return errors
