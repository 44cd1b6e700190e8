import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections import deque
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from neverworse import (
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
    ProjectedLeastSquaresClassifier,
)
from neverworse.methods import (
    L2SVMClassifier,
    NullCategoryNoiseModel,
    SelfLearningClassifier,
    SupervisedClassifier,
)
from neverworse.rows import as_rows, open_parquet
from neverworse.rows._parquet import ParquetRows
from neverworse.rows._parquet_files import ChangedFileError, read_chunks
from tests.rows.fits import CASES, Case, assert_same_model


def names(X):
    return [f"x{j}" for j in range(X.shape[1])]


def write(folder, X, y=None, weights=None, *, cuts=(0.4,), group=1700, **settings):
    """Write a table as several files with row groups of odd sizes."""
    table = {name: X[:, j] for j, name in enumerate(names(X))}
    if y is not None:
        table["label"] = pa.array(y, from_pandas=True)
    if weights is not None:
        table["weight"] = weights
    table = pa.table(table)
    edges = [0, *(int(cut * len(X)) for cut in cuts), len(X)]
    for k, (lo, hi) in enumerate(pairwise(edges)):
        path = folder / f"part-{k}.parquet"
        parquet.write_table(table.slice(lo, hi - lo), path, group, **settings)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_same_model_as_in_memory(name, tmp_path):
    case = CASES[name]
    X, y, weights = case.data()
    data = open_parquet(
        write(tmp_path, X, y, weights),
        "label",
        weight=None if weights is None else "weight",
        batch_rows=1000,
    )
    assert data.X.n_chunks > 2 or case.n_rows < 1000
    found, expected = case.fit(*data), case.in_memory()
    assert_same_model(found, expected)
    assert list(found.feature_names_in_) == names(X)
    np.testing.assert_allclose(found.predict(data.X), expected.predict(X), atol=1e-9)


def test_result_does_not_depend_on_the_files(tmp_path):
    X, y, _ = CASES["few labels"].data()
    models = []
    for k, (cuts, group) in enumerate([((), 10**6), ((0.1, 0.11, 0.9), 333)]):
        (tmp_path / str(k)).mkdir()
        data = open_parquet(
            write(tmp_path / str(k), X, y, cuts=cuts, group=group), "label", batch_rows=1234
        )
        models.append(ProjectedLeastSquaresClassifier().fit(*data))
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


@pytest.mark.parametrize("batch_rows", [1, 7, 64, 500, None])
def test_verbs(batch_rows, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(-5, 6, (501, 3)).astype(np.float32)  # no sum is ever rounded
    rows = open_parquet(write(tmp_path, X, group=40), batch_rows=batch_rows).X
    expected = as_rows(X)
    weights = rng.choice([0.0, 1.0, 4.0], 501)
    for a, b in zip(rows.gram(weights), expected.gram(weights), strict=True):
        np.testing.assert_array_equal(a, b)
    coef = np.array([1.0, -2.0, 0.5])
    np.testing.assert_array_equal(rows.scores(coef, 1.0), expected.scores(coef, 1.0))
    np.testing.assert_array_equal(rows.weighted_sum(weights), expected.weighted_sum(weights))
    for found, wanted in zip(
        rows.scores_and_sum(coef, 1.0, lambda t, rows: t),
        expected.scores_and_sum(coef, 1.0, lambda t, rows: t),
        strict=True,
    ):
        np.testing.assert_array_equal(found, wanted)
    for indices in ([], [500], [3, 3, 1, 499], range(0, 501, 7)):
        indices = np.array(indices, dtype=np.intp)
        np.testing.assert_array_equal(rows.take(indices), X[indices])
    shifted = rows.shifted(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(shifted.block(5, 9), X[5:9] - [1.0, 2.0, 3.0])


def test_take_touches_only_row_groups_that_are_needed(tmp_path):
    X = np.random.default_rng(0).normal(size=(4000, 2)).astype(np.float32)
    rows = open_parquet(write(tmp_path, X, cuts=(0.5,), group=500), batch_rows=500).X
    (tmp_path / "part-1.parquet").unlink()
    indices = np.array([0, 700, 1999])
    np.testing.assert_array_equal(rows.take(indices), X[indices])
    with pytest.raises(ChangedFileError, match="vanished"):
        rows.take(np.array([2000]))


def test_types_stay_as_small_as_they_are(tmp_path):
    X = np.ones((5, 2), np.float32)
    assert open_parquet(write(tmp_path, X)).X.dtype == np.float32
    parquet.write_table(
        pa.table({"a": np.ones(3, np.int32), "b": [True, False, True]}), tmp_path / "i"
    )
    data = open_parquet(tmp_path / "i")
    assert data.X.dtype == np.float64
    np.testing.assert_array_equal(data.X.block(0, 3), [[1, 1], [1, 0], [1, 1]])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (pa.array([0, 1, None, 1]), [0, 1, -1, 1]),
        (pa.array([0, 1, -1, 1], pa.int8()), [0, 1, -1, 1]),
        (pa.array([-1, 1, None, 1]), [-1, 1, None, 1]),
        (pa.array([0.0, 1.0, None, 1.0]), [0.0, 1.0, np.nan, 1.0]),
        (pa.array(["a", "b", None, "b"]), ["a", "b", None, "b"]),
        (pa.array(["a", "b", None, "b"]).dictionary_encode(), ["a", "b", None, "b"]),
        (pa.array([True, None, False, True]), [True, None, False, True]),
        (pa.array([True, True, False, True]), [True, True, False, True]),
    ],
)
def test_labels(labels, expected, tmp_path):
    table = pa.table({"x": np.arange(4.0), "label": labels})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    y = open_parquet(tmp_path, "label").y
    expected = np.array(expected)
    np.testing.assert_array_equal(y, expected)
    assert y.dtype.kind == expected.dtype.kind or expected.dtype.kind == "U"


def test_strings_as_labels(tmp_path):
    X, y, _ = CASES["few labels"].data()
    words = np.array(["no", "yes", None], dtype=object)[y]
    data = open_parquet(write(tmp_path, X, words), "label")
    clf = ProjectedLeastSquaresClassifier().fit(*data)
    assert list(clf.classes_) == ["no", "yes"]
    assert set(clf.predict(data.X)) == {"no", "yes"}


@pytest.mark.parametrize("name", ["._part-0.parquet", "_temporary/part-0.parquet"])
def test_hidden_files_are_no_data(tmp_path, name):
    X, y, _ = CASES["small"].data()
    write(tmp_path, X, y)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"\x00\x05\x16\x07 of the Finder")
    assert open_parquet(tmp_path, "label").X.n_rows == len(X)


def test_columns_and_paths(tmp_path):
    X, y, _ = CASES["small"].data()
    write(tmp_path, X, y)
    files = [tmp_path / "part-0.parquet", str(tmp_path / "part-1.parquet")]
    for path in (tmp_path, str(tmp_path / "part-*.parquet"), files):
        data = open_parquet(path, columns=["x3", "x1"])
        assert data.y is None
        assert data.sample_weight is None
        np.testing.assert_array_equal(data.X.block(0, len(X)), X[:, [3, 1]])


@pytest.mark.parametrize("alpha", [0.0, "loo"])
def test_many_labeled_rows_are_left_where_they_are(alpha, tmp_path, monkeypatch):
    case = Case(ProjectedLeastSquaresClassifier, labeled=0.05, settings={"alpha": alpha})
    X, y, _ = case.data()
    data = open_parquet(write(tmp_path, X, y), "label", batch_rows=1000)
    assert (y >= 0).sum() > 500
    data.X.most_taken = 500
    take = ParquetRows.take

    def take_few(self, indices):
        assert len(indices) <= 500
        return take(self, indices)

    monkeypatch.setattr(ParquetRows, "take", take_few)
    assert_same_model(case.fit(*data), case.in_memory())


@pytest.mark.parametrize("batch_rows", [3000, 12_000])
def test_a_penalty_is_chosen_in_a_few_readings(batch_rows, tmp_path, monkeypatch):
    case = Case(LeastSquaresClassifierCV, labeled=0.2)
    X, y, _ = case.data()
    data = open_parquet(write(tmp_path, X, y), "label", batch_rows=batch_rows)
    chunks, run = [], ParquetRows.map_chunks

    def counted(self, verb, chosen, *others):
        chunks.extend(chosen)
        return run(self, verb, chosen, *others)

    monkeypatch.setattr(ParquetRows, "map_chunks", counted)
    clf = LeastSquaresClassifierCV().fit(*data)
    assert clf.alpha_ == pytest.approx(LeastSquaresClassifierCV().fit(X, y).alpha_, rel=1e-12)
    assert len(chunks) <= 9 * data.X.n_chunks


@pytest.mark.parametrize("weighted", [False, True])
def test_constant_columns_are_found_while_the_gram_matrix_is_added_up(weighted, tmp_path):
    X = np.random.default_rng(0).normal(size=(4000, 4)).astype(np.float32)
    X[:, 1], X[:, 2] = 7.0, 0.0
    X[:, 3] = np.repeat([1.0, 2.0], 2000)  # constant in every chunk
    weights = np.tile([0.0, 2.0], 2000) if weighted else None
    if weighted:
        X[::2, 1] = 8.0  # in rows that do not count
    rows = open_parquet(write(tmp_path, X, group=500), batch_rows=500).X
    known, taken = rows.with_gram(weights, np.array([3, 999]))
    np.testing.assert_array_equal(taken, X[[3, 999]])
    shutil.rmtree(tmp_path)
    columns = np.array([1, 2, 3])
    for found, expected in zip(
        known.shifted(np.ones(4)).ranges(columns, weights),
        as_rows(X).ranges(columns, weights),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ChangedFileError):  # what varies is not known
        known.ranges(np.array([0]), weights)


def test_lbfgs(tmp_path):
    case = Case(
        ProjectedLeastSquaresClassifier, n_rows=300, settings={"solver": "lbfgs", "tol": 1e-4}
    )
    X, y, _ = case.data()
    found = case.fit(*open_parquet(write(tmp_path, X, y), "label", batch_rows=50))
    np.testing.assert_allclose(found.coef_, case.in_memory().coef_, atol=1e-6)


# Faults


def refused(path, message, target="label", **more):
    with pytest.raises(ValueError, match=message):
        open_parquet(path, target, **more)


def test_wrong_tables(tmp_path):
    X, y, _ = CASES["small"].data()
    write(tmp_path, X, y)
    refused(tmp_path, "has no column 'nothing'", target="nothing")
    refused(tmp_path, "a list of at least one feature", columns=[])
    refused(tmp_path, "batch_rows must be 1 or more", batch_rows=0)
    refused(tmp_path / "none-*.parquet", "no Parquet file in")
    (tmp_path / "text.parquet").write_text("no table")
    refused(tmp_path / "text.parquet", "no Parquet file that can be read")
    with pytest.raises(FileNotFoundError):
        open_parquet(tmp_path / "none.parquet")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.set_column(0, "x0", t["x0"].cast(pa.float64())),
            "'x0' is float .* but double",
        ),
        (lambda t: t.append_column("more", t["x0"]), "has a column 'more'"),
        (lambda t: t.drop_columns(["x1"]), "has no column 'x1'"),
        (lambda t: t.set_column(0, "x0", t["x0"].cast(pa.string())), "float .* but string"),
    ],
)
def test_files_that_do_not_fit_together(change, message, tmp_path):
    X, y, _ = CASES["small"].data()
    write(tmp_path, X, y)
    last = tmp_path / "part-1.parquet"
    parquet.write_table(change(parquet.read_table(last)), last)
    refused(tmp_path, message)


def test_columns_that_say_the_same_twice(tmp_path):
    columns = [pa.array([1.0, 2.0]), pa.array([1.0, 5.0]), pa.array([0, 1])]
    parquet.write_table(pa.table(columns, names=["x", "x", "label"]), tmp_path / "a.parquet")
    refused(tmp_path, "has two columns 'x'")
    refused(tmp_path, "'label' is the target", columns=["label"])


def test_files_without_rows(tmp_path):
    X, y, _ = CASES["small"].data()
    data = open_parquet(write(tmp_path, X, y, cuts=(0.0, 0.5, 0.5)), "label", batch_rows=64)
    assert [file.n_rows for file in data.X.files] == [0, 150, 0, 150]
    assert_same_model(CASES["small"].fit(*data), CASES["small"].in_memory())
    nothing = open_parquet(tmp_path / "part-0.parquet", "label")
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        LeastSquaresClassifier().fit(*nothing)


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "b"]),
        pa.array(["a", "b"]).dictionary_encode(),
        pa.array([1, 2], pa.timestamp("s", "UTC")),
        pa.array([[1.0], [2.0]]),
    ],
    ids=["string", "dictionary", "timestamp", "list"],
)
def test_features_are_numbers(values, tmp_path):
    parquet.write_table(pa.table({"x": values, "label": [0, 1]}), tmp_path / "a.parquet")
    refused(tmp_path, f"'x' .* is {str(values.type)[:4]}.*, but features are numbers")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("estimator", [ProjectedLeastSquaresClassifier, LeastSquaresClassifier])
def test_message_says_where_numbers_are_not_finite(value, estimator, tmp_path):
    X, y, _ = Case(None, n_rows=10_000).data()
    X[9005, 2] = value
    y[9005] = 1  # the supervised model reads labeled rows only
    data = open_parquet(write(tmp_path, X, y), "label", batch_rows=50)
    assert data.X.n_chunks == 200
    what = "NaN" if np.isnan(value) else "infinity"
    with pytest.raises(ValueError, match=rf"{what}.*: row 5005 of .*part-1.parquet, column 'x2'"):
        estimator().fit(*data)
    fitted = ProjectedLeastSquaresClassifier().fit(X[:9000], y[:9000])
    with pytest.raises(ValueError, match=rf"{what}.*: row 5005 of .*part-1.parquet, column 'x2'"):
        fitted.predict(data.X)


def test_message_says_where_features_are_missing(tmp_path):
    X, y, _ = CASES["few labels"].data()
    last = write(tmp_path, X, y, group=500) / "part-1.parquet"
    table = parquet.read_table(last)
    column = table["x1"].to_numpy().copy()
    column[[5005, 6000]] = np.nan
    table = table.set_column(1, "x1", pa.array(column, from_pandas=True))
    parquet.write_table(table, last, 500)
    for batch_rows in (70, 1000, None):
        data = open_parquet(tmp_path, "label", batch_rows=batch_rows)
        message = r"'x1' of .*part-1.parquet has missing values, such as in row 5005\."
        with pytest.raises(ValueError, match=message):
            ProjectedLeastSquaresClassifier().fit(*data)


def spoil_after(data, n_passes, spoil):
    """Spoil the files in the middle of a fit."""
    rows, seen = data.X, []
    original = rows.map_chunks

    def run(*args):
        seen.append(args)
        if len(seen) == n_passes:
            spoil()
        return original(*args)

    rows.map_chunks = run
    return data


SPOILS = {
    "vanishes": (lambda path: path.unlink(), "has vanished"),
    "is written anew": (lambda path: (time.sleep(0.01), os.utime(path)), "has changed"),
    "gets another schema": (
        lambda path: parquet.write_table(parquet.read_table(path).drop_columns(["x1"]), path),
        "has changed",
    ),
    "is cut": (lambda path: os.truncate(path, 1000), "has changed"),
    "gets other rows in the same place, at the same time": (
        lambda path: replace_in_place(path),
        "has changed|cannot be read any more",
    ),
}


def replace_in_place(path):
    """Write other rows into a file, with nothing changed that the file system shows."""
    before = path.stat()
    table = parquet.read_table(path)
    backwards = table.take(np.arange(len(table))[::-1])
    parquet.write_table(backwards, path, 1700, compression="zstd")
    content = path.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    padding = bytes(before.st_size - len(content))  # that nothing refers to
    path.write_bytes(content[:-footer] + padding + content[-footer:])
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("n_passes", [1, 2, 3])
@pytest.mark.parametrize("spoil", SPOILS)
def test_file_that_changes_between_passes(spoil, n_passes, tmp_path):
    X, y, _ = CASES["few labels"].data()
    change, message = SPOILS[spoil]
    last = write(tmp_path, X, y) / "part-1.parquet"
    data = spoil_after(open_parquet(tmp_path, "label"), n_passes, lambda: change(last))
    clf = ProjectedLeastSquaresClassifier()
    clf.fit(X, y)  # a fit that fails must not leave the former one behind
    with pytest.raises(ChangedFileError, match=message):
        clf.fit(*data)
    with pytest.raises(NotFittedError):
        check_is_fitted(clf)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows protects files that are open")
@pytest.mark.parametrize("spoil", SPOILS)
def test_file_that_changes_while_it_is_read(spoil, tmp_path):
    X, y, _ = CASES["few labels"].data()
    change, message = SPOILS[spoil]
    data = open_parquet(write(tmp_path, X, y, cuts=(), group=500), "label", batch_rows=100)
    chunks = read_chunks(data.X.files, data.X.column_names, 100, range(data.X.n_chunks))
    next(chunks)
    change(tmp_path / "part-0.parquet")
    with pytest.raises(ChangedFileError, match=message):
        deque(chunks, maxlen=0)


def test_other_columns_in_predict(tmp_path):
    X, y, _ = CASES["small"].data()
    write(tmp_path, X, y)
    clf = ProjectedLeastSquaresClassifier().fit(*open_parquet(tmp_path, "label"))
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 6"):
        clf.predict(open_parquet(tmp_path, columns=["x0", "x1"]).X)
    with pytest.raises(ValueError, match="where 'x0' is expected, X has 'x1'"):
        clf.predict(open_parquet(tmp_path, columns=["x1", "x0", "x2", "x3", "x4", "x5"]).X)


def test_labels_of_another_length(tmp_path):
    X, y, _ = CASES["small"].data()
    data = open_parquet(write(tmp_path, X, y), "label")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ProjectedLeastSquaresClassifier().fit(data.X, data.y[:-1])


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_tuple_of_all_parts_is_no_features(tmp_path):
    X, y, _ = CASES["small"].data()
    data = open_parquet(write(tmp_path, X, y), "label")
    clf = ProjectedLeastSquaresClassifier().fit(*data)
    for use in (lambda: clf.predict(data), lambda: clf.fit(data, data.y)):
        with pytest.raises(TypeError, match=r"Pass its parts: estimator\.fit\(\*data\)"):
            use()


@pytest.mark.parametrize(
    "estimator",
    [L2SVMClassifier(), SelfLearningClassifier(), NullCategoryNoiseModel(), SupervisedClassifier()],
    ids=lambda estimator: type(estimator).__name__,
)
def test_estimators_that_need_all_rows_say_so(estimator, tmp_path):
    X, y, _ = CASES["small"].data()
    data = open_parquet(write(tmp_path, X, y), "label")
    with pytest.raises(TypeError, match=f"{type(estimator).__name__} needs all rows in memory"):
        estimator.fit(data.X, data.y)


def test_nothing_is_imported_before_it_is_needed():
    code = "import sys, neverworse.rows; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "neverworse.rows._chunked" in loaded
    assert not loaded & {"dask", "distributed", "neverworse.rows._dask", "neverworse.rows._parquet"}


MEASURE = """
import resource, sys
import pyarrow.parquet
from neverworse import ProjectedLeastSquaresClassifier
from neverworse.rows import open_parquet

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

data = open_parquet(sys.argv[1], "label")
before = peak()
clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(*data)
assert clf.certificate_.converged and clf.certificate_.guaranteed_improvement > 0
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory as Linux does")
def test_memory(tmp_path):
    """One row group of 200 MB; what is read of it at once is much less."""
    rng = np.random.default_rng(0)
    n, d = 500_000, 100
    y = rng.integers(0, 2, n)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X += 0.2 * y[:, None].astype(np.float32)
    y[300:] = -1
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    folder = write(tmp_path, np.asfortranarray(X), y, cuts=(), group=n, **plain)
    assert sum(file.stat().st_size for file in folder.iterdir()) > 180e6
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MEASURE), str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    shutil.rmtree(folder)
    assert float(run.stdout) < 150, run.stdout
