"""Splitters that test on labeled rows only, and train with all unlabeled rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from inspect import signature
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import (
    BaseCrossValidator,
    GroupKFold,
    KFold,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
)
from sklearn.utils.validation import _num_samples, check_consistent_length

from neverworse._typing import Indices
from neverworse._words import documented_like
from neverworse.estimators import is_continuous
from neverworse.model_selection._mask import labeled_codes, labeled_rows


@dataclass(eq=False)
class LabeledSplitter(BaseCrossValidator):  # type: ignore[misc]
    """Base of the splitters: one of scikit-learn splits the labeled rows, the others all train."""

    _splitter: ClassVar[Any]  # the class of scikit-learn

    n_splits: int = 5

    def __post_init__(self) -> None:
        self.get_n_splits()  # scikit-learn checks what it is given

    def _for_labeled_rows(self) -> Any:
        """Return scikit-learn's splitter; it raises if the parameters are not what it takes."""
        names = signature(self._splitter).parameters
        return self._splitter(**{k: getattr(self, k) for k in names if hasattr(self, k)})

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:  # noqa: ARG002
        """Return the number of pairs that `split` yields; all arguments are ignored."""
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
            Group of each row, for splitters with groups. Those of unlabeled rows are ignored.

        Yields
        ------
        train, test : arrays
            Positions of all unlabeled rows and of the labeled rows of the other folds, and of the
            labeled rows of this fold; both ascending.
        """
        labeled, known = labeled_rows(
            y, self.missing_label, "Cross-validation tests on labeled rows: label some."
        )
        check_consistent_length(X, y)
        n_rows, name = _num_samples(y), type(self).__name__
        if groups is not None:
            groups = labeled_codes("groups", groups, labeled, n_rows)
        if "Stratified" in self._splitter.__name__ and is_continuous(known):
            other = name.replace("Stratified", "")
            raise ValueError(f"{name} needs classes, but y is continuous. Use {other}.")
        classes, codes = np.unique(known, return_inverse=True)
        try:
            folds = list(self._for_labeled_rows().split(labeled, codes, groups))
        except ValueError as error:
            raise ValueError(
                f"{name} cannot split the {len(labeled)} labeled rows: {error} Label more rows, "
                "lower n_splits, or, for a splitter with groups, pass the group of every row."
            ) from error
        for number, (train, _) in enumerate(folds, start=1):
            if not is_continuous(known) and np.ptp(codes[train]) == 0:
                raise ValueError(
                    f"In split {number} of {len(folds)}, the labeled training rows would all be of "
                    f"class {classes.tolist()[codes[train[0]]]!r}. Label more rows of other "
                    "classes, raise n_splits, or use a stratified splitter."
                )
        tests = [labeled[test] for _, test in folds]
        # One pair at a time: there may be many rows.
        return ((np.delete(np.arange(n_rows), test), test) for test in tests)


@dataclass(eq=False)
class LabeledKFold(LabeledSplitter):
    """K folds of the labeled rows; every training fold has all unlabeled rows.

    The labeled rows are split as by `sklearn.model_selection.KFold`.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2 and at most the number of labeled rows (with groups: of groups
        that have some; stratified: of those of the largest class).
    shuffle : bool, default=False
        Whether to shuffle the labeled rows, or the groups, before they are split.
    random_state : int, RandomState or None, default=None
        Seed of the shuffle. An int gives the same folds in every call of `split`.
    missing_label : "auto" or scalar, default="auto"
        What marks unlabeled rows in y, as in `neverworse.LeastSquaresClassifier`.

    Examples
    --------
    >>> from neverworse.model_selection import LabeledKFold
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
    >>> y = [0, -1, 1, -1, 0, 1]
    >>> for train, test in LabeledKFold(n_splits=2).split(X, y):
    ...     print(train, test)
    [1 3 4 5] [0 2]
    [0 1 2 3] [4 5]
    """

    _splitter = KFold

    _: KW_ONLY
    shuffle: bool = False
    random_state: Any = None
    missing_label: Any = "auto"


@documented_like(LabeledKFold)
class StratifiedLabeledKFold(LabeledKFold):
    """K folds of the labeled rows with the same share of each class, as far as possible.

    The labeled rows are split as by `sklearn.model_selection.StratifiedKFold`.

    {Parameters}

    Examples
    --------
    >>> from neverworse.model_selection import StratifiedLabeledKFold
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
    >>> y = ["a", "a", "b", "b", None, None]
    >>> for train, test in StratifiedLabeledKFold(n_splits=2).split(X, y):
    ...     print(train, test)
    [1 3 4 5] [0 2]
    [0 2 4 5] [1 3]
    """

    _splitter = StratifiedKFold


@documented_like(LabeledKFold)
@dataclass(eq=False)
class RepeatedLabeledKFold(LabeledSplitter):
    """`LabeledKFold` several times, shuffled differently each time.

    Parameters
    ----------
    {n_splits}
    n_repeats : int, default=10
        Number of times that the labeled rows are split into folds.
    {random_state, missing_label}

    Examples
    --------
    >>> from neverworse.model_selection import RepeatedLabeledKFold
    >>> cv = RepeatedLabeledKFold(n_splits=2, n_repeats=3, random_state=0)
    >>> cv.get_n_splits()
    6
    """

    _splitter = RepeatedKFold

    n_repeats: int = 10
    random_state: Any = None
    missing_label: Any = "auto"


@documented_like(RepeatedLabeledKFold)
class RepeatedStratifiedLabeledKFold(RepeatedLabeledKFold):
    """`StratifiedLabeledKFold` several times, shuffled differently each time.

    {Parameters}

    Examples
    --------
    >>> from neverworse.model_selection import RepeatedStratifiedLabeledKFold
    >>> RepeatedStratifiedLabeledKFold(n_repeats=4, random_state=0).get_n_splits()
    20
    """

    _splitter = RepeatedStratifiedKFold


@documented_like(LabeledKFold)
class GroupLabeledKFold(LabeledKFold):
    """K folds of the labeled rows in which the labeled rows of a group stay together.

    The labeled rows are split as by `sklearn.model_selection.GroupKFold`. Unlabeled rows train in
    every fold, also those of groups that are tested; their own groups may be missing.

    {Parameters}

    Examples
    --------
    >>> from neverworse.model_selection import GroupLabeledKFold
    >>> cv = GroupLabeledKFold(n_splits=2)
    >>> next(cv.split(range(6), [0, 1, -1, 0, 1, -1], ["s", "s", "s", "t", "t", None]))
    (array([0, 1, 2, 5]), array([3, 4]))
    """

    __metadata_request__split: ClassVar = {"groups": True}

    _splitter = GroupKFold


@documented_like(LabeledKFold)
class StratifiedGroupLabeledKFold(GroupLabeledKFold):
    """`GroupLabeledKFold` with about the same share of each class in all folds.

    The labeled rows are split as by `sklearn.model_selection.StratifiedGroupKFold`.

    {Parameters}

    Examples
    --------
    >>> from neverworse.model_selection import StratifiedGroupLabeledKFold
    >>> StratifiedGroupLabeledKFold(n_splits=3).get_n_splits()
    3
    """

    _splitter = StratifiedGroupKFold
