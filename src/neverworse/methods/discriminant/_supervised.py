"""Linear discriminant analysis in closed form: supervised, and constrained by moments."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from neverworse._budget import Budget
from neverworse._words import documented_like
from neverworse.estimators import FitInput, LeastSquaresClassifier, LinearClassifier, known_labels
from neverworse.methods import _base
from neverworse.methods.discriminant._gaussian import Family, GaussianClasses, Sample, uncentred
from neverworse.projection import Labels, Observer, TrainingRows
from neverworse.rows import single_threaded_blas

SUM_TOLERANCE = 1e-8  # for probabilities that should add up to one


@dataclass(eq=False, repr=False, kw_only=True)
class DiscriminantClassifier(_base.LogOddsMixin, LinearClassifier):
    """Base of classifiers that model the classes as Gaussians with a common covariance."""

    # Which rows are read depends on labels and weights, so NaN are checked for beforehand.
    _skips_rows: ClassVar[bool] = True
    _parameter_constraints: ClassVar[_base.Constraints] = {
        **_base.CONSTRAINTS,
        "alpha": _base.NOT_NEGATIVE,
        "max_iter": [*_base.AT_LEAST_ONE, None],
    }

    covariance: str = "full"
    priors: Any = None
    alpha: float = 0.0
    missing_label: Any = "auto"

    def _plain_model(self) -> LinearDiscriminantAnalysis:
        model = LinearDiscriminantAnalysis(solver="lsqr")
        for name in ("classes_", "priors_", "means_", "covariance_"):
            setattr(model, name, getattr(self, name).copy())
        return model

    @single_threaded_blas()
    def _fit_rows(self, given: FitInput) -> None:
        known = known_labels(given, self.missing_label)
        self.classes_ = known.classes
        self._set_model(self._fit_training(TrainingRows(given.rows, known.labels), given.observer))

    def _family(self, start: GaussianClasses | None = None) -> Family:
        """Return what is fitted, in the directions of `start`, with checked priors."""
        priors, n_classes = None, len(self.classes_)
        if self.priors is not None:
            uniform = isinstance(self.priors, str)
            given = np.full(n_classes, 1.0 / n_classes) if uniform else self.priors
            priors = np.asarray(given, np.float64)
            valid = priors.shape == (n_classes,) and (priors > 0.0).all()
            if not valid or abs(priors.sum() - 1.0) > SUM_TOLERANCE:
                raise ValueError(
                    f"priors={self.priors!r} has to be one positive probability for each of the "
                    f"{n_classes} classes, in the order {', '.join(map(str, self.classes_))}, with "
                    "the sum 1."
                )
            priors = priors / priors.sum()
        space = None if start is None else start.space
        return Family(self.covariance == "spherical", float(self.alpha), priors, space)

    @abstractmethod
    def _fit_training(self, training: TrainingRows, observer: Observer | None) -> GaussianClasses:
        """Return the classes, and set the attributes that only this method has."""

    def _set_model(self, model: GaussianClasses) -> None:
        linear = model.linear
        weights = uncentred(linear if len(linear) > 2 else linear[1:] - linear[:1], model.centre)
        self._set_weights(weights)
        self.priors_ = model.priors
        self.means_ = model.means + model.centre
        self.covariance_ = model.covariance
        self.rank_ = model.space.basis.shape[1]


@documented_like(LeastSquaresClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class LinearDiscriminantClassifier(DiscriminantClassifier):
    r"""Linear discriminant analysis on the labeled rows only.

    The rows of class k are Gaussian with mean :math:`\mu_k` and a covariance Σ that all classes
    share. Over the labeled rows, with weights :math:`s_i`, the penalised log-likelihood

    .. math:: \sum_i s_i \log \left( \pi_{y_i} \mathcal N(x_i; \mu_{y_i}, \Sigma) \right)
              - \frac{\alpha}{2} \sum_i s_i \operatorname{tr} \Sigma^{-1}

    is largest for the class means, the shares of the classes, and Σ the scatter within the classes
    divided by :math:`\sum_i s_i`, plus :math:`\alpha I`. Without a penalty this is scikit-learn's
    `LinearDiscriminantAnalysis` with ``solver="lsqr"``. Unlabeled rows are ignored.

    Parameters
    ----------
    covariance : {"full", "spherical"}, default="full"
        Whether Σ is any covariance, or a multiple of the identity.
    priors : None, "uniform" or array-like of shape (n_classes,), default=None
        Probabilities of the classes in sorted order: estimated, all equal, or these.
    alpha : float, default=0.0
        Added to all variances, in their units: scale the columns first. Without it, directions in
        which labeled rows do not vary within their classes are left out; `rank_` says how many
        remain.
    {missing_label}

    Attributes
    ----------
    {classes_}
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Weights of the scores: log odds of the second of two classes, or one score for each.
    intercept_ : array of shape (1,) or (n_classes,)
        Intercepts of the scores.
    priors_ : array of shape (n_classes,)
        Probabilities of the classes.
    means_ : array of shape (n_classes, n_features)
        Means of the classes.
    covariance_ : array of shape (n_features, n_features)
        Covariance Σ within the classes.
    rank_ : int
        In how many directions the classes are compared: n_features, or less if Σ is singular.
    log_likelihood_ : float
        Penalised log-likelihood of the labeled rows.
    {n_features_in_, feature_names_in_}

    Examples
    --------
    >>> from neverworse.methods import LinearDiscriminantClassifier
    >>> X = [[0.0], [1.0], [2.0], [3.0], [10.0]]
    >>> clf = LinearDiscriminantClassifier().fit(X, [0, 0, 1, 1, -1])
    >>> clf.predict([[1.4], [1.6]])
    array([0, 1])
    """

    def _fit_training(self, training: TrainingRows, _: Observer | None) -> GaussianClasses:
        rows, target, weights = training.labeled()
        labels = Labels(target, np.zeros(rows.n_rows), weights)
        sample = Sample.of(TrainingRows(rows, labels), self._family())
        model = sample.most_likely(sample.known).stored()
        self.log_likelihood_ = sample.log_likelihood(model, sample.known)
        return model


@documented_like(LinearDiscriminantClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class NearestMeanClassifier(LinearDiscriminantClassifier):
    """Nearest mean classifier on the labeled rows only.

    `LinearDiscriminantClassifier` with a spherical covariance and equal priors: the class of a row
    is that of the nearest class mean, as in scikit-learn's `NearestCentroid`.

    Parameters
    ----------
    alpha : float, default=0.0
        Added to the variance. It has an influence on probabilities, not on predictions.
    {missing_label}

    Attributes
    ----------
    {classes_, coef_, intercept_, priors_, means_, covariance_, rank_, log_likelihood_}
    {n_features_in_, feature_names_in_}

    Examples
    --------
    >>> from neverworse.methods import NearestMeanClassifier
    >>> X = [[0.0], [1.0], [2.0], [9.0], [10.0]]
    >>> clf = NearestMeanClassifier().fit(X, ["a", "a", "b", "b", None])
    >>> clf.predict([[2.9], [3.1]])
    array(['a', 'b'], dtype=object)
    """

    covariance: str = field(default="spherical", init=False)
    priors: Any = field(default="uniform", init=False)


class SemiSupervisedDiscriminant(DiscriminantClassifier):
    """Base of discriminant classifiers that start from the supervised one."""

    def _fit_training(self, training: TrainingRows, observer: Observer | None) -> GaussianClasses:
        supervised = _base.with_parameters_of(self, LinearDiscriminantClassifier)
        supervised.classes_ = self.classes_
        start = supervised._fit_training(training, None)
        supervised._set_model(start)
        self.supervised_ = supervised
        sample = Sample.of(training, self._family(start))
        baseline = start.about(sample.moments.centre)
        limits = getattr(self, "max_iter", None), getattr(self, "max_time", None)
        model = self._move(baseline, sample, Budget(*limits, observer, "iterations"))
        # Without unlabeled rows, the very same classes: none that differ by rounding errors.
        return start if model is baseline or not sample.free.any() else model

    @abstractmethod
    def _move(self, start: GaussianClasses, sample: Sample, budget: Budget) -> GaussianClasses:
        """Return the classes for all rows, from the supervised ones; set the other attributes."""


@documented_like(LinearDiscriminantClassifier)
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

    so that they satisfy it for all rows, because :math:`A T_l A' = T`. Both T and :math:`T_l`
    include the penalty α. Nothing is guaranteed: unlabeled rows from another distribution, or with
    other shares of classes, move the boundary in a wrong direction.

    Parameters
    ----------
    covariance : {"full", "spherical"}, default="full"
        "spherical": the means are shifted by :math:`m - m_l`. Together with ``priors="uniform"``,
        this is the constrained nearest mean classifier of Loog (2010).
    {priors, alpha, missing_label}

    Attributes
    ----------
    {classes_, coef_, intercept_, priors_, means_, covariance_, rank_}
    supervised_ : LinearDiscriminantClassifier
        The supervised baseline, fitted to the labeled rows. The fit starts from it.
    {n_features_in_, feature_names_in_}

    References
    ----------
    Loog, ECML PKDD (2010), 291-304, and Pattern Recognition Letters 37 (2014), 24-31.

    Examples
    --------
    >>> from neverworse.methods import MomentConstrainedDiscriminantAnalysis
    >>> X = [[0.0], [1.0], [4.0], [5.0], [6.0], [8.0]]
    >>> clf = MomentConstrainedDiscriminantAnalysis().fit(X, [0, 0, 1, 1, -1, -1])
    >>> clf.predict([[3.0], [4.5]])
    array([0, 1])
    """

    def _move(self, start: GaussianClasses, sample: Sample, _: Budget) -> GaussianClasses:
        shares = sample.known[:, 0] / sample.known[:, 0].sum()
        apart = start.means - shares @ start.means  # now from the centre of all rows, which is m
        if sample.family.spherical:
            return replace(start, means=apart)
        labeled = start.covariance + (apart.T * shares) @ apart
        together = sample.moments.gram / sample.moments.total
        together[np.diag_indices_from(together)] += sample.family.alpha
        # (T T_l⁻¹)^½ in the subspace, from the basis in which both are diagonal.
        basis, inverse = start.space.basis, start.space.inverse
        of_labeled = basis.T @ labeled @ basis
        values, common = linalg.eigh(basis.T @ together @ basis, of_labeled)
        root = of_labeled @ (common * np.sqrt(np.maximum(values, 0.0))) @ common.T
        # Coordinates are mapped by it, and all other directions left alone.
        matrix = inverse @ (root - np.eye(len(root))) @ basis.T + np.eye(len(inverse))
        covariance = matrix @ start.covariance @ matrix.T
        return replace(start, means=apart @ matrix.T, covariance=(covariance + covariance.T) / 2.0)
