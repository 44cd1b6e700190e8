"""Held-out rows: which ones a cross-validation has, and numbers with 95 % intervals from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, stats
from sklearn.metrics import confusion_matrix, roc_auc_score

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse._words import count
from neverworse.model_selection import mask_labels
from neverworse.rows import Rows
from neverworse.study._study import CalibrationBin, ClassNumbers, Estimate, Numbers

Progress = Callable[[str, float], None]  # called with the name of a step and the share that is done

LEVEL = 0.95  # of all intervals
ROUNDING = 1e-12
USUAL_FOLDS = 5

# Of the training rows of all splits together, see `draw_sample`: a few seconds.
MOST_COST = 30_000_000
MOST_LABELED = 20_000
FEWEST_UNLABELED = 1_000  # not less for the sake of time
FEW_LABELS = 1_000  # below, five folds and several repeats; from here on ten folds
MOST_REPEATS = 3  # more take time, and make intervals hardly narrower: their folds overlap


def silent(what: str, share: float) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Sample:
    """Rows for a cross-validation: labeled ones first, then unlabeled ones for training."""

    X: Any
    y: Vector  # codes of classes, NaN where unlabeled
    weights: Vector | None
    n_labeled: int
    n_unlabeled: int
    n_folds: int
    n_repeats: int

    @property
    def test_share(self) -> float:
        """Test rows for each labeled training row."""
        return 1.0 / (self.n_folds - 1)


def draw_sample(
    X: Any,
    y: Vector,
    sample_weight: Vector | None,
    max_unlabeled: int,
    seed: int,
    *,
    fits_per_split: float = 1.0,
) -> Sample:
    """Draw the rows of a study, and decide on folds, so that its time is bounded.

    Of rows that are not in memory, those that are drawn will be. Rows of weight zero are left out.
    `fits_per_split` is what the fits of one split cost, in fits to all rows. `ValueError`, with a
    message for people, if a class has one label only.
    """
    used = np.ones(len(y), bool) if sample_weight is None else sample_weight > 0.0
    labeled = np.flatnonzero(used & ~np.isnan(y))
    unlabeled = np.flatnonzero(used & np.isnan(y))
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
    # About how long a row takes in a fit, as measured, in units of one number. Classes share a
    # row's soft labels, which takes the solver longer than one hinge per row.
    n_hinges = 1 if len(counts) == 2 else len(counts) * (len(counts) - 1)
    per_row = (n_features + 20) * n_hinges * fits_per_split
    affordable = MOST_COST / (per_row * (len(labeled) + min(len(unlabeled), max_unlabeled)))
    wanted = 10 if len(labeled) >= FEW_LABELS and affordable >= 10 else USUAL_FOLDS
    n_folds = int(min(wanted, counts.min()))
    n_repeats = int(
        np.clip(affordable // n_folds, 1, np.clip(2 * FEW_LABELS // len(labeled), 1, MOST_REPEATS))
    )
    rows = int(MOST_COST / (per_row * n_folds)) - len(labeled)
    n_unlabeled = min(len(unlabeled), max_unlabeled, max(FEWEST_UNLABELED, rows))
    rng = np.random.default_rng(seed)
    if n_unlabeled < len(unlabeled):
        unlabeled = np.sort(rng.choice(unlabeled, n_unlabeled, replace=False))
    chosen: Indices = np.concatenate([labeled, unlabeled])
    return Sample(
        X.take(chosen) if isinstance(X, Rows) else X[chosen],
        y[chosen],
        None if sample_weight is None else sample_weight[chosen],
        len(labeled),
        len(unlabeled),
        n_folds,
        n_repeats,
    )


def fold_words(classes: Sequence[str], codes: Indices, n_folds: int) -> Iterator[str]:
    """Yield why there are fewer folds than usual, if there are."""
    if n_folds < USUAL_FOLDS:
        counts = np.bincount(codes, minlength=len(classes))
        rarest = int(counts.argmin())
        yield (
            f"There are {count(counts[rarest], 'label')} of {classes[rarest]!r}, hence {n_folds} "
            f"folds instead of {USUAL_FOLDS}."
        )


def mean_over_folds(
    values: Vector,
    test_share: float,
    *,
    n_tests: int = 1,
    least: float = -np.inf,
    most: float = np.inf,
) -> Estimate:
    """Return the mean of one value for each of two or more folds, with its interval.

    The folds share training rows, so that their results are no independent draws, and the usual
    standard error is too small. Nadeau and Bengio's correction, "Inference for the generalization
    error" (Machine Learning 52, 2003), replaces 1 / J by 1 / J + n_test / n_train for J folds:
    see `Sample.test_share`. With `n_tests`, as many intervals are right together (Bonferroni).
    They stay within the values that are possible, from `least` to `most`.
    """
    n, mean = len(values), float(np.mean(values))
    if abs(mean) < ROUNDING * np.abs(values).max():
        mean = 0.0  # values cancel each other out, but for rounding
    error = float(np.sqrt((1.0 / n + test_share) * np.var(values, ddof=1)))
    # Values that are all the same but not zero do not say how far they may be off.
    margin = abs(mean)
    if error > 0.0:
        margin = float(stats.t.isf(0.5 * (1.0 - LEVEL) / n_tests, n - 1)) * error
    return Estimate(mean, max(least, mean - margin), min(most, mean + margin))


Z = float(stats.norm.isf(0.5 * (1.0 - LEVEL)))
TINY = 1e-9
MOST_BINS = 10
FEWEST_IN_BIN = 10  # held-out rows


@dataclass(frozen=True)
class HeldOut:
    """Predictions of a method for labeled rows that it had not seen, in each repeat.

    Scores rank the rows for each class: unclipped scores if the model has them, otherwise
    probabilities. Those of different folds come from different models, so that rows are ranked
    within their folds only.
    """

    predictions: Indices  # n_repeats x n_rows, codes of classes
    probabilities: AnyArray | None  # n_repeats x n_rows x n_classes
    scores: AnyArray | None
    folds: Indices  # n_repeats x n_rows, in which fold each row was held out


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
        weights = np.ones(len(codes)) if sample.weights is None else sample.weights[labeled]
        return cls(codes, weights, names, positive)

    def size(self, chosen: Any = slice(None)) -> float:
        """Return how many rows of equal weight are worth as much as some rows (Kish)."""
        weights = self.weights[chosen]
        total = float(weights.sum())
        return total**2 / float((weights**2).sum()) if total else 0.0


def numbers(truth: Truth, held_out: HeldOut) -> Numbers:
    """Return how well a method predicts held-out rows.

    A value is the mean over the repeats. Its interval is about other rows of the same kind,
    predicted by the same models: Wilson's for shares of rows; Newcombe's for the AUC; of a mean of
    shares, the one that their intervals give (Zou and Donner's MOVER); Student's for the Brier
    score and the log loss.
    """
    labels = range(len(truth.classes))
    confusion = np.mean(
        [
            confusion_matrix(truth.codes, each, labels=labels, sample_weight=truth.weights)
            for each in held_out.predictions
        ],
        axis=0,
    )
    wrong = (held_out.predictions != truth.codes).mean(axis=0)
    recalls = [
        wilson(_ratio(confusion[k, k], confusion[k].sum()), truth.size(truth.codes == k))
        for k in labels
    ]
    brier = log_loss = None
    if held_out.probabilities is not None:
        brier = _mean(truth, brier_scores(truth.codes, held_out.probabilities).mean(axis=0))
        log_loss = _mean(truth, log_losses(truth.codes, held_out.probabilities).mean(axis=0))
    return Numbers(
        error=wilson(float(np.average(wrong, weights=truth.weights)), truth.size()),
        balanced_accuracy=mean_of(recalls),
        auc=None if held_out.scores is None else _auc(truth, held_out.scores, held_out.folds),
        brier=brier,
        log_loss=log_loss,
        classes=tuple(
            _class_numbers(truth, confusion, k, recall) for k, recall in enumerate(recalls)
        ),
        confusion=tuple(map(tuple, confusion.tolist())),
        calibration=_calibration(truth, held_out.probabilities),
    )


def brier_scores(codes: Indices, probabilities: AnyArray) -> AnyArray:
    """Return the squared error of the probabilities of each row.

    Of two classes that of the second, as scikit-learn has it; of more, summed over the classes.
    """
    squares = (probabilities - np.eye(probabilities.shape[-1])[codes]) ** 2
    return squares[..., 1] if squares.shape[-1] == 2 else squares.sum(axis=-1)


def log_losses(codes: Indices, probabilities: AnyArray) -> AnyArray:
    """Return minus the logarithm of the probability of the true class of each row.

    Probabilities of 0 are taken for the smallest number that can be told from 0 beside 1, as
    scikit-learn does.
    """
    own = probabilities[..., np.arange(len(codes)), codes]
    losses: AnyArray = -np.log(np.clip(own, np.finfo(np.float64).eps, 1.0))
    return losses


def wilson(share: float, n: float) -> Estimate:
    """Return a share of `n` rows with Wilson's score interval."""
    if n <= 0.0:
        return Estimate(share, 0.0, 1.0)
    centre = (share + Z**2 / (2.0 * n)) / (1.0 + Z**2 / n)
    half = Z * np.sqrt(share * (1.0 - share) / n + Z**2 / (4.0 * n**2)) / (1.0 + Z**2 / n)
    # At 0 and 1 the ends are the share itself, but for rounding.
    low = 0.0 if share == 0.0 else float(max(0.0, centre - half))
    high = 1.0 if share == 1.0 else float(min(1.0, centre + half))
    return Estimate(share, low, high)


def newcombe(auc: float, n_positive: float, n_negative: float) -> Estimate:
    """Return an AUC with the interval of R. G. Newcombe's method 5 (Statistics in Medicine, 2006).

    The ends are those areas from which this one is just far enough away, by Hanley and McNeil's
    standard error at those ends: unlike the usual interval, it is right for an AUC of 1 as well.
    """
    average = max(0.0, 0.5 * (n_positive + n_negative) - 1.0)

    def beyond(area: float) -> float:
        spread = area * (1.0 - area) / (n_positive * n_negative)
        spread *= 1.0 + average * ((1.0 - area) / (2.0 - area) + area / (1.0 + area))
        return (auc - area) ** 2 - Z**2 * spread

    # At 0 and 1 nothing varies, so that these areas are no ends.
    low = 0.0 if auc == 0.0 else optimize.brentq(beyond, 0.0, min(auc, 1.0 - TINY))
    high = 1.0 if auc == 1.0 else optimize.brentq(beyond, max(auc, TINY), 1.0)
    return Estimate(auc, float(low), float(high))


def mean_of(parts: Sequence[Estimate]) -> Estimate:
    """Return the mean of independent estimates, with the interval that follows from theirs."""
    value = float(np.mean([part.value for part in parts]))
    below = np.sqrt(sum((part.value - part.low) ** 2 for part in parts)) / len(parts)
    above = np.sqrt(sum((part.high - part.value) ** 2 for part in parts)) / len(parts)
    return Estimate(value, float(max(0.0, value - below)), float(min(1.0, value + above)))


def _class_numbers(truth: Truth, confusion: Matrix, k: int, recall: Estimate) -> ClassNumbers:
    found, predicted, own = confusion[k, k], confusion[:, k].sum(), confusion[k].sum()
    # Rows of any weight are worth as many as the same share of all rows.
    each = truth.size() / confusion.sum()
    either = own + predicted - found
    overlap = wilson(_ratio(found, either), each * either)
    return ClassNumbers(
        truth.classes[k],
        int(np.count_nonzero(truth.codes == k)),
        wilson(_ratio(found, predicted), each * predicted) if predicted else None,
        recall,
        # F1 grows with the share of found rows in all that are of the class or predicted to be.
        Estimate(*(2.0 * j / (1.0 + j) for j in (overlap.value, overlap.low, overlap.high))),
    )


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def _mean(truth: Truth, values: Vector) -> Estimate:
    mean = float(np.average(values, weights=truth.weights))
    n = truth.size()
    if n <= 1.0:
        return Estimate(mean, mean, mean)
    variance = float(np.average((values - mean) ** 2, weights=truth.weights))
    margin = float(stats.t.isf(0.5 * (1.0 - LEVEL), n - 1.0)) * float(np.sqrt(variance / (n - 1.0)))
    return Estimate(mean, max(0.0, mean - margin), mean + margin)


def _auc(truth: Truth, scores: AnyArray, folds: Indices) -> Estimate:
    """Return the AUC: of two classes, or the mean of each class against all others."""
    n_classes = len(truth.classes)
    of_classes = []
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
    """Return how often rows are of the positive class, by what they were predicted to be."""
    if truth.positive is None or probabilities is None:
        return None
    n_repeats = len(probabilities)
    predicted = probabilities[..., truth.positive].ravel()
    weights = np.tile(truth.weights, n_repeats)
    own = np.tile(truth.codes == truth.positive, n_repeats)
    n_bins = int(np.clip(len(truth.codes) // FEWEST_IN_BIN, 1, MOST_BINS))
    edges = np.quantile(predicted, np.linspace(0.0, 1.0, n_bins + 1))
    place = np.searchsorted(np.unique(edges[1:-1]), predicted)
    each = truth.size() / (n_repeats * len(truth.codes))
    bins = []
    for k in np.unique(place):
        inside = place == k
        share = float(np.average(own[inside], weights=weights[inside]))
        bins.append(
            CalibrationBin(
                float(np.average(predicted[inside], weights=weights[inside])),
                wilson(share, each * np.count_nonzero(inside)),
            )
        )
    return tuple(bins)
