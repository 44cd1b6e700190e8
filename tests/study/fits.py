"""Fits to small tables in memory."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from neverworse.study import FitSettings, fit_table
from neverworse.study._assess import assess


@contextmanager
def quickly(*, report=True):
    """One repeat, little tuning, small forests, and charts only if somebody looks at them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neverworse.study._held_out.MOST_REPEATS", 1)
        patch.setattr("neverworse.study._methods.MOST_FOLDS", 2)
        patch.setattr("neverworse.study._methods.N_TREES", 10)
        if not report:
            patch.setattr("neverworse.study._files.write_report", lambda _, path: path.touch())
        yield


def table(n_classes=2, *, n_labeled=30, seed=0):
    """Real rows with names and weights, of which few are labeled and some have gaps."""
    rng = np.random.default_rng(seed)
    data = (load_breast_cancer if n_classes == 2 else load_iris)()
    rows = rng.permutation(len(data.target))[:140]
    X, y = data.data[rows, :12], data.target[rows]
    labeled = np.zeros(len(rows), bool)
    labeled[rng.permutation(len(rows))[:n_labeled]] = True
    columns = {name: X[:, k] for k, name in enumerate(data.feature_names[: X.shape[1]])}
    columns["gap"] = np.where(rng.random(len(rows)) < 0.2, np.nan, X[:, 0] + rng.normal(size=140))
    columns["town"] = rng.choice(["u", "v", "w"], len(rows))
    columns["name"] = [f"row {k}" for k in rows]
    columns["weight"] = rng.random(len(rows)) + 0.1
    names = data.target_names
    columns["class"] = [str(names[c]) if k else None for c, k in zip(y, labeled, strict=True)]
    return pa.table(columns)


def few_labels(n_classes=2):
    """A table with one label of each class: too few for a comparison, which takes most time."""
    rows = table(n_classes)
    labels = rows.column("class").to_pylist()
    kept = [None if v in labels[:k] else v for k, v in enumerate(labels)]
    return rows.set_column(rows.column_names.index("class"), "class", [kept])


def fitted(n_classes=2, *, rows=None, **settings):
    """A fit, and its settings."""
    options = {"target": "class", "drop": ("name", "weight"), "alpha": 0.0, "candidates": ()}
    options |= settings
    if options.get("weight"):
        options["drop"] = tuple(name for name in options["drop"] if name != "weight")
    if options.get("id"):
        options["drop"] = tuple(name for name in options["drop"] if name != "name")
    chosen = FitSettings(**options)
    return fit_table(table(n_classes) if rows is None else rows, chosen), chosen


def studied(fit, settings, **options):
    """The study of a fit with its model, what was scored, and the model that was chosen."""
    options = {"files": [], "command": "", "curves": False} | options
    return assess(fit, settings, **options)
