"""Audits of saved models on tables, against `neverworse.audit` on arrays."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import neverworse
from neverworse import LeastSquaresClassifier, ProjectedLeastSquaresClassifier
from neverworse.tables import (
    ReadOptions,
    TableClassifier,
    TableError,
    audit_table,
    reading_of,
)

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(80, 3)), columns=["a", "b", "c"])
X["town"] = RNG.choice(["u", "v", "w"], 80)
THREE = np.digitize(X["a"] + 0.3 * RNG.normal(size=80), [-0.4, 0.4])
TWO = (THREE > 0).astype(int)
KNOWN = np.arange(80) < 30
CODINGS = {
    "int": [0, 1],
    "backwards as text": [2, 10],
    "negative": [-1, 1],
    "bool": [False, True],
    "str": ["no", "yes"],
    "float": [1.0, 2.0],
    "number as text": ["1", "2"],
}


def table_of(labels, known=KNOWN):
    column = [v if k else None for v, k in zip(labels.tolist(), known, strict=True)]
    return pa.Table.from_pandas(X.assign(y=pd.Series(column, dtype=object)), preserve_index=False)


def same(found, expected):
    assert found.to_dict() | {"assumptions": None} == expected.to_dict() | {"assumptions": None}


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("response", ["auto", "error"])
def test_pipelines_on_data_frames(coding, response):
    y = np.array(CODINGS[coding])[TWO]
    towns = make_column_transformer(
        (OneHotEncoder(), ["town"]), (StandardScaler(), ["a", "b"]), remainder="drop"
    )
    candidate = make_pipeline(towns, LogisticRegression()).fit(X, y)
    baseline = make_pipeline(StandardScaler(), GaussianNB()).fit(X[["c", "a"]], y)
    found = audit_table(candidate, baseline, table_of(y), "y", response=response)
    labels = np.where(KNOWN, y.astype(object), None)
    scores = [
        model.predict_proba(rows)[:, 1]
        if response == "auto"
        else (model.predict(rows) == model.classes_[1]).astype(float)
        for model, rows in ((candidate, X), (baseline, X[["c", "a"]]))
    ]
    codes = np.where(KNOWN, TWO, -1)
    expected = neverworse.audit(*scores, None, codes, missing_label=-1, response="score")
    assert found.worst_case == pytest.approx(expected.worst_case, abs=1e-12)
    assert found.best_case == pytest.approx(expected.best_case, abs=1e-12)
    assert found.holds == expected.holds
    assert (found.n_labeled, found.n_unlabeled) == (30, 50)
    assert labels[0] in y


@pytest.mark.parametrize("coding", CODINGS)
def test_scores_of_neverworse_whatever_the_order_of_classes(coding):
    """10 is before 2 as text; the sign of a score must not follow."""
    y = np.array(CODINGS[coding])[TWO]
    labels = np.where(KNOWN, TWO, -1)
    rows = X[["a", "b", "c"]].to_numpy()
    projected = ProjectedLeastSquaresClassifier(alpha=0.1).fit(rows, labels)
    expected = neverworse.audit(projected, projected.supervised_, rows, labels, response="score")
    classes = np.array(CODINGS[coding])
    candidate, baseline = projected, projected.supervised_
    for model in (candidate, baseline):
        model.classes_ = classes
    table = table_of(y).drop_columns("town")
    found = audit_table(candidate, baseline, table, "y", response="score")
    assert found.worst_case == pytest.approx(expected.worst_case, rel=1e-9)
    assert found.best_case == pytest.approx(expected.best_case, rel=1e-9)


def test_three_classes_and_weights_and_priors():
    y = np.array([2, 10, 7])[THREE]
    weights = RNG.random(80)
    candidate = LogisticRegression().fit(X[["a", "b"]], y)
    baseline = GaussianNB().fit(X[["a", "b", "c"]], y)
    table = table_of(y).append_column("w", pa.array(weights))
    prior = {"10": (0.1, 0.5)}
    found = audit_table(candidate, baseline, table, "y", weight="w", class_prior=prior)
    labels = np.where(KNOWN, y, -1)
    expected = neverworse.audit(
        candidate.predict_proba(X[["a", "b"]]),
        baseline.predict_proba(X[["a", "b", "c"]]),
        None,
        labels,
        sample_weight=weights,
        class_prior={10: (0.1, 0.5)},
        missing_label=-1,
    )
    assert found.worst_case == pytest.approx(expected.worst_case, rel=1e-9)
    assert found.best_case == pytest.approx(expected.best_case, rel=1e-9)


def test_priors_name_classes_as_people_write_them():
    y = TWO.astype(bool)
    models = [LogisticRegression(C=C).fit(X[["a", "b"]], y) for C in (1.0, 0.01)]
    found = {
        name: audit_table(*models, table_of(y), "y", class_prior={name: (0.5, 0.6)}).worst_case
        for name in ("True", "true")
    }
    assert found["True"] == found["true"]
    assert found["True"] < audit_table(*models, table_of(y), "y").worst_case


def test_models_without_names_of_columns():
    rows = X[["a", "b", "c"]].to_numpy()
    candidate = LogisticRegression().fit(rows, TWO)
    table = table_of(TWO)
    with pytest.raises(TableError, match=r"needs 3 columns, but there are 4"):
        audit_table(candidate, candidate, table, "y")
    found = audit_table(candidate, candidate, table, "y", ignored=("town",))
    assert found.worst_case == 0.0


def test_a_model_of_neverworse_against_one_of_scikit_learn():
    y = np.array(["no", "yes"])[TWO]
    labels = np.where(KNOWN, y.astype(object), None)
    ours = TableClassifier(categorical=["town"]).fit(X, labels)
    theirs = LogisticRegression().fit(X[["a", "b"]], y)
    found = audit_table(ours, theirs, table_of(y), "y")
    expected = neverworse.audit(
        ours.predict_proba(X), theirs.predict_proba(X[["a", "b"]]), None, np.where(KNOWN, TWO, -1)
    )
    assert found.worst_case == pytest.approx(expected.worst_case, rel=1e-9)
    assert reading_of(ours, ReadOptions()).text == {"town"}
    assert reading_of(theirs, ReadOptions()) == ReadOptions()


def test_the_certificate_is_what_the_audit_finds():
    labels = np.where(KNOWN, np.array(["no", "yes"])[TWO].astype(object), None)
    ours = TableClassifier(LeastSquaresClassifier(missing_label=np.nan)).fit(X, labels)
    estimator = ProjectedLeastSquaresClassifier(alpha=0.0, missing_label=np.nan)
    projected = TableClassifier(estimator).fit(X, labels)
    table = table_of(np.array(["no", "yes"])[TWO])
    found = audit_table(projected, projected.supervised(), table, "y", response="score")
    certificate = projected.certificate_
    assert certificate.worst_case < 0.0
    assert found.worst_case * 80 == pytest.approx(certificate.worst_case, rel=1e-6)
    assert found.best_case * 80 == pytest.approx(certificate.best_case, rel=1e-6)
    same(audit_table(projected, ours, table, "y", response="score"), found)


@pytest.mark.parametrize(
    ("candidate", "options", "said"),
    [
        (LinearRegression().fit(X[["a"]], TWO), {}, "LinearRegression is not a classifier"),
        (LogisticRegression().fit(X[["a"]], THREE), {}, "candidate has the classes 0, 1 and 2|'0'"),
        (RidgeClassifier().fit(X[["a"]], TWO), {}, r"RidgeClassifier\) has .* --response 'error'"),
        (None, {"ignored": ("twn",)}, r"no column 'twn' for --drop. Did you mean 'town'\?"),
        (None, {"weight": "twn"}, r"no column 'twn' for --weight"),
        (None, {"target": "z"}, r"no column 'z' for --target"),
        (None, {"weight": "b"}, r"weight in row \d+ \(column 'b'\) is -"),
        (None, {"class_prior": {"x": (0.1, 0.2)}}, r"--prior"),
        (
            LogisticRegression().fit(X[["a"]].rename(columns={"a": "A"}), TWO),
            {},
            r"lacks 1 column .*: 'A'.*Did you mean 'a'\?",
        ),
    ],
)
def test_what_cannot_be_audited(candidate, options, said):
    baseline = LogisticRegression().fit(X[["a"]], TWO)
    target = options.pop("target", "y") if "target" in options else "y"
    with pytest.raises(TableError, match=said):
        audit_table(candidate or baseline, baseline, table_of(TWO), target, **options)


def test_labels_that_no_model_knows():
    baseline = LogisticRegression().fit(X[["a"]], TWO)
    with pytest.raises(TableError, match="do not know: '2'"):
        audit_table(baseline, baseline, table_of(THREE), "y")
    marked = audit_table(baseline, baseline, table_of(THREE), "y", markers=("2",))
    assert marked.n_labeled == np.sum(KNOWN & (THREE < 2))
