"""Cross-validation on labeled rows: which rows it has, and estimates with 95 % intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, stats
from sklearn.metrics import confusion_matrix, roc_auc_score

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse.estimators import class_scores, has_class_scores
from neverworse.model_selection import mask_labels
from neverworse.rows import Rows
from neverworse.study._study import CalibrationBin, ClassNumbers, Estimate, Numbers

Interval = tuple[float, float]
Progress = Callable[[str, float], None]  # called with the name of a step and the share that is done
Splits = Sequence[tuple[Indices, Indices]]  # positions of training and of test rows

LEVEL = 0.95  # of all intervals
Z = float(stats.norm.isf(0.5 * (1.0 - LEVEL)))
MOST_FOLDS = 5
MOST_REPEATS = 3  # more take time and hardly narrow the intervals: their folds overlap
MOST_LABELED = MAX_UNLABELED = 20_000  # rows in each fit
FEWEST_UNLABELED = 1_000  # that are kept, however long it takes
MOST_COST = 30_000_000  # of all splits together, see `draw_sample`: a few seconds
EPS = float(np.finfo(np.float64).eps)  # the least probability in a log loss, as in scikit-learn
MOST_BINS = 10  # of a calibration curve
FEWEST_IN_BIN = 10


@dataclass(frozen=True)
class Sample:
    """Rows for a cross-validation: labeled ones first, then unlabeled ones for training."""

    X: Any
    y: Vector  # codes of classes, NaN where unlabeled
    weights: Vector
    n_labeled: int
    n_folds: int
    n_repeats: int

    @property
    def n_unlabeled(self) -> int:
        return len(self.y) - self.n_labeled

    @property
    def test_share(self) -> float:
        """Test rows for each labeled training row."""
        return 1.0 / (self.n_folds - 1)


def taken(X: Any, rows: Indices) -> Any:
    """Return some rows, in memory."""
    return X.take(rows) if isinstance(X, Rows) else X[rows]


def draw_sample(
    X: Any,
    y: Vector,
    sample_weight: Vector | None,
    max_unlabeled: int,
    seed: int,
    *,
    fits_per_split: float = 1.0,
) -> Sample:
    """Draw rows of positive weight, so many and for so many folds that the time is bounded.

    `fits_per_split` is the cost of one split, in fits to all rows. `ValueError` if a class has one
    label only.
    """
    weights = np.ones(len(y)) if sample_weight is None else sample_weight
    labeled = np.flatnonzero((weights > 0.0) & ~np.isnan(y))
    unlabeled = np.flatnonzero((weights > 0.0) & np.isnan(y))
    if len(labeled) > MOST_LABELED:
        drawn = {"n_labeled": MOST_LABELED, "stratify": True, "random_state": seed}
        labeled = labeled[~np.isnan(mask_labels(y[labeled], missing_label=np.nan, **drawn))]
    counts = np.bincount(y[labeled].astype(np.intp), minlength=int(np.nanmax(y)) + 1)
    if len(counts) < 2 or counts.min() < 2:
        raise ValueError(
            "Nothing can be tested on held-out rows: that takes at least two labeled rows of every "
            "class, and two classes. Label more rows of the rare classes."
        )
    n_features = X.n_columns if isinstance(X, Rows) else X.shape[1]
    # The measured time of a row in a fit, in units of one number. With several classes, the solver
    # has a soft label for each pair of them.
    n_hinges = 1 if len(counts) == 2 else len(counts) * (len(counts) - 1)
    n_folds = int(min(MOST_FOLDS, counts.min()))
    affordable = MOST_COST / ((n_features + 20) * n_hinges * fits_per_split * n_folds)  # rows
    n_rows = len(labeled) + min(len(unlabeled), max_unlabeled)
    n_repeats = int(np.clip(affordable // n_rows, 1, MOST_REPEATS))
    n_affordable = max(FEWEST_UNLABELED, int(affordable) - len(labeled))
    n_drawn = min(max_unlabeled, n_affordable)
    if n_drawn < len(unlabeled):
        rng = np.random.default_rng(seed)
        unlabeled = np.sort(rng.choice(unlabeled, n_drawn, replace=False))
    chosen: Indices = np.concatenate([labeled, unlabeled])
    return Sample(taken(X, chosen), y[chosen], weights[chosen], len(labeled), n_folds, n_repeats)


def mean_over_folds(
    values: Vector, test_share: float, *, n_tests: int = 1, limits: Interval = (-np.inf, np.inf)
) -> Estimate:
    """Return the mean over folds, with an interval that allows for shared training rows.

    C. Nadeau and Y. Bengio, "Inference for the generalization error" (Machine Learning 52, 2003):
    for J folds, 1 / J + n_test / n_train replaces 1 / J. With `n_tests`, that many intervals hold
    together (Bonferroni). Possible values lie between the limits.
    """
    n, mean = len(values), float(np.mean(values))
    error = float(np.sqrt((1.0 / n + test_share) * np.var(values, ddof=1)))
    # Without any spread, the only uncertainty that can be stated is that of the value itself.
    margin = abs(mean)
    if error > 0.0:
        margin = float(stats.t.isf(0.5 * (1.0 - LEVEL) / n_tests, n - 1)) * error
    return Estimate(mean, *np.clip([mean - margin, mean + margin], *limits).tolist())


@dataclass(frozen=True)
class HeldOut:
    """Predictions of a method for labeled rows that it had not seen, in each repeat.

    Scores rank the rows for each class, within folds only: each fold has another model.
    """

    predictions: Indices  # n_repeats x n_rows, codes of classes
    probabilities: AnyArray | None  # n_repeats x n_rows x n_classes
    scores: AnyArray | None
    folds: Indices  # n_repeats x n_rows, in which fold each row was held out

    @classmethod
    def of(cls, models: Sequence[Any], splits: Splits, sample: Sample, n_repeats: int) -> HeldOut:
        """Return the predictions of models that were fitted to the training rows of splits."""
        found: dict[str, Any] = {"probabilities": None, "scores": None}
        for split, (model, (_, test)) in enumerate(zip(models, splits, strict=True)):
            X = sample.X[test]
            outputs: dict[str, AnyArray] = {
                "predictions": np.asarray(model.predict(X)).astype(np.intp),
                "folds": np.full(len(test), split),
            }
            if hasattr(model, "predict_proba"):
                outputs["probabilities"] = np.asarray(model.predict_proba(X), np.float64)
                outputs["scores"] = outputs["probabilities"]
            if has_class_scores(model):
                outputs["scores"] = class_scores(model, X)
            for kind, values in outputs.items():
                if found.get(kind) is None:
                    shape = n_repeats, sample.n_labeled, *values.shape[1:]
                    found[kind] = np.zeros(shape, values.dtype)
                found[kind][split * n_repeats // len(splits), test] = values
        return cls(**found)


@dataclass(frozen=True)
class Truth:
    """The labeled rows that were held out in turn, in the order of the table."""

    codes: Indices  # their classes
    weights: Vector
    classes: Sequence[str]
    positive: int | None  # the class of the calibration curve

    @classmethod
    def of(cls, sample: Sample, classes: Sequence[str] | None, positive: int | None) -> Truth:
        labeled = slice(sample.n_labeled)
        codes = sample.y[labeled].astype(np.intp)
        names = classes or [str(k) for k in range(codes.max() + 1)]
        return cls(codes, sample.weights[labeled], names, positive)

    def size(self, chosen: Any = slice(None)) -> float:
        """Return the effective number of some rows: with equal weights, their number (Kish)."""
        weights = self.weights[chosen]
        return float(weights.sum()) ** 2 / float((weights**2).sum())


def numbers(truth: Truth, held_out: HeldOut) -> Numbers:
    """Return how well a method predicts held-out rows, as means over the repeats.

    Intervals are about other rows of the same kind, predicted by the same models: Wilson's for
    shares of rows; Newcombe's for the AUC; for a mean of shares, the one that follows from their
    intervals (Zou and Donner's MOVER); Student's for the Brier score and the log loss.
    """
    n_repeats, labels = len(held_out.predictions), range(len(truth.classes))
    codes, weights = np.tile(truth.codes, n_repeats), np.tile(truth.weights, n_repeats)
    said = held_out.predictions.ravel()
    confusion = confusion_matrix(codes, said, labels=labels, sample_weight=weights) / n_repeats
    classes = tuple(_class_numbers(truth, confusion, k) for k in labels)
    wrong = (held_out.predictions != truth.codes).mean(axis=0)
    shares, brier, log_loss = held_out.probabilities, None, None
    if shares is not None:
        brier = _mean(truth, brier_scores(truth.codes, shares))
        own = shares[:, np.arange(len(truth.codes)), truth.codes]
        log_loss = _mean(truth, -np.log(np.clip(own, EPS, 1.0)))
    return Numbers(
        error=wilson(float(np.average(wrong, weights=truth.weights)), truth.size()),
        balanced_accuracy=mean_of([each.recall for each in classes]),
        auc=None if held_out.scores is None else _auc(truth, held_out.scores, held_out.folds),
        brier=brier,
        log_loss=log_loss,
        classes=classes,
        confusion=tuple(map(tuple, confusion.tolist())),
        calibration=_calibration(truth, shares),
    )


def brier_scores(codes: Indices, probabilities: AnyArray) -> AnyArray:
    """Return squared errors: of the second of two classes, otherwise summed over the classes."""
    squares = (probabilities - np.eye(probabilities.shape[-1])[codes]) ** 2
    return squares[..., 1] if squares.shape[-1] == 2 else squares.sum(axis=-1)


def wilson(share: float, n: float) -> Estimate:
    """Return a share of `n` rows with Wilson's score interval."""
    centre = (share + Z**2 / (2.0 * n)) / (1.0 + Z**2 / n)
    half = Z * np.sqrt(share * (1.0 - share) / n + Z**2 / (4.0 * n**2)) / (1.0 + Z**2 / n)
    # At 0 and 1 the ends are the share itself, but for rounding.
    low = 0.0 if share == 0.0 else float(max(0.0, centre - half))
    high = 1.0 if share == 1.0 else float(min(1.0, centre + half))
    return Estimate(share, low, high)


def newcombe(auc: float, n_positive: float, n_negative: float) -> Estimate:
    """Return an AUC with the interval of R. G. Newcombe's method 5 (Statistics in Medicine, 2006).

    Its ends are `Z` times Hanley and McNeil's standard error, at those ends, away from the AUC.
    """
    average = max(0.0, 0.5 * (n_positive + n_negative) - 1.0)

    def beyond(area: float) -> float:
        spread = area * (1.0 - area) / (n_positive * n_negative)
        spread *= 1.0 + average * ((1.0 - area) / (2.0 - area) + area / (1.0 + area))
        return (auc - area) ** 2 - Z**2 * spread

    # The standard error is 0 at areas of 0 and 1, which are no ends.
    low = 0.0 if auc == 0.0 else optimize.brentq(beyond, 0.0, min(auc, 1.0 - 1e-9))
    high = 1.0 if auc == 1.0 else optimize.brentq(beyond, max(auc, 1e-9), 1.0)
    return Estimate(auc, float(low), float(high))


def mean_of(parts: Sequence[Estimate]) -> Estimate:
    """Return the mean of independent estimates, with the interval that follows from theirs."""
    value = float(np.mean([part.value for part in parts]))
    below = np.sqrt(sum((part.value - part.low) ** 2 for part in parts)) / len(parts)
    above = np.sqrt(sum((part.high - part.value) ** 2 for part in parts)) / len(parts)
    return Estimate(value, float(max(0.0, value - below)), float(min(1.0, value + above)))


def _class_numbers(truth: Truth, confusion: Matrix, k: int) -> ClassNumbers:
    found, predicted, own = confusion[k, k], confusion[:, k].sum(), confusion[k].sum()
    per_weight = truth.size() / confusion.sum()  # effective rows
    either = own + predicted - found
    overlap = wilson(float(found / either), per_weight * either)  # F1 is a function of it
    return ClassNumbers(
        truth.classes[k],
        int(np.count_nonzero(truth.codes == k)),
        wilson(float(found / predicted), per_weight * predicted) if predicted else None,
        wilson(float(found / own), truth.size(truth.codes == k)),
        Estimate(*(2.0 * j / (1.0 + j) for j in (overlap.value, overlap.low, overlap.high))),
    )


def _mean(truth: Truth, losses: AnyArray) -> Estimate:
    """Return the mean of losses that are never negative, given for each repeat and row."""
    values, n = losses.mean(axis=0), truth.size()
    mean = float(np.average(values, weights=truth.weights))
    margin = 0.0
    if n > 1.0:
        variance = float(np.average((values - mean) ** 2, weights=truth.weights)) / (n - 1.0)
        margin = float(stats.t.isf(0.5 * (1.0 - LEVEL), n - 1.0) * np.sqrt(variance))
    return Estimate(mean, max(0.0, mean - margin), mean + margin)


def _auc(truth: Truth, scores: AnyArray, folds: Indices) -> Estimate:
    """Return the AUC: of two classes, or the mean of each class against all others."""
    n_classes, of_classes = len(truth.classes), []
    for k in range(n_classes) if n_classes > 2 else [1]:
        own = truth.codes == k
        areas = [
            roc_auc_score(own[inside], ranks[inside, k], sample_weight=truth.weights[inside])
            for ranks, fold in zip(scores, folds, strict=True)
            for inside in (fold == each for each in np.unique(fold))
        ]
        area = min(1.0, float(np.mean(areas)))
        of_classes.append(newcombe(area, truth.size(own), truth.size(~own)))
    return mean_of(of_classes)


def _calibration(truth: Truth, probabilities: AnyArray | None) -> tuple[CalibrationBin, ...] | None:
    """Return the share of positive rows among those with similar probabilities, by quantiles."""
    if truth.positive is None or probabilities is None:
        return None
    n_repeats = len(probabilities)
    predicted = probabilities[..., truth.positive].ravel()
    weights = np.tile(truth.weights, n_repeats)
    own = np.tile(truth.codes == truth.positive, n_repeats)
    n_bins = int(np.clip(len(truth.codes) // FEWEST_IN_BIN, 1, MOST_BINS))
    edges = np.quantile(predicted, np.linspace(0.0, 1.0, n_bins + 1))
    of_row = np.searchsorted(np.unique(edges[1:-1]), predicted)
    per_row = truth.size() / len(predicted)  # effective rows
    bins = []
    for inside in (of_row == k for k in np.unique(of_row)):
        mean, share = (
            float(np.average(each[inside], weights=weights[inside])) for each in (predicted, own)
        )
        bins.append(CalibrationBin(mean, wilson(share, per_row * np.count_nonzero(inside))))
    return tuple(bins)
