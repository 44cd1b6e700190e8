"""Suggested labels are those of a brute-force I-optimal design, from rows of all kinds."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse

from neverworse import LeastSquaresClassifier, LeastSquaresClassifierCV, suggest_labels
from neverworse.evidence import design
from neverworse.rows import open_parquet


def make(n=200, d=5, n_labeled=20, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(5, size=(n, d)) * rng.uniform(0.2, 3, d) + rng.normal(size=d)
    y = np.full(n, -1)
    y[rng.permutation(n)[:n_labeled]] = np.arange(n_labeled) % n_classes
    return X, y


def brute_force(X, y, n, alpha, weights=None, fit_intercept=True):
    """Invert the matrix for every row, at every turn."""
    s = np.ones(len(X)) if weights is None else weights
    E = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    P = np.eye(E.shape[1])
    if fit_intercept:
        P[-1, -1] = 0.0
    M = E.T @ (E * s[:, None])
    known = np.flatnonzero(y != -1).tolist()
    rows, decreases = [], []
    for _ in range(n):
        A = (E[known] * s[known, None]).T @ E[known] + alpha * P
        now = np.trace(np.linalg.solve(A, M))
        free = [j for j in range(len(X)) if j not in known and s[j] > 0]
        ahead = [np.trace(np.linalg.solve(A + s[j] * np.outer(E[j], E[j]), M)) for j in free]
        best = int(np.argmin(ahead))
        rows.append(free[best])
        decreases.append(now - ahead[best])
        known.append(free[best])
    return rows, np.array(decreases)


@pytest.mark.parametrize("alpha", [0.1, 30.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_suggestions_equal_brute_force(alpha, fit_intercept, weighted):
    X, y = make()
    s = np.random.default_rng(1).uniform(0, 2, len(X)).round(1) if weighted else None
    found = suggest_labels(X, y, 8, alpha=alpha, fit_intercept=fit_intercept, sample_weight=s)
    rows, decreases = brute_force(X, y, 8, alpha, s, fit_intercept)
    assert found.rows.tolist() == rows
    noise = LeastSquaresClassifierCV([alpha], fit_intercept=fit_intercept).fit(X, y, s).loo_brier_
    total = len(X) if s is None else s.sum()
    np.testing.assert_allclose(found.decrease, decreases * noise / total, rtol=1e-8)


def test_suggestions_do_not_depend_on_the_batch(monkeypatch):
    X, y = make(n=400, seed=3)
    expected = suggest_labels(X, y, 12, alpha=0.5)
    monkeypatch.setattr(design, "BATCH", 3)
    found = suggest_labels(X, y, 12, alpha=0.5)
    assert found.rows.tolist() == expected.rows.tolist() == brute_force(X, y, 12, 0.5)[0]
    np.testing.assert_allclose(found.decrease, expected.decrease, rtol=1e-9)


def test_a_pool_of_promising_rows_is_nearly_as_good_as_all_rows(monkeypatch):
    X, y = make(n=4000)
    expected = suggest_labels(X, y, 40, alpha=0.5).decrease.sum()
    monkeypatch.setattr(design, "POOL_BYTES", 0)
    monkeypatch.setattr(design, "POOL_ROWS", 400)
    found = suggest_labels(X, y, 40, alpha=0.5)
    assert 0.99 * expected <= found.decrease.sum() < expected
    da = pytest.importorskip("dask.array")
    chunks = suggest_labels(da.from_array(X, chunks=(700, -1)), y, 40, alpha=0.5)
    assert chunks.rows.tolist() == found.rows.tolist()


def test_many_picks_take_several_batches():
    X, y = make(n=300)
    found = suggest_labels(X, y, 70, alpha=1.0)
    assert found.rows.tolist() == brute_force(X, y, 70, 1.0)[0]
    assert len(set(found.rows.tolist())) == 70


def test_rows_in_files_and_chunks_give_the_same(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    X, y = make(n=500)
    table = pa.table({f"c{k}": X[:, k] for k in range(X.shape[1])})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=120)
    rows = open_parquet(tmp_path / "rows.parquet").X
    weights = np.where(np.arange(500) % 7 == 0, 2.0, 1.0)
    for settings in ({}, {"sample_weight": weights}):
        expected = suggest_labels(X, y, 40, **settings)  # in two batches
        found = suggest_labels(rows, y, 40, **settings)
        assert found.rows.tolist() == expected.rows.tolist()
        np.testing.assert_allclose(found.decrease, expected.decrease, rtol=1e-6)


def test_dask_collections_give_the_same():
    da = pytest.importorskip("dask.array")
    X, y = make(n=500)
    expected = suggest_labels(X, y, 6)
    found = suggest_labels(da.from_array(X, chunks=(130, -1)), y, 6)
    assert found.rows.tolist() == expected.rows.tolist()
    np.testing.assert_allclose(found.decrease, expected.decrease, rtol=1e-6)


def test_sparse_rows_give_the_same():
    X, y = make()
    X[np.abs(X) < 1.0] = 0.0
    expected = suggest_labels(X, y, 6)
    assert suggest_labels(sparse.csr_array(X), y, 6).rows.tolist() == expected.rows.tolist()


def test_wide_rows_equal_brute_force():
    X, y = make(n=40, d=60, n_labeled=12)
    found = suggest_labels(X, y, 5, alpha=20.0)
    rows, decreases = brute_force(X, y, 5, 20.0)
    assert found.rows.tolist() == rows
    np.testing.assert_allclose(found.decrease / found.decrease[0], decreases / decreases[0])


def test_constant_and_shifted_columns_change_nothing():
    X, y = make()
    expected = suggest_labels(X, y, 6, alpha=1.0)
    other = np.column_stack([X + 1e6, np.full(len(X), 7.0)])
    assert suggest_labels(other, y, 6, alpha=1.0).rows.tolist() == expected.rows.tolist()


def test_several_classes_are_one_design():
    """Rows do not depend on labels; the decrease is that of all classes together."""
    X, y = make(n_classes=3, n_labeled=30)
    found = suggest_labels(X, y, 5, alpha=1.0)
    assert found.rows.tolist() == brute_force(X, y, 5, 1.0)[0]
    two = suggest_labels(X, np.where(y == 2, 1, y), 5, alpha=1.0)
    assert two.rows.tolist() == found.rows.tolist()


def test_decrease_is_what_happens_on_average():
    """Simulated labels of a linear model: the variance of the scores falls by the decrease."""
    rng = np.random.default_rng(0)
    X, y = make(n=120, d=3, n_labeled=25)
    found = suggest_labels(X, y, 3, alpha=1e-9)
    labeled = np.flatnonzero(y != -1)
    E = np.column_stack([X, np.ones(120)])
    variances = []
    for rows in (labeled, np.r_[labeled, found.rows]):
        noise = rng.normal(size=(20_000, len(rows)))
        scores = noise @ np.linalg.pinv(E[rows]).T @ E.T
        variances.append(np.mean(scores**2))
    noise = found.variance / (np.trace(np.linalg.inv(E[labeled].T @ E[labeled]) @ E.T @ E) / 120)
    assert found.decrease.sum() == pytest.approx(noise * (variances[0] - variances[1]), rel=0.05)


def test_suggestions_are_for_unlabeled_rows_and_not_more_than_there_are():
    X, y = make(n=30, n_labeled=25)
    found = suggest_labels(X, y, 100)
    assert sorted(found.rows) == np.flatnonzero(y == -1).tolist()
    assert (found.decrease > 0).all()
    assert "expected to lower" in found.summary()
    few = dataclasses.replace(found, decrease=np.array([3e-5]))
    assert "by 3e-5:" in few.summary()  # as Windows can print it


def test_rows_that_tell_nothing_come_last_and_once():
    """Without an intercept, rows of zeros say nothing; copies of a row say less each time."""
    X, y = make(n=60, n_labeled=20)
    X[y == -1] = np.where(np.arange(40)[:, None] < 10, 0.0, X[y == -1][:1])
    found = suggest_labels(X, y, 60, alpha=1.0, fit_intercept=False)
    assert sorted(found.rows) == np.flatnonzero(y == -1).tolist()
    assert not X[found.rows[30:]].any()
    assert (np.diff(found.decrease) <= 1e-15).all()


def test_suggested_labels_are_better_than_random_ones():
    """On 16 data sets: `python benchmarks/evidence.py labels`."""
    better = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.standard_t(4, size=(400, 10))
        truth = (X @ rng.normal(size=10) + rng.normal(size=400) > 0).astype(int)
        y = np.where(np.arange(400) < 20, truth, -1)
        losses = []
        for rows in (suggest_labels(X, y, 15).rows, rng.choice(np.arange(20, 400), 15, False)):
            known = y.copy()
            known[rows] = truth[rows]
            clf = LeastSquaresClassifier(1.0).fit(X, known)
            losses.append(np.mean((clf.decision_function(X) + 0.5 - truth) ** 2))
        better += losses[0] < losses[1]
    assert better >= 20


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n": 0}, "positive integer"),
        ({"y": np.arange(200) % 2}, "no unlabeled row"),
        ({"alpha": 0.0, "n_labeled": 3}, "Pass a larger alpha"),
        ({"X": np.full((200, 5), np.nan)}, "NaN"),
    ],
)
def test_bad_input_is_refused(change, words):
    X, y = make(n_labeled=change.pop("n_labeled", 20))
    X, y, n = change.pop("X", X), change.pop("y", y), change.pop("n", 3)
    with pytest.raises(ValueError, match=words):
        suggest_labels(X, y, n, **change)
