"""Readings of rows are counted alike, wherever the rows are."""

import dask.array as da
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.rows import DaskRows, Rows, as_rows, open_parquet


@pytest.fixture
def counted(load):
    return load("passes").counted


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 20_000)
    X = rng.normal(size=(20_000, 5)) + truth[:, None]
    return X, np.where(np.arange(20_000) < 20, truth, -1)


def write(X, folder):
    path = folder / "rows.parquet"
    parquet.write_table(pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])}), path)
    return open_parquet(path, batch_rows=3000).X


def in_dask(X):
    return DaskRows(da.from_array(X, chunks=(3000, -1)))


def readings(counted, X, y):
    with counted(X) as found:
        ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    return found


def test_the_same_passes_everywhere(counted, problem, tmp_path):
    X, y = problem
    dense = readings(counted, X, y)
    assert dense["gram"] == 1
    assert dense.passes >= 2
    for rows in (sparse.csr_array(X), write(X, tmp_path), in_dask(X)):
        found = readings(counted, rows, y)
        assert found["gram"] == 1
        assert found.passes == pytest.approx(dense.passes)
    assert found["take"] > 0
    assert found["soften"] > 0


def test_some_chunks_are_a_share_of_a_reading(counted, problem, tmp_path):
    rows = write(problem[0], tmp_path)
    assert rows.n_chunks == 7
    with counted(rows) as found:
        rows.take(np.array([1, 2, 3001]))
        rows.gram()
    assert found == pytest.approx({"take": 2 / 7, "gram": 1})
    assert found.passes == pytest.approx(0)


def test_other_rows_are_not_counted(counted, problem):
    X, _ = problem
    before = dict(vars(Rows))
    with counted(X) as found:
        as_rows(X[:100]).gram()
        as_rows(X).weighted_sum(np.ones(len(X)))
    assert found == {"weighted_sum": 1}
    assert dict(vars(Rows)) == before
