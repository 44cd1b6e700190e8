"""Safe stacking: the baseline, moved towards candidates as far as labels allow."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from reprlib import repr as short_repr
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import _BaseComposition

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse._words import documented_like
from neverworse.estimators import (
    LabeledRows,
    LeastSquaresClassifierCV,
    PassesPredictionsOn,
    audit,
    checked_weights,
    copy_input_checks,
    explains_conversion,
    fresh_fit,
    has_class_scores,
    in_memory,
    label_array,
    refuse_chunks,
)
from neverworse.evidence.candidates import (
    BASELINE,
    Named,
    Response,
    called,
    check_classifier,
    check_names,
    default_candidates,
    fit_all,
    moved,
    scores_of_model,
)
from neverworse.evidence.confident_step import Evidence

FEWEST_LABELS = 10  # labeled rows; with fewer, a mean is not nearly normal
_LOSS = {"predict_proba": "Brier score", "score": "squared loss of the scores"}


@documented_like(LeastSquaresClassifierCV)
@dataclass(eq=False, repr=False, kw_only=True)
class SafeStackingClassifier(PassesPredictionsOn, ClassifierMixin, _BaseComposition):  # type: ignore[misc]
    r"""Stacking that is not worse than a baseline, with confidence.

    Candidates of any kind are compared with a baseline by cross-validation on the labeled rows. The
    scores of the baseline :math:`g` are moved towards those of the candidates :math:`c_k`, to
    :math:`g + \sum_k a_k (c_k - g)`, by the steps with the largest lower confidence bound of the
    improvement. If no candidate is shown to be better, the steps are zero and the model is exactly
    the baseline.

    Under the assumptions in `evidence_`, the Brier score of the model on the unlabeled rows is not
    larger than that of the baseline, with a probability of at least `level` in large samples.

    Parameters
    ----------
    baseline : classifier or None, default=None
        The classifier to improve. None: ``LeastSquaresClassifierCV()``. Classifiers that take
        weights in `fit` get those of the rows.
    candidates : list of (str, classifier) or None, default=None
        Semi-supervised ones (of neverworse and `sklearn.semi_supervised`, and pipelines and
        searches of them) are fitted to all rows, all others to the labeled rows only. None: ICLS,
        self-learning, logistic regression, a random forest, scikit-learn's self-training of
        logistic regression, and least squares with a kernel.
    level : float, default=0.95
        Probability of the statement, at least 0.5 and below 1.
    cv : int, splitter or iterable, default=5
        Splits of the labeled rows; an integer is the number of stratified folds. For each fold, its
        labels are hidden and all classifiers are fitted again.
    combine : {"best", "joint"}, default="joint"
        "joint": a step towards a blend of the candidates, with weights estimated from the labels.
        "best": a step towards the single candidate with the largest proved improvement.
    control_variate : bool, default=False
        Whether to use the candidates' scores on unlabeled rows as control variates
        (prediction-powered inference), which narrows the bounds if these predict the labels well.
    response : {"auto", "predict_proba"}, default="auto"
        What is moved. "predict_proba": probabilities; the loss is the Brier score. "auto": if all
        classifiers are linear ones of neverworse, their scores on targets coded 0 and 1, so that
        the model is linear and the loss that of their certificates; otherwise probabilities.
    {missing_label}
    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of the default candidates.
    n_jobs : int or None, default=None
        Number of fits in parallel, as in scikit-learn.

    Attributes
    ----------
    evidence_ : Evidence
        Steps, estimates, confidence bounds, out-of-fold differences, and the statement with its
        assumptions; ``evidence_.summary()`` puts them into words.
    certificate_ : Audit
        Worst and best case of the model against the baseline over all labelings of the training
        rows, by `audit`.
    model_ : classifier
        Makes the predictions: `baseline_` if all steps are zero.
    baseline_ : classifier
        The fitted baseline.
    candidates_ : dict of str to classifier
        The fitted candidates by name.
    response_ : {"predict_proba", "score"}
    {classes_}
    coef_, intercept_ : arrays
        Only if scores were moved (or nothing was) and all classifiers are linear.
    n_features_in_ : int
    {feature_names_in_}

    See Also
    --------
    SequentialAudit : Proves more with a few new labels, and assumes less.
    audit : What is certain.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from neverworse import SafeStackingClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(600, 2))
    >>> truth = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> y = np.where(np.arange(600) < 80, truth, -1)
    >>> forest = RandomForestClassifier(random_state=0)
    >>> clf = SafeStackingClassifier(candidates=[("forest", forest)], random_state=0).fit(X, y)
    >>> clf.evidence_.steps.round(2)
    array([1.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        "baseline": [HasMethods(["fit", "predict"]), None],
        "candidates": [list, None],
        "level": [Interval(Real, 0.5, 1, closed="left")],
        "cv": ["cv_object"],
        "combine": [StrOptions({"best", "joint"})],
        "control_variate": ["boolean"],
        "response": [StrOptions({"auto", "predict_proba"})],
        "missing_label": "no_validation",
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    _predictor: ClassVar[str] = "model_"

    baseline: Any = field(default=None, kw_only=False)
    candidates: Any = field(default=None, kw_only=False)
    level: float = 0.95
    cv: Any = 5
    combine: str = "joint"
    control_variate: bool = False
    response: str = "auto"
    missing_label: Any = "auto"
    random_state: Any = None
    n_jobs: int | None = None

    __dask_tokenize__ = LeastSquaresClassifierCV.__dask_tokenize__

    @documented_like(LeastSquaresClassifierCV.fit)
    @explains_conversion
    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit baseline and candidates, with and without each fold, and choose the steps.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or anything else the classifiers accept
            At least ten labeled rows, and unlabeled ones, in any order. Without unlabeled rows, the
            statement is about new rows from the same distribution.
        {y, sample_weight}

        Returns
        -------
        self : object
        """
        with fresh_fit(self):
            refuse_chunks(self, X, dask=True)
            X, y = indexable(X, label_array(in_memory(y)))
            weights = None
            if sample_weight is not None:
                weights = checked_weights(sample_weight, len(y))
                used = np.flatnonzero(weights)
                X, y, weights = _safe_indexing(X, used), y[used], weights[used]
            rows = LabeledRows.split(X, y, self.missing_label, weights)
            n_labeled = np.count_nonzero(~rows.unlabeled)
            if n_labeled < FEWEST_LABELS:
                raise ValueError(
                    f"y has {n_labeled} labeled rows (n_samples={len(rows.codes)}), but safe "
                    f"stacking needs at least {FEWEST_LABELS}. With fewer labels, compare the "
                    "classifiers by SequentialAudit, which asks for a few new labels and is exact."
                )
            self._fit_rows(self._named(rows), rows)
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; if `deep`, also the candidates and their parameters."""
        return self._get_params("candidates", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of candidates: ``name__parameter``."""
        self._set_params("candidates", **params)
        return self

    @property
    def coef_(self) -> Matrix:
        return self._fitted().coef_

    @property
    def intercept_(self) -> Vector:
        return self._fitted().intercept_

    def _can(self, method: str) -> bool:
        if hasattr(self, "model_"):
            return hasattr(self.model_, method)
        return method != "decision_function"

    def _named(self, rows: LabeledRows) -> Named:
        """Return the classifiers to fit with their names, the baseline first."""
        baseline = LeastSquaresClassifierCV() if self.baseline is None else self.baseline
        check_classifier("The baseline", baseline)
        candidates = self.candidates
        if candidates is None:
            candidates = default_candidates(
                int(np.sum(~rows.unlabeled)), self.random_state, sparse=sparse.issparse(rows.X)
            )
        self._validate_names([name for name, _ in check_names(candidates)])
        for name, candidate in candidates:
            check_classifier(f"Candidate {name!r}", candidate)
        return [(BASELINE, baseline), *candidates]

    def _fit_rows(self, named: Named, rows: LabeledRows) -> None:
        names = [name for name, _ in named[1:]]
        models = fit_all(named, rows, self.n_jobs)
        linear = self.response == "auto" and all(map(has_class_scores, models))
        self.response_: Response = "score" if linear else "predict_proba"
        folds, n_unlabeled = self._folds(rows), int(rows.unlabeled.sum())
        tested = np.unique(np.concatenate(folds))
        self.evidence_ = Evidence(
            names,
            *self._out_of_fold(named, rows, folds),
            n_unlabeled,
            None if rows.weights is None else rows.weights[tested],
            level=self.level,
            combine=self.combine,
            control_variate=self.control_variate and n_unlabeled > 0,
            loss=_LOSS[self.response_],
        )
        candidates = list(zip(names, models[1:], strict=True))
        model = moved(models[0], candidates, self.evidence_.steps, self.response_)
        f, g = (
            scores_of_model(BASELINE, each, rows.X, self.response_).T.squeeze()
            for each in (model, models[0])
        )
        labels = np.where(rows.unlabeled, -1, rows.codes)
        options: dict[str, Any] = {"response": self.response_, "sample_weight": rows.weights}
        self.certificate_ = audit(f, g, None, labels, missing_label=-1, **options)
        copy_input_checks(models[0], self)
        self.classes_, self.baseline_, self.candidates_ = rows.classes, models[0], dict(candidates)
        self.model_ = model

    def _folds(self, rows: LabeledRows) -> list[Indices]:
        """Return the labeled rows of each fold, as positions among all rows."""
        labeled, cv = np.flatnonzero(~rows.unlabeled), self.cv
        if isinstance(cv, Integral):
            cv = StratifiedKFold(cv, shuffle=True, random_state=self.random_state)
        codes = rows.codes[labeled]
        splitter = check_cv(cv, codes, classifier=True)
        with warnings.catch_warnings():
            # A class with fewer rows than folds may be in every fit nevertheless.
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            splits = list(splitter.split(_safe_indexing(rows.X, labeled), codes))
        if not sum(len(test) for _, test in splits):
            raise ValueError(f"cv={short_repr(cv)} has no fold with labeled rows to test on.")
        return [labeled[test] for _, test in splits]

    def _out_of_fold(
        self, named: Named, rows: LabeledRows, folds: list[Indices]
    ) -> tuple[Matrix, Matrix, Matrix]:
        """Fit everything without the labels of each fold, and compare on them.

        Returns `products` and `squares` of `Evidence`, of all rows that are in one or more of the
        folds, and `gram`.
        """
        tested, counts = np.unique(np.concatenate(folds), return_counts=True)
        n, k = len(tested), len(named) - 1
        products, squares, gram = np.zeros((n, k)), np.zeros((n, k)), np.zeros((k, k))
        unlabeled = np.flatnonzero(rows.unlabeled)
        for fold in folds:
            hidden = rows.unlabeled.copy()
            hidden[fold] = True
            models = fit_all(named, replace(rows, unlabeled=hidden), self.n_jobs)
            g, t = self._compared(named, models, _safe_indexing(rows.X, fold))
            targets = np.eye(len(rows.classes))[:, rows.codes[fold]]
            error = targets[-len(g) :] - g  # of two classes, the second has a score
            at = np.searchsorted(tested, fold)
            products[at] += np.einsum("cn,kcn->nk", error, t)
            squares[at] += np.einsum("kcn,kcn->nk", t, t)
            where = fold
            if len(unlabeled):
                where = unlabeled
                _, t = self._compared(named, models, _safe_indexing(rows.X, where))
            weights = np.ones(len(where)) if rows.weights is None else rows.weights[where]
            share = len(fold) / counts.sum() / weights.sum()
            gram += share * np.einsum("n,kcn,lcn->kl", weights, t, t, optimize=True)
        return products / counts[:, None], squares / counts[:, None], gram

    def _compared(self, named: Named, models: list[Any], X: Any) -> tuple[Matrix, AnyArray]:
        """Return scores of the baseline, and differences of all candidates from it."""
        g, *others = (
            scores_of_model(called(name), model, X, self.response_)
            for (name, _), model in zip(named, models, strict=True)
        )
        return g, np.stack(others) - g

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(AttributeError, TypeError, ValueError):  # `fit` explains what is wrong
            parts = [estimator for _, estimator in self.candidates or []]
            parts.append(LeastSquaresClassifierCV() if self.baseline is None else self.baseline)
            theirs = [get_tags(part).input_tags for part in parts]
            tags.input_tags.sparse = all(their.sparse for their in theirs)
            tags.input_tags.allow_nan = all(their.allow_nan for their in theirs)
        return tags
