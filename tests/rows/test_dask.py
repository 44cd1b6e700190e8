from collections import Counter

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from neverworse import ICLSClassifier, LeastSquaresClassifier, ProjectedLeastSquaresClassifier
from neverworse.rows import DaskRows, Engine
from tests.rows.fits import CASES, SPARSE, Case, assert_same_model

# Chunks of many sizes, one of them empty, and in the columns too.
ROWS = (0.1, 0.1, 0.35, 0.352, 0.8)


def row_chunks(n):
    edges = [0, *(int(cut * n) for cut in ROWS), n]
    return tuple(np.diff(edges).tolist())


def chunked(X, n_columns=4):
    if sparse.issparse(X):
        blocks = np.split(np.arange(X.shape[0]), np.cumsum(row_chunks(X.shape[0]))[:-1])
        parts = [
            da.from_delayed(dask.delayed(X[block]), (len(block), X.shape[1]), X.dtype)
            for block in blocks
        ]
        return da.concatenate(parts)
    return da.from_array(X, chunks=(row_chunks(len(X)), n_columns))


def frame(X):
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    return dd.from_pandas(table, npartitions=5, sort=False)


@pytest.mark.parametrize("name", [*CASES, *SPARSE])
def test_same_model_as_in_memory(name):
    case = {**CASES, **SPARSE}[name]
    X, y, weights = case.data()
    lazy = chunked(X)
    assert_same_model(case.fit(lazy, y, weights), case.in_memory())


@pytest.mark.parametrize("name", ["few labels", "weights", "three classes", "supervised"])
def test_data_frames(name):
    case = CASES[name]
    X, y, weights = case.data()
    lazy = frame(X)
    labels = dd.from_pandas(pd.Series(y), npartitions=3)
    if weights is not None:
        weights = dd.from_pandas(pd.Series(weights), npartitions=3)
    found = case.fit(lazy, labels, weights)
    assert_same_model(found, case.in_memory())
    assert list(found.feature_names_in_) == list(lazy.columns)


def test_labels_in_chunks_of_which_most_lack_a_class():
    case = CASES["three classes"]
    X, y, weights = case.data()
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    lazy, labels = chunked(X), da.from_array(y, chunks=(row_chunks(len(y)),))
    assert len(np.unique(y[: len(y) // 2])) == 1
    assert_same_model(case.fit(lazy, labels, weights), case.fit(X, y, weights))


def test_result_is_reproducible():
    case = CASES["few labels"]
    X, y, weights = case.data()
    lazy = da.from_array(X, chunks=(180, -1))  # combined in three steps
    models = [case.fit(lazy, y, weights) for _ in range(2)]
    with dask.config.set(scheduler="synchronous"):
        models.append(case.fit(lazy, y, weights))
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        assert model.certificate_ == models[0].certificate_


def assert_equal(found, expected):
    """Where the rows are cut makes a difference to the last digit of a score."""
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
@pytest.mark.parametrize("name", ["few labels", "three classes", "sparse", "kernel"])
def test_predictions_are_lazy(name, method):
    case = {**CASES, **SPARSE}[name]
    X, _, _ = case.data()
    clf = case.in_memory()
    expected = getattr(clf, method)(X)
    lazy = chunked(X)
    found = getattr(clf, method)(lazy)
    assert isinstance(found, da.Array)
    assert found.chunks[0] == lazy.chunks[0]
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert_equal(found.compute(), expected)
    if not sparse.issparse(X):
        found = getattr(clf, method)(dd.from_pandas(pd.DataFrame(X), npartitions=3))
        assert isinstance(found, da.Array)
        assert found.numblocks[0] == 3
        assert_equal(found.compute(), expected)


def test_predictions_carry_no_training_data():
    case = CASES["few labels"]
    X, y, _ = case.data()
    clf = ICLSClassifier().fit(X, y)
    small = clf.predict(da.zeros((4, X.shape[1]), chunks=2))
    assert len(cloudpickle.dumps(small)) < 10_000 < len(cloudpickle.dumps(clf))


def test_words_as_classes():
    X, y, _ = CASES["few labels"].data()
    words = np.array(["no", "yes", None], dtype=object)[y]
    clf = ProjectedLeastSquaresClassifier().fit(chunked(X), words)
    found = clf.predict(chunked(X))
    assert found.dtype == clf.classes_.dtype
    np.testing.assert_array_equal(found.compute(), clf.predict(X))


def test_number_of_tasks_is_proportional_to_the_chunks(monkeypatch):
    sizes = []
    original = dask.compute

    def compute(*tasks, **more):
        sizes.append(len({key for task in tasks for key in task.__dask_graph__()}))
        return original(*tasks, **more)

    monkeypatch.setattr(dask, "compute", compute)
    X, y, _ = CASES["few labels"].data()
    largest = {}
    for n_chunks in (10, 40):
        sizes.clear()
        lazy = da.from_array(X, chunks=(len(X) // n_chunks, -1))
        ProjectedLeastSquaresClassifier().fit(lazy, y)
        largest[n_chunks] = max(sizes)
    assert largest[10] <= 5 * 10
    assert largest[40] <= 5 * 40


def bytes_of_a_fit(n_rows, monkeypatch):
    """Return how many bytes a fit sends to workers, and how many it gets, by what they are for."""
    X, y, _ = Case(ProjectedLeastSquaresClassifier, n_rows=n_rows, labeled=0.0).data()
    X, y = da.from_array(X, chunks=(n_rows // 12, -1)), da.from_array(y, chunks=n_rows // 12)
    sent, received = Counter(), Counter()

    def task(self, function, name, *inputs, home=()):
        sent[name] += len(cloudpickle.dumps(function))
        return original_task(self, function, name, *inputs, home=home)

    def run(self, tasks):
        found = original_run(self, tasks)
        for task, result in zip(tasks, found, strict=True):
            received[task.key.rsplit("-", 1)[0]] += len(cloudpickle.dumps(result))
        return found

    original_task, original_run = Engine.task, Engine.run
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "task", task)
        patch.setattr(Engine, "run", run)
        clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    assert clf.certificate_.holds
    return sent, received


def test_only_sums_and_working_sets_cross_the_network(monkeypatch):
    few, many = 60_000, 240_000
    bytes_of = {n: bytes_of_a_fit(n, monkeypatch) for n in (few, many)}
    working_sets = ("take", "findings", "scores_at")
    labels = ("scatter", "unlabeled_labels", "gather")
    for direction in (0, 1):
        grown = bytes_of[many][direction] - bytes_of[few][direction]
        for name in labels:  # once each
            assert grown.pop(f"neverworse-{name}", 0) < 0.4 * (many - few)
        for name in working_sets:
            grown.pop(f"neverworse-{name}", 0)
        changes = grown.pop("neverworse-measure", 0)  # soft labels of working sets
        assert changes < 0.75 * (many - few)
        assert grown.total() < 0.02 * (many - few)
    assert sum(bytes_of[many][1][f"neverworse-{name}"] for name in labels) > 0


# Unusual chunks, and faults


def test_unknown_chunk_sizes():
    case = CASES["few labels"]
    X, y, weights = case.data()
    lazy = frame(X).to_dask_array()
    assert np.isnan(lazy.shape[0])
    assert_same_model(case.fit(lazy, y, weights), case.in_memory())
    chosen = X[:, 0] < 1.0
    assert_same_model(
        case.fit(
            da.from_array(X, chunks=(500, 3))[da.from_array(chosen, chunks=500)], y[chosen], None
        ),
        case.fit(X[chosen], y[chosen], None),
    )


def from_blocks(blocks, n_columns):
    """An array whose chunks are not what it says."""
    parts = [
        da.from_delayed(dask.delayed(block), (len(block), n_columns), float) for block in blocks
    ]
    return da.concatenate(parts)


def refused(X, y, message, error=ValueError):
    clf = ProjectedLeastSquaresClassifier()
    with pytest.raises(error, match=message):
        clf.fit(X, y)
    with pytest.raises(NotFittedError):
        check_is_fitted(clf)


def test_chunks_of_different_widths():
    y = np.arange(30) % 2
    blocks = [np.ones((10, 3)), np.ones((10, 4)), np.ones((10, 3))]
    refused(from_blocks(blocks, 3), y, "Chunk 1 of X has 10 rows and 4 columns, but 10 rows and 3")
    unknown = da.from_delayed(dask.delayed(blocks[0]), (np.nan, 3), float)
    wide = da.from_delayed(dask.delayed(blocks[1]), (np.nan, 3), float)
    refused(da.concatenate([unknown, wide], allow_unknown_chunksizes=True), y[:20], "Chunk 1 .* 4")


def test_chunks_that_change_between_passes():
    rng = np.random.default_rng(0)
    sizes = iter([10, 9, 8, 7])

    def block():
        return rng.normal(size=(next(sizes), 2))

    lazy = da.from_delayed(dask.delayed(block, pure=False)(), (10, 2), float)
    refused(lazy, np.arange(10) % 2, "Chunk 0 of X has 9 rows and 2 columns, but 10 rows")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_message_says_where_numbers_are_not_finite(value):
    X, y, _ = CASES["few labels"].data()
    X[9001, 2] = value
    what = "NaN" if np.isnan(value) else "infinity"
    lazy = da.from_array(X, chunks=(50, -1))
    refused(lazy, y, rf"{what}.*: row 9001 \(row 1 of chunk 180\), column 2")
    refused(frame(X), y, rf"{what}.*: row 9001 .*, column 'x2'")


def test_wrong_input():
    y = np.arange(10) % 2
    refused(da.ones(10), y, "Expected 2D array")
    refused(dask.delayed(np.ones)((10, 2)), y, "Expected 2D array")
    refused(dd.from_pandas(pd.Series(np.ones(10)), 2), y, "Expected 2D array")
    refused(da.ones((10, 2)).astype(complex), y, "features are numbers")
    refused(da.ones((10, 2)), y[:9], "inconsistent numbers of samples")
    refused(da.ones((10, 2)), da.from_array(y[:9]), "inconsistent numbers of samples")
    refused(da.ones((0, 2)), y[:0], "minimum of 1 is required")
    text = dd.from_pandas(pd.DataFrame({"a": np.arange(10.0), "b": list("abcdefghij")}), 2)
    refused(text, y, "Column 'b' of X is .*, but features are numbers")


def test_an_error_of_a_chunk_is_raised_as_it_is():
    def broken():
        raise ZeroDivisionError("of the user")

    lazy = da.from_delayed(dask.delayed(broken)(), (10, 2), float)
    refused(lazy, np.arange(10) % 2, "of the user", ZeroDivisionError)


def test_other_columns_in_predict():
    X, _, _ = CASES["small"].data()
    clf = CASES["small"].fit(frame(X), *CASES["small"].data()[1:])
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 6"):
        clf.predict(da.ones((5, 2)))
    other = frame(X).rename(columns={"x0": "z0"})
    with pytest.raises(ValueError, match="where 'x0' is expected, X has 'z0'"):
        clf.predict(other)
    with pytest.raises(NotFittedError):
        LeastSquaresClassifier().predict(da.ones((5, 2)))


def test_nullable_and_integer_columns():
    table = pd.DataFrame({"a": pd.array([1, 2, None, 4] * 5, "Int32"), "b": [True, False] * 10})
    rows = DaskRows(dd.from_pandas(table.fillna({"a": 3}), npartitions=2))
    np.testing.assert_array_equal(rows.block(0, 4), [[1, 1], [2, 0], [3, 1], [4, 0]])
    assert DaskRows(dd.from_pandas(table, npartitions=2)).first_not_finite()[:2] == (2, 0)
