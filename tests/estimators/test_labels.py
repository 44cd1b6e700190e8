import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import DataConversionWarning

from neverworse import LeastSquaresClassifier, ProjectedLeastSquaresClassifier
from neverworse.estimators import split_labels
from tests.label_encodings import CODES, ENCODINGS, UNLABELED, X, labels, objects

CLASSIFIERS = [LeastSquaresClassifier, ProjectedLeastSquaresClassifier]

encodings = pytest.mark.parametrize("name", ENCODINGS)
classifiers = pytest.mark.parametrize("classifier", CLASSIFIERS)


@encodings
def test_split_labels_reads_every_encoding(name):
    y, expected = ENCODINGS[name]
    classes, target, unlabeled = split_labels(y, "auto")
    assert classes.tolist() == expected
    np.testing.assert_array_equal(unlabeled, UNLABELED)
    np.testing.assert_array_equal(target, CODES == 1)
    assert target.dtype == np.int8


@classifiers
@encodings
def test_same_fit_whatever_the_encoding(classifier, name):
    y, expected = ENCODINGS[name]
    reference = classifier().fit(X, CODES)
    clf = classifier().fit(X, y)
    np.testing.assert_array_equal(clf.coef_, reference.coef_)
    np.testing.assert_array_equal(clf.intercept_, reference.intercept_)
    assert clf.classes_.tolist() == expected
    predicted = clf.predict(X)
    assert predicted.dtype == clf.classes_.dtype
    assert predicted.tolist() == [expected[code] for code in reference.predict(X)]
    assert len(set(predicted.tolist())) == 2


@pytest.mark.parametrize(
    ("y", "dtype"),
    [
        (np.array(labels(0, 1, -1), np.int8), np.int8),
        (labels(0, 1, -1), np.int64),
        (objects(0, 1, None), np.int64),
        (labels(0.0, 1.0, None), np.float64),
        (np.array(labels(0.0, 1.0, np.nan), np.float32), np.float32),
        (labels(False, True, None), np.bool_),
        (pd.Series(labels(False, True, None), dtype="boolean"), np.bool_),
        (pl.Series(labels(False, True, None)), np.bool_),
        (labels("a", "b", None), np.object_),
    ],
)
def test_classes_have_the_type_of_the_labels(y, dtype):
    assert split_labels(y, "auto")[0].dtype == dtype


@pytest.mark.parametrize(
    "y",
    [
        pd.Series(labels(0, 1, pd.NA), dtype="Int64"),
        pd.Series(labels(0, 1, None), dtype="category"),
        pl.Series(labels(0, 1, None)),
    ],
    ids=["pandas Int64", "pandas category", "polars Int64"],
)
def test_integer_columns_with_nulls_keep_integer_classes(y):
    assert split_labels(y, "auto")[0].dtype.kind == "i"


@classifiers
@pytest.mark.parametrize(
    ("zero", "one"), [("yes", "no"), (9, 3), (True, False), (1.0, 0.0)], ids=repr
)
def test_classes_are_sorted_and_the_second_is_coded_one(classifier, zero, one):
    clf = classifier().fit(X, labels(zero, one, None))
    assert clf.classes_.tolist() == [one, zero]
    # Coded the other way round, all scores change their sign.
    np.testing.assert_allclose(
        clf.decision_function(X), -classifier().fit(X, CODES).decision_function(X), atol=1e-10
    )


@classifiers
@pytest.mark.parametrize(
    "y",
    [
        np.where(CODES == 1, 1, 0),
        np.where(CODES == 1, 1.0, 0.0),
        CODES == 1,
        np.where(CODES == 1, "b", "a"),
        np.where(CODES == 1, "b", "a").astype(object),
        np.where(CODES == 1, 200, 100).astype(np.uint8),
        pd.Series(np.where(CODES == 1, "b", "a"), dtype="category"),
        pl.Series((CODES == 1).tolist()),
    ],
    ids=lambda y: f"{type(y).__module__.split('.')[0]} {y.dtype}",
)
def test_all_rows_labeled(classifier, y):
    _, target, unlabeled = split_labels(y, "auto")
    assert not unlabeled.any()
    np.testing.assert_array_equal(target, CODES == 1)
    clf = classifier().fit(X, y)
    reference = classifier().fit(X, np.where(CODES == 1, 1, 0))
    np.testing.assert_array_equal(clf.coef_, reference.coef_)


# What "auto" refuses to guess: y, its message, and {missing_label: expected classes}.
AMBIGUOUS = {
    "-1 and 1": (labels(-1, 1, -1), "-1 and 1 only", {np.nan: [-1, 1]}),
    "-1 and 0": (np.array(labels(0, -1, -1), np.int8), "-1 and 0 only", {None: [-1, 0]}),
    "-1 and 'a'": (labels("a", "a", -1), "-1 and 'a' only", {}),
    "-1 and NaN": (objects(-1, 1, np.nan), "-1 and null", {np.nan: [-1, 1], pd.NA: [-1, 1]}),
    "-1 and None": (labels(-1, 1, None), "-1 and null", {None: [-1, 1], np.nan: [-1, 1]}),
    "-1, 0, 1 and None": ([*labels(0, 1, -1), None], "-1 and null", {}),
    "-1 and NA": (
        pd.Series(labels(-1, 1, pd.NA), dtype="Int64"),
        "-1 and null",
        {pd.NA: [-1, 1], None: [-1, 1]},
    ),
    "-1 and polars null": (pl.Series(labels(-1, 1, None)), "-1 and null", {None: [-1, 1]}),
    "-1.0 and NaN": (labels(-1.0, 1.0, np.nan), "-1 and null", {np.nan: [-1.0, 1.0]}),
    "0.0, 1.0 and -1.0": (labels(0.0, 1.0, -1.0), "-1 among floats", {-1: [0.0, 1.0]}),
    "float32": (
        np.array(labels(0.0, 1.0, -1.0), np.float32),
        "-1 among floats",
        {-1.0: [0.0, 1.0]},
    ),
    "'-1'": (np.array(labels("a", "b", "-1")), "the string '-1'", {"-1": ["a", "b"]}),
    "'-1' is a class": (labels("-1", "1", None), "the string '-1'", {None: ["-1", "1"]}),
    "'nan'": (
        np.array(labels("a", "b", np.nan)),  # NumPy made it a string
        "the string 'nan'",
        {"nan": ["a", "b"]},
    ),
    "'None'": (np.array(labels("a", "b", None)).astype(str), "'None'", {"None": ["a", "b"]}),
    "'<NA>'": (labels("a", "b", "<NA>"), "the string '<NA>'", {"<NA>": ["a", "b"]}),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_nothing_is_guessed(name):
    y, message, _ = AMBIGUOUS[name]
    with pytest.raises(ValueError, match=message) as caught:
        split_labels(y, "auto")
    assert "missing_label=" in str(caught.value)


@classifiers
def test_fit_refuses_to_guess_and_stays_unfitted(classifier):
    clf = classifier()
    with pytest.raises(ValueError, match="missing_label=-1 if -1 marks unlabeled rows"):
        clf.fit(X, labels(-1, 1, -1))
    assert not hasattr(clf, "coef_")


@pytest.mark.parametrize(
    ("name", "missing_label"),
    [(name, missing) for name, case in AMBIGUOUS.items() for missing in case[2]],
    ids=lambda value: str(value),
)
def test_missing_label_settles_it(name, missing_label):
    y, _, resolved = AMBIGUOUS[name]
    classes, target, unlabeled = split_labels(y, missing_label)
    assert classes.tolist() == resolved[missing_label]
    if name == "-1 and 1":  # no marker is left: the -1 of unlabeled rows is a class
        np.testing.assert_array_equal(target, CODES == 1)
        assert not unlabeled.any()
    elif name == "-1 and 0":
        np.testing.assert_array_equal(target, CODES == 0)
        assert not unlabeled.any()
    else:
        np.testing.assert_array_equal(target, CODES == 1)
        np.testing.assert_array_equal(unlabeled, UNLABELED)


@pytest.mark.parametrize(
    ("y", "missing_label", "expected"),
    [
        (labels(0, 1, -1), -1, [0, 1]),
        (labels(-1, 1, 0), 0, [-1, 1]),
        (labels("a", "b", "?"), "?", ["a", "b"]),
        (np.array(labels("a", "b", "?")), "?", ["a", "b"]),
        (np.array(labels("a", "b", "")), "", ["a", "b"]),
        (labels(0, 1, "?"), "?", [0, 1]),
        (pd.Series(labels("a", "b", "?"), dtype="category"), "?", ["a", "b"]),
        (pl.Series(labels("a", "b", "?")), "?", ["a", "b"]),
        (labels(False, True, "?"), "?", [False, True]),
        (objects(0, 1, -99), -99, [0, 1]),
        (labels(0.0, 1.0, np.inf), np.inf, [0.0, 1.0]),
        (np.array(labels(0, 1, 255), np.uint8), 255, [0, 1]),
        (pd.Series(labels("a", "b", None), dtype="str"), np.nan, ["a", "b"]),
        (pd.Series(labels(0, 1, None), dtype="Int64"), None, [0, 1]),
        (labels("a", "b", np.nan), pd.NA, ["a", "b"]),
    ],
)
def test_missing_label_may_be_any_scalar(y, missing_label, expected):
    classes, target, unlabeled = split_labels(y, missing_label)
    assert classes.tolist() == expected
    np.testing.assert_array_equal(unlabeled, UNLABELED)
    np.testing.assert_array_equal(target, CODES == 1)


def test_marker_that_does_not_occur_leaves_three_classes():
    classes, target, unlabeled = split_labels(CODES, -2)
    assert classes.tolist() == [-1, 0, 1]
    np.testing.assert_array_equal(target, CODES + 1)
    assert not unlabeled.any()


@classifiers
@pytest.mark.parametrize(
    ("y", "missing_label"),
    [
        (labels(-1, 1, np.nan), np.nan),
        (labels(0.0, 1.0, -1.0), -1),
        (labels("a", "b", "?"), "?"),
        (labels(-1, 1, pd.NA), pd.NA),
        (labels(-1, 1, None), None),
    ],
)
def test_missing_label_in_fit(classifier, y, missing_label):
    clf = classifier(missing_label=missing_label).fit(X, y)
    np.testing.assert_array_equal(clf.coef_, classifier().fit(X, CODES).coef_)


@pytest.mark.parametrize("missing_label", [-1, "?", 5.0])
@pytest.mark.parametrize("null", [np.nan, None, pd.NA])
def test_null_values_beside_another_marker(missing_label, null):
    y = objects(0, 1, -1)
    y[1] = null
    with pytest.raises(ValueError, match=r"null values .* in addition to missing_label="):
        split_labels(y, missing_label)


def test_nan_beside_minus_one_in_floats():
    y = np.array(labels(0.0, 1.0, -1.0))
    y[1] = np.nan
    with pytest.raises(ValueError, match="in addition to missing_label=-1"):
        split_labels(y, -1)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_unsigned_integers_have_no_minus_one(dtype):
    y = np.where(CODES == 1, 1, 0).astype(dtype)
    for missing_label in ("auto", -1):
        classes, target, unlabeled = split_labels(y, missing_label)
        assert classes.tolist() == [0, 1]
        assert classes.dtype == dtype
        assert not unlabeled.any()
        np.testing.assert_array_equal(target, CODES == 1)


def test_minus_one_stored_in_unsigned_integers_is_not_taken_for_a_class():
    with pytest.raises(ValueError, match=r"255 in unsigned integers.*missing_label=255"):
        split_labels(CODES.astype(np.uint8), "auto")
    _, _, unlabeled = split_labels(CODES.astype(np.uint8), 255)
    np.testing.assert_array_equal(unlabeled, UNLABELED)
    assert split_labels(CODES.astype(np.uint8), np.nan)[0].tolist() == [0, 1, 255]


@pytest.mark.parametrize("n_classes", [3, 7, 12])
def test_several_classes(n_classes):
    codes = np.where(UNLABELED, -1, np.arange(30) % n_classes)
    names = np.array([f"class {k:02}" for k in range(n_classes)] + [None], object)
    for y in (codes, names[codes]):
        classes, target, unlabeled = split_labels(y, "auto")
        present = np.unique(codes[~UNLABELED])
        assert len(classes) == len(present)
        np.testing.assert_array_equal(unlabeled, UNLABELED)
        np.testing.assert_array_equal(present[target.astype(int)][~UNLABELED], codes[~UNLABELED])


def test_numbers_and_strings_are_never_equal():
    y = labels("0", "1", 0)
    classes, _, unlabeled = split_labels(y, 0)
    assert classes.tolist() == ["0", "1"]
    np.testing.assert_array_equal(unlabeled, UNLABELED)


def test_true_is_not_the_marker_one():
    classes, _, unlabeled = split_labels(objects(False, True, 1), 1)
    assert classes.tolist() == [False, True]
    np.testing.assert_array_equal(unlabeled, UNLABELED)


@pytest.mark.parametrize(
    "missing_label", [[-1], (-1, None), np.array([-1]), np.array([-1, 0]), {-1}], ids=repr
)
def test_missing_label_must_be_a_scalar(missing_label):
    with pytest.raises(ValueError, match=r"missing_label=.* is not a scalar"):
        split_labels(CODES, missing_label)


@classifiers
@pytest.mark.parametrize(
    "y",
    [
        CODES[:, None],
        CODES[:, None].tolist(),
        pd.DataFrame({"y": CODES}),
        pl.DataFrame({"y": CODES}),
    ],
    ids=["array", "list", "pandas", "polars"],
)
def test_column_vector_warns_as_in_scikit_learn(classifier, y):
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        clf = classifier().fit(X, y)
    np.testing.assert_array_equal(clf.coef_, classifier().fit(X, CODES).coef_)


@classifiers
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (labels(0, 0, None), r"one class only \(0\)"),
        (np.zeros(30, int), r"one class only \(0\)"),
        (labels("a", "a", None), r"one class only \('a'\)"),
        (labels(True, True, None), r"one class only \(True\)"),
        (labels(1.0, 1.0, np.nan), r"one class only \(1\.0\)"),
        (np.full(30, -1), "no labeled row: all 30 labels are missing"),
        (np.full(30, np.nan), "no labeled row"),
        ([None] * 30, "no labeled row"),
        (pd.Series([pd.NA] * 30, dtype="Int64"), "no labeled row"),
        (pl.Series([None] * 30, dtype=pl.String), "no labeled row"),
        (None, "requires y to be passed, but the target y is None"),
        (CODES[:-1], "inconsistent numbers of samples.*30, 29"),
        (np.r_[CODES, 1], "inconsistent numbers of samples.*30, 31"),
        (
            np.where(UNLABELED, np.nan, np.linspace(0.1, 0.9, 30)),
            "[Uu]nknown label type: continuous",
        ),
        (labels(0.5, 1.5, None), "[Uu]nknown label type: continuous"),
        (labels(0.0, np.inf, np.nan), "infinity"),
        (np.array(labels(0, 1, -1), complex), "Complex data not supported"),
        (labels("a", 1, None), r"mixes labels of different types \(int, str\)"),
        (objects("a", True, None), r"mixes labels of different types \(bool, str\)"),
        (np.c_[CODES, CODES], "1d array"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_clear_errors(classifier, y, message):
    with pytest.raises(ValueError, match=re.compile(message, re.DOTALL)):
        classifier().fit(X, y)


def test_masked_array_is_not_read_as_if_all_its_labels_were_known():
    y = np.ma.masked_array(np.where(CODES == 1, 1, 0), mask=UNLABELED)
    try:
        _, _, unlabeled = split_labels(y, "auto")
    except ValueError as error:
        assert "mask" in str(error)  # noqa: PT017
    else:
        np.testing.assert_array_equal(unlabeled, UNLABELED)


def test_labels_are_not_changed():
    for y in (CODES.copy(), objects("a", "b", None), np.array(labels(0.0, 1.0, np.nan))):
        before = y.copy()
        split_labels(y, "auto")
        np.testing.assert_array_equal(y, before)
