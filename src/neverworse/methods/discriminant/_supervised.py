"""The supervised baselines: linear discriminant analysis and the nearest mean classifier."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from neverworse._typing import AnyArray
from neverworse.methods.discriminant._base import DiscriminantClassifier
from neverworse.methods.discriminant._family import Family
from neverworse.methods.discriminant._gaussian import GaussianClasses
from neverworse.methods.discriminant._sample import Sample, one_hot
from neverworse.projection import Labels, Observer, TrainingRows


class LinearDiscriminantClassifier(DiscriminantClassifier):
    r"""Linear discriminant analysis on the labeled rows only.

    The rows of class k are Gaussian with mean :math:`\mu_k` and a covariance Σ that all classes
    share. Over the labeled rows, with weights :math:`s_i`, the penalised log-likelihood

    .. math:: \sum_i s_i \log \left( \pi_{y_i} \mathcal N(x_i; \mu_{y_i}, \Sigma) \right)
              - \frac{\alpha}{2} \sum_i s_i \operatorname{tr} \Sigma^{-1}

    is largest for the class means, the shares of the classes, and Σ the scatter within the classes
    divided by :math:`\sum_i s_i`, plus :math:`\alpha I`. Without a penalty this is what
    scikit-learn's `LinearDiscriminantAnalysis` computes with ``solver="lsqr"`` or "eigen"; here
    with row weights, and the label conventions of neverworse.

    Unlabeled rows are ignored. This is the supervised counterpart of the other discriminant
    classifiers. `to_sklearn` gives a plain `LinearDiscriminantAnalysis`.

    Parameters
    ----------
    covariance : {"full", "spherical"}, default="full"
        Whether Σ is any covariance, or a multiple of the identity.
    priors : None, "uniform" or array-like of shape (n_classes,), default=None
        Probabilities of the classes in sorted order: estimated, all equal, or these.
    alpha : float, default=0.0
        Added to all variances, in their units: scale the columns first. Needed where labeled rows
        are few. If these do not vary within their classes in some direction (constant columns,
        columns that depend on each other, fewer rows than columns and classes together), Σ is
        singular, and without a penalty such directions are left out, for unlabeled rows too;
        `rank_` says how many remain. If none remains, that is an error.
    missing_label : "auto" or scalar, default="auto"
        What marks unlabeled rows in y, as in `LeastSquaresClassifier`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes in sorted order.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Weights of the scores: log odds of the second of two classes, or one score for each.
    intercept_ : array of shape (1,) or (n_classes,)
    priors_ : array of shape (n_classes,)
    means_ : array of shape (n_classes, n_features)
    covariance_ : array of shape (n_features, n_features)
    rank_ : int
        In how many directions the classes are compared: n_features, or less if Σ is singular.
    log_likelihood_ : float
        Penalised log-likelihood of the labeled rows.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only if X has column names that are all strings.

    See Also
    --------
    NearestMeanClassifier : With a spherical covariance and equal priors.
    ContrastivePessimisticDiscriminantAnalysis : Uses unlabeled rows, and is never less likely.

    Examples
    --------
    >>> from neverworse.methods import LinearDiscriminantClassifier
    >>> X = [[0.0], [1.0], [2.0], [3.0], [10.0]]
    >>> clf = LinearDiscriminantClassifier().fit(X, [0, 0, 1, 1, -1])
    >>> clf.predict([[1.4], [1.6]])
    array([0, 1])
    """

    log_likelihood_: float

    def __init__(
        self,
        *,
        covariance: str = "full",
        priors: Any = None,
        alpha: float = 0.0,
        missing_label: Any = "auto",
    ) -> None:
        self.covariance = covariance
        self.priors = priors
        self.alpha = alpha
        self.missing_label = missing_label

    def _fit_training(
        self,
        training: TrainingRows,
        classes: AnyArray,  # noqa: ARG002
        family: Family,
        observer: Observer | None,  # noqa: ARG002
    ) -> GaussianClasses:
        rows, target, weights = training.labeled()
        weights = np.ones(rows.n_rows) if weights is None else weights
        labeled = Labels(target, np.zeros(rows.n_rows), weights)
        sample = Sample.of(rows, one_hot(labeled), weights, labeled.unlabeled)
        model = family.most_likely(sample.known, sample).stored()
        self.log_likelihood_ = family.log_likelihood(model, sample.known, sample)
        return model


class NearestMeanClassifier(LinearDiscriminantClassifier):
    """Nearest mean classifier on the labeled rows only.

    `LinearDiscriminantClassifier` with a spherical covariance and equal priors: the class of a row
    is that of the nearest class mean, as in scikit-learn's `NearestCentroid`. In addition it has
    row weights, probabilities and a likelihood.

    Parameters
    ----------
    alpha : float, default=0.0
        Added to the variance. It has an influence on probabilities, not on predictions.
    missing_label : "auto" or scalar, default="auto"
        What marks unlabeled rows in y, as in `LeastSquaresClassifier`.

    Attributes
    ----------
    classes_, coef_, intercept_, priors_, means_, covariance_, rank_ : arrays and int
        See `LinearDiscriminantClassifier`.
    log_likelihood_ : float
        Penalised log-likelihood of the labeled rows.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only if X has column names that are all strings.

    See Also
    --------
    MomentConstrainedDiscriminantAnalysis : With ``covariance="spherical"`` and
        ``priors="uniform"``, the same with shifted means.

    Examples
    --------
    >>> from neverworse.methods import NearestMeanClassifier
    >>> X = [[0.0], [1.0], [2.0], [9.0], [10.0]]
    >>> clf = NearestMeanClassifier().fit(X, ["a", "a", "b", "b", None])
    >>> clf.predict([[2.9], [3.1]])
    array(['a', 'b'], dtype=object)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        name: LinearDiscriminantClassifier._parameter_constraints[name]
        for name in ("alpha", "missing_label")
    }

    def __init__(self, *, alpha: float = 0.0, missing_label: Any = "auto") -> None:
        super().__init__(
            covariance="spherical", priors="uniform", alpha=alpha, missing_label=missing_label
        )
