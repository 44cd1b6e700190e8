"""Tests on held-out labeled rows: methods compared, columns they rely on, learning curves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from neverworse import model_selection
from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse._words import change, listed, points
from neverworse.estimators import (
    ProjectedLeastSquaresClassifier,
    class_scores,
    has_class_scores,
)
from neverworse.study import _methods, _study
from neverworse.study._held_out import (
    MAX_UNLABELED,
    HeldOut,
    Progress,
    Sample,
    Truth,
    brier_scores,
    draw_sample,
    mean_over_folds,
    numbers,
)

USUAL_METHODS = 3
MOST_NEIGHBOURS = 3_000  # unlabeled rows, if a method looks at all pairs of rows
N_OURS = 2  # the first two methods, without which there is no comparison
N_SHUFFLES = 3
MOST_COLUMNS = 200  # whose importance is found; more take too long
MOST_NUMBERS = 2_000_000  # of shuffled rows in memory at a time
MEASURES = {"error": 1.0, "brier": np.inf, "loss": np.inf}  # and their largest differences

RowKind = Literal["unlabeled", "labeled"]  # of which a learning curve takes more and more
SHARES = [1 / 4, 1 / 2, 1.0]  # of all rows: each step doubles them
# Unlabeled rows in each fit: where labeled ones grow, time is better spent on repeats.
MOST_UNLABELED: dict[RowKind, int] = {"unlabeled": MAX_UNLABELED, "labeled": 2_000}
MOST_REPEATS = 2  # more take time and hardly narrow the intervals: their training rows overlap


class Compared:
    """Methods compared with the first one, by repeated cross-validation on the labeled rows.

    All methods get the same folds and the same unlabeled rows, a sample if there are many, which
    are never scored. A method tunes in its own `fit`, which sees no label of a test row. One that
    fails is left out, unless it is the first or the second. y has codes of the classes, NaN where
    unlabeled. `ValueError` if a class has one label only.

    Intervals of differences of the second method hold with a probability of 95 %; those of all
    further ones together. `better` names methods, besides the first two and the stacked one, that
    are clearly better than all of these in error or Brier score, and not clearly worse in the
    other: the best Brier score first, then methods without one by error.
    """

    def __init__(
        self,
        methods: Mapping[str, Any],
        X: Any,
        y: Vector,
        sample_weight: Vector | None = None,
        *,
        classes: Sequence[str] | None = None,
        positive: int | None = None,
        seed: int = 0,
        notify: Progress = lambda *_: None,
    ) -> None:
        most = MOST_NEIGHBOURS if _methods.NEIGHBOURS in methods else MAX_UNLABELED
        cost = len(methods) / USUAL_METHODS
        sample = draw_sample(X, y, sample_weight, most, seed, fits_per_split=cost)
        truth = Truth.of(sample, classes, positive)
        self._sample, self.truth, self._seed = sample, truth, seed
        folds = model_selection.RepeatedStratifiedLabeledKFold(
            sample.n_folds, sample.n_repeats, seed, missing_label=np.nan
        )
        self._splits = list(folds.split(sample.X, sample.y))
        self._models: dict[str, list[Any]] = {}  # of each split
        self._by_fold: dict[str, dict[str, Vector]] = {}  # mean losses over test rows, by measure
        self.held_out: dict[str, HeldOut] = {}
        failures: dict[str, str] = {}
        for k, (name, method) in enumerate(methods.items()):
            notify(f"comparing {name}", k / len(methods))
            try:
                models = [_methods.fit_fold(method, sample, train) for train, _ in self._splits]
                self.held_out[name] = HeldOut.of(models, self._splits, sample, sample.n_repeats)
            except Exception as error:
                if k < N_OURS:
                    raise
                failures[name] = _methods.reason_of(error)
            else:
                self._models[name] = models
                self._by_fold[name] = self._fold_means(name)
        self._n_tests = max(1, 2 * (len(self._models) - 2))  # error and Brier score of others
        first, facts = next(iter(methods)), []
        for k, (name, held_out) in enumerate(self.held_out.items()):
            found = _methods.guarantee_of(methods[name]), numbers(truth, held_out)
            differences = self._differences(name, first, 1 if k < N_OURS else self._n_tests)
            facts.append(_study.MethodFacts(name, *found, *differences))
        self.better = self._better()
        of_classes = np.bincount(truth.codes, truth.weights)
        shape = *self.held_out[first].predictions.shape, len(of_classes)
        shares = np.broadcast_to(of_classes / of_classes.sum(), shape)
        always = HeldOut(shares.argmax(axis=-1), shares, shares, np.zeros(shape[:-1], np.intp))
        self.comparison = _study.Comparison(
            sample.n_folds,
            sample.n_repeats,
            sample.n_labeled,
            sample.n_unlabeled,
            truth.classes[int(of_classes.argmax())],
            numbers(truth, always),
            tuple(facts),
            failures,
            " ".join(self._words(facts)),
        )

    def importance(self, name: str, columns: Sequence[str]) -> _study.Importance:
        """Return how much higher the Brier score of held-out rows is if a column is shuffled.

        `columns` has the column of each feature: features of a column are shuffled together.
        """
        of_column = {column: np.flatnonzero(np.asarray(columns) == column) for column in columns}
        if len(of_column) > MOST_COLUMNS:
            raise ValueError(f"There are {len(of_column):,} columns, more than {MOST_COLUMNS}.")
        rng = np.random.default_rng(self._seed)
        increases = np.zeros((len(of_column), self._sample.n_folds))
        models = self._models[name][: self._sample.n_folds]  # one repeat
        for fold, (model, (_, test)) in enumerate(zip(models, self._splits, strict=False)):
            rows = self._sample.X[test]
            rows = rows.toarray() if hasattr(rows, "toarray") else np.array(rows)
            (before,) = self._brier(model, [rows], test)
            # Many small predictions take much longer than a large one.
            n_together = max(1, MOST_NUMBERS // (N_SHUFFLES * rows.size))
            for start in range(0, len(of_column), n_together):
                together = list(of_column.values())[start : start + n_together]
                copies = [rows.copy() for _ in range(N_SHUFFLES * len(together))]
                for k, copy in enumerate(copies):
                    features = together[k // N_SHUFFLES]
                    copy[:, features] = rows[rng.permutation(len(rows))][:, features]
                after = self._brier(model, copies, test).reshape(-1, N_SHUFFLES).mean(axis=1)
                increases[start : start + n_together, fold] = after - before
        rises = [mean_over_folds(values, self._sample.test_share) for values in increases]
        largest_first = sorted(zip(of_column, rises, strict=True), key=lambda each: -each[1].value)
        return _study.Importance(name, dict(largest_first))

    def _brier(self, model: Any, copies: Sequence[Matrix], test: Indices) -> Vector:
        """Return the Brier score on each copy of the test rows."""
        shares = np.asarray(model.predict_proba(np.vstack(copies)))
        losses = brier_scores(np.tile(self.truth.codes[test], len(copies)), shares)
        weights = self.truth.weights[test]
        return np.average(losses.reshape(len(copies), -1), weights=weights, axis=1)

    def _fold_means(self, name: str) -> dict[str, Vector]:
        """Return the mean loss over the test rows of each split, by measure, where there is one."""
        codes, held_out = self.truth.codes, self.held_out[name]
        splits, weights = held_out.folds.ravel(), self.truth.weights
        losses: dict[str, AnyArray] = {"error": held_out.predictions != codes}
        if held_out.probabilities is not None:
            losses["brier"] = brier_scores(codes, held_out.probabilities)
        if has_class_scores(self._models[name][0]) and held_out.scores is not None:
            losses["loss"] = brier_scores(codes, held_out.scores)
        totals = np.bincount(splits, np.tile(weights, self._sample.n_repeats))
        return {
            measure: np.bincount(splits, (weights * values).ravel()) / totals
            for measure, values in losses.items()
        }

    def _differences(self, name: str, other: str, n_tests: int) -> list[_study.Estimate | None]:
        """Return differences from another method in error, Brier score and loss, where known."""
        found: list[_study.Estimate | None] = []
        for measure, most in MEASURES.items():
            ours, theirs = (self._by_fold[each].get(measure) for each in (name, other))
            if name == other or ours is None or theirs is None:
                found.append(None)
            else:
                share, limits = self._sample.test_share, (-most, most)
                found.append(mean_over_folds(ours - theirs, share, n_tests=n_tests, limits=limits))
        return found

    def _better(self) -> tuple[str, ...]:
        names = list(self._models)
        ours = [name for k, name in enumerate(names) if k < N_OURS or name == _methods.STACKED]

        def is_better(name: str, other: str) -> bool:
            error_and_brier = self._differences(name, other, self._n_tests)[:2]
            signs = [each.sign for each in error_and_brier if each is not None]
            return min(signs) < 0 and max(signs) <= 0

        def rank(name: str) -> tuple[float, float]:
            means = {measure: each.mean() for measure, each in self._by_fold[name].items()}
            return means.get("brier", np.inf), means["error"]

        others = [name for name in names if name not in ours]
        better = [name for name in others if all(is_better(name, other) for other in ours)]
        return tuple(sorted(better, key=rank))

    def _words(self, methods: Sequence[_study.MethodFacts]) -> Iterator[str]:
        """Yield what follows about errors, and which methods have collapsed."""
        base, *others = methods
        clear = [
            f"{each.method} ({points(each.error_difference.value, sign=True)} percentage points)"
            for each in others
            if each.error_difference is not None and each.error_difference.sign
        ]
        yield (
            f"Methods whose error on held-out rows differs from that of the {base.method} one by "
            f"more than chance would explain: {listed(clear) if clear else 'none'}."
        )
        unlabeled = self._sample.X[self._sample.n_labeled :]
        for name in _methods.SELF_TAUGHT:
            models = self._models.get(name, [])
            predicted = (np.asarray(model.predict(unlabeled)).astype(np.intp) for model in models)
            found = Counter(_methods.collapsed_to(codes, self.truth.codes) for codes in predicted)
            for code, n_collapsed in found.items():
                if code is not None and 2 * n_collapsed > len(models):  # most fits
                    yield (
                        f"{name} has collapsed: in {n_collapsed} of {len(models)} fits it gives "
                        f"{self.truth.classes[code]!r} to nearly all unlabeled rows."
                    )


def learning_curve(
    rows: RowKind,
    projected: ProjectedLeastSquaresClassifier,
    X: Any,
    y: Vector,
    sample_weight: Vector | None = None,
    *,
    seed: int = 0,
) -> _study.Curve:
    """Return test errors over growing subsets of rows; `ValueError` if there are too few."""
    n_fits = float(len(SHARES))
    sample = draw_sample(X, y, sample_weight, MOST_UNLABELED[rows], seed, fits_per_split=n_fits)
    found = model_selection.learning_curve(
        projected,
        sample.X,
        sample.y,
        rows=rows,
        sizes=SHARES,
        cv=sample.n_folds,
        n_repeats=min(MOST_REPEATS, sample.n_repeats),
        scoring=_both_models,
        sample_weight=sample.weights,
        missing_label=np.nan,
        random_state=seed,
    )
    return _curve(found, sample)


def _both_models(
    model: ProjectedLeastSquaresClassifier, X: Any, y: Vector, sample_weight: Vector | None = None
) -> dict[str, float]:
    """Return errors and losses of the projected model and of its supervised baseline."""
    found, codes = {}, np.searchsorted(model.classes_, y)
    for name, each in ((_methods.SUPERVISED, model.supervised_), (_methods.PROJECTED, model)):
        losses = {"error": each.predict(X) != y, "loss": brier_scores(codes, class_scores(each, X))}
        for kind, values in losses.items():
            found[f"{name} {kind}"] = float(np.average(values, weights=sample_weight))
    return found


def _curve(curve: Any, sample: Sample) -> _study.Curve:
    if len(curve.sizes) < 2:
        raise ValueError(f"There are too few {curve.rows} rows.")

    def estimates(name: str, most: float) -> tuple[_study.Estimate, ...]:
        scores, share, limits = curve.test_scores[name], sample.test_share, (0.0, most)
        return tuple(mean_over_folds(values, share, limits=limits) for values in scores)

    errors = curve.test_scores[f"{_methods.PROJECTED} error"]
    step = mean_over_folds(errors[-1] - errors[-2], sample.test_share)
    before, after = curve.sizes[-2:]
    conclusion = {
        -1: f"More {curve.rows} rows are worth collecting: they still lower the error.",
        0: f"It is unclear whether more {curve.rows} rows would lower the error.",
        1: f"More {curve.rows} rows have not helped here: the error went up.",
    }[step.sign]
    return _study.Curve(
        rows=curve.rows,
        sizes=tuple(curve.sizes.tolist()),
        n_other=round(float(curve.n_others.mean())),
        n_repeats=curve.n_repeats,
        lines=tuple(
            _study.CurveLine(
                name, estimates(f"{name} error", 1.0), estimates(f"{name} loss", np.inf)
            )
            for name in (_methods.SUPERVISED, _methods.PROJECTED)
        ),
        error_step=step,
        words=f"From {before:,} to {after:,} {curve.rows} rows, the error of the projected model "
        f"on held-out rows {change(step)}. {conclusion}",
    )
