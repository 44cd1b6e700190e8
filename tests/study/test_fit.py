"""Fits to tables: the same as by hand, with every setting, and what is suspicious about a table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.study import FitSettings, _fit, add_unlabeled, fit_table
from neverworse.tables import TableError, TablePreparation
from tests.study.fits import fitted, table


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"alpha": 2.0},
        {"alpha": "loo"},
        {"distance": "labeled"},
        {"distance": "unlabeled"},
        {"weight": "weight"},
        {"class_weight": "balanced"},
        {"prior": "confidence", "alpha": 1.0},
    ],
)
def test_a_fit_is_that_of_the_estimator(n_classes, settings):
    fit, _ = fitted(n_classes, **settings)
    rows = table(n_classes)
    features = TablePreparation(drop=["name"]).fit_transform(rows.drop_columns(["class", "weight"]))
    np.testing.assert_array_equal(fit.features, features)
    labels = np.array(rows.column("class").to_pylist(), object)
    by_hand = ProjectedLeastSquaresClassifier(
        settings.get("distance", "all"),
        alpha=settings.get("alpha", 0.0),
        class_prior=settings.get("prior"),
        class_weight=settings.get("class_weight"),
    )
    weights = rows.column("weight").to_numpy() if "weight" in settings else None
    by_hand.fit(features, labels, sample_weight=weights)
    np.testing.assert_allclose(fit.classifier.coef_, by_hand.coef_, rtol=1e-9, atol=1e-12)
    assert fit.target.class_names == by_hand.classes_.tolist()
    assert fit.model.certificate_.to_dict() == by_hand.certificate_.to_dict()
    predicted = fit.model.predict(rows)
    assert predicted.tolist() == by_hand.predict(features).tolist()


def test_priors_are_about_the_class_that_is_named():
    found = {}
    for name, interval in ((None, (0.7, 0.8)), ("malignant", (0.7, 0.8)), ("benign", (0.2, 0.3))):
        fit, _ = fitted(prior={name: interval})
        found[name] = fit.model.certificate_
        assert {each[0] for each in found[name].assumptions.class_prior} <= {"benign", "malignant"}
        assert (
            f"{name or 'malignant'} makes up between" in found[name].summary() or name == "benign"
        )
    assert found[None].worst_case == pytest.approx(found["malignant"].worst_case, rel=1e-6)
    assert found[None].worst_case == pytest.approx(found["benign"].worst_case, rel=1e-6)
    assert found[None].worst_case < fitted()[0].model.certificate_.worst_case


@pytest.mark.parametrize(
    ("n_classes", "prior", "said"),
    [
        (
            3,
            {None: (0.1, 0.2)},
            r"There are 3 classes: name the class of --prior, .* --prior setosa=0.2..0.4",
        ),
        (2, {"benig": (0.1, 0.2)}, r"no class 'benig' for --prior. Did you mean 'benign'\?"),
        (3, {"setosa": (0.8, 0.9), "virginica": (0.8, 0.9)}, "--prior"),
    ],
)
def test_priors_that_make_no_sense(n_classes, prior, said):
    with pytest.raises(TableError, match=said):
        fitted(n_classes, prior=prior)


def test_names_of_rows():
    rows = table()
    unlabeled = np.array([label is None for label in rows.column("class").to_pylist()])
    fit, _ = fitted()
    assert fit.row_names.to_pylist() == (np.flatnonzero(unlabeled) + 1).tolist()
    fit, _ = fitted(id="name")
    names = np.array(rows.column("name").to_pylist())
    assert fit.row_names.to_pylist() == names[unlabeled].tolist()
    assert fit.notes == ()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.0, -2.0], r"weight in row 2 \(column 'weight'\) is -2. Weights must not be negative"),
        ([1.0, None], r"weight in row 2 \(column 'weight'\) is empty"),
        ([1.0, float("inf")], r"is inf"),
        (["1", "many"], r"'weight' should hold numbers, but has 'many' in row 2"),
    ],
)
def test_weights_that_are_none(values, said):
    rows = table()
    column = pa.array([*values, *[values[0]] * (len(rows) - 2)])
    rows = rows.set_column(rows.column_names.index("weight"), "weight", column)
    with pytest.raises(TableError, match=said):
        fitted(rows=rows, weight="weight")


@pytest.mark.parametrize("which", ["labeled", "unlabeled"])
def test_weights_that_leave_nothing(which):
    rows = table()
    missing = np.array([label is None for label in rows.column("class").to_pylist()])
    weights = np.where(missing == (which == "unlabeled"), 0.0, 1.0)
    rows = rows.set_column(rows.column_names.index("weight"), "weight", pa.array(weights))
    said = {
        "labeled": "--weight is positive for labeled rows of one class only, or not of all",
        "unlabeled": "All",
    }
    with pytest.raises(TableError, match=said[which]):
        fitted(rows=rows, weight="weight")


def test_all_rows_labeled():
    rows = table().filter(pa.compute.is_valid(table().column("class")))
    with pytest.raises(TableError, match=r"All 30 rows have a label.*--unlabeled OTHER"):
        fitted(rows=rows)


def test_columns_that_are_not_there():
    for option, name in (("target", "clas"), ("id", "nam"), ("weight", "wight")):
        with pytest.raises(TableError, match=rf"no column '{name}' for --{option}. Did you mean"):
            fitted(**{option: name})


# What is suspicious


def test_copies_of_labeled_rows():
    rows = pa.concat_tables([table()] * 3)
    fit, _ = fitted(rows=rows)
    assert fit.notes[0].startswith("60 of 90 labeled rows equal another one in all features.")


@pytest.mark.parametrize("kind", ["same text", "codes", "known only where the target is"])
def test_a_column_that_was_made_from_the_target(kind):
    rows = table()
    labels = rows.column("class").to_pylist()
    code = {"benign": 1.5, "malignant": 7.0, None: 1.5 if kind == "codes" else None}
    leak = labels if kind == "same text" else [code[label] for label in labels]
    fit, _ = fitted(rows=rows.append_column("leak", pa.array(leak)))
    assert fit.looks["leak"].startswith("Each value occurs with one class only, in all labeled")
    assert "--drop 'leak'" in fit.looks["leak"]
    fit, _ = fitted(
        rows=rows.append_column("leak", pa.array(leak)), drop=("leak", "name", "weight")
    )
    assert fit.looks == {}


def test_each_column_is_looked_at_once_for_leaks(monkeypatch):
    looked = []
    leaks = _fit._leaks
    monkeypatch.setattr(_fit, "_leaks", lambda *of: looked.append(of[0]) or leaks(*of))
    fit, _ = fitted()
    assert len(looked) == sum(plan.kind != "dropped" for plan in fit.model.preparation_.plans_)


@pytest.mark.parametrize("name", ["patient_id", "ID", "Patient No", "patientId"])
def test_a_number_that_names_the_rows(name):
    numbers = pa.array(np.random.default_rng(0).permutation(9999)[:140])
    fit, _ = fitted(rows=table().append_column(name, numbers))
    assert fit.looks[name].startswith("The numbers differ from row to row.")
    assert f"--drop {name!r}" in fit.looks[name]
    fit, _ = fitted(rows=table().append_column(name, numbers), drop=(name, "name", "weight"))
    assert fit.looks == {}
    for other in ("avoid", "keynote", "nodes"):
        assert other not in fitted(rows=table().append_column(other, numbers))[0].looks


# Two tables


def two_tables():
    rows = table()
    known = pa.compute.is_valid(rows.column("class"))
    return rows.filter(known), rows.filter(pa.compute.invert(known))


@pytest.mark.parametrize("target_is_there", [True, False])
def test_unlabeled_rows_in_a_table_of_their_own(target_is_there):
    labeled, unlabeled = two_tables()
    other = unlabeled if target_is_there else unlabeled.drop_columns("class")
    other = other.select(other.column_names[::-1]).append_column("extra", pa.nulls(len(other)))
    both = add_unlabeled(labeled, other, FitSettings("class"), "u.csv")
    apart, _ = fitted(rows=both)
    together, _ = fitted(rows=pa.concat_tables([labeled, unlabeled]))
    np.testing.assert_allclose(apart.classifier.coef_, together.classifier.coef_, rtol=1e-12)
    assert apart.row_names.to_pylist() == list(range(31, 141))


def test_types_of_two_tables_are_reconciled():
    labeled, unlabeled = two_tables()
    k = unlabeled.column_names.index("mean radius")
    text = unlabeled.set_column(k, "mean radius", unlabeled.column(k).cast(pa.string()))
    both = add_unlabeled(labeled, text, FitSettings("class"), "u.csv")
    mixed, _ = fitted(rows=both)
    plain, _ = fitted(rows=pa.concat_tables([labeled, unlabeled]))
    np.testing.assert_allclose(mixed.classifier.coef_, plain.classifier.coef_, rtol=1e-9)


def test_unlabeled_tables_that_do_not_fit():
    labeled, unlabeled = two_tables()
    with pytest.raises(TableError, match=r"u.csv has 30 labels in column 'class'"):
        add_unlabeled(labeled, labeled, FitSettings("class"), "u.csv")
    marked = labeled.set_column(
        labeled.column_names.index("class"), "class", pa.array(["?", "-"] * 15)
    )
    assert len(add_unlabeled(labeled, marked, FitSettings("class", markers=("?", "-")), "u")) == 60
    lacks = unlabeled.drop_columns("town").append_column("Town", pa.nulls(len(unlabeled)))
    with pytest.raises(TableError) as caught:
        add_unlabeled(labeled, lacks, FitSettings("class"), "u.csv")
    assert str(caught.value) == (
        "u.csv lacks the column 'town'. Add it, or leave it out of both: --drop 'town'. Did you "
        "mean 'Town'?"
    )
    both = add_unlabeled(labeled, lacks, FitSettings("class", drop=("town",)), "u.csv")
    assert "town" in both.column_names  # so that --drop finds it
    with pytest.raises(TableError, match="no column 'clas' for --target"):
        add_unlabeled(labeled, unlabeled, FitSettings("clas"), "u.csv")


# Small and strange tables


def test_two_labeled_rows():
    rows = pa.table({"x": [0.0, 1.0, 5.0, -3.0, 0.5], "y": ["a", "b", None, None, None]})
    fit = fit_table(rows, FitSettings("y"))
    assert fit.classifier.certificate_.holds


def test_rows_without_any_value():
    rows = table()
    half = [
        label is None and k % 2 == 0 for k, label in enumerate(rows.column("class").to_pylist())
    ]
    for k, name in enumerate(rows.column_names):
        if name not in ("class", "name", "weight"):
            column = pa.compute.if_else(pa.array(half), None, rows.column(k))
            rows = rows.set_column(k, name, column)
    fit, _ = fitted(rows=rows)
    assert np.isfinite(fit.features).all()
    assert fit.classifier.certificate_.holds


@pytest.mark.parametrize("name", ["", "row", "prediction", "two\nlines", "☃", "a'b\"c", " x "])
def test_columns_of_any_name(name):
    rows = table()
    rows = rows.rename_columns([name if c == "town" else c for c in rows.column_names])
    fit, _ = fitted(rows=rows)
    features = fit.model.preparation_.get_feature_names_out().tolist()
    assert f"{name} = v" in features or f"{name} = w" in features
    rows = rows.rename_columns(["the class" if c == "class" else c for c in rows.column_names])
    rows = rows.rename_columns(
        [name if c == "the class" else c for c in rows.column_names[:-1]] + ["target " + name]
    )
    fit, _ = fitted(rows=rows, target="target " + name)
    assert fit.target.name == "target " + name
