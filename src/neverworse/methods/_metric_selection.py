"""Model selection by how much candidates differ on unlabeled rows."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.base import _fit_context, is_classifier
from sklearn.utils import get_tags, indexable
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import check_consistent_length

from neverworse._budget import Budget
from neverworse._typing import Matrix, Vector
from neverworse._words import documented_like
from neverworse.estimators import (
    LabeledRows,
    PassesPredictionsOn,
    copy_input_checks,
    explains_conversion,
    fresh_fit,
    is_auto,
    predicted_codes,
    refuse_chunks,
    split_targets,
    weights_for,
)
from neverworse.methods._base import ObservedMixin
from neverworse.methods._references import SupervisedClassifier

# Inequalities and equalities hold up to rounding errors of this relative size.
ROUNDING = 1e-12


@documented_like(SupervisedClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class MetricModelSelection(ObservedMixin, PassesPredictionsOn, _BaseComposition):  # type: ignore[misc]
    r"""Model selection by the differences between models on unlabeled rows.

    Candidates :math:`h_0, h_1, \ldots`, ordered from simple to complex, are fitted to the labeled
    rows. Their distances :math:`\hat d(h_k, P)` to the targets are known on these rows only, where
    overfitting makes them too small. Their distances from each other, :math:`d(h_k, h_l)`, are
    known on the unlabeled rows too, and two candidates close to the target are close to each other.

    - "tri" chooses the last candidate that satisfies the triangle inequality
      :math:`d(h_k, h_l) \le \hat d(h_k, P) + \hat d(h_l, P)` with every simpler one.
    - "adj" corrects the distance of a candidate by how much more it differs from simpler ones on
      the unlabeled rows than on the labeled ones, and chooses the candidate with the smallest
      :math:`\hat d(h_l, P) \max_{k < l} d(h_k, h_l) / \hat d(h_k, h_l)`.

    Distances are root mean squared differences of predictions, or of probabilities if all
    candidates have them; of other classifiers, the shares of rows with different classes. If
    labeled and unlabeled rows come from different distributions, the choice may be worse than one
    without unlabeled rows.

    Parameters
    ----------
    estimators : list of (str, estimator)
        Candidates with their names, from simple to complex; all classifiers or all regressors.
    method : {"adj", "tri"}, default="adj"
        How to choose.
    missing_label : "auto" or scalar, default="auto"
        As in `LeastSquaresClassifier`. For regressors, "auto" means any null value.
    verbose : int, default=0
        If positive, write a line to stderr for every candidate.

    Attributes
    ----------
    best_estimator_, best_index_, best_name_ : estimator, int, str
        The chosen candidate, fitted to the labeled rows, its position and its name.
    supervised_ : estimator
        The choice without unlabeled rows: the candidate with the smallest `target_distances_`.
    estimators_ : list of estimators
        All candidates, fitted to the labeled rows.
    target_distances_ : array of shape (n_candidates,)
        Distances to the targets on the labeled rows.
    labeled_distances_, unlabeled_distances_ : arrays of shape (n_candidates, n_candidates)
        Distances of the candidates from each other, on labeled and on unlabeled rows.
    adjusted_distances_, consistent_ : arrays of shape (n_candidates,)
        The adjusted distances of "adj"; which candidates satisfy all inequalities of "tri".
    {classes_, n_features_in_, feature_names_in_}

    Notes
    -----
    A candidate that interpolates the labeled rows has an adjusted distance of zero: leave it out.

    References
    ----------
    Schuurmans and Southey, Machine Learning 48 (2002), 51-84.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_ridge import KernelRidge
    >>> from neverworse.methods import MetricModelSelection
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 1))
    >>> y = X[:, 0] ** 3 - X[:, 0] + 0.05 * rng.normal(size=500)
    >>> y[20:] = np.nan
    >>> model = {"kernel": "poly", "alpha": 1e-6, "gamma": 1.0}
    >>> models = [(f"degree {k}", KernelRidge(degree=k, **model)) for k in range(1, 13)]
    >>> reg = MetricModelSelection(models).fit(X, y)
    >>> reg.best_name_, int(np.argmin(reg.target_distances_)) + 1
    ('degree 3', 12)
    """

    _predictor: ClassVar[str] = "best_estimator_"

    estimators: list[tuple[str, Any]] = field(kw_only=False)
    method: str = "adj"
    missing_label: Any = "auto"
    verbose: int = 0

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
        with fresh_fit(self):
            refuse_chunks(self, X)
            self._check_candidates()
            (X,) = indexable(X)
            weights, models = None, [estimator for _, estimator in self.estimators]
            if sample_weight is not None:
                weights = weights_for(models, X, sample_weight)
            with self._observed(X, y, weights) as budget:
                self._choose(X, y, weights, budget)
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
        return self._get_params("estimators", deep=deep)

    def set_params(self, **params: Any) -> Self:
        self._set_params("estimators", **params)
        return self

    def _can(self, method: str) -> bool:
        if hasattr(self, "best_estimator_"):
            return hasattr(self.best_estimator_, method)
        return all(hasattr(estimator, method) for _, estimator in self.estimators)

    def _check_candidates(self) -> None:
        given = self.estimators
        pairs = (isinstance(pair, tuple) and len(pair) == 2 for pair in given)
        if not given or not all(pairs) or not all(isinstance(name, str) for name, _ in given):
            raise ValueError(
                "estimators has to be a non-empty list of (name, estimator), from simple to "
                f"complex. Got: {given!r}"
            )
        self._validate_names([name for name, _ in given])
        kinds = {name: get_tags(e).estimator_type or "neither" for name, e in given}
        if set(kinds.values()) not in ({"classifier"}, {"regressor"}):
            shown = ", ".join(f"{name!r}: {kind}" for name, kind in kinds.items())
            raise ValueError(
                f"Candidates must be all classifiers, or all regressors. Got: {shown}."
            )

    def _choose(self, X: Any, y: Any, weights: Vector | None, budget: Budget) -> None:
        rows, truth = self._split(X, y, weights)
        labeled, responses = rows.labeled(), []
        self.estimators_ = []
        for name, estimator in self.estimators:
            self.estimators_.append(labeled.fit(estimator))
            responses.append(self._respond(name, self.estimators_[-1], rows, truth.shape))
            budget.n_iter = len(responses)
            budget.report(f"candidate {name!r}", len(labeled.codes))
            if budget.exhausted:
                break
        s = np.ones(len(truth)) if weights is None else weights
        known, unknown = np.where(rows.unlabeled, 0.0, s), np.where(rows.unlabeled, s, 0.0)
        between = self._distances([*responses, truth], known)
        target, between = between[-1, :-1], between[:-1, :-1]
        unlabeled = self._distances(responses, unknown if unknown.any() else known)
        self.target_distances_, self.labeled_distances_ = target, between
        self.unlabeled_distances_ = unlabeled
        self.adjusted_distances_ = adjusted(target, between, unlabeled)
        sums = (1.0 + ROUNDING) * (target[:, None] + target)
        self.consistent_ = ~np.tril(unlabeled > sums, -1).any(axis=1)
        adj, tri = np.argmin(self.adjusted_distances_), np.flatnonzero(self.consistent_)[-1]
        self.best_index_ = int(tri if self.method == "tri" else adj)
        self.best_name_ = self.estimators[self.best_index_][0]
        self.supervised_ = self.estimators_[int(np.argmin(target))]
        self.best_estimator_ = self.estimators_[self.best_index_]
        copy_input_checks(self.best_estimator_, self)

    def _split(self, X: Any, y: Any, weights: Vector | None) -> tuple[LabeledRows, Matrix]:
        """Return the rows, and their targets or indicators of their classes, one row for each."""
        if is_classifier(self):
            rows = LabeledRows.split(X, y, self.missing_label, weights)
            self.classes_ = rows.classes
            return rows, np.eye(len(rows.classes))[rows.codes]
        missing_label = np.nan if is_auto(self.missing_label) else self.missing_label
        target, unlabeled = split_targets(y, missing_label)
        check_consistent_length(X, target)
        if weights is not None and not weights[~unlabeled].any():
            raise ValueError("sample_weight is zero for all rows with a target.")
        # The "classes" are the targets, one for each row.
        return LabeledRows(X, target, np.arange(len(target)), unlabeled, weights), target[:, None]

    @property
    def _response(self) -> str:
        """The method of the candidates whose results are compared."""
        every = all(hasattr(estimator, "predict_proba") for _, estimator in self.estimators)
        return "predict_proba" if every else "predict"

    def _respond(self, name: str, fitted: Any, rows: LabeledRows, shape: tuple[int, ...]) -> Matrix:
        """Return what a fitted candidate predicts for all rows, in the form of their targets."""
        given = np.asarray(getattr(fitted, self._response)(rows.X))
        if is_classifier(self) and self._response == "predict":
            return np.eye(shape[1])[predicted_codes(f"Candidate {name!r}", given, rows.classes)]
        needed = shape if is_classifier(self) else shape[:1]
        used = slice(None) if rows.weights is None else rows.weights > 0.0
        if given.shape != needed or not np.isfinite(given[used]).all():
            raise ValueError(
                f"Candidate {name!r} gives {self._response} of shape {given.shape}, but finite "
                f"numbers of shape {needed} are needed. Leave it out."
            )
        return given.astype(np.float64).reshape(shape)

    def _distances(self, responses: list[Matrix], weights: Vector) -> Matrix:
        """Return root mean squared differences, or for classes the shares of different ones."""
        used = weights > 0.0
        roots = np.sqrt(weights[used])[:, None]
        taken = [np.ravel(roots * response[used]) for response in responses]
        squares = squareform(pdist(taken, "sqeuclidean")) / weights.sum()
        if not is_classifier(self):
            return np.sqrt(squares)
        # Two different classes, or probabilities of two classes, are counted twice.
        return 0.5 * squares if self._response == "predict" else np.sqrt(0.5 * squares)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(AttributeError, IndexError, TypeError, ValueError):  # for `fit` to explain
            theirs = [get_tags(estimator) for _, estimator in self.estimators]
            for name in ("estimator_type", "classifier_tags", "regressor_tags"):
                setattr(tags, name, getattr(theirs[0], name))
            tags.input_tags.sparse = all(their.input_tags.sparse for their in theirs)
            tags.input_tags.allow_nan = all(their.input_tags.allow_nan for their in theirs)
        return tags


def adjusted(target: Vector, labeled: Matrix, unlabeled: Matrix) -> Vector:
    """Return distances to targets, times the largest ratio of distances to a simpler candidate."""
    same = ROUNDING * np.maximum.outer(target, target)
    # Infinite where candidates differ on unlabeled rows only.
    ratios = np.where(unlabeled > same, np.inf, 1.0)
    np.divide(unlabeled, labeled, out=ratios, where=labeled > same)
    ratios = np.tril(ratios, -1)
    ratios[0, 0] = 1.0  # the distance of the simplest candidate is not adjusted
    factors = ratios.max(axis=1)
    # Infinity even for a candidate without errors.
    return np.multiply(target, factors, out=factors, where=np.isfinite(factors))
