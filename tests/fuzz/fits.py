"""Hostile fits of all estimators: an answer, or an error in words of its own.

An error is one of words if a ``raise`` statement of neverworse or scikit-learn made it, with a
message. What NumPy, SciPy or Python say about an operation inside is none.
"""

from __future__ import annotations

import json
import linecache
import traceback
import warnings
from inspect import signature

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

import neverworse
from neverworse import methods, model_selection

ESTIMATORS = {
    name: member
    for room in (neverworse, methods, model_selection)
    for name in sorted(room.__all__)
    if isinstance(member := getattr(room, name), type) and issubclass(member, BaseEstimator)
}
VALUES = (
    None,
    -1,
    0,
    1,
    2.5,
    1e-300,
    1e300,
    np.nan,
    np.inf,
    10**400,
    "",
    "nonsense",
    "all",
    "labeled",
    "unlabeled",
    True,
    [],
    (0.3, 0.7),
    {"a": 1},
    np.zeros((2, 2)),
)


def attack(seed):
    """Fit an estimator to something hostile, and judge what comes of it."""
    rng = np.random.default_rng(seed)
    name = list(ESTIMATORS)[rng.integers(len(ESTIMATORS))]
    n, d = int(rng.integers(1, 25)), int(rng.integers(1, 5))
    estimator = _estimator(name, rng, d)
    X, y = _rows(rng, n, d), _labels(rng, n, "Regressor" in name)
    more = _more(rng, n, name)
    about = f"{name}, {_changed(estimator)}, X {_shown(X)}, y {_shown(y)}, {_shown(more)}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            estimator.fit(X, y, **more)
        except Exception as error:
            what = _poor_words(error)
            return f"{about}: {what}" if what else None
        try:
            _check_answer(estimator, X)
            estimator.predict(_rows(rng, n, d))
        except AssertionError as wrong:
            return f"{about}: fitted, but {wrong}"
        except Exception as error:
            what = _poor_words(error)
            return f"{about}: fitted, then {what}" if what else None
    return None


def _check_answer(estimator, X):
    certificate = getattr(estimator, "certificate_", None)
    if certificate is not None:
        try:
            json.dumps(certificate.to_dict(), allow_nan=False)
        except ValueError:
            raise AssertionError(f"the certificate is not finite: {certificate}") from None
    predicted = np.asarray(estimator.predict(X))
    if predicted.dtype.kind == "f":
        assert np.isfinite(predicted).all(), "predictions are not finite"


def _poor_words(error):
    """Return what is wrong with an error, if anything is."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    where = f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})"
    if not isinstance(error, (ValueError, TypeError)):
        return f"an error of another kind, {where}"
    if not str(error).strip():
        return f"an empty message, {where}"
    line = linecache.getline(last.filename, last.lineno).strip()
    if line.startswith("raise") and ("neverworse" in last.filename or "sklearn" in last.filename):
        return None
    return f"words of the inside, {where}"


def _estimator(name, rng, d):
    needed = {
        "HiddenLabels": lambda: [neverworse.LeastSquaresClassifier()],
        "MetricModelSelection": lambda: [
            [("a", neverworse.LeastSquaresClassifier()), ("b", LogisticRegression())]
        ],
        "OracleClassifier": lambda: [neverworse.LeastSquaresClassifier()],
        "SelfLearningClassifier": lambda: [LogisticRegression()],
        "SupervisedClassifier": lambda: [LogisticRegression()],
        "WithUnlabeledRows": lambda: [neverworse.ICLSClassifier(), _rows(rng, 8, d)],
    }
    estimator = ESTIMATORS[name](*needed.get(name, list)())
    for parameter in estimator.get_params(deep=False):
        if parameter == "verbose" or rng.random() > 0.05:
            continue
        setattr(estimator, parameter, VALUES[rng.integers(len(VALUES))])
    return estimator


def _rows(rng, n, d):
    X = rng.normal(size=(n, d))
    which = rng.integers(40)  # half of them are harmless, or others would never be reached
    if which == 0:
        X[:] = 0.0
    elif which == 1:
        X *= 10.0 ** rng.integers(-320, 308, d)
    elif which == 2:
        X *= 10.0 ** rng.integers(-30, 31)
    elif which == 3:
        X[rng.integers(n)] = [np.nan, np.inf, -np.inf][rng.integers(3)]
    elif which == 4:
        X = X[rng.integers(0, n, n)]
    elif which == 5:
        X = np.full((n, d), rng.normal())
    elif which == 6:
        X = X[:, :0]
    elif which == 7:
        X = X[:0]
    elif which == 8:
        X = X[:, 0]
    elif which == 9:
        X = X[None]
    elif which == 10:
        X = X.astype(str).tolist()
    elif which == 11:
        X = [row[: 1 + i % d] for i, row in enumerate(X.tolist())]
    elif which == 12:
        X = [[10**400 if rng.random() < 0.2 else v for v in row] for row in X.tolist()]
    elif which == 13:
        X = sparse.csr_array(np.where(rng.random((n, d)) < 0.5, X, 0.0))
    elif which == 14:
        X = sparse.coo_array(X)
    elif which == 15:
        X = X.astype(np.float32) * np.float32(1e30)
    elif which == 16:
        X = X > 0
    elif which == 17:
        X = X.astype(object)
        X[rng.integers(n), rng.integers(d)] = [None, "a", 2**70, {}][rng.integers(4)]
    elif which == 18:
        X = X + 10.0 ** rng.integers(0, 17)
    elif which == 19:
        X = X + 1j
    return X


def _labels(rng, n, continuous):
    y = rng.integers(0, 2, n)
    y[rng.random(n) < 0.5] = -1
    y[: min(n, 2)] = np.arange(min(n, 2))
    if continuous:
        y = np.where(y == -1, np.nan, rng.normal(size=n))
    which = rng.integers(30)
    if which == 0:
        y = np.full(n, -1)
    elif which == 1:
        y = np.zeros(n, int)
    elif which == 2:
        y = np.where(y == -1, None, np.array(["a", "b", "c"], object)[rng.integers(0, 3, n)])
    elif which == 3:
        y = rng.integers(-1, 6, n)
    elif which == 4:
        y = y[: n // 2]
    elif which == 5:
        y = np.column_stack([y, y])
    elif which == 6:
        y = None
    elif which == 7:
        y = [10**30 if v == 1 else int(v == 0) if v == v else None for v in y]
    elif which == 8:
        y = [None if v != v else [0, "a", True, 2.5][i % 4] for i, v in enumerate(y)]
    elif which == 9:
        y = rng.normal(size=n) * 10.0 ** rng.integers(-200, 200)
    elif which == 10:
        y = np.where(rng.random(n) < 0.3, np.inf, y)
    elif which == 11:
        y = "abc"
    elif which == 12:
        y = y.astype(complex)
    elif which == 13:
        y = np.where(y == -1, np.nan, y)
    elif which == 14:
        y = [10**400 if rng.random() < 0.3 else float(v) for v in y]
    return y


def _more(rng, n, name):
    if rng.random() < 0.5 or name == "NullCategoryNoiseModel":
        return {}
    which = rng.integers(11)
    if which == 9 and name.startswith(("Projected", "ICLS", "LeastSquares")):
        wanted = "target_bounds" if name.endswith(("Regressor", "RegressorCV")) else "label_bounds"
        shape = [(n, 2), (n, 2, 2), (n,), (2, n), (n, 3, 2)][rng.integers(5)]
        bounds = np.sort(rng.random(shape) * 1.2 - 0.1, axis=-1)
        bounds[rng.random(shape) < 0.3] = [np.nan, 0.0, np.inf, 1e-200][rng.integers(4)]
        return {wanted: bounds}
    weights = [
        lambda: np.ones(n),
        lambda: np.zeros(n),
        lambda: rng.normal(size=n),
        lambda: np.where(rng.random(n) < 0.3, np.nan, 1.0),
        lambda: np.where(rng.random(n) < 0.3, np.inf, 1.0),
        lambda: np.ones(n + 1),
        lambda: 10.0 ** rng.uniform(-1, 1, n) ** rng.integers(1, 300),
        lambda: 10.0 ** (rng.choice([20.0, 40.0, 60.0, 200.0]) * rng.integers(-1, 2, n)),
        lambda: [10**400] * n,
        lambda: ["a"] * n,
        lambda: rng.integers(0, 2, n),
    ]
    return {"sample_weight": weights[which]()}


def _changed(estimator):
    """Return the parameters that are not the default ones."""
    known = signature(type(estimator)).parameters
    parameters = estimator.get_params(deep=False).items()
    return {k: v for k, v in parameters if repr(v) != repr(known[k].default)}


def _shown(value):
    return " ".join(repr(value).split())[:300]
