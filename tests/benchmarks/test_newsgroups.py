"""The benchmark on 20 Newsgroups runs: on made-up words, and on the real ones if they are there."""

import re

import numpy as np
import pytest
from scipy import sparse


@pytest.fixture
def newsgroups(load):
    return load("newsgroups")


def write(folder, name):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(20), 30)
    own = rng.poisson(2.0, (600, 40)) * (np.arange(40) % 20 == y[:, None])
    counts = sparse.csr_matrix(np.column_stack([own, rng.poisson(0.1, (600, 300))]))
    np.savez(
        folder / name,
        data=counts.data.astype(np.int16),
        indices=counts.indices,
        indptr=counts.indptr,
        shape=counts.shape,
        y=y,
        classes=[f"class {k:02}" for k in range(20)],
        is_train=rng.random(600) < 0.6,
    )


def test_runs_all_tasks(newsgroups, tmp_path, capsys):
    write(tmp_path, newsgroups.FILE)
    arguments = ["--data", str(tmp_path), "--labeled", "12", "--all-labeled", "100"]
    assert newsgroups.main([*arguments, "--tol", "1e-3", "--max-time", "0.5"]) == 0
    text = capsys.readouterr().out
    assert len(re.findall(r"^  projection ", text, re.M)) == len(newsgroups.PAIRS) + 1
    assert len(re.findall(r"^  ICLS ", text, re.M)) == len(newsgroups.PAIRS)
    assert "20 classes" in text
    errors = re.findall(r"supervised (\S+), projected (\S+)", text)
    assert all(0.0 <= float(error) <= 1.0 for pair in errors for error in pair)


def test_says_what_is_missing(newsgroups, tmp_path, monkeypatch):
    monkeypatch.delenv("NEVERWORSE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(SystemExit, match="--data"):
        newsgroups.main(["--data", str(tmp_path)])


def test_a_pair_of_the_real_groups(newsgroups):
    if newsgroups.find(None) is None:
        pytest.skip(f"set NEVERWORSE_DATA to the folder of {newsgroups.FILE}")
    X, y, X_test, y_test = newsgroups.load(None).task([8, 9], 50)
    assert X.shape[1] == 55_538
    model = newsgroups.ProjectedLeastSquaresClassifier(alpha=0.1, constraint_alpha=1.0).fit(X, y)
    assert model.certificate_.holds
    assert model.certificate_.guaranteed_improvement > 1.0
    assert model.score(X_test, y_test) > 0.95
