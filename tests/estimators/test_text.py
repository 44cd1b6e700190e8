"""Texts through a pipeline: sparse rows with more columns than rows."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from neverworse import (
    ICLSClassifier,
    LeastSquaresClassifier,
    ProjectedLeastSquaresClassifier,
)
from tests.projection.high_dimensions import choose, worst_difference

TOPICS = {
    "space": ["orbit", "rocket", "moon", "launch", "shuttle"],
    "cars": ["engine", "wheel", "brake", "gear", "road"],
    "games": ["goal", "team", "score", "player", "season"],
}


def texts(n, topics, seed=0):
    rng = np.random.default_rng(seed)
    names = np.asarray(topics)[np.arange(n) % len(topics)]
    common = [f"word{k}" for k in range(3000)]
    made = []
    for name in names:
        own = rng.choice(TOPICS[name], 3).tolist()
        made.append(" ".join([*own, *rng.choice(common, 25)]))
    return made, names


def partly(names, n_labeled):
    y = names.astype(object)
    y[n_labeled:] = None
    return y


@pytest.fixture(params=["kernel", "conjugate gradients"])
def path(request, monkeypatch):
    """Both paths for many columns."""
    if request.param == "conjugate gradients":
        choose(monkeypatch, "free")
    return request.param


@pytest.mark.parametrize("topics", [["cars", "space"], ["cars", "games", "space"]])
@pytest.mark.parametrize("classifier", [ProjectedLeastSquaresClassifier, ICLSClassifier])
def test_pipeline(path, topics, classifier):
    documents, names = texts(400, topics)
    y = partly(names, 40)
    model = make_pipeline(TfidfVectorizer(), classifier(alpha=0.01, constraint_alpha=1.0))
    model.fit(documents, y)
    fitted = model[-1]
    assert fitted.n_features_in_ > 2500
    assert list(fitted.classes_) == topics
    unseen, truth = texts(300, topics, seed=1)
    assert model.score(unseen, truth) > 0.8
    assert fitted.soft_labels_.shape[0] == 360
    if classifier is ProjectedLeastSquaresClassifier:
        certificate = fitted.certificate_
        assert certificate.holds
        assert certificate.guaranteed_improvement > 0
        X = model[:-1].transform(documents)
        known = np.asarray([-1 if name is None else name for name in y], dtype=object)
        worst = worst_difference(fitted, X, known)
        assert worst == pytest.approx(certificate.worst_case, abs=1e-6)


def test_same_for_dense_rows(path):
    documents, names = texts(150, ["cars", "space"])
    X = TfidfVectorizer().fit_transform(documents)
    y = partly(names, 30)
    settings = {"alpha": 0.01, "constraint_alpha": 1.0, "tol": 1e-11}
    model = ProjectedLeastSquaresClassifier(**settings)
    scores = [model.fit(rows, y).decision_function(X) for rows in (X, X.toarray())]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-6)


def test_penalty_by_leave_one_out_and_cross_validation():
    documents, names = texts(150, ["cars", "space"])
    model = make_pipeline(
        TfidfVectorizer(), ProjectedLeastSquaresClassifier(alpha="loo", constraint_alpha=1.0)
    )
    model.fit(documents, partly(names, 40))
    assert model[-1].supervised_.alpha_ > 0
    baseline = make_pipeline(TfidfVectorizer(), LeastSquaresClassifier(1.0))
    assert cross_val_score(baseline, documents, names).mean() > 0.8
