"""Self-learning with soft labels: the minimum over weights and labels, by other means."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from neverworse import LeastSquaresClassifier, audit
from neverworse.methods import SelfLearningClassifier
from tests.estimators.callbacks import Callback


def make(n=120, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_classes
    X = rng.normal(size=(n, 3)) + 1.5 * rng.normal(size=(n_classes, 3))[truth]
    return X, np.where(np.arange(n) < 12, truth, -1)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_minimum_over_weights_and_soft_labels(kernel):
    X, y = make()
    base = LeastSquaresClassifier(0.1, kernel=kernel, gamma=None if kernel == "linear" else 0.3)
    clf = SelfLearningClassifier(base, labels="soft", max_iter=5000).fit(X, y)
    assert clf.stop_reason_ == "converged"
    # The best label of a score is the nearest one: a smooth function of the scores alone.
    Z = X
    if kernel == "rbf":
        values, V = np.linalg.eigh(rbf_kernel(X, gamma=0.3))
        Z = V * np.sqrt(values.clip(0))
    known, E = y >= 0, np.column_stack([Z, np.ones(len(Z))])

    def loss(w):
        f = E @ w
        off = np.where(known, f - y, f - f.clip(0, 1))
        gradient = 2 * E.T @ off
        gradient[:-1] += 0.2 * w[:-1]
        return off @ off + 0.1 * w[:-1] @ w[:-1], gradient

    best = minimize(loss, np.zeros(E.shape[1]), jac=True, options={"gtol": 1e-10, "maxiter": 5000})
    assert clf.decision_function(X) + 0.5 == pytest.approx(E @ best.x, abs=1e-4)
    assert clf.soft_labels_ == pytest.approx((E @ best.x)[~known].clip(0, 1), abs=1e-4)
    assert (clf.labels_ == (clf.soft_labels_ > 0.5)).all()


def test_several_classes():
    X, y = make(n_classes=3)
    base = LeastSquaresClassifier(0.1)
    clf = SelfLearningClassifier(base, labels="soft", max_iter=5000).fit(X, y)
    assert clf.soft_labels_.shape == (108, 3)
    assert clf.soft_labels_.sum(axis=1) == pytest.approx(1.0)
    # At the minimum, weights belong to the labels and labels to the weights.
    assert clf.soft_labels_ == pytest.approx(clf.predict_proba(X)[y < 0], abs=1e-5)
    indicators = np.eye(3)[y.clip(0)]
    indicators[y < 0] = clf.soft_labels_
    bounds = np.stack([indicators, indicators], axis=-1)
    again = LeastSquaresClassifier(0.1).fit(X, y, label_bounds=bounds)
    assert again.coef_ == pytest.approx(clf.estimator_.coef_, abs=1e-6)


def test_audit_and_limits():
    X, y = make()
    clf = SelfLearningClassifier(LeastSquaresClassifier(0.1), labels="soft").fit(X, y)
    assert audit(clf, clf.supervised_, X, y).n_unlabeled == 108
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        SelfLearningClassifier(labels="soft", max_iter=1).fit(X, y)
    with pytest.raises(ValueError, match="has to be a LeastSquaresClassifier"):
        SelfLearningClassifier(LeastSquaresClassifier(class_weight="balanced"), labels="soft").fit(
            X, y
        )


def test_verbose_writes_a_line_for_every_retraining_and_a_callback_may_stop(capsys):
    X, y = make()
    clf = SelfLearningClassifier(LeastSquaresClassifier(0.1), labels="soft", verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == clf.n_iter_ > 1
    assert "soft labels moved by up to" in lines[0]
    assert f"({np.sum(y == -1)} rows)" in lines[0]
    pytest.importorskip("sklearn.callback")
    stopped = SelfLearningClassifier(LeastSquaresClassifier(0.1), labels="soft")
    stopped.set_callbacks(Callback(lambda stage: True)).fit(X, y)
    assert (stopped.stop_reason_, stopped.n_iter_) == ("callback", 1)
