"""Least squares of the published code, by its own formulas."""

import numpy as np
import pytest
from scipy import optimize

from neverworse import LeastSquaresClassifier
from neverworse.experiments._experiments import Sample, supervised_of
from neverworse.experiments._methods import GINV_CUTOFF, PROTOCOLS, truncation


def wild_rows(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(60, 5)) * [1e3, 10.0, 1e-2, 1e-3, 1e-4] + 5.0, rng.integers(0, 2, 60)


def ginv(gram):
    """Return the pseudo-inverse of MASS::ginv."""
    return np.linalg.pinv(gram, rcond=GINV_CUTOFF, hermitian=True)


def with_ones(X, centre):
    return np.c_[np.ones(len(X)), X - centre]


def scores(model, X):
    return model.decision_function(X) + 0.5


def test_pseudo_inverse_with_the_same_cutoff():
    X, y = wild_rows()
    kept = truncation(X, GINV_CUTOFF)
    E = with_ones(X, X.mean(axis=0))
    Z = kept.transform(X)
    assert Z.shape == (60, 2)
    found = scores(LeastSquaresClassifier().fit(Z, y), Z)
    assert found == pytest.approx(E @ (ginv(E.T @ E) @ E.T @ y), abs=1e-9)


def test_the_column_of_ones_takes_part_in_the_cutoff():
    X = np.random.default_rng(0).normal(size=(60, 2)) * [1e-2, 1e-5]
    assert truncation(X, GINV_CUTOFF).transform(X).shape == (60, 1)
    assert truncation(1e2 * X, GINV_CUTOFF).transform(1e2 * X).shape == (60, 2)


def test_rows_are_left_alone_if_every_direction_is_kept():
    X, _ = wild_rows()
    assert truncation(X, 1e-20).transform(X) is X


def sample(seed=0, n_labeled=14):
    """Labeled rows that hardly vary in a direction, in which the others do.

    The centre of all rows is elsewhere, in that direction too.
    """
    rng = np.random.default_rng(seed)
    n, d = 90, 6
    X = rng.normal(size=(n, d))
    X[:n_labeled, 0] *= 8e-5
    X[n_labeled:, 0] += 1.0
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    rows = np.arange(n)
    drawn = Sample((X, y), rows[:n_labeled], rows[n_labeled:70], rows[70:])
    return drawn, X[:n_labeled], X[:70], y[:n_labeled]


def fitted(drawn, names):
    return dict(drawn.fit(names, PROTOCOLS["code"]))


@pytest.mark.parametrize("seed", range(5))
def test_supervised_is_centred_on_labeled_rows_and_the_projected_weights_on_all(seed):
    drawn, XL, XA, y = sample(seed)
    models = fitted(drawn, ["Supervised", "Projection"])
    expected = {}
    for name, centre in (("Supervised", XL.mean(axis=0)), ("Projection", XA.mean(axis=0))):
        E = with_ones(XL, centre)
        expected[name] = with_ones(XA, centre) @ (ginv(E.T @ E) @ E.T @ y)
    assert scores(models["Supervised"], XA) == pytest.approx(expected["Supervised"], abs=1e-7)
    projected = supervised_of(models["Projection"])
    assert scores(projected, XA) == pytest.approx(expected["Projection"], abs=1e-7)
    # Only one of the centrings leaves the direction out.
    assert np.abs(expected["Supervised"] - expected["Projection"]).max() > 0.01


@pytest.mark.parametrize("seed", range(3))
def test_icls_minimises_the_loss_on_labeled_rows(seed):
    drawn, XL, XA, y = sample(seed)
    model = fitted(drawn, ["ICLS"])["ICLS"]
    E = with_ones(XA, XA.mean(axis=0))
    n = len(XL)
    pulled = E[:n] @ ginv(E.T @ E) @ E.T
    best = optimize.lsq_linear(pulled[:, n:], y - pulled[:, :n] @ y, (0.0, 1.0), tol=1e-14)
    found = np.sum((scores(model, XL) - y) ** 2)
    assert found == pytest.approx(2.0 * best.cost, rel=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_self_learning_is_centred_anew_on_all_rows(seed):
    drawn, XL, XA, y = sample(seed)
    model = fitted(drawn, ["Self-Learning"])["Self-Learning"]
    E = with_ones(XL, XL.mean(axis=0))
    labels = with_ones(XA, XL.mean(axis=0)) @ (ginv(E.T @ E) @ E.T @ y) > 0.5
    E = with_ones(XA, XA.mean(axis=0))
    for _ in range(100):
        target = np.r_[y, labels[len(y) :]]
        expected = E @ (ginv(E.T @ E) @ E.T @ target)
        labels = expected > 0.5
    assert scores(model, XA) == pytest.approx(expected, abs=1e-9)


def test_the_projection_is_never_worse_than_what_it_projects():
    for seed in range(10):
        drawn, *_ = sample(seed)
        for method, model in drawn.fit(["Projection"], PROTOCOLS["code"]):
            record = drawn.measure(method, model)
            assert record["training_loss"] <= record["own_supervised_loss"]


def test_methods_without_a_supervised_model_of_their_own_have_no_loss_of_it():
    drawn, *_ = sample()
    for method, model in drawn.fit(["Supervised", "Oracle", "SVM"], PROTOCOLS["code"]):
        assert "own_supervised_loss" not in drawn.measure(method, model)
