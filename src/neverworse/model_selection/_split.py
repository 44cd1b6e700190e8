"""Splitters that test on labeled rows only, and train with all unlabeled rows."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
)

from neverworse._words import documented_like
from neverworse.model_selection._labeled import LabeledSplitter


class _KFoldSplitter(LabeledSplitter):
    """Base of the splitters that may shuffle."""

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = False,
        random_state: Any = None,
        missing_label: Any = "auto",
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state
        self.missing_label = missing_label
        self.get_n_splits()  # scikit-learn checks what it is given


class _RepeatedSplitter(LabeledSplitter):
    """Base of the splitters that start over again and again."""

    def __init__(
        self,
        n_splits: int = 5,
        n_repeats: int = 10,
        random_state: Any = None,
        missing_label: Any = "auto",
    ) -> None:
        self.n_splits = n_splits
        self.n_repeats = n_repeats
        self.random_state = random_state
        self.missing_label = missing_label
        self.get_n_splits()  # only when asked for it does scikit-learn look at n_splits


class LabeledKFold(_KFoldSplitter):
    """K folds of the labeled rows; every training fold has all unlabeled rows.

    The labeled rows are split as by `sklearn.model_selection.KFold`. Each of them is in exactly one
    test fold. Unlabeled rows, which no score can be computed on, are in every training fold.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2 and at most the number of labeled rows.
    shuffle : bool, default=False
        Whether to shuffle the labeled rows before they are split.
    random_state : int, RandomState or None, default=None
        Seed of the shuffle. An int gives the same folds in every call of `split`.
    missing_label : "auto" or scalar, default="auto"
        What marks unlabeled rows in y, as in `neverworse.LeastSquaresClassifier`.

    See Also
    --------
    StratifiedLabeledKFold : With the same share of each class in all folds.
    RepeatedLabeledKFold : The same, several times.
    GroupLabeledKFold : For rows that belong together.

    Notes
    -----
    If y has classes, every training fold must have labeled rows of at least two of them; otherwise
    `split` raises. Where y is continuous, as in a regression, there is no such condition.

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
    _counterpart = "StratifiedLabeledKFold"


@documented_like(LabeledKFold)
class StratifiedLabeledKFold(_KFoldSplitter):
    """K folds of the labeled rows with the same share of each class, as far as possible.

    The labeled rows are split as by `sklearn.model_selection.StratifiedKFold`. Every training fold
    has all unlabeled rows.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2 and at most the number of labeled rows of the smallest class.
    shuffle : bool, default=False
        Whether to shuffle the labeled rows of each class before they are split.
    {random_state, missing_label}

    See Also
    --------
    LabeledKFold : Without regard to classes; for regression as well.
    RepeatedStratifiedLabeledKFold : The same, several times.

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
    _counterpart = "LabeledKFold"
    _stratified = True


@documented_like(LabeledKFold)
class RepeatedLabeledKFold(_RepeatedSplitter):
    """`LabeledKFold` several times, shuffled differently each time.

    With few labels, the score depends much on which rows happen to be in the same fold. Repeats
    average over that.

    Parameters
    ----------
    {n_splits}
    n_repeats : int, default=10
        Number of times that the labeled rows are split into folds.
    random_state : int, RandomState or None, default=None
        Seed of the shuffles. An int gives the same folds in every call of `split`.
    {missing_label}

    See Also
    --------
    RepeatedStratifiedLabeledKFold : With the same share of each class in all folds.

    Examples
    --------
    >>> from neverworse.model_selection import RepeatedLabeledKFold
    >>> cv = RepeatedLabeledKFold(n_splits=2, n_repeats=3, random_state=0)
    >>> cv.get_n_splits()
    6
    """

    _splitter = RepeatedKFold
    _counterpart = "RepeatedStratifiedLabeledKFold"


@documented_like(StratifiedLabeledKFold, RepeatedLabeledKFold)
class RepeatedStratifiedLabeledKFold(_RepeatedSplitter):
    """`StratifiedLabeledKFold` several times, shuffled differently each time.

    Parameters
    ----------
    {n_splits, n_repeats, random_state, missing_label}

    See Also
    --------
    RepeatedLabeledKFold : Without regard to classes; for regression as well.

    Examples
    --------
    >>> from neverworse.model_selection import RepeatedStratifiedLabeledKFold
    >>> RepeatedStratifiedLabeledKFold(n_repeats=4, random_state=0).get_n_splits()
    20
    """

    _splitter = RepeatedStratifiedKFold
    _counterpart = "RepeatedLabeledKFold"
    _stratified = True


@documented_like(LabeledKFold)
class GroupLabeledKFold(LabeledSplitter):
    """K folds of the labeled rows in which the labeled rows of a group stay together.

    The labeled rows are split as by `sklearn.model_selection.GroupKFold`. No group has labeled rows
    both in the training and in the test fold. Unlabeled rows train in every fold, also those
    of groups that are tested: they give away features of such a group, but none of its labels. That
    is the transductive use, in which the unlabeled rows are there when the classifier is fitted. To
    measure how well it does on groups of which it has seen nothing, leave out the unlabeled rows of
    the tested groups yourself.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2 and at most the number of groups with labeled rows.
    {missing_label}

    See Also
    --------
    StratifiedGroupLabeledKFold : With about the same share of each class in all folds.

    Notes
    -----
    The groups of unlabeled rows are not looked at and may be missing. With metadata routing
    enabled, groups are requested, as by `sklearn.model_selection.GroupKFold`.

    Examples
    --------
    >>> from neverworse.model_selection import GroupLabeledKFold
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
    >>> y = [0, 1, -1, 0, 1, -1]
    >>> groups = ["s", "s", "s", "t", "t", None]
    >>> for train, test in GroupLabeledKFold(n_splits=2).split(X, y, groups):
    ...     print(train, test)
    [0 1 2 5] [3 4]
    [2 3 4 5] [0 1]
    """

    __metadata_request__split: ClassVar = {"groups": True}

    _splitter = GroupKFold
    _counterpart = "StratifiedGroupLabeledKFold"
    _grouped = True

    def __init__(self, n_splits: int = 5, *, missing_label: Any = "auto") -> None:
        self.n_splits = n_splits
        self.missing_label = missing_label
        self.get_n_splits()


@documented_like(LabeledKFold)
class StratifiedGroupLabeledKFold(_KFoldSplitter):
    """`GroupLabeledKFold` with about the same share of each class in all folds.

    The labeled rows are split as by `sklearn.model_selection.StratifiedGroupKFold`, which balances
    the classes as far as the groups allow. Unlabeled rows train in every fold, also those of groups
    that are tested; see `GroupLabeledKFold`.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2, at most the number of groups with labeled rows, and at most the
        number of labeled rows of the smallest class.
    shuffle : bool, default=False
        Whether to shuffle the groups first. Only groups with about the same share of each class
        change places.
    {random_state, missing_label}

    See Also
    --------
    GroupLabeledKFold : Without regard to classes; for regression as well.

    Examples
    --------
    >>> from neverworse.model_selection import StratifiedGroupLabeledKFold
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
    >>> y = [0, 1, -1, 0, 1, -1]
    >>> groups = [1, 1, 1, 2, 2, 3]
    >>> for train, test in StratifiedGroupLabeledKFold(n_splits=2).split(X, y, groups):
    ...     print(train, test)
    [2 3 4 5] [0 1]
    [0 1 2 5] [3 4]
    """

    __metadata_request__split: ClassVar = {"groups": True}

    _splitter = StratifiedGroupKFold
    _counterpart = "GroupLabeledKFold"
    _stratified = True
    _grouped = True
