"""Linear discriminant analysis constrained by all rows: by their moments, or implicitly."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from scipy import linalg

from neverworse._budget import Budget
from neverworse._typing import Matrix
from neverworse._words import documented_like
from neverworse.methods.discriminant._gaussian import GaussianClasses, Sample, mean_diagonal
from neverworse.methods.discriminant._soft_labels import (
    EMDiscriminantAnalysis,
    LabelDescent,
    SoftLabelDiscriminant,
)
from neverworse.methods.discriminant._supervised import SemiSupervisedDiscriminant


@documented_like(EMDiscriminantAnalysis)
class MomentConstrainedDiscriminantAnalysis(SemiSupervisedDiscriminant):
    r"""Linear discriminant analysis whose total mean and covariance are those of all rows.

    Class means and covariance are tied to the mean m and the covariance T of all rows, which do not
    depend on labels,

    .. math:: \sum_k p_k \mu_k = m , \qquad
              \Sigma + \sum_k p_k (\mu_k - m) (\mu_k - m)' = T ,

    with :math:`p_k` the shares of the classes among the labeled rows. The supervised parameters
    satisfy this for the mean :math:`m_l` and the covariance :math:`T_l` of the labeled rows. They
    are moved by the map

    .. math:: x \mapsto A (x - m_l) + m , \qquad A = (T T_l^{-1})^{1/2} ,

    so that they satisfy it for all rows, because :math:`A T_l A' = T`; predictions do not depend on
    the units of the columns. Both T and :math:`T_l` include the penalty α. Nothing is guaranteed:
    unlabeled rows from another distribution, or with other shares of classes, move the boundary in
    a wrong direction.

    Parameters
    ----------
    covariance : {"full", "spherical"}, default="full"
        "spherical": the means are shifted by :math:`m - m_l`. Together with ``priors="uniform"``,
        this is the constrained nearest mean classifier of Loog (2010).
    {priors, alpha, missing_label}

    Attributes
    ----------
    {classes_, coef_, intercept_, priors_, means_, covariance_, rank_, supervised_}
    {n_features_in_, feature_names_in_}

    References
    ----------
    M. Loog, "Constrained parameter estimation for semi-supervised learning: the case of the nearest
    mean classifier", ECML PKDD (2010), 291-304.

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

    def _move(self, start: GaussianClasses, sample: Sample, _: Budget) -> GaussianClasses:
        family = sample.family
        shares = sample.known[:, 0] / sample.labeled_weight
        apart = start.means - shares @ start.means  # now from the centre of all rows, which is m
        if family.spherical:
            return replace(start, means=apart)
        labeled = start.covariance + (apart.T * shares) @ apart
        together = sample.scatter / sample.total
        together[np.diag_indices_from(together)] += family.alpha
        # (T T_l⁻¹)^½ in the subspace, from the basis in which both are diagonal.
        basis, inverse = start.space.basis, start.space.inverse
        of_labeled = basis.T @ labeled @ basis
        values, common = linalg.eigh(basis.T @ together @ basis, of_labeled)
        root = of_labeled @ (common * np.sqrt(np.maximum(values, 0.0))) @ common.T
        # Coordinates are mapped by it, and all other directions left alone.
        matrix = inverse @ (root - np.eye(len(root))) @ basis.T + np.eye(len(inverse))
        covariance = matrix @ start.covariance @ matrix.T
        return replace(start, means=apart @ matrix.T, covariance=(covariance + covariance.T) / 2.0)


@documented_like(EMDiscriminantAnalysis)
class ImplicitlyConstrainedDiscriminantAnalysis(SoftLabelDiscriminant):
    r"""Linear discriminant analysis with implicit constraints from unlabeled rows.

    Every choice of soft labels q of the unlabeled rows, each in the simplex of the classes, gives
    parameters θ(q): those of maximum likelihood on all rows. Of these, the most likely ones for the
    labeled rows are taken,

    .. math:: \max_q \; \sum_{i \text{ labeled}} s_i \log \left( \pi_{y_i}(q)
              \mathcal N(x_i; \mu_{y_i}(q), \Sigma(q)) \right)
              - \frac{\alpha}{2} \sum_{i \text{ labeled}} s_i \operatorname{tr} \Sigma(q)^{-1} .

    The constraints of `MomentConstrainedDiscriminantAnalysis` are implied. The objective is not
    concave; projected gradients, from the supervised probabilities on, lead to a point that
    satisfies the Karush-Kuhn-Tucker conditions. Nothing is guaranteed.

    Parameters
    ----------
    {covariance, priors, alpha, missing_label}
    tol : float, default=1e-6
        Stop when, to first order, no soft labels gain more log-likelihood than this per unit of
        weight of the labeled rows.
    {max_iter, max_time, verbose}

    Attributes
    ----------
    {classes_, coef_, intercept_, priors_, means_, covariance_, rank_, supervised_}
    soft_labels_ : array of shape (n_unlabeled,) or (n_unlabeled, n_classes)
        The soft labels q, as the share of the second of two classes, or of every class.
    log_likelihood_ : float
        The objective. At most that of the supervised classifier, which has no constraints.
    {n_iter_, converged_, n_features_in_, feature_names_in_}

    References
    ----------
    J. H. Krijthe and M. Loog, "Implicitly constrained semi-supervised linear discriminant
    analysis", International Conference on Pattern Recognition (2014), 3762-3767.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse.methods import ImplicitlyConstrainedDiscriminantAnalysis
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 500)
    >>> X = rng.normal(size=(500, 4)) + truth[:, None]
    >>> y = np.where(np.arange(500) < 12, truth, -1)
    >>> clf = ImplicitlyConstrainedDiscriminantAnalysis().fit(X, y)
    >>> print(f"{clf.supervised_.score(X, truth):.3f} becomes {clf.score(X, truth):.3f}")
    0.776 becomes 0.784
    """

    def _move(self, start: GaussianClasses, sample: Sample, budget: Budget) -> GaussianClasses:
        smallest = self.tol * sample.labeled_weight
        objective = partial(labeled_loss, supervised=start, sample=sample)
        descent = LabelDescent(objective, sample, lambda gap, _: gap <= smallest, budget)
        found, gap = descent.run(start)
        self._set_soft_labels(found.labels, sample, budget.n_iter, gap <= smallest)
        sums = sample.all_sums(found.labels)
        self.log_likelihood_ = -objective(sums)[0]
        return sample.most_likely(sums)


def labeled_loss(sums: Matrix, supervised: GaussianClasses, sample: Sample) -> tuple[float, Matrix]:
    r"""Return the penalised negative log-likelihood of the labeled rows, and its derivative.

    With the weights :math:`l_k` and means :math:`m_k` of the labeled rows of each class, their
    scatter :math:`W_l` within the classes and :math:`n_l = \sum_k l_k`, it is

    .. math:: \tfrac{n_l}2 \log \det (2 \pi \Sigma) + \tfrac12 \operatorname{tr} \Sigma^{-1} C
              - \sum_k l_k \log \pi_k , \qquad
              C = W_l + n_l \alpha I + \sum_k l_k (m_k - \mu_k)(m_k - \mu_k)' ,

    at the parameters of maximum likelihood for the class sums, by which the derivative is taken.
    `supervised` are those for the labeled rows.
    """
    counts, total = sample.known[:, 0], sample.labeled_weight
    model = sample.most_likely(sums)
    precision = model.precision.matrix
    apart = supervised.means - model.means
    # Of a spherical covariance only the trace matters: it is the same.
    scatter = total * supervised.covariance + (apart.T * counts) @ apart
    spread = precision @ scatter
    value = -total * model.constant + 0.5 * float(np.trace(spread))
    value -= float(counts @ np.log(model.priors))
    # Of the loss, with respect to the covariance, and to the means as far as these enter C.
    by_covariance = 0.5 * (total * precision - spread @ precision)
    if sample.family.spherical:  # its mean diagonal is that of W/N
        by_covariance = mean_diagonal(by_covariance)
    by_covariance /= sample.total
    by_means = -(counts[:, None] * apart) @ precision
    # W/N is the covariance of all rows less Σ n_k μ_k μ_k' / N, and μ_k = M_k / n_k.
    through_covariance = model.means @ by_covariance
    shares = sums[:, 0]
    by_sums = by_means / shares[:, None] - 2.0 * through_covariance
    by_counts = np.sum(through_covariance * model.means, axis=1)
    by_counts -= np.sum(by_means * model.means, axis=1) / shares
    if sample.family.priors is None:
        by_counts -= counts / shares
    return value, np.column_stack([by_counts, by_sums])
