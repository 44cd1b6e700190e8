"""Model selection by how much models differ where labels are missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context, is_classifier
from sklearn.utils import Bunch, _safe_indexing, get_tags, indexable
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import _num_samples, check_consistent_length

from neverworse._budget import Budget
from neverworse._typing import AnyArray, Mask, Matrix, Vector
from neverworse._words import documented_like
from neverworse.estimators import (
    CallbackSupportMixin,
    PassesPredictionsOn,
    check_weights,
    copy_input_checks,
    explains_conversion,
    forget_fit,
    is_auto,
    observed_fit,
    predicted_codes,
    refuse_chunks,
    split_labels,
    split_targets,
    weights_for,
    with_null_markers,
)
from neverworse.methods._references import SupervisedClassifier

# Inequalities and equalities hold up to rounding errors of this relative size.
ROUNDING = 1e-12

Named = list[tuple[str, Any]]  # estimators with their names


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
      the unlabeled rows than on the labeled ones, and chooses the candidate with the smallest
      :math:`\hat d(h_l, P) \max_{k < l} d(h_k, h_l) / \hat d(h_k, h_l)`.

    If labeled and unlabeled rows come from different distributions, the choice may be worse than
    one without unlabeled rows.

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
        What is compared: the share of rows with different classes, or for regressors the root
        mean squared difference of the predictions ("predict"); that of the probabilities of
        classifiers ("predict_proba"); or "predict_proba" if all candidates have it ("auto").
    missing_label : "auto" or scalar, default="auto"
        As in `LeastSquaresClassifier`. For regressors, "auto" means any null value.
    verbose : int, default=0
        Whether to write a line to stderr for every candidate. If a callback of scikit-learn asks
        to stop, the choice is made among the candidates so far.

    Attributes
    ----------
    best_estimator_ : estimator
        The chosen candidate, fitted to the labeled rows. It makes the predictions.
    best_index_, best_name_ : int, str
        Its position among the candidates, and its name or its parameters.
    supervised_ : estimator
        The choice without unlabeled rows: the candidate with the smallest `target_distances_`.
    estimators_, named_estimators_ : list of estimators, Bunch
        All candidates, fitted to the labeled rows, in their order and by name.
    target_distances_ : array of shape (n_candidates,)
        Distances to the targets on the labeled rows.
    labeled_distances_, unlabeled_distances_ : arrays of shape (n_candidates, n_candidates)
        Distances of the candidates from each other, on labeled and on unlabeled rows.
    adjusted_distances_ : array of shape (n_candidates,)
        What "adj" compares.
    consistent_ : boolean array of shape (n_candidates,)
        Which candidates satisfy the triangle inequality with every simpler one, for "tri".
    {classes_, n_features_in_, feature_names_in_}

    Notes
    -----
    A candidate that fits all labeled rows without error has an adjusted distance of zero, however
    much it varies elsewhere: leave interpolating models out, or use "tri". Without unlabeled rows
    "adj" chooses by the distance to the targets, and "tri" the most complex candidate.

    References
    ----------
    D. Schuurmans and F. Southey, "Metric-based methods for adaptive model selection and
    regularization", Machine Learning 48 (2002), 51-84.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_ridge import KernelRidge
    >>> from neverworse.methods import MetricModelSelection
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 1))
    >>> y = X[:, 0] ** 3 - X[:, 0] + 0.05 * rng.normal(size=500)
    >>> y[20:] = np.nan
    >>> model = KernelRidge(alpha=1e-6, kernel="poly", gamma=1.0)
    >>> reg = MetricModelSelection(model, param_list=[{"degree": k} for k in range(1, 13)])
    >>> reg.fit(X, y).best_name_, int(np.argmin(reg.target_distances_)) + 1
    ('degree=3', 12)
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

    @documented_like(SupervisedClassifier.fit)
    @explains_conversion
    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit all candidates to the labeled rows, and choose one of them.

        Parameters
        ----------
        {X}
        y : array-like of shape (n_samples,)
            Labels of two or more classes or targets, and a marker for rows without one.
        {sample_weight}

        Returns
        -------
        self : object
        """
        try:
            forget_fit(self)
            refuse_chunks(self, X)
            candidates = self._candidates_to_fit()
            (X,) = indexable(X)
            weights, metadata = None, {}
            if sample_weight is not None:
                weights = weights_for((e for _, e in candidates), X, sample_weight)
                metadata = {"sample_weight": weights}
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
        X, y, sample_weight : array-likes
            Rows, their true labels or targets, and optional weights.
        """
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self._fitted().score(X, y, **weights))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        params: dict[str, Any] = self._get_params("estimators", deep=deep)
        return params

    def set_params(self, **params: Any) -> Self:
        self._set_params("estimators", **params)
        return self

    def _can(self, method: str) -> bool:
        if hasattr(self, "best_estimator_"):
            return hasattr(self.best_estimator_, method)
        return all(hasattr(estimator, method) for _, estimator in self._candidates())

    def _candidates(self) -> Named:
        if isinstance(self.estimators, list):
            return self.estimators
        return [
            (", ".join(f"{name}={value!r}" for name, value in params.items()), self.estimators)
            for params in self.param_list or [{}]
        ]

    def _candidates_to_fit(self) -> Named:
        """Return copies of the candidates with their names, after a check."""
        self._check_candidates()
        candidates = self._candidates()
        kinds = {name: get_tags(e).estimator_type or "neither" for name, e in candidates}
        if set(kinds.values()) not in ({"classifier"}, {"regressor"}):
            told = ", ".join(f"{name!r}: {kind}" for name, kind in kinds.items())
            raise ValueError(f"Candidates must be all classifiers, or all regressors. Got: {told}.")
        copies = [(name, with_null_markers(estimator)) for name, estimator in candidates]
        for (_, estimator), params in zip(copies, self.param_list or (), strict=False):
            estimator.set_params(**params)
        return copies

    def _check_candidates(self) -> None:
        given, params = self.estimators, self.param_list
        if isinstance(given, list):
            pairs = (isinstance(pair, tuple) and len(pair) == 2 for pair in given)
            if not given or not all(pairs) or not all(isinstance(name, str) for name, _ in given):
                raise ValueError(
                    "estimators has to be a list of (name, estimator), from simple to complex, "
                    f"with at least one of them. Got: {given!r}"
                )
            if params is not None:
                raise ValueError(
                    "param_list is for one estimator, but estimators is a list. Leave one out."
                )
            self._validate_names([name for name, _ in given])
        elif not params or not all(isinstance(each, Mapping) for each in params):
            raise ValueError(
                "estimators is one estimator: pass a list of dicts as param_list, each with the "
                "parameters of one candidate, from simple to complex; or a list of (name, "
                f"estimator) as estimators. Got: param_list={params!r}"
            )

    def _choose(
        self, candidates: Named, X: Any, y: Any, weights: Vector | None, budget: Budget
    ) -> None:
        s = np.ones(_num_samples(X)) if weights is None else weights
        compared = Targets.of(candidates, X, y, s, self.distance, self.missing_label)
        labeled = np.flatnonzero(~compared.unlabeled)
        X_labeled, y_labeled = _safe_indexing(X, labeled), compared.y[labeled]
        known = {} if weights is None else {"sample_weight": weights[labeled]}
        fitted, responses = [], []
        for name, estimator in candidates:
            fitted.append(estimator.fit(X_labeled, y_labeled, **known))
            responses.append(compared.respond(name, fitted[-1], X))
            budget.n_iter = len(fitted)
            budget.report(f"candidate {name!r}", len(labeled))
            if budget.exhausted:
                break
        names = [name for name, _ in candidates]
        self.estimators_ = fitted
        self.named_estimators_ = Bunch(**dict(zip(names, fitted, strict=False)))
        target, between, unlabeled = compared.distances(responses)
        self.target_distances_, self.adjusted_distances_ = (
            target,
            adjusted(target, between, unlabeled),
        )
        self.labeled_distances_, self.unlabeled_distances_ = between, unlabeled
        sums = (1.0 + ROUNDING) * (target[:, None] + target)
        self.consistent_ = ~np.tril(unlabeled > sums, -1).any(axis=1)
        adj, tri = np.argmin(self.adjusted_distances_), np.flatnonzero(self.consistent_)[-1]
        best = int(tri if self.method == "tri" else adj)
        self.best_index_, self.best_name_ = best, names[best]
        self.supervised_ = fitted[int(np.argmin(target))]
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
            for name in ("estimator_type", "classifier_tags", "regressor_tags"):
                setattr(tags, name, getattr(theirs[0], name))
            tags.input_tags.sparse = all(their.input_tags.sparse for their in theirs)
            tags.input_tags.allow_nan = all(their.input_tags.allow_nan for their in theirs)
        return tags


def adjusted(target: Vector, labeled: Matrix, unlabeled: Matrix) -> Vector:
    """Return distances to the targets, times the largest ratio of distances to a simpler candidate.

    Infinity where the unlabeled rows alone tell it apart from a simpler one.
    """
    same = ROUNDING * np.maximum.outer(target, target)
    seen = labeled > same
    ratios = np.where(unlabeled > same, np.inf, 1.0)
    np.divide(unlabeled, labeled, out=ratios, where=seen)
    ratios = np.tril(ratios, -1)
    ratios[0, 0] = 1.0  # the distance of the simplest candidate is not adjusted
    factors = ratios.max(axis=1)
    # Infinity even for a candidate without errors.
    return np.multiply(target, factors, out=factors, where=np.isfinite(factors))


@dataclass(frozen=True)
class Targets:
    """What candidates are fitted to and compared with, and how."""

    y: AnyArray  # (n_rows,): labels or targets; anything where unlabeled
    unlabeled: Mask  # (n_rows,)
    weights: Vector  # (n_rows,)
    truth: Matrix  # (n_rows, 1): targets, or (n_rows, n_classes): indicators of classes
    classes: AnyArray | None  # (n_classes,), for classifiers
    response: str  # what candidates are asked for

    @classmethod
    def of(
        cls, candidates: Named, X: Any, y: Any, weights: Vector, distance: str, missing_label: Any
    ) -> Targets:
        """Check y, and decide what candidates are asked for."""
        without = [name for name, e in candidates if not hasattr(e, "predict_proba")]
        if not is_classifier(candidates[0][1]):
            if distance == "predict_proba":
                raise ValueError("distance='predict_proba' is for classifiers. Use 'auto'.")
            marker = np.nan if is_auto(missing_label) else missing_label
            target, unlabeled = split_targets(y, marker)
            check_consistent_length(X, target)
            if not weights[~unlabeled].any():
                raise ValueError("sample_weight is zero for all rows with a target.")
            return cls(target, unlabeled, weights, target[:, None], None, "predict")
        if distance == "predict_proba" and without:
            raise ValueError(
                "distance='predict_proba' needs predict_proba, which "
                f"{', '.join(map(repr, without))} does not have. Use distance='predict'."
            )
        classes, codes, unlabeled = split_labels(y, missing_label)
        check_consistent_length(X, codes)
        check_weights(classes, codes, unlabeled, weights)
        codes = codes.astype(np.intp)
        response = "predict" if distance == "predict" or without else "predict_proba"
        return cls(
            classes[codes], unlabeled, weights, np.eye(len(classes))[codes], classes, response
        )

    def respond(self, name: str, fitted: Any, X: Any) -> Matrix:
        """Return what a fitted candidate says about all rows, in the form of `truth`."""
        given = np.asarray(getattr(fitted, self.response)(X))
        if self.response == "predict" and self.classes is not None:
            codes = predicted_codes(f"Candidate {name!r}", given, self.classes)
            return np.eye(len(self.classes))[codes]
        given = given.astype(np.float64)
        needed = self.truth.shape if self.classes is not None else self.truth.shape[:1]
        if given.shape != needed:
            gives = f"{self.response} of shape {given.shape}, but {needed} is needed"
            raise ValueError(f"Candidate {name!r} gives {gives}.")
        wrong = ~np.isfinite(given[self.weights > 0.0])
        if wrong.any():
            raise ValueError(
                f"Candidate {name!r} predicts NaN or infinity for {wrong.sum()} rows, so that it "
                "has no distance from the others. Leave it out, or rescale the features."
            )
        return given.reshape(self.truth.shape)

    def distances(self, responses: list[Matrix]) -> tuple[Vector, Matrix, Matrix]:
        """Return the distances to the targets, and from each other on labeled and other rows."""
        labeled = self._matrix([*responses, self.truth], ~self.unlabeled)
        others = self.unlabeled if self.weights[self.unlabeled].any() else ~self.unlabeled
        return labeled[-1, :-1], labeled[:-1, :-1], self._matrix(responses, others)

    def _matrix(self, responses: list[Matrix], rows: Mask) -> Matrix:
        """Return root mean squared differences, or for classes the shares of different ones."""
        used = rows & (self.weights > 0.0)
        weights, taken = self.weights[used], [response[used] for response in responses]
        squares = np.zeros((len(taken), len(taken)))
        for k, f in enumerate(taken):
            for j, g in enumerate(taken[:k]):
                squares[k, j] = squares[j, k] = weights @ ((f - g) ** 2).sum(axis=1)
        squares /= weights.sum()
        if self.classes is None:
            return np.sqrt(squares)
        # Two different classes, or probabilities of two classes, are counted twice.
        return 0.5 * squares if self.response == "predict" else np.sqrt(0.5 * squares)
