"""Numbers of the figures and the table, from measurements whose answer is known."""

import numpy as np
import pandas as pd
import pytest

from neverworse.experiments import _analysis
from neverworse.experiments._analysis import PUBLISHED_ROUNDING, compare_table, published
from neverworse.experiments._methods import PROTOCOLS


def folds(errors, n_test=(10, 30)):
    """Return measurements of cross-validations, for {method: {repeat: error of each fold}}."""
    return _analysis.tidy(
        {
            "WDBC": {
                repeat: [
                    {"method": method, "fold": k, "n_test": n, "error": values[repeat][k]}
                    for method, values in errors.items()
                    for k, n in enumerate(n_test)
                ]
                for repeat in range(len(next(iter(errors.values()))))
            }
        }
    )


def test_value_of_a_repeat():
    found = folds({"Supervised": [(0.1, 0.2), (0.3, 0.5)]})
    mean = _analysis.errors_of_repeats(found, PROTOCOLS["code"])["Supervised"]
    assert mean.to_list() == pytest.approx([0.15, 0.4])
    pooled = _analysis.errors_of_repeats(found, PROTOCOLS["text"])["Supervised"]
    assert pooled.to_list() == pytest.approx([(1 + 6) / 40, (3 + 15) / 40])


def test_cells_and_marks():
    rng = np.random.default_rng(0)
    supervised = [(a, a) for a in 0.3 + 0.01 * rng.random(20)]
    errors = {
        "Supervised": supervised,
        "ICLS": [(a - 0.02, a) for a, _ in supervised],
        "Projection": supervised,
        "Self-Learning": [(a + 0.02, a) for a, _ in supervised],
    }
    cells = _analysis.table(folds(errors), PROTOCOLS["code"]).set_index("method")
    assert cells["mark"].to_dict() == {
        "Supervised": "",
        "ICLS": "better",
        "Projection": "",
        "Self-Learning": "worse",
    }
    values = [a for a, _ in supervised]
    assert cells.loc["Supervised", "mean"] == pytest.approx(np.mean(values))
    assert cells.loc["Supervised", "sd"] == pytest.approx(np.std(values, ddof=1))
    assert cells.loc["ICLS", "mean"] == pytest.approx(np.mean(values) - 0.01)
    assert cells.loc["Projection", "p_less"] == 1.0
    totals = _analysis.count_marks(cells.reset_index())
    assert totals == {"ICLS": (1, 0, 0), "Projection": (0, 1, 0), "Self-Learning": (0, 0, 1)}


def losses(projection, supervised=(1.0, 2.0), own=(1.0, 2.0)):
    pairs = {"Supervised": supervised, "Projection": projection, "SVM": (4, 4), "TSVM": (2, 8)}
    return _analysis.tidy(
        {
            "WDBC": {
                repeat: [
                    {
                        "method": method,
                        "training_loss": values[repeat],
                        "test_loss": 2 * values[repeat],
                        "own_supervised_loss": own[repeat] if method == "Projection" else None,
                    }
                    for method, values in pairs.items()
                ]
                for repeat in range(2)
            }
        }
    )


def test_ratios_are_to_the_supervised_counterpart():
    found = _analysis.ratios(losses((0.5, 1.5)), "training_loss", ["dataset", "repeat"])
    assert {(row.method, row.repeat): row.ratio for row in found.itertuples()} == {
        ("Projection", 0): 0.5,
        ("Projection", 1): 0.75,
        ("TSVM", 0): 0.5,
        ("TSVM", 1): 2.0,
    }


def test_summary_of_robustness():
    found = _analysis.robustness(losses((0.5, 1.5))).set_index(["method", "rows"])
    assert found.loc[("TSVM", "training"), ["median", "worst", "higher"]].to_list() == [1.25, 2, 1]
    assert found.loc[("Projection", "test"), ["median", "worst", "higher"]].to_list() == [
        0.625,
        0.75,
        0,
    ]


@pytest.mark.parametrize(
    ("projection", "higher"), [((1.0, 2.0), 0), ((0.9, 1.9), 0), ((np.nextafter(1, 2), 2.0), 1)]
)
def test_the_guarantee_is_counted_strictly(projection, higher):
    found = _analysis.guarantee(losses(projection))
    assert found["fits"] == 2
    assert found["higher"] == higher
    assert found["higher_than_supervised"] == 0


def test_models_that_were_fitted_apart_are_compared_beyond_rounding_errors():
    found = _analysis.robustness(losses((1.0 + 1e-12, 2.0 + 1e-6))).set_index(["method", "rows"])
    assert found.loc[("Projection", "training"), "higher"] == 1
    assert _analysis.guarantee(losses((1.0 + 1e-12, 2.0 + 1e-6)))["higher_than_supervised"] == 1


def test_the_guarantee_is_about_the_weights_that_are_projected():
    """Supervised may have others, and a lower loss than the projection."""
    found = _analysis.guarantee(losses((1.2, 1.5), supervised=(1.0, 2.0), own=(1.3, 1.6)))
    assert (found["higher"], found["higher_than_supervised"]) == (0, 1)
    found = _analysis.guarantee(losses((1.2, 1.5), supervised=(2.0, 2.0), own=(1.1, 1.6)))
    assert (found["higher"], found["higher_than_supervised"]) == (1, 0)


def test_some_data_sets_are_tested_at_the_threshold_of_all():
    """0.05 / 64, as in the paper: a p-value between that and 0.05 / 3 is a draw."""
    assert _analysis.n_tests() == 64
    supervised = [(0.3, 0.3)] * 20
    lower = [(0.3 - 0.001 * (k + 1), 0.3) for k in range(20)]
    icls = [(0.6 - a, b) if k in (14, 16) else (a, b) for k, (a, b) in enumerate(lower)]
    errors = {"Supervised": supervised, "ICLS": icls, "Projection": lower, "TSVM": supervised}
    measured = folds({**errors, "SVM": supervised})
    for correction in ("bonferroni", "holm"):
        cells = _analysis.table(measured, PROTOCOLS["code"], correction).set_index("method")
        assert 0.05 / 64 < cells.loc["ICLS", "p_less"] < 0.05 / 3
        assert cells["mark"].to_dict() | {"Projection": ""} == dict.fromkeys(cells.index, "")
        assert cells.loc["Projection", "mark"] == "better"


def test_curves():
    results = {
        "SPECT": {
            repeat: [{"method": "ICLS", "n_unlabeled": 2, "error": e, "test_loss": 2 * e}]
            for repeat, e in enumerate([0.1, 0.2, 0.3])
        }
    }
    found = _analysis.curves(_analysis.tidy(results)).set_index("measure")
    assert found.loc["error", "mean"] == pytest.approx(0.2)
    assert found.loc["error", "standard_error"] == pytest.approx(0.1 / np.sqrt(3))
    assert found.loc["test_loss", "mean"] == pytest.approx(0.4)


def test_timing_is_the_mean_of_ratios():
    seconds = {"Supervised": (1.0, 2.0), "Projection": (3.0, 8.0)}
    results = {
        "Two Gaussians": {
            repeat: [
                {"method": method, "n_unlabeled": 2, "seconds": values[repeat]}
                for method, values in seconds.items()
            ]
            for repeat in range(2)
        }
    }
    (row,) = _analysis.timing(_analysis.tidy(results)).itertuples()
    assert (row.method, row.ratio, row.seconds, row.repeats) == ("Projection", 3.5, 5.5, 2)


def test_published_table_agrees_with_its_own_totals():
    table, totals = published()["table"], published()["totals"]
    assert len(table) == 16
    for method, (won, drawn, lost) in totals.items():
        marks = [row[method]["mark"] for row in table.values()]
        assert (marks.count("better"), marks.count(""), marks.count("worse")) == (won, drawn, lost)


def test_comparison_with_the_published_table():
    cells = pd.DataFrame(
        [
            {
                "dataset": "WDBC",
                "method": "ICLS",
                "mean": 0.1,
                "sd": 0.02,
                "repeats": 20,
                "mark": "",
            },
            {
                "dataset": "WDBC",
                "method": "Oracle",
                "mean": 0.1,
                "sd": 0.02,
                "repeats": 20,
                "mark": "",
            },
        ]
    )
    (row,) = compare_table(cells).itertuples()
    assert (row.method, row.published, row.published_mark) == ("ICLS", 0.08, "better")
    assert row.difference == pytest.approx(0.02)
    assert row.z == pytest.approx(
        0.02 / np.sqrt(0.02**2 / 20 + 0.01**2 / 20 + PUBLISHED_ROUNDING**2)
    )
    assert not row.agrees
