from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.estimators import find_unlabeled, split_labels
from neverworse.model_selection import mask_labels

CLASSES = {"int": [0, 1, 5, 9], "float": [0.0, 1.0, 2.0, 3.0], "str": ["a", "bb", "c", "ddd"]}


def objects(codes, values, missing):
    y = np.empty(len(codes), dtype=object)
    y[:] = [missing if code < 0 else values[code] for code in codes]
    return y


def ints(dtype):
    return lambda codes: np.array(objects(codes, CLASSES["int"], -1).tolist(), dtype)


def unsigned(dtype):
    # There is no -1 to mark rows that are unlabeled already.
    return lambda codes: np.array(objects(np.abs(codes), CLASSES["int"], 0).tolist(), dtype)


def floats(dtype):
    return lambda codes: np.array(objects(codes, CLASSES["float"], np.nan).tolist(), dtype)


def series(name, missing, dtype):
    def make(codes):
        values = objects(codes, CLASSES[name], missing)
        return pd.Series(values, dtype=dtype, index=range(len(codes), 0, -1), name="label")

    return make


# name: from codes, -1 for rows that are unlabeled already, to labels that "auto" can read
DTYPES = {
    **{name: ints(name) for name in ("int8", "int16", "int32", "int64")},
    **{name: unsigned(name) for name in ("uint8", "uint16", "uint32", "uint64")},
    **{name: floats(name) for name in ("float16", "float32", "float64")},
    "bool": lambda codes: np.abs(codes) % 2 == 1,
    "str": lambda codes: np.array(CLASSES["str"])[np.abs(codes)],
    "object int None": lambda codes: objects(codes, CLASSES["int"], None),
    "object int -1": lambda codes: objects(codes, CLASSES["int"], -1),
    "object float NaN": lambda codes: objects(codes, CLASSES["float"], float("nan")),
    "object str None": lambda codes: objects(codes, CLASSES["str"], None),
    "object str NA": lambda codes: objects(codes, CLASSES["str"], pd.NA),
    "object str -1": lambda codes: objects(codes, CLASSES["str"], -1),
    "object bool": lambda codes: objects(codes, [False, True, False, True], None),
    "list of int": lambda codes: objects(codes, CLASSES["int"], -1).tolist(),
    "list of str": lambda codes: objects(codes, CLASSES["str"], None).tolist(),
    "pandas int64": series("int", -1, "int64"),
    "pandas float64": series("float", np.nan, "float64"),
    "pandas bool": lambda codes: pd.Series(np.abs(codes) % 2 == 1, name="label"),
    "pandas object": series("str", None, object),
    "pandas str": series("str", None, "str"),
    "pandas string": series("str", pd.NA, "string"),
    "pandas arrow": series("str", pd.NA, "string[pyarrow]"),
    "pandas Int64": series("int", pd.NA, "Int64"),
    "pandas Int8": series("int", pd.NA, "Int8"),
    "pandas UInt8": series("int", pd.NA, "UInt8"),
    "pandas Float64": series("float", pd.NA, "Float64"),
    "pandas category str": series("str", None, "category"),
    "pandas category int": series("int", None, "category"),
    "pandas category -1": series("int", -1, "category"),
    "polars int": lambda codes: pl.Series(objects(codes, CLASSES["int"], None).tolist()),
    "polars str": lambda codes: pl.Series(objects(codes, CLASSES["str"], None).tolist()),
}
SAME_TYPE = [
    name
    for name in DTYPES
    if not name.startswith(("uint", "bool", "str", "list", "polars", "pandas bool"))
]


def as_list(y):
    return list(y.to_list() if hasattr(y, "to_list") else np.asarray(y, dtype=object).tolist())


def check(y, masked, hidden_count, missing_label="auto"):
    """Only so many labels are gone, the others are what they were, and the marks are found."""
    before, after = find_unlabeled(y, missing_label), find_unlabeled(masked, missing_label)
    assert after[before].all()
    assert after.sum() - before.sum() == hidden_count
    old, new = as_list(y), as_list(masked)
    for row in np.flatnonzero(~after):
        assert old[row] == new[row]
        assert isinstance(new[row], bool) == isinstance(old[row], (bool, np.bool_))
        assert isinstance(new[row], str) == isinstance(old[row], str)
    if isinstance(y, pd.Series):
        assert type(masked) is pd.Series
        assert masked.name == y.name
        assert masked.index.equals(y.index)
    else:
        assert type(masked) is np.ndarray


@st.composite
def codes(draw):
    """Rows of four classes, two at least of each, and some without."""
    more = draw(st.lists(st.integers(-1, 3), max_size=25))
    rows = draw(st.permutations([0, 1, 2, 3, 0, 1, 2, 3, *more]))
    return np.array(rows)


@pytest.mark.parametrize("name", DTYPES)
@settings(max_examples=15, deadline=None)
@given(codes=codes(), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_round_trip(name, codes, seed, data):
    y = DTYPES[name](codes)
    n_known = int((~find_unlabeled(y)).sum())
    n_labeled = data.draw(st.integers(4, n_known))
    kept = as_list(y)
    masked = mask_labels(y, n_labeled=n_labeled, stratify=True, random_state=seed)
    check(y, masked, n_known - n_labeled)
    assert len(as_list(masked)) == len(codes)
    # y itself is as it was
    np.testing.assert_array_equal(find_unlabeled(y), find_unlabeled(DTYPES[name](codes)))
    assert [str(v) for v in as_list(y)] == [str(v) for v in kept]
    if name in SAME_TYPE:
        assert masked.dtype == y.dtype


MARKERS = [-1, 77, 300, -40_000, np.nan, None, pd.NA, "?", "missing", 0.5, 99.1, np.inf, True]


@pytest.mark.parametrize("name", [name for name in DTYPES if "-1" not in name])
@settings(max_examples=20, deadline=None)
@given(
    codes=codes().map(np.abs),
    seed=st.integers(0, 2**32 - 1),
    marker=st.sampled_from(MARKERS),
    data=st.data(),
)
def test_round_trip_with_any_marker(name, codes, seed, marker, data):
    y = DTYPES[name](codes)
    n_known = int((~find_unlabeled(y, marker)).sum())
    n_labeled = data.draw(st.integers(1, n_known))
    masked = mask_labels(y, n_labeled=n_labeled, random_state=seed, missing_label=marker)
    check(y, masked, n_known - n_labeled, marker)


@settings(max_examples=100, deadline=None)
@given(
    y=st.lists(st.floats(-5, 5, width=16), min_size=1, max_size=12),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_targets_of_a_regression(y, seed, data):
    y = np.array([0.5, *y])
    n_labeled = data.draw(st.integers(1, len(y)))
    check(
        y,
        mask_labels(y, n_labeled=n_labeled, random_state=seed, missing_label=np.nan),
        len(y) - n_labeled,
        np.nan,
    )
    if -1 not in y:  # which "auto" may have to refuse, see below
        masked = mask_labels(y, n_labeled=n_labeled, random_state=seed)
        check(y, masked, len(y) - n_labeled)


# The type of the result


INTS = np.array([0, 1, 0, 1, 2, 2])


@pytest.mark.parametrize(
    ("y", "missing_label", "dtype", "marker"),
    [
        (INTS, "auto", np.int64, -1),
        (INTS.astype(np.int8), "auto", np.int8, -1),
        (INTS.astype(np.int8), 300, np.int64, 300),
        (INTS.astype(np.uint8), "auto", np.int64, -1),
        (INTS.astype(np.uint8), 255, np.uint8, 255),
        (INTS.astype(np.uint64), "auto", np.int64, -1),
        (np.array([0, 1, 2**64 - 2], np.uint64), "auto", object, -1),
        (INTS, np.nan, np.float64, np.nan),
        (INTS.astype(np.int8), np.nan, np.float64, np.nan),
        (np.array([0, 1, 2**53 + 1]), np.nan, object, np.nan),
        (INTS, None, np.float64, np.nan),
        (INTS, pd.NA, object, pd.NA),
        (INTS, "?", object, "?"),
        (INTS, 0.5, np.float64, 0.5),
        (INTS, True, object, True),
        (INTS * 1.0, "auto", np.float64, np.nan),
        (INTS.astype(np.float32), "auto", np.float32, np.nan),
        (INTS.astype(np.float32), -1, np.float32, -1.0),
        (INTS * 1.0, None, np.float64, np.nan),
        (INTS == 1, "auto", object, None),
        (INTS == 1, -1, object, -1),
        (INTS == 1, np.nan, object, np.nan),
        (INTS.astype(str), "auto", object, None),
        (INTS.astype(str), "?", "<U21", "?"),
        (np.array(["a", "b", "c"]), "missing", object, "missing"),
        (INTS.astype(str), -1, object, -1),
        (INTS.astype(object), "auto", object, None),
        (["a", "b", "c"], "auto", object, None),
        ([1, 2, 3], "auto", np.int64, -1),
        (pd.Series(INTS), "auto", np.int64, -1),
        (pd.Series(INTS), None, np.float64, np.nan),
        (pd.Series(INTS), np.nan, np.float64, np.nan),
        (pd.Series(INTS == 1), "auto", object, None),
        (pd.Series(["a", "b", "c"], dtype=object), "auto", object, None),
        (pd.Series(INTS, dtype="Int8"), "auto", "Int8", pd.NA),
        (pd.Series(INTS, dtype="Int8"), np.nan, "Int8", pd.NA),
        (pd.Series(INTS, dtype="Int8"), -1, "Int8", -1),
        (pd.Series(INTS, dtype="Int8"), 300, object, 300),
        (pd.Series(INTS, dtype="UInt8"), -1, object, -1),
        (pd.Series(INTS, dtype="Int64"), "?", object, "?"),
        (pd.Series(INTS, dtype="Int64"), True, object, True),
        (pd.Series(INTS == 1, dtype="boolean"), "auto", "boolean", pd.NA),
        (pd.Series(INTS == 1, dtype="boolean"), 7, object, 7),
        (pd.Series(["a", "b", "c"], dtype="string"), "auto", "string", pd.NA),
        (pd.Series(["a", "b", "c"], dtype="string"), "?", "string", "?"),
        (pd.Series(["a", "b", "c"], dtype="string"), -1, object, -1),
        (pd.Series(INTS, dtype="category"), "auto", "category", np.nan),
        (pd.Series(INTS, dtype="category"), -1, object, -1),
        (pd.Series(INTS, dtype="category"), True, object, True),
        (pl.Series([0, 1, 2]), "auto", object, None),
    ],
)
def test_type_and_marker(y, missing_label, dtype, marker):
    masked = mask_labels(
        y, n_labeled=2, stratify=np.arange(len(y)) % 2, random_state=0, missing_label=missing_label
    )
    assert masked.dtype == dtype
    found = list(masked[find_unlabeled(masked, missing_label)])
    assert len(found) == len(y) - 2
    for value in found:
        assert value is marker or value == marker or (value != value and marker != marker)


def test_categories_stay():
    y = pd.Series(pd.Categorical(["a", "b", "a"], categories=["c", "b", "a"], ordered=True))
    masked = mask_labels(y, n_labeled=1, random_state=0)
    assert masked.dtype == y.dtype


def test_large_integers_are_not_rounded():
    y = pd.Series([2**60 + 1, 2**60 + 3, None, 2**60 + 1, 2**60 + 3], dtype="Int64")
    masked = mask_labels(y, n_labeled=2, stratify=True, random_state=0)
    assert masked.dtype == "Int64"
    assert set(masked.dropna()) == {2**60 + 1, 2**60 + 3}


@pytest.mark.parametrize("null", [None, float("nan"), pd.NA])
def test_marker_that_is_there_already_is_used(null):
    y = np.array(["a", "b", null, "a", "b"], dtype=object)
    masked = mask_labels(y, n_labeled=2, stratify=True, random_state=0)
    assert sum(value is null for value in masked) == 3


def test_result_is_a_copy_even_if_nothing_is_hidden():
    for y in (INTS, pd.Series(INTS), pd.Series(INTS, dtype="Int64")):
        masked = mask_labels(y, fraction=1.0)
        masked[:] = 7
        assert as_list(y) == INTS.tolist()


def test_estimators_read_the_result():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    X = rng.normal(size=(200, 3)) + truth[:, None]
    reference = None
    for y in (truth, truth * 1.0, truth == 1, truth.astype(str), pd.Series(truth, dtype="Int64")):
        masked = mask_labels(y, n_labeled=20, stratify=True, random_state=1)
        clf = ProjectedLeastSquaresClassifier().fit(X, masked)
        assert clf.certificate_.n_labeled == 20
        reference = clf.coef_ if reference is None else reference
        np.testing.assert_array_equal(clf.coef_, reference)


# Which rows


@pytest.mark.parametrize(
    ("fraction", "kept"), [(0.25, 10), (0.5, 20), (1.0, 40), (1, 40), (0.013, 1), (0.33, 13)]
)
def test_fraction_of_the_labeled_rows(fraction, kept):
    y = np.r_[np.arange(40) % 4, np.full(60, -1)]
    masked = mask_labels(y, fraction=fraction, random_state=0, missing_label=-1)
    assert (masked != -1).sum() == kept
    assert (masked[40:] == -1).all()


def test_random_state():
    y = np.arange(100) % 5
    first = mask_labels(y, n_labeled=20, random_state=3)
    np.testing.assert_array_equal(first, mask_labels(y, n_labeled=20, random_state=3))
    assert (first != mask_labels(y, n_labeled=20, random_state=4)).any()
    rng = np.random.RandomState(3)
    np.testing.assert_array_equal(first, mask_labels(y, n_labeled=20, random_state=rng))
    assert (first != mask_labels(y, n_labeled=20, random_state=rng)).any()


@pytest.mark.parametrize("stratify", [None, True])
def test_every_row_has_the_same_chance(stratify):
    y = np.array([0, 1, 0, 1, 1, 1])
    rng = np.random.RandomState(0)
    kept = np.zeros(6)
    for _ in range(1000):
        masked = mask_labels(y, n_labeled=3, stratify=stratify, random_state=rng, missing_label=-1)
        kept += masked != -1
    # of two in class 0 one is kept, of four in class 1 two: one half for each row
    assert np.abs(kept - 500).max() < 4 * np.sqrt(1000 / 4)


@settings(max_examples=200, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_shares_are_as_near_as_whole_rows_allow(sizes, seed, data):
    total = sum(sizes)
    n_labeled = data.draw(st.integers(len(sizes), total))
    strata = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    masked = mask_labels(strata * 1.0, n_labeled=n_labeled, stratify=True, random_state=seed)
    kept = np.bincount(strata[~np.isnan(masked)], minlength=len(sizes))

    # In units of 1 / total, so that everything is an integer.
    def off(numbers):
        return sum((n_labeled * s - k * total) ** 2 for s, k in zip(sizes, numbers, strict=True))

    possible = (
        numbers
        for numbers in product(*(range(1, s + 1) for s in sizes))
        if sum(numbers) == n_labeled
    )
    assert off(kept.tolist()) == min(off(numbers) for numbers in possible)


def test_ties_are_broken_at_random():
    y = np.repeat([0, 1], 10)
    kept = {
        tuple(np.bincount(masked[masked >= 0]))
        for masked in (
            mask_labels(y, n_labeled=5, stratify=True, random_state=seed) for seed in range(30)
        )
    }
    assert kept == {(2, 3), (3, 2)}


def test_a_rare_class_keeps_a_row():
    y = np.repeat([0, 1, 2], [995, 4, 1])
    masked = mask_labels(y, n_labeled=10, stratify=True, random_state=0)
    assert np.bincount(masked[masked >= 0]).tolist() == [8, 1, 1]


@pytest.mark.parametrize(
    "strata",
    [
        np.repeat([0, 1], [30, 10]),
        np.repeat(["s", "t"], [30, 10]),
        pd.Series(np.repeat(["s", "t"], [30, 10]), dtype="category"),
        pl.Series(np.repeat(["s", "t"], [30, 10]).tolist()),
        [*[0.5] * 30, *[1.5] * 10],
    ],
)
def test_strata(strata):
    y = np.arange(40) % 2
    masked = mask_labels(y, n_labeled=8, stratify=strata, random_state=0)
    assert (masked[:30] >= 0).sum() == 6
    assert (masked[30:] >= 0).sum() == 2


def test_strata_of_unlabeled_rows_do_not_matter():
    y = np.r_[np.arange(20) % 2, np.full(20, -1)]
    strata = [*np.repeat([0, 1], [15, 5]).tolist(), *[None] * 19, "anything"]
    masked = mask_labels(y, n_labeled=4, stratify=strata, random_state=0)
    assert (masked[:15] >= 0).sum() == 3
    assert (masked[15:20] >= 0).sum() == 1


# Bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"Pass either n_labeled, .* or fraction, .*n_labeled=None and fraction=None"),
        ({"n_labeled": 2, "fraction": 0.5}, r"Pass either n_labeled, .* or fraction"),
        ({"n_labeled": 0}, r"from 1 to 6 \(the labeled rows of y\).*n_labeled=0"),
        ({"n_labeled": -1}, "from 1 to 6"),
        ({"n_labeled": 7}, "from 1 to 6.*n_labeled=7"),
        ({"n_labeled": 2.0}, r"an integer.*n_labeled=2.0"),
        ({"n_labeled": "2"}, "an integer"),
        ({"fraction": 0.0}, r"above 0 and at most 1.*fraction=0.0"),
        ({"fraction": 1.01}, "at most 1"),
        ({"fraction": -0.1}, "above 0"),
        ({"fraction": 3}, "at most 1"),
        ({"fraction": float("nan")}, "above 0"),
        ({"fraction": "0.5"}, "a number above 0"),
        ({"fraction": 0.05}, r"keeps at least one label.*fraction=0.05"),
        ({"n_labeled": 2, "stratify": True}, r"2 labels .* fewer than the 3.*Keep at least 3"),
        ({"n_labeled": 2, "stratify": False}, "must be None, True"),
        ({"n_labeled": 2, "stratify": "y"}, "must be None, True"),
        ({"n_labeled": 2, "stratify": [0, 1]}, "stratify has 2 entries, but y has 7"),
        (
            {"n_labeled": 2, "stratify": [0, 1, None, 0, 1, None, None]},
            "stratify is missing in 2 labeled rows, the first of them row 2",
        ),
        ({"n_labeled": 2, "missing_label": [-1]}, "not a scalar"),
    ],
)
def test_bad_arguments(arguments, message):
    y = [0, 1, 2, 0, 1, 2, -1]
    with pytest.raises(ValueError, match=message):
        mask_labels(y, **arguments)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([-1, -1, -1], "no labeled row: all 3 labels are missing. There are no labels to hide"),
        ([np.nan, np.nan], "no labeled row"),
        ([-1, 1, -1, 1], "missing_label=np.nan if it is a class"),
        ([-1.0, 1.0, -1.0], "missing_label=np.nan if it is a class"),
        (["a", "b", "nan"], "missing_label"),
        (None, "y is None"),
        ([[0, 1], [1, 0]], "1d array"),
        ([0, "a", 1, "b"], "mixes labels"),
    ],
)
def test_bad_labels(y, message):
    with pytest.raises(ValueError, match=message):
        mask_labels(y, n_labeled=1)


def test_continuous_targets_have_no_strata():
    with pytest.raises(ValueError, match=r"needs classes, but y is continuous\. Pass an array"):
        mask_labels([0.5, 1.5, 2.5], n_labeled=2, stratify=True)
    masked = mask_labels([0.5, 1.5, 2.5, 3.5], n_labeled=2, stratify=[0, 0, 1, 1], random_state=0)
    assert np.isnan(masked[:2]).sum() == np.isnan(masked[2:]).sum() == 1


def test_minus_one_as_a_class():
    y = np.array([-1, 1] * 10)
    masked = mask_labels(y, n_labeled=6, stratify=True, random_state=0, missing_label=np.nan)
    classes, _, unlabeled = split_labels(masked, np.nan)
    assert classes.tolist() == [-1.0, 1.0]
    assert unlabeled.sum() == 14


def test_result_that_could_not_be_read_back_is_refused():
    y = [0, 0, 0, 1]
    with pytest.raises(ValueError, match=r"1 labels that are kept.*ambiguous.*stratify=True"):
        mask_labels(y, n_labeled=1, random_state=0)
    masked = mask_labels(y, n_labeled=1, random_state=0, missing_label=-1)
    check(y, masked, 3, missing_label=-1)
    assert (mask_labels(y, n_labeled=2, stratify=True, random_state=0) == -1).sum() == 2
    # Beside whole numbers, nobody knows whether -1.0 is a target.
    y = np.array([0.5, -1.0, 2.0])
    assert mask_labels(y, n_labeled=2, random_state=1).tolist()[0] == 0.5
    with pytest.raises(ValueError, match="ambiguous"):
        mask_labels(y, n_labeled=2, random_state=0)
