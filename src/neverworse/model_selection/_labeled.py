"""The labeled rows: how they are found, shuffled within strata, and split into folds."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils.validation import _num_samples

from neverworse._typing import AnyArray, Indices
from neverworse.estimators import find_unlabeled, label_array, native_dtype


def labeled_rows(y: Any, missing_label: Any, advice: str) -> tuple[Indices, AnyArray]:
    """Return the positions of the rows that carry a label, ascending, and their labels.

    Where the markers made the labels objects, they have their own type again. `advice` is what to
    do if there is no such row, for the message of the error.
    """
    unlabeled = find_unlabeled(y, missing_label)
    if unlabeled.all():
        raise ValueError(f"y has no labeled row: all {len(unlabeled)} labels are missing. {advice}")
    labeled = np.flatnonzero(~unlabeled)
    return labeled, native_dtype(label_array(y)[labeled])


def labeled_codes(name: str, values: Any, labeled: Indices, n_rows: int) -> Indices:
    """Encode what a column has in the labeled rows: 0 for the smallest value, 1 for the next.

    What the column, by its name in messages, holds in the other rows does not matter.
    """
    column = label_array(values)
    if len(column) != n_rows:
        raise ValueError(
            f"{name} has {len(column)} entries, but y has {n_rows}. Pass one for every row; in "
            "unlabeled rows it may be anything."
        )
    column = column[labeled]
    null = find_unlabeled(column, None)
    if null.any():
        raise ValueError(
            f"{name} is missing in {null.sum()} labeled rows, the first of them row "
            f"{labeled[null][0]}. Only unlabeled rows may go without."
        )
    try:
        codes: Indices = np.unique(column, return_inverse=True)[1]
    except TypeError as error:
        raise ValueError(
            f"{name} mixes values of types that cannot be compared. Convert all of them to strings."
        ) from error
    return codes


def is_continuous(known: AnyArray) -> bool:
    """Whether the labels are targets of a regression: floats that are not all whole numbers."""
    return known.dtype.kind == "f" and bool(np.any(known != np.floor(known)))


def shuffled_strata(
    strata: Indices, rng: np.random.RandomState
) -> tuple[Indices, Indices, Indices]:
    """Shuffle rows within their strata, given the number of the stratum of each row.

    Returns the positions of the rows, one stratum after the other; the rank of each of these within
    its stratum, 0 for the first; and the number of rows of each stratum.
    """
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    counts = np.bincount(strata)
    rank = np.arange(len(strata)) - np.repeat(np.cumsum(counts) - counts, counts)
    return order, rank, counts


class LabeledSplitter(BaseCrossValidator):  # type: ignore[misc]
    """Base of the splitters: one of scikit-learn splits the labeled rows, the others all train."""

    _splitter: ClassVar[Any]  # the class of scikit-learn
    _counterpart: ClassVar[str]  # the same splitter with, or without, stratification
    _stratified: ClassVar[bool] = False
    _grouped: ClassVar[bool] = False

    n_splits: int
    missing_label: Any

    def _for_labeled_rows(self) -> Any:
        """Return scikit-learn's splitter; it raises if the parameters are not what it takes."""
        names = signature(self._splitter).parameters
        return self._splitter(**{k: getattr(self, k) for k in names if hasattr(self, k)})

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:  # noqa: ARG002
        """Return the number of pairs that `split` yields.

        Parameters
        ----------
        X, y, groups : object
            Ignored.

        Returns
        -------
        n_splits : int
        """
        return int(self._for_labeled_rows().get_n_splits())

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Indices, Indices]]:
        """Split the rows. All folds are checked before the first one is returned.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Only its number of rows is used.
        y : array-like of shape (n_rows,)
            Labels, or targets of a regression, with a marker where there is none.
        groups : array-like of shape (n_rows,), optional
            Group of each row. Those of unlabeled rows are ignored.

        Yields
        ------
        train : array
            Positions of all unlabeled rows and of the labeled rows of the other folds, ascending.
        test : array
            Positions of the labeled rows of this fold, ascending.
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} needs y to know which rows are labeled, but y is None. "
                "Pass the labels, with a marker such as -1 where there is none."
            )
        n_rows = _num_samples(y)
        if _num_samples(X) != n_rows:
            raise ValueError(
                f"X has {_num_samples(X)} rows, but y has {n_rows} entries. Pass one label for "
                "every row of X, with a marker such as -1 where there is none."
            )
        labeled, known = labeled_rows(
            y, self.missing_label, "Cross-validation tests on labeled rows: label some."
        )
        if self.n_splits > len(labeled):
            raise ValueError(
                f"n_splits={self.n_splits} is more than the {len(labeled)} labeled rows of y "
                f"(of {n_rows} rows; the others cannot be tested on). Lower n_splits, or label "
                "more rows."
            )
        classes, codes = np.unique(known, return_inverse=True)
        if self._stratified:
            self._check_strata(known, classes, codes)
        group_codes = self._group_codes(groups, labeled, n_rows)
        folds = list(self._for_labeled_rows().split(labeled, codes, group_codes))
        if not is_continuous(known):
            self._check_training_folds([train for train, _ in folds], classes, codes)
        return _with_unlabeled_rows([labeled[test] for _, test in folds], n_rows)

    def _check_strata(self, known: AnyArray, classes: AnyArray, codes: Indices) -> None:
        if is_continuous(known):
            raise ValueError(
                f"{type(self).__name__} needs classes, but y is continuous. Use "
                f"{self._counterpart}."
            )
        sizes = np.bincount(codes)
        if sizes.min() < self.n_splits:
            few = int(sizes.argmin())
            raise ValueError(
                f"Class {_shown(classes, few)} has {sizes[few]} labeled rows, fewer than "
                f"n_splits={self.n_splits}: some test folds would be without it. Lower n_splits, "
                f"label more rows of this class, or use {self._counterpart}."
            )

    def _group_codes(self, groups: Any, labeled: Indices, n_rows: int) -> Indices | None:
        name = type(self).__name__
        if not self._grouped:
            if groups is not None:
                warnings.warn(
                    f"The groups are ignored by {name}. Use GroupLabeledKFold or "
                    "StratifiedGroupLabeledKFold to keep the rows of a group together.",
                    UserWarning,
                    stacklevel=3,
                )
            return None
        if groups is None:
            raise ValueError(
                f"{name} needs groups, but groups is None. Pass the group of every row, or use "
                f"{name.replace('Group', '')}."
            )
        codes = labeled_codes("groups", groups, labeled, n_rows)
        n_groups = codes.max() + 1
        if self.n_splits > n_groups:
            raise ValueError(
                f"n_splits={self.n_splits} is more than the {n_groups} groups that have labeled "
                "rows. Lower n_splits, or label rows of more groups."
            )
        return codes

    def _check_training_folds(
        self, trains: list[Indices], classes: AnyArray, codes: Indices
    ) -> None:
        """Raise if a training fold has labels of one class only: nothing could be fitted to it."""
        if len(classes) == 1:
            raise ValueError(
                f"All labeled rows of y are of class {_shown(classes, 0)}. Label rows of another "
                "class as well."
            )
        for number, train in enumerate(trains, start=1):
            if np.ptp(codes[train]) == 0:
                ways = ["pass shuffle=True"] if getattr(self, "shuffle", True) is False else []
                ways += [] if self._stratified else [f"use {self._counterpart}"]
                # Not fewer folds: the smaller the test folds, the more labels are left to train.
                ways += ["raise n_splits so that test folds get smaller"]
                advice, where = ", ".join(ways), " in other groups" if self._grouped else ""
                raise ValueError(
                    f"In split {number} of {len(trains)}, the labeled training rows would all be "
                    f"of class {_shown(classes, codes[train[0]])}. {advice[0].upper()}{advice[1:]}"
                    f", or label more rows of the other classes{where}."
                )

    def __repr__(self) -> str:
        """Show what differs from the defaults, as estimators do."""
        changed = [
            f"{p.name}={getattr(self, p.name)!r}"
            for p in signature(type(self)).parameters.values()
            if repr(getattr(self, p.name)) != repr(p.default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_clone__(self) -> Self:
        return copy.deepcopy(self)


def _with_unlabeled_rows(tests: list[Indices], n_rows: int) -> Iterator[tuple[Indices, Indices]]:
    """Train on all rows that are not tested. One pair at a time: there may be many rows."""
    for test in tests:
        train = np.ones(n_rows, bool)
        train[test] = False
        yield np.flatnonzero(train), test


def _shown(classes: AnyArray, code: int) -> str:
    """Return a class as people would write it."""
    return repr(classes.tolist()[code])
