"""Model selection by how much models differ where labels are missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context, is_classifier, is_regressor
from sklearn.utils import Bunch, _safe_indexing, get_tags, indexable
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import _num_samples, check_is_fitted

from neverworse._budget import Budget
from neverworse._typing import AnyArray, Matrix, Vector
from neverworse._words import documented_like
from neverworse.estimators import (
    CallbackSupportMixin,
    PassesPredictionsOn,
    copy_for_known_labels,
    copy_input_checks,
    explains_conversion,
    forget_fit,
    observed_fit,
    refuse_chunks,
    weights_for,
)
from neverworse.methods._hypotheses import Named, Targets
from neverworse.methods._references import SupervisedClassifier


@documented_like(SupervisedClassifier)
class MetricModelSelection(CallbackSupportMixin, PassesPredictionsOn, _BaseComposition):  # type: ignore[misc]
    r"""Model selection by the differences between models on unlabeled rows.

    Candidates :math:`h_0, h_1, \ldots`, ordered from simple to complex, are fitted to the labeled
    rows. Their distances :math:`\hat d(h_k, P)` to the targets are known on these rows only, and
    overfitting makes them too small. Their distances from each other, however, are known on the
    unlabeled rows too: :math:`d(h_k, h_l)`. Two hypotheses that both seem close to the target
    cannot be far apart from each other.

    - "tri" chooses the last candidate that satisfies the triangle inequality
      :math:`d(h_k, h_l) \le \hat d(h_k, P) + \hat d(h_l, P)` with every simpler one.
    - "adj" corrects the distance of a candidate by how much more it differs from simpler ones on
      the unlabeled rows than it does on the labeled ones, and chooses the candidate with the
      smallest

      .. math:: \hat d(h_l, P) \max_{k < l} \frac{d(h_k, h_l)}{\hat d(h_k, h_l)} .

    Both assume that labeled and unlabeled rows come from the same distribution. If they do not, the
    choice may be worse than one without unlabeled rows.

    Parameters
    ----------
    estimators : list of (str, estimator), or estimator
        Candidates with their names, from simple to complex; all classifiers or all regressors.
        Or one estimator, of which `param_list` makes candidates.
    param_list : list of dicts, or None, default=None
        Parameters of the candidates, from simple to complex, if `estimators` is one estimator.
    method : {"adj", "tri"}, default="adj"
        How to choose.
    distance : {"auto", "predict", "predict_proba"}, default="auto"
        What is compared between two models, and between a model and the targets.

        - "predict": for classifiers, the share of rows with different classes; for regressors,
          the root mean squared difference of the predictions.
        - "predict_proba": the root mean squared difference of the probabilities, for classifiers.
        - "auto": "predict_proba" if all candidates have it, "predict" otherwise.
    missing_label : "auto" or scalar, default="auto"
        What marks unlabeled rows in y, as in `LeastSquaresClassifier`. For regressors, "auto" means
        any null value.
    verbose : int, default=0
        Whether to write a line to stderr for every candidate. Callbacks of scikit-learn (1.9 or
        newer) see the same stages; if one asks to stop, the choice is made among the candidates
        so far.

    Attributes
    ----------
    best_estimator_ : estimator
        The chosen candidate, fitted to the labeled rows. It makes the predictions.
    best_index_ : int
        Its position among the candidates.
    best_name_ : str
        Its name, or its parameters.
    supervised_ : estimator
        The candidate with the smallest distance to the targets on the labeled rows: the choice
        without unlabeled rows.
    estimators_ : list of estimators
        All candidates, fitted to the labeled rows.
    named_estimators_ : Bunch
        The same by name.
    target_distances_ : array of shape (n_candidates,)
        Distances to the targets on the labeled rows.
    labeled_distances_, unlabeled_distances_ : arrays of shape (n_candidates, n_candidates)
        Distances of the candidates from each other, on labeled and on unlabeled rows.
    adjusted_distances_ : array of shape (n_candidates,)
        What "adj" compares.
    consistent_ : boolean array of shape (n_candidates,)
        Which candidates satisfy the triangle inequality with every simpler one, for "tri".
    classes_ : array of shape (n_classes,)
        The classes in sorted order, if the candidates are classifiers.
    n_features_in_ : int
        Only if the chosen candidate has it.
    {feature_names_in_}

    Notes
    -----
    Without unlabeled rows the labeled ones stand in for them: "adj" then chooses by the distance to
    the targets, and "tri" the most complex candidate.

    A candidate that fits all labeled rows without error has an adjusted distance of zero, however
    much it varies elsewhere: leave interpolating models out, or use "tri".

    `sample_weight` is passed on to the candidates, whatever metadata they request, and weighs the
    rows in the distances.

    References
    ----------
    D. Schuurmans and F. Southey, "Metric-based methods for adaptive model selection and
    regularization", Machine Learning 48 (2002), 51-84.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from neverworse.methods import MetricModelSelection
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 1))
    >>> y = X[:, 0] ** 3 - X[:, 0] + 0.05 * rng.normal(size=500)
    >>> y[20:] = np.nan
    >>> model = make_pipeline(PolynomialFeatures(), LinearRegression())
    >>> degrees = [{"polynomialfeatures__degree": degree} for degree in range(1, 13)]
    >>> reg = MetricModelSelection(model, param_list=degrees).fit(X, y)
    >>> reg.best_name_
    'polynomialfeatures__degree=3'
    >>> int(np.argmin(reg.target_distances_)) + 1
    12
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        "estimators": [list, HasMethods(["fit", "predict"])],
        "param_list": [list, None],
        "method": [StrOptions({"adj", "tri"})],
        "distance": [StrOptions({"auto", "predict", "predict_proba"})],
        "missing_label": "no_validation",
        "verbose": ["verbose"],
    }

    _predictor: ClassVar[str] = "best_estimator_"
    best_estimator_: Any
    classes_: AnyArray

    def __init__(
        self,
        estimators: Any,
        *,
        param_list: list[dict[str, Any]] | None = None,
        method: str = "adj",
        distance: str = "auto",
        missing_label: Any = "auto",
        verbose: int = 0,
    ) -> None:
        self.estimators = estimators
        self.param_list = param_list
        self.method = method
        self.distance = distance
        self.missing_label = missing_label
        self.verbose = verbose

    @explains_conversion
    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit all candidates to the labeled rows, and choose one of them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or anything else the candidates accept
            Labeled and unlabeled rows, in any order.
        y : array-like of shape (n_samples,)
            Labels of two or more classes or targets, and a marker for rows without one.
        sample_weight : array-like of shape (n_samples,), optional
            Not negative. Passed on to the candidates, which have to take it.

        Returns
        -------
        self : object
        """
        try:
            forget_fit(self)
            refuse_chunks(self, X)
            candidates = self._candidates_to_fit()
            (X,) = indexable(X)
            weights = None
            if sample_weight is not None:
                weights = weights_for((e for _, e in candidates), X, sample_weight)
            metadata = {} if weights is None else {"sample_weight": weights}
            with observed_fit(self, X, y, metadata, self.verbose) as observer:
                budget = Budget(None, None, observer, "iterations")
                self._choose(candidates, X, y, weights, budget)
        except BaseException:  # an interrupt from the keyboard too
            forget_fit(self)
            raise
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of the chosen model: accuracy, or the coefficient of determination.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or anything else that it accepts
        y : array-like of shape (n_samples,)
            True labels or targets.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        score : float
        """
        check_is_fitted(self, "best_estimator_")
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.best_estimator_.score(X, y, **weights))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        if isinstance(self.estimators, list):
            params: dict[str, Any] = self._get_params("estimators", deep=deep)
            return params
        return super().get_params(deep=deep)

    def set_params(self, **params: Any) -> Self:
        if isinstance(params.get("estimators", self.estimators), list):
            self._set_params("estimators", **params)
        else:
            super().set_params(**params)
        return self

    def _can(self, method: str) -> bool:
        if hasattr(self, "best_estimator_"):
            return hasattr(self.best_estimator_, method)
        return all(hasattr(estimator, method) for _, estimator in self._candidates())

    def _candidates(self) -> Named:
        """Return the candidates with their names, as they were given."""
        if isinstance(self.estimators, list):
            return self.estimators
        return [
            (", ".join(f"{name}={value!r}" for name, value in params.items()), self.estimators)
            for params in self.param_list or [{}]
        ]

    def _candidates_to_fit(self) -> Named:
        """Return copies of the candidates with their names, after a check."""
        _check_candidates(self.estimators, self.param_list)
        candidates = self._candidates()
        kinds = [
            "classifier" if is_classifier(e) else "regressor" if is_regressor(e) else "neither"
            for _, e in candidates
        ]
        if "neither" in kinds or len(set(kinds)) > 1:
            named = zip(candidates, kinds, strict=True)
            told = ", ".join(f"{name!r}: {kind}" for (name, _), kind in named)
            raise ValueError(
                f"Candidates have to be all classifiers, or all regressors. Got: {told}."
            )
        copies = [(name, copy_for_known_labels(estimator)) for name, estimator in candidates]
        for (_, estimator), params in zip(copies, self.param_list or (), strict=False):
            estimator.set_params(**params)
        if isinstance(self.estimators, list):
            self._validate_names([name for name, _ in candidates])
        return copies

    def _choose(
        self, candidates: Named, X: Any, y: Any, weights: Vector | None, budget: Budget
    ) -> None:
        """Fit the candidates, measure distances, and set the attributes."""
        s = np.ones(_num_samples(X)) if weights is None else weights
        compared = Targets.of(candidates, X, y, s, self.distance, self.missing_label)
        labeled = np.flatnonzero(~compared.unlabeled)
        X_labeled, y_labeled = _safe_indexing(X, labeled), compared.y[labeled]
        known = {} if weights is None else {"sample_weight": weights[labeled]}
        fitted: list[Any] = []
        responses: list[Matrix] = []
        for name, estimator in candidates:
            fitted.append(estimator.fit(X_labeled, y_labeled, **known))
            responses.append(compared.respond(name, fitted[-1], X))
            budget.n_iter = len(fitted)
            budget.report(f"candidate {name!r}", len(labeled))
            if budget.exhausted:
                break
        distances = compared.distances(responses)
        best = distances.choose(self.method)
        names = [name for name, _ in candidates[: len(fitted)]]
        self.estimators_ = fitted
        self.named_estimators_ = Bunch(**dict(zip(names, fitted, strict=True)))
        self.target_distances_ = distances.target
        self.labeled_distances_, self.unlabeled_distances_ = distances.labeled, distances.unlabeled
        self.adjusted_distances_, self.consistent_ = distances.adjusted, distances.consistent
        self.best_index_, self.best_name_ = best, names[best]
        self.supervised_ = fitted[int(np.argmin(distances.target))]
        if compared.classes is not None:
            self.classes_ = compared.classes
        copy_input_checks(fitted[best], self)
        self.best_estimator_ = fitted[best]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            theirs = [get_tags(estimator) for _, estimator in self._candidates()]
        except (AttributeError, TypeError, ValueError):  # for `fit` to explain
            return tags
        if theirs:
            tags.estimator_type = theirs[0].estimator_type
            tags.classifier_tags = theirs[0].classifier_tags
            tags.regressor_tags = theirs[0].regressor_tags
            tags.input_tags.sparse = all(their.input_tags.sparse for their in theirs)
            tags.input_tags.allow_nan = all(their.input_tags.allow_nan for their in theirs)
        return tags


def _check_candidates(estimators: Any, param_list: Any) -> None:
    if not isinstance(estimators, list):
        if not param_list:
            raise ValueError(
                "estimators is one estimator: pass a list of parameters as param_list, from simple "
                "to complex, or a list of (name, estimator) as estimators."
            )
        if not all(isinstance(params, Mapping) for params in param_list):
            raise ValueError(
                "param_list has to be a list of dicts, each with the parameters of one candidate. "
                f"Got: {param_list!r}"
            )
    elif param_list is not None:
        raise ValueError(
            "param_list is for one estimator, but estimators is a list. Leave one of them out."
        )
    elif not estimators or not all(
        isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)
        for pair in estimators
    ):
        raise ValueError(
            "estimators has to be a list of (name, estimator), from simple to complex, with at "
            f"least one of them. Got: {estimators!r}"
        )
