"""The methods are those of the paper."""

import numpy as np
import pytest
from scipy import optimize

from neverworse.experiments._methods import METHODS, PROTOCOLS, counterpart, losses
from neverworse.methods import HiddenLabels


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 80)
    X = rng.normal(size=(80, 16)) + 0.5 * truth[:, None]
    return X, HiddenLabels(np.where(np.arange(80) < 20, truth, -1), truth)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", METHODS)
def test_fit_and_losses(problem, name, protocol):
    X, y = problem
    model = METHODS[name](PROTOCOLS[protocol]).fit(X, y)
    found = losses(name, model, X, y.y_true)
    decision = model.decision_function(X)
    for k in range(0, 80, 7):
        sign = 2 * y.y_true[k] - 1
        expected = (
            max(0.0, 1.0 - sign * decision[k]) ** 2
            if name in ("SVM", "TSVM")
            else (decision[k] + 0.5 - y.y_true[k]) ** 2
        )
        assert found[k] == pytest.approx(expected, rel=1e-12, abs=1e-300)


def test_counterparts():
    for method in METHODS:
        assert counterpart(method) in METHODS
        assert counterpart(counterpart(method)) == counterpart(method)


def test_methods_without_unlabeled_rows_do_not_use_them(problem):
    X, y = problem
    for method, make in METHODS.items():
        all_rows = make(PROTOCOLS["code"]).fit(X, y)
        labeled = make(PROTOCOLS["code"]).fit(X[:20], y[:20])
        same = np.allclose(all_rows.decision_function(X), labeled.decision_function(X), atol=1e-9)
        assert same == (counterpart(method) == method), method


def test_objective_of_the_published_svm(problem):
    """(λ/2)(|w|² + b²) + ½ Σ hinge², with λ = 0.1 and a penalised bias."""
    X, y = problem
    model = METHODS["SVM"](PROTOCOLS["code"]).fit(X, y)
    E, sign = np.c_[X[:20], np.ones(20)], 2.0 * np.asarray(y)[:20] - 1.0

    def objective(w):
        return 0.05 * w @ w + 0.5 * np.sum(np.maximum(0.0, 1.0 - sign * (E @ w)) ** 2)

    found = optimize.minimize(objective, np.zeros(17), options={"gtol": 1e-10}).x
    assert np.r_[model.coef_[0], model.intercept_] == pytest.approx(found, abs=1e-6)
