"""What the documentation claims of each toy problem is so, over many draws."""

import numpy as np
import pytest
from scipy.stats import norm

from neverworse import LeastSquaresClassifier, ProjectedLeastSquaresClassifier
from neverworse.datasets import make_helpful, make_misleading, make_neutral
from neverworse.methods import L2SVMClassifier, SelfLearningClassifier, TransductiveSVMClassifier
from neverworse.model_selection import mask_labels

N_DRAWS = 40
MAKERS = [make_helpful, make_neutral, make_misleading]
# Each beside the supervised classifier that it starts from.
MODELS = {
    "self-learning": (SelfLearningClassifier(LeastSquaresClassifier()), LeastSquaresClassifier()),
    "projection": (ProjectedLeastSquaresClassifier(alpha=0.0), LeastSquaresClassifier()),
    "transductive": (TransductiveSVMClassifier(), L2SVMClassifier(alpha=0.1, scaling="mean")),
}


def excess(make, model, n_labeled):
    """Mean and standard error of how much larger the error on new rows is."""
    semi, supervised = MODELS[model]
    X_new, y_new = make(2000, random_state=10_000)
    differences = []
    for seed in range(N_DRAWS):
        X, truth = make(random_state=seed)
        y = mask_labels(truth, n_labeled=n_labeled, stratify=True, random_state=seed)
        errors = [1.0 - m.fit(X, y).score(X_new, y_new) for m in (semi, supervised)]
        differences.append(errors[0] - errors[1])
    return np.mean(differences), np.std(differences) / np.sqrt(N_DRAWS)


@pytest.mark.parametrize("model", MODELS)
def test_unlabeled_rows_help(model):
    mean, standard_error = excess(make_helpful, model, n_labeled=10)
    assert mean < -3.0 * standard_error
    assert standard_error > 0.0


@pytest.mark.parametrize("model", MODELS)
def test_unlabeled_rows_do_nothing(model):
    mean, standard_error = excess(make_neutral, model, n_labeled=50)
    assert abs(mean) + standard_error < 0.01


def test_projection_leaves_the_supervised_classifier_alone():
    n_unchanged = 0
    for seed in range(N_DRAWS):
        X, truth = make_neutral(random_state=seed)
        y = mask_labels(truth, n_labeled=50, stratify=True, random_state=seed)
        model = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
        n_unchanged += np.array_equal(model.coef_, model.supervised_.coef_)
    assert n_unchanged >= 0.9 * N_DRAWS


@pytest.mark.parametrize("model", ["self-learning", "transductive"])
def test_unlabeled_rows_mislead(model):
    mean, standard_error = excess(make_misleading, model, n_labeled=10)
    assert mean - 2.0 * standard_error > 0.05


def test_projection_is_not_misled():
    mean, _ = excess(make_misleading, "projection", n_labeled=10)
    assert abs(mean) < 0.01
    for seed in range(N_DRAWS):
        X, truth = make_misleading(random_state=seed)
        y = mask_labels(truth, n_labeled=10, stratify=True, random_state=seed)
        model = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
        losses = [
            np.sum((m.decision_function(X) + 0.5 - truth) ** 2) for m in (model, model.supervised_)
        ]
        assert losses[0] <= losses[1]


@pytest.mark.parametrize("make", MAKERS)
def test_seeds(make):
    X, y = make(random_state=0)
    assert X.shape == (500, 2)
    assert y.shape == (500,)
    assert y.dtype == np.int64
    np.testing.assert_array_equal(X, make(random_state=0)[0])
    np.testing.assert_array_equal(y, make(random_state=0)[1])
    assert not np.array_equal(X, make(random_state=1)[0])
    assert make(1)[0].shape == (1, 2)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("n_samples", [0, -1, 1.5, None])
def test_impossible_sizes(make, n_samples):
    with pytest.raises((TypeError, ValueError), match="n_samples"):
        make(n_samples)


def test_helpful_distribution():
    X, y = make_helpful(50_000, random_state=0)
    for label, mean in ((0, -2.0), (1, 2.0)):
        np.testing.assert_allclose(X[y == label].mean(axis=0), [mean, 0.0], atol=0.1)
        np.testing.assert_allclose(X[y == label].std(axis=0), [1.0, 4.0], rtol=0.03)
    assert np.mean((X[:, 0] > 0) != y) == pytest.approx(norm.cdf(-2.0), abs=0.004)
    assert y.mean() == pytest.approx(0.5, abs=0.01)


def test_neutral_distribution():
    X, y = make_neutral(50_000, random_state=0)
    radius = np.linalg.norm(X, axis=1)
    assert radius.max() <= 1.0
    assert np.mean(radius**2) == pytest.approx(0.5, abs=0.01)
    np.testing.assert_allclose(np.cov(X.T), 0.25 * np.eye(2), atol=0.01)
    assert np.mean((X[:, 0] > 0) != y) == pytest.approx(0.5 - 0.6 / np.pi, abs=0.01)
    right = X[:, 0] > 0.8
    assert y[right].mean() == pytest.approx(0.5 + 0.45 * X[right, 0].mean(), abs=0.03)


def test_misleading_distribution():
    X, y = make_misleading(50_000, random_state=0)
    np.testing.assert_array_equal(y, X[:, 0] > 0)
    upper = X[:, 1] > 0
    assert upper.mean() == pytest.approx(0.5, abs=0.01)
    np.testing.assert_allclose(X[upper].mean(axis=0), [0.0, 2.0], atol=0.01)
    np.testing.assert_allclose(X[upper].std(axis=0), 0.3, rtol=0.03)
    assert abs(np.corrcoef(upper, y)[0, 1]) < 0.02
