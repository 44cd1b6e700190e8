"""Which rows and folds a cross-validation of a report has, and what means over folds are worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from neverworse._typing import Indices, Vector
from neverworse._words import count
from neverworse.model_selection import mask_labels
from neverworse.rows import Rows
from neverworse.study._study import Estimate

Progress = Callable[[str, float], None]  # told what is being done, and which share of it is done

LEVEL = 0.95  # of all intervals
USUAL_FOLDS = 5

# Of the training rows of all splits together, see `_cost_of_a_row`: a few seconds.
MOST_COST = 30_000_000
MOST_LABELED = 20_000
FEWEST_UNLABELED = 1_000  # not less for the sake of time
FEW_LABELS = 1_000  # below, five folds and several repeats; from here on ten folds
MOST_REPEATS = 3  # more take time, and make intervals hardly narrower: their folds overlap


def silent(what: str, share: float) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Sample:
    """Rows for a cross-validation: labeled ones, and unlabeled ones for training."""

    X: Any
    y: Vector  # codes of classes, NaN where unlabeled
    weights: Vector | None
    n_labeled: int
    n_unlabeled: int
    n_labels: int  # labeled rows that there were to choose from
    rows: Indices  # numbers of all these rows in the table; the labeled ones come first
    n_folds: int
    n_repeats: int

    @property
    def test_share(self) -> float:
        """Test rows for each labeled training row."""
        return 1.0 / (self.n_folds - 1)

    @property
    def rows_in_words(self) -> str:
        """The labeled rows in words, with those that were left out."""
        if self.n_labels == self.n_labeled:
            return f"{self.n_labeled:,} labeled rows"
        return f"{self.n_labeled:,} of the {self.n_labels:,} labeled rows"


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

    Parameters
    ----------
    X : array, sparse array or Rows of shape (n_rows, n_features)
        Of rows that are not in memory, those that are drawn will be.
    y : array of shape (n_rows,)
        Codes of classes, NaN where unlabeled.
    sample_weight : array of shape (n_rows,) or None
        Rows of weight zero are left out.
    max_unlabeled : int
    seed : int
    fits_per_split : float
        To how many fits to all rows the fits of one split amount.

    Raises
    ------
    ValueError
        If a class has one label only. The message is meant for people.
    """
    used = np.ones(len(y), bool) if sample_weight is None else sample_weight > 0.0
    labeled = np.flatnonzero(used & ~np.isnan(y))
    unlabeled = np.flatnonzero(used & np.isnan(y))
    n_labels = len(labeled)
    if n_labels > MOST_LABELED:
        kept = mask_labels(
            y[labeled],
            n_labeled=MOST_LABELED,
            stratify=True,
            random_state=seed,
            missing_label=np.nan,
        )
        labeled = labeled[~np.isnan(kept)]
    counts = np.bincount(y[labeled].astype(np.intp), minlength=int(np.nanmax(y)) + 1)
    if len(counts) < 2 or counts.min() < 2:
        raise ValueError(
            "Nothing can be tested on held-out rows: that takes two labeled rows of every class at "
            "least, and two classes. Label more rows of the rare classes."
        )
    n_features = X.n_columns if isinstance(X, Rows) else X.shape[1]
    per_row = _cost_of_a_row(n_features, len(counts)) * fits_per_split
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
        n_labels,
        chosen,
        n_folds,
        n_repeats,
    )


def _cost_of_a_row(n_features: int, n_classes: int) -> float:
    """Return about how long a row takes in a fit, as measured, in units of one number."""
    # Classes share a row's soft labels, which takes the solver longer than one hinge per row.
    return (n_features + 20) * (1 if n_classes == 2 else n_classes * (n_classes - 1))


def fold_words(classes: Sequence[str], codes: Indices, n_folds: int) -> Iterator[str]:
    """Yield why there are fewer folds than usual, if there are."""
    if n_folds < USUAL_FOLDS:
        counts = np.bincount(codes, minlength=len(classes))
        rarest = int(counts.argmin())
        yield (
            f"There are {count(counts[rarest], 'label')} of {classes[rarest]!r}, so {n_folds} "
            f"folds instead of {USUAL_FOLDS}."
        )


@dataclass(frozen=True)
class Mean:
    """The mean of a number over the folds of a repeated cross-validation.

    The folds share training rows, so that their results are no independent draws, and the usual
    standard error is too small. Nadeau and Bengio's correction, "Inference for the generalization
    error" (Machine Learning 52, 2003), replaces 1 / J by 1 / J + n_test / n_train for J folds.
    """

    value: float
    se: float  # corrected
    n: int  # number of folds, J

    @classmethod
    def over_folds(cls, values: Vector, test_share: float) -> Mean:
        """Return the mean of one value for each of two or more folds.

        Parameters
        ----------
        values : array of shape (n,)
        test_share : float
            Test rows for each training row, n_test / n_train.
        """
        n = len(values)
        spread = float(np.var(values, ddof=1))
        return cls(float(np.mean(values)), float(np.sqrt((1.0 / n + test_share) * spread)), n)

    def estimate(self, n_tests: int = 1) -> Estimate:
        """Return the mean with its interval.

        Parameters
        ----------
        n_tests : int, default=1
            How many intervals are to be right together, with a probability of 95 % (Bonferroni).
        """
        # Values that are all the same but not zero do not say how far they may be off.
        margin = abs(self.value)
        if self.se > 0.0:
            margin = float(stats.t.isf(0.5 * (1.0 - LEVEL) / n_tests, self.n - 1)) * self.se
        return Estimate(self.value, self.value - margin, self.value + margin)
