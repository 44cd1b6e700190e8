import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.model_selection import (
    GroupLabeledKFold,
    LabeledKFold,
    RepeatedLabeledKFold,
    RepeatedStratifiedLabeledKFold,
    StratifiedGroupLabeledKFold,
    StratifiedLabeledKFold,
    mask_labels,
)
from tests.label_encodings import CODES, ENCODINGS, UNLABELED

ALL = {
    "LabeledKFold": LabeledKFold(3),
    "LabeledKFold, shuffled": LabeledKFold(3, shuffle=True, random_state=0),
    "StratifiedLabeledKFold": StratifiedLabeledKFold(3),
    "StratifiedLabeledKFold, shuffled": StratifiedLabeledKFold(3, shuffle=True, random_state=0),
    "RepeatedLabeledKFold": RepeatedLabeledKFold(3, 2, 0),
    "RepeatedStratifiedLabeledKFold": RepeatedStratifiedLabeledKFold(3, 2, 0),
    "GroupLabeledKFold": GroupLabeledKFold(3),
    "StratifiedGroupLabeledKFold": StratifiedGroupLabeledKFold(3),
    "StratifiedGroupLabeledKFold, shuffled": StratifiedGroupLabeledKFold(
        3, shuffle=True, random_state=0
    ),
}
splitters = pytest.mark.parametrize("cv", ALL.values(), ids=ALL.keys())
WITH_GROUPS = (GroupLabeledKFold, StratifiedGroupLabeledKFold)
STRATIFIED = (
    StratifiedLabeledKFold,
    RepeatedStratifiedLabeledKFold,
    StratifiedGroupLabeledKFold,
)

N = len(CODES)
PLACEHOLDER = np.zeros((N, 1))
GROUPS = np.arange(N) // 3


def folds_of(cv, y, groups=GROUPS, X=PLACEHOLDER):
    return list(cv.split(X, y, groups if isinstance(cv, WITH_GROUPS) else None))


def same(first, second):
    return len(first) == len(second) and all(
        np.array_equal(a, b) and np.array_equal(c, d)
        for (a, c), (b, d) in zip(first, second, strict=True)
    )


def check_folds(folds, unlabeled, n_repeats=1):
    """What the splitters promise, whatever the rest."""
    rows = np.arange(len(unlabeled))
    tested = np.zeros(len(unlabeled), int)
    for train, test in folds:
        assert train.dtype == test.dtype == np.intp
        np.testing.assert_array_equal(np.sort(np.r_[train, test]), rows)
        assert len(test)
        assert not unlabeled[test].any()
        assert np.isin(np.flatnonzero(unlabeled), train).all()
        assert (np.diff(train) > 0).all()
        assert (np.diff(test) > 0).all()
        tested[test] += 1
    np.testing.assert_array_equal(tested, np.where(unlabeled, 0, n_repeats))


# What every splitter does


@splitters
def test_promise(cv):
    folds = folds_of(cv, CODES)
    assert len(folds) == cv.get_n_splits()
    check_folds(folds, UNLABELED, n_repeats=getattr(cv, "n_repeats", 1))


@st.composite
def problems(draw):
    """Labels of two to four classes with at least n_splits rows each, unlabeled rows, groups."""
    n_splits = draw(st.integers(2, 5))
    sizes = draw(st.lists(st.integers(n_splits, 9), min_size=2, max_size=4))
    n_unlabeled = draw(st.integers(0, 30))
    y = np.r_[np.repeat(np.arange(len(sizes)), sizes), np.full(n_unlabeled, -1)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    y = rng.permutation(y)
    groups = rng.integers(0, 3 * n_splits, len(y))
    groups[np.flatnonzero(y >= 0)[:n_splits]] = np.arange(n_splits)  # so that there are enough
    return y, groups, n_splits, int(rng.integers(2**31))


PAIRS = {
    "KFold": lambda k, s: (LabeledKFold(k), KFold(k)),
    "KFold, shuffled": lambda k, s: (
        LabeledKFold(k, shuffle=True, random_state=s),
        KFold(k, shuffle=True, random_state=s),
    ),
    "StratifiedKFold": lambda k, s: (StratifiedLabeledKFold(k), StratifiedKFold(k)),
    "StratifiedKFold, shuffled": lambda k, s: (
        StratifiedLabeledKFold(k, shuffle=True, random_state=s),
        StratifiedKFold(k, shuffle=True, random_state=s),
    ),
    "RepeatedKFold": lambda k, s: (
        RepeatedLabeledKFold(k, 3, s),
        RepeatedKFold(n_splits=k, n_repeats=3, random_state=s),
    ),
    "RepeatedStratifiedKFold": lambda k, s: (
        RepeatedStratifiedLabeledKFold(k, 3, s),
        RepeatedStratifiedKFold(n_splits=k, n_repeats=3, random_state=s),
    ),
    "GroupKFold": lambda k, s: (GroupLabeledKFold(k), GroupKFold(k)),
    "StratifiedGroupKFold": lambda k, s: (
        StratifiedGroupLabeledKFold(k, shuffle=True, random_state=s),
        StratifiedGroupKFold(k, shuffle=True, random_state=s),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
@settings(max_examples=60, deadline=None)
@given(problem=problems())
def test_labeled_rows_are_split_as_by_scikit_learn(name, problem):
    y, groups, n_splits, seed = problem
    ours, theirs = PAIRS[name](n_splits, seed)
    labeled = np.flatnonzero(y >= 0)
    in_groups = "Group" in name
    reference = list(theirs.split(labeled, y[labeled], groups[labeled] if in_groups else None))
    X = np.zeros((len(y), 1))
    if any(len(set(y[labeled[train]])) < 2 for train, _ in reference):
        with pytest.raises(ValueError, match="labeled training rows would all be of class"):
            ours.split(X, y, groups if in_groups else None)
        return
    folds = list(ours.split(X, y, groups if in_groups else None))
    check_folds(folds, y < 0, n_repeats=getattr(ours, "n_repeats", 1))
    assert len(folds) == len(reference) == ours.get_n_splits()
    for (_, test), (_, expected) in zip(folds, reference, strict=True):
        np.testing.assert_array_equal(test, labeled[expected])
    if in_groups:
        for train, test in folds:
            with_label = train[y[train] >= 0]
            assert not set(groups[with_label]) & set(groups[test])


@settings(max_examples=100, deadline=None)
@given(problem=problems())
def test_stratified_folds_have_the_same_share_of_each_class(problem):
    y, _, n_splits, seed = problem
    cv = StratifiedLabeledKFold(n_splits, shuffle=True, random_state=seed)
    counts = np.array([np.bincount(y[test], minlength=4) for _, test in cv.split(y, y)])
    assert np.ptp(counts, axis=0).max() <= 1


@splitters
@pytest.mark.parametrize("name", ENCODINGS)
def test_same_folds_whatever_the_encoding(cv, name):
    assert same(folds_of(cv, ENCODINGS[name][0]), folds_of(cv, CODES))


@splitters
@pytest.mark.parametrize(
    ("y", "missing_label"),
    [
        (np.where(UNLABELED, -99, np.where(CODES == 1, 1, -1)), -99),
        (np.where(UNLABELED, np.nan, np.where(CODES == 1, 1.0, -1.0)), np.nan),
        (np.where(UNLABELED, "?", np.where(CODES == 1, "b", "a")), "?"),
        (pd.Series(np.where(UNLABELED, None, CODES), dtype="Int64"), None),
    ],
)
def test_missing_label(cv, y, missing_label):
    told = clone(cv, safe=False)
    told.missing_label = missing_label
    assert same(folds_of(told, y), folds_of(cv, CODES))


@splitters
def test_all_rows_labeled(cv):
    y = np.where(CODES == 1, 1, 0)
    folds = folds_of(cv, y)
    check_folds(folds, np.zeros(N, bool), n_repeats=getattr(cv, "n_repeats", 1))


@splitters
@pytest.mark.parametrize(
    "X",
    [
        list(range(N)),
        pd.DataFrame(PLACEHOLDER, index=range(N, 0, -1)),
        pl.DataFrame({"a": [0.0] * N}),
        sparse.coo_array(PLACEHOLDER),
        np.full((N, 2), np.nan),
    ],
    ids=["list", "pandas", "polars", "sparse", "NaN"],
)
def test_only_the_number_of_rows_matters(cv, X):
    assert same(folds_of(cv, CODES, X=X), folds_of(cv, CODES))


# Randomness


@pytest.mark.parametrize(
    "make",
    [
        lambda s: LabeledKFold(3, shuffle=True, random_state=s),
        lambda s: StratifiedLabeledKFold(3, shuffle=True, random_state=s),
        lambda s: StratifiedGroupLabeledKFold(3, shuffle=True, random_state=s),
        lambda s: RepeatedLabeledKFold(3, 2, s),
        lambda s: RepeatedStratifiedLabeledKFold(3, 2, s),
    ],
)
def test_random_state(make):
    seeded = make(7)
    assert same(folds_of(seeded, CODES), folds_of(seeded, CODES))
    assert same(folds_of(seeded, CODES), folds_of(make(7), CODES))
    assert not same(folds_of(seeded, CODES), folds_of(make(8), CODES))
    drawn = make(np.random.RandomState(7))
    assert not same(folds_of(drawn, CODES), folds_of(drawn, CODES))


def test_repetitions_differ():
    folds = folds_of(RepeatedStratifiedLabeledKFold(3, 2, 0), CODES)
    assert not same(folds[:3], folds[3:])


# Objects


@splitters
def test_copies_split_the_same(cv):
    expected = folds_of(cv, CODES)
    for copied in (pickle.loads(pickle.dumps(cv)), clone(cv, safe=False)):
        assert type(copied) is type(cv)
        assert copied is not cv
        assert repr(copied) == repr(cv)
        assert same(folds_of(copied, CODES), expected)


@pytest.mark.parametrize(
    ("cv", "text"),
    [
        (
            LabeledKFold(3, shuffle=True, random_state=0, missing_label="?"),
            "LabeledKFold(n_splits=3, shuffle=True, random_state=0, missing_label='?')",
        ),
        (
            StratifiedLabeledKFold(4, missing_label=-1),
            (
                "StratifiedLabeledKFold(n_splits=4, shuffle=False, random_state=None, "
                "missing_label=-1)"
            ),
        ),
        (
            RepeatedLabeledKFold(2, 5, 1),
            "RepeatedLabeledKFold(n_splits=2, n_repeats=5, random_state=1, missing_label='auto')",
        ),
        (
            GroupLabeledKFold(missing_label=None),
            "GroupLabeledKFold(n_splits=5, shuffle=False, random_state=None, missing_label=None)",
        ),
    ],
)
def test_repr(cv, text):
    assert repr(cv) == text


def test_number_of_splits():
    assert LabeledKFold().get_n_splits() == 5
    assert StratifiedLabeledKFold(4).get_n_splits(PLACEHOLDER, CODES, GROUPS) == 4
    assert RepeatedLabeledKFold().get_n_splits() == 50
    assert RepeatedStratifiedLabeledKFold(3, 4).get_n_splits() == 12
    assert GroupLabeledKFold(2).get_n_splits() == 2
    assert StratifiedGroupLabeledKFold(6).get_n_splits() == 6


# Bad input


@splitters
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (PLACEHOLDER, None, "requires y to be passed"),
        (PLACEHOLDER, CODES[1:], "inconsistent numbers of samples"),
        (PLACEHOLDER, np.full(N, -1), "no labeled row: all 30 labels are missing.*label some"),
        (PLACEHOLDER, np.full(N, np.nan), "no labeled row"),
        (PLACEHOLDER, [None] * N, "no labeled row"),
        (
            PLACEHOLDER,
            [0, 1] + [-1] * 28,
            "cannot split the 2 labeled rows.*n_splits=.*lower n_splits",
        ),
        (PLACEHOLDER, np.where(UNLABELED, -1, 1), "Pass missing_label=-1"),
        (PLACEHOLDER, np.where(UNLABELED, None, 1), "would all be of class 1. Label"),
        (PLACEHOLDER, ["a", "b", 1] + [None] * 27, "mixes labels of different types"),
        (PLACEHOLDER, np.c_[CODES, CODES], "1d array"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_bad_labels(cv, X, y, message):
    with pytest.raises(ValueError, match=re.compile(message, re.DOTALL)):
        cv.split(X, y, GROUPS if isinstance(cv, WITH_GROUPS) else None)


@pytest.mark.parametrize(
    "kind", sorted({type(cv) for cv in ALL.values()}, key=lambda k: k.__name__)
)
def test_bad_parameters(kind):
    for n_splits in (1, 0, -3):
        with pytest.raises(ValueError, match="n_splits=2 or more"):
            kind(n_splits)
    with pytest.raises(ValueError, match="Integral"):
        kind(2.5)


def test_bad_other_parameters():
    with pytest.raises(ValueError, match="shuffle=True"):
        LabeledKFold(random_state=0)
    with pytest.raises(TypeError, match="shuffle must be True or False"):
        StratifiedLabeledKFold(shuffle=1)
    for kind in (RepeatedLabeledKFold, RepeatedStratifiedLabeledKFold):
        with pytest.raises(ValueError, match="repetitions must be greater than 0"):
            kind(n_repeats=0)


@pytest.mark.parametrize("cv", [StratifiedLabeledKFold(4), RepeatedStratifiedLabeledKFold(4)])
def test_class_with_fewer_rows_than_splits(cv):
    """As in scikit-learn, some test folds are without it, and a warning says so."""
    y = np.array(["a"] * 8 + ["b"] * 3 + ["c"] * 9 + [None] * 10, dtype=object)
    with pytest.warns(UserWarning, match="only 3 members, which is less than n_splits=4"):
        folds = list(cv.split(PLACEHOLDER, y))
    assert all(set(y[train]) == {"a", "b", "c", None} for train, _ in folds)


def test_training_fold_of_one_class_is_found_before_the_first_fold_is_returned():
    y = np.array([0] * 8 + [1] * 2 + [-1] * 5)  # only the last of five folds is bad
    with pytest.raises(ValueError, match=r"In split 5 of 5.*class 0") as caught:
        LabeledKFold(5).split(y, y)  # nothing has been asked for yet
    for way in ("use a stratified splitter", "raise n_splits"):
        assert way in str(caught.value)
    # Each of the ways is one.
    check_folds(list(StratifiedLabeledKFold(2).split(y, y)), y < 0)
    check_folds(list(LabeledKFold(10).split(y, y)), y < 0)


def test_training_folds_of_one_class():
    y = np.array([0] * 8 + [1] * 2 + [-1] * 5)
    groups = [0, 1, 2, 3, 4, 5, 6, 7, 8, 8] + [None] * 5
    for cv, groups_or_none in [
        (RepeatedLabeledKFold(2, 40, 0), None),
        (LabeledKFold(2, shuffle=True, random_state=0), None),
        (GroupLabeledKFold(2), groups),
        (StratifiedGroupLabeledKFold(2), groups),
    ]:
        with pytest.raises(ValueError, match=r"would all be of class 0\. Label more rows"):
            cv.split(y, y, groups_or_none)


# Groups


@pytest.mark.parametrize(
    "groups",
    [
        np.where(UNLABELED, np.nan, GROUPS),
        [None if none else f"{g:02}" for none, g in zip(UNLABELED, GROUPS, strict=True)],
        ["anything" if none else int(g) for none, g in zip(UNLABELED, GROUPS, strict=True)],
        pd.Series(np.where(UNLABELED, None, GROUPS), dtype="Int64", index=range(N, 0, -1)),
        pd.Series(np.where(UNLABELED, None, GROUPS), dtype="category"),
        pl.Series([None if none else int(g) for none, g in zip(UNLABELED, GROUPS, strict=True)]),
        np.where(UNLABELED, -1, GROUPS),
        np.where(UNLABELED, 99, GROUPS),
    ],
    ids=["NaN", "None", "mixed", "nullable", "category", "polars", "-1", "other"],
)
@pytest.mark.parametrize("cv", [GroupLabeledKFold(3), StratifiedGroupLabeledKFold(3)], ids=str)
def test_groups_of_unlabeled_rows_do_not_matter(cv, groups):
    assert same(folds_of(cv, CODES, groups), folds_of(cv, CODES))


@pytest.mark.parametrize("kind", WITH_GROUPS)
def test_unlabeled_rows_of_a_tested_group_still_train(kind):
    for train, test in kind(3).split(PLACEHOLDER, CODES, GROUPS):
        in_tested_groups = np.isin(GROUPS, GROUPS[test])
        assert (in_tested_groups & UNLABELED).any()
        np.testing.assert_array_equal(
            train[in_tested_groups[train]], np.flatnonzero(in_tested_groups & UNLABELED)
        )


@pytest.mark.parametrize("kind", WITH_GROUPS)
@pytest.mark.parametrize(
    ("n_splits", "groups", "message"),
    [
        (3, None, "pass the group of every row"),
        (3, GROUPS[1:], "groups has 29 entries, but y has 30"),
        (3, np.zeros(N), "n_splits=3 greater than the number of groups: 1"),
        (
            3,
            np.where(UNLABELED, GROUPS, GROUPS % 2),
            "n_splits=3 greater than the number of groups: 2",
        ),
        (2, np.where(CODES == 1, np.nan, GROUPS), "missing in 6 labeled rows.* row 2"),
    ],
)
def test_bad_groups(kind, n_splits, groups, message):
    with pytest.raises(ValueError, match=message):
        kind(n_splits).split(PLACEHOLDER, CODES, groups)


@pytest.mark.parametrize("cv", [cv for cv in ALL.values() if not isinstance(cv, WITH_GROUPS)])
def test_groups_that_are_ignored(cv):
    with pytest.warns(UserWarning, match="groups parameter is ignored"):
        folds = list(cv.split(PLACEHOLDER, CODES, GROUPS))
    assert same(folds, folds_of(cv, CODES))


# Regression

TARGETS = np.where(UNLABELED, np.nan, np.linspace(-1.0, 2.1, N).round(2))


class LabeledRidge(RegressorMixin, BaseEstimator):
    """A regressor that takes NaN in y."""

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def fit(self, X, y):
        known = ~np.isnan(y)
        assert known.any()
        assert not known.all()
        self.ridge_ = Ridge(alpha=self.alpha).fit(X[known], y[known])
        return self

    def predict(self, X):
        return self.ridge_.predict(X)


@pytest.mark.parametrize("y", [TARGETS, pd.Series(TARGETS), TARGETS.tolist()])
@pytest.mark.parametrize(
    "cv", [cv for cv in ALL.values() if not isinstance(cv, STRATIFIED)], ids=str
)
def test_continuous_targets(cv, y):
    check_folds(folds_of(cv, y), UNLABELED, n_repeats=getattr(cv, "n_repeats", 1))


def test_continuous_targets_need_no_two_classes():
    y = np.array([0.5, 0.5, 0.5, 0.5, 1.5, np.nan])
    check_folds(list(LabeledKFold(5).split(y, y)), np.isnan(y))


@pytest.mark.parametrize(
    ("cv", "instead"),
    [
        (StratifiedLabeledKFold(3), "Use LabeledKFold"),
        (RepeatedStratifiedLabeledKFold(3), "Use RepeatedLabeledKFold"),
        (StratifiedGroupLabeledKFold(3), "Use GroupLabeledKFold"),
    ],
)
def test_continuous_targets_have_no_strata(cv, instead):
    with pytest.raises(ValueError, match=f"needs classes, but y is continuous. {instead}"):
        folds_of(cv, TARGETS)


def test_regression_in_a_search():
    X = np.random.default_rng(0).normal(size=(N, 2))
    y = X @ [1.0, 2.0]
    y[UNLABELED] = np.nan
    search = GridSearchCV(LabeledRidge(), {"alpha": [1e-6, 1e3]}, cv=LabeledKFold(3)).fit(X, y)
    assert search.best_params_ == {"alpha": 1e-6}
    assert search.best_score_ > 0.999


# In scikit-learn


def two_gaussians(n, rng, distance=0.7):
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 4)) + distance * y[:, None], y


X, TRUTH = two_gaussians(400, np.random.default_rng(5))
Y = mask_labels(TRUTH, n_labeled=60, stratify=True, random_state=0)
SUBJECTS = np.arange(400) % 12


@splitters
def test_search_over_a_pipeline(cv):
    pipe = make_pipeline(StandardScaler(), ProjectedLeastSquaresClassifier())
    grid = {"projectedleastsquaresclassifier__alpha": [0.1, 10.0]}
    groups = {"groups": SUBJECTS} if isinstance(cv, WITH_GROUPS) else {}
    search = GridSearchCV(pipe, grid, cv=cv, error_score="raise").fit(X, Y, **groups)
    for i, alpha in enumerate([0.1, 10.0]):
        scores = []
        for train, test in folds_of(cv, Y, SUBJECTS, X):
            pipe.set_params(projectedleastsquaresclassifier__alpha=alpha).fit(X[train], Y[train])
            assert pipe[-1].certificate_.n_unlabeled == 340
            scores.append(np.mean(pipe.predict(X[test]) == TRUTH[test]))
        assert search.cv_results_["mean_test_score"][i] == pytest.approx(np.mean(scores))


@pytest.mark.parametrize(
    "estimator",
    [
        SelfTrainingClassifier(GaussianNB()),
        LabelSpreading(gamma=0.5),
        make_pipeline(StandardScaler(), SelfTrainingClassifier(GaussianNB())),
        ProjectedLeastSquaresClassifier(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_other_estimators(estimator):
    cv = RepeatedStratifiedLabeledKFold(4, 2, 0)
    scores = cross_val_score(estimator, X, Y, cv=cv, error_score="raise")
    assert scores.shape == (8,)
    assert 0.6 < scores.mean() < 0.95


def test_curves():
    clf = ProjectedLeastSquaresClassifier(alpha=0.1)
    cv = StratifiedLabeledKFold(5)
    _, scores = validation_curve(clf, X, Y, param_name="alpha", param_range=[0.1, 1.0], cv=cv)
    assert scores.shape == (2, 5)
    sizes, _, scores = learning_curve(
        clf,
        X,
        Y,
        train_sizes=[0.5, 1.0],
        cv=cv,
        shuffle=True,
        random_state=0,
        error_score="raise",
    )
    assert sizes.tolist() == [194, 388]  # 340 unlabeled and four fifths of 60 labeled rows
    np.testing.assert_allclose(scores[1], cross_val_score(clf, X, Y, cv=cv))


def test_predictions_of_labeled_rows():
    """cross_val_predict wants predictions of all rows; the indices give those of labeled ones."""
    clf, cv = ProjectedLeastSquaresClassifier(alpha=0.1), StratifiedLabeledKFold(5)
    with pytest.raises(ValueError, match="partitions"):
        cross_val_predict(clf, X, Y, cv=cv)
    result = cross_validate(clf, X, Y, cv=cv, return_estimator=True, return_indices=True)
    predicted = np.full(len(Y), -1)
    for fitted, test in zip(result["estimator"], result["indices"]["test"], strict=True):
        predicted[test] = fitted.predict(X[test])
    np.testing.assert_array_equal(predicted == -1, Y == -1)
    assert np.mean(predicted[Y >= 0] == Y[Y >= 0]) == pytest.approx(result["test_score"].mean())


def test_cloned_search():
    cv = StratifiedLabeledKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(ProjectedLeastSquaresClassifier(), {"alpha": [0.1, 1.0]}, cv=cv)
    copied = clone(search)
    assert copied.cv is not cv
    np.testing.assert_array_equal(
        copied.fit(X, Y).cv_results_["mean_test_score"],
        search.fit(X, Y).cv_results_["mean_test_score"],
    )


@pytest.mark.parametrize("kind", WITH_GROUPS)
def test_groups_are_routed(kind):
    cv, clf = kind(3), ProjectedLeastSquaresClassifier(alpha=0.1)
    expected = cross_val_score(clf, X, Y, groups=SUBJECTS, cv=cv)
    with config_context(enable_metadata_routing=True):
        routed = cross_validate(clf, X, Y, cv=cv, params={"groups": SUBJECTS})["test_score"]
        search = GridSearchCV(clf, {"alpha": [0.1]}, cv=cv).fit(X, Y, groups=SUBJECTS)
        renamed = kind(3).set_split_request(groups="subject")
        aliased = cross_validate(clf, X, Y, cv=renamed, params={"subject": SUBJECTS})
    np.testing.assert_array_equal(routed, expected)
    np.testing.assert_array_equal(aliased["test_score"], expected)
    assert search.best_score_ == expected.mean()
    assert len(set(expected)) > 1


@pytest.mark.parametrize("cv", [LabeledKFold(3), RepeatedStratifiedLabeledKFold(3, 2)], ids=str)
def test_groups_are_not_requested_without_need(cv):
    assert not hasattr(cv, "set_split_request")
    clf = ProjectedLeastSquaresClassifier()
    with config_context(enable_metadata_routing=True):
        with pytest.raises((TypeError, UnsetMetadataPassedError), match="groups"):
            cross_validate(clf, X, Y, cv=cv, params={"groups": SUBJECTS})
        assert cross_validate(clf, X, Y, cv=cv, params={})["test_score"].mean() > 0.6


# Why all this


def test_plain_search_misleads_and_this_one_does_not():
    """The score, and the choice between estimators, against 20,000 rows never seen."""
    rng = np.random.default_rng(0)
    X, truth = two_gaussians(1500, rng)
    X_new, y_new = two_gaussians(20_000, rng)
    y = mask_labels(truth, n_labeled=200, stratify=True, random_state=0)
    pipe = Pipeline([("scale", StandardScaler()), ("classifier", KNeighborsClassifier(15))])
    candidates = [KNeighborsClassifier(15), ProjectedLeastSquaresClassifier()]
    accuracy = [
        pipe.set_params(classifier=clone(c)).fit(X, y).score(X_new, y_new) for c in candidates
    ]
    better = int(np.argmax(accuracy))
    error = 2 * np.sqrt(accuracy[better] * (1 - accuracy[better]) / 200)

    def search(cv):
        return GridSearchCV(pipe, {"classifier": candidates}, cv=cv).fit(X, y)

    # -1 is the largest class: whatever predicts it most often wins, and is right about nothing.
    plain = search(5)
    assert plain.best_index_ != better
    assert abs(plain.best_score_ - plain.score(X_new, y_new)) > 0.5
    assert abs(plain.cv_results_["mean_test_score"][better] - accuracy[better]) > 0.5

    labeled = search(StratifiedLabeledKFold(5, shuffle=True, random_state=0))
    assert labeled.best_index_ == better
    assert abs(labeled.best_score_ - labeled.score(X_new, y_new)) < error
    assert accuracy[better] > accuracy[1 - better] + 0.5


@pytest.mark.parametrize(
    "estimator",
    [SelfTrainingClassifier(KNeighborsClassifier()), LabelSpreading(kernel="knn")],
    ids=["self-training", "label spreading"],
)
def test_plain_score_counts_unlabeled_rows_as_errors(estimator):
    rng = np.random.default_rng(1)
    X, truth = two_gaussians(1000, rng)
    X_new, y_new = two_gaussians(5000, rng)
    y = mask_labels(truth, n_labeled=200, stratify=True, random_state=0)
    accuracy = estimator.fit(X, y).score(X_new, y_new)
    plain = cross_val_score(estimator, X, y, cv=5).mean()
    labeled = cross_val_score(estimator, X, y, cv=StratifiedLabeledKFold(5)).mean()
    assert plain < 0.2  # one row in five has a label
    assert abs(labeled - accuracy) < 2 * np.sqrt(accuracy * (1 - accuracy) / 200)


class Named(StratifiedLabeledKFold):
    """A user's own splitter, with parameters that scikit-learn's does not have."""

    def __init__(self, name, **options):
        self.name = name
        super().__init__(**options)


def test_subclasses_may_have_parameters_of_their_own():
    y = np.array([0, 1, 0, 1, 0, 1, -1, -1])
    own = list(Named("mine", n_splits=3).split(np.zeros((8, 1)), y))
    plain = list(StratifiedLabeledKFold(3).split(np.zeros((8, 1)), y))
    for (train, test), (expected_train, expected_test) in zip(own, plain, strict=True):
        np.testing.assert_array_equal(train, expected_train)
        np.testing.assert_array_equal(test, expected_test)
