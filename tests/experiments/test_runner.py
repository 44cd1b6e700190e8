"""Runs give the same numbers in whatever way they are made."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from neverworse import ICLSClassifier, ProjectedLeastSquaresClassifier
from neverworse.experiments import _reproduction
from neverworse.experiments._experiments import (
    EXPERIMENTS,
    LARGE_SIZES,
    Sample,
    principal_components,
)
from neverworse.experiments._methods import METHODS, PROTOCOLS
from neverworse.experiments._reproduction import Plan, run
from tests.experiments import runs


@pytest.fixture(scope="module")
def cancer():
    """WDBC in the order of the paper: malignant first."""
    return load_breast_cancer(return_X_y=True)


def quick(repeats, **settings):
    return Plan(("robustness",), ("WDBC",), repeats, **settings)


def test_any_number_of_processes_and_interruptions(tmp_path):
    """The same bits from one process, and from two that go on where another run was."""
    alone = run(quick(3), tmp_path / "alone", jobs=1)
    run(quick(1), tmp_path / "resumed", jobs=1)
    resumed = run(quick(3), tmp_path / "resumed", jobs=2)
    assert alone == resumed
    assert list(alone["robustness"]["WDBC"]) == [0, 1, 2]


def test_only_what_is_missing_is_run(tmp_path, monkeypatch):
    first = run(quick(2), tmp_path, jobs=1)
    ran = []
    original = _reproduction.run_task
    recorded = lambda task, plan: ran.append(task[2]) or original(task, plan)  # noqa: E731
    monkeypatch.setattr(_reproduction, "run_task", recorded)
    more = run(quick(3), tmp_path, jobs=1)
    assert ran == [2]
    assert more["robustness"]["WDBC"][1] == first["robustness"]["WDBC"][1]
    fewer = run(quick(1), tmp_path, jobs=1)
    assert ran == [2]
    assert list(fewer["robustness"]["WDBC"]) == [0]


def test_other_settings_give_other_numbers(tmp_path):
    found = [
        run(quick(1, **settings), tmp_path / str(k), jobs=1)
        for k, settings in enumerate([{}, {"seed": 1}, {"protocol": "text"}])
    ]
    assert found[0] != found[1]
    assert found[0] != found[2]


def test_another_seed_does_not_reuse_results(tmp_path):
    run(quick(1), tmp_path, jobs=1)
    again = run(quick(1, seed=1), tmp_path, jobs=1)
    assert again == run(quick(1, seed=1), tmp_path / "fresh", jobs=1)


def test_results_of_other_methods_are_not_reused(tmp_path, monkeypatch):
    run(quick(1), tmp_path, jobs=1)
    monkeypatch.setitem(METHODS, "Projection", lambda _: ICLSClassifier(alpha=1.0))
    again = run(quick(1), tmp_path, jobs=1)
    assert again == run(quick(1), tmp_path / "fresh", jobs=1)


def folders(place):
    return {path.parent for path in place.rglob("settings.json")}


def test_results_of_another_default_are_not_reused(tmp_path, monkeypatch):
    run(quick(1), tmp_path, jobs=1)
    before = folders(tmp_path)
    monkeypatch.setattr(
        ProjectedLeastSquaresClassifier.__init__,
        "__kwdefaults__",
        {**ProjectedLeastSquaresClassifier.__init__.__kwdefaults__, "tol": 1e-3},
    )
    run(quick(1), tmp_path, jobs=1)
    assert len(folders(tmp_path) - before) == 1


def test_results_of_other_default_candidates_are_not_reused(tmp_path, monkeypatch):
    """The evidence experiment is stored with everything that it fits, and with its constants."""
    from neverworse.experiments import _experiments

    plan = Plan(("evidence",), ("WDBC",), 0)
    run(plan, tmp_path, jobs=1)
    candidates = _experiments.default_candidates
    fewer = lambda *args, **kwargs: candidates(*args, **kwargs)[:-1]  # noqa: E731
    other = lambda *args, **kwargs: [  # noqa: E731
        (name, model.set_params(**({"n_estimators": 7} if name == "random forest" else {})))
        for name, model in candidates(*args, **kwargs)
    ]
    changes = [("default_candidates", fewer), ("default_candidates", other)]
    for k, (name, value) in enumerate([*changes, ("MOST_QUESTIONS", 41)], start=2):
        monkeypatch.setattr(_experiments, name, value)
        run(plan, tmp_path, jobs=1)
        assert len(folders(tmp_path)) == k
    run(plan, tmp_path, jobs=1)
    assert len(folders(tmp_path)) == 4


@pytest.mark.parametrize("name", ["Supervised", "Self-Learning", "USM", "ICLS", "Projection"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_least_squares_has_no_penalty_whatever_the_defaults_are(name, protocol):
    settings = METHODS[name](PROTOCOLS[protocol]).get_params()
    alphas = {key: value for key, value in settings.items() if key.endswith("alpha")}
    assert alphas
    assert set(alphas.values()) == {0.0}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_projection_is_never_worse(cancer, protocol):
    for name in ("robustness", "table"):
        experiment = EXPERIMENTS[name]
        X = experiment.prepare(cancer[0], PROTOCOLS[protocol])
        for repeat in range(1 if name == "table" else 3):
            rng = np.random.default_rng(repeat)
            records = experiment.run((X, cancer[1]), PROTOCOLS[protocol], rng, repeat)
            assert {record["method"] for record in records} == set(experiment.methods)
            for record in records:
                if record["method"] == "Projection":
                    assert record["training_loss"] <= record["own_supervised_loss"]


def test_numbers_of_labels(cancer):
    X, _ = cancer
    code, text = PROTOCOLS["code"], PROTOCOLS["text"]
    assert principal_components(X, code).shape == (569, 2)
    assert principal_components(X, text) is X
    assert [code.n_labeled(d) for d in (2, 30)] == [10, 60]
    assert [text.n_labeled(d) for d in (2, 30)] == [4, 60]
    assert [code.n_labeled_in_folds(d) for d in (3, 30)] == [20, 35]
    assert [text.n_labeled_in_folds(d) for d in (3, 30)] == [8, 35]


def test_principal_components_are_scores(cancer):
    X, _ = cancer
    scores = principal_components(X, PROTOCOLS["code"])
    assert scores.mean(axis=0) == pytest.approx(0.0, abs=1e-9)
    covariance = np.cov(scores.T)
    assert covariance[0, 1] == pytest.approx(0.0, abs=1e-6 * covariance[0, 0])
    largest = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    assert np.diag(covariance) == pytest.approx(largest[:2])
    assert largest[0] < 0.99 * largest.sum() <= largest[:2].sum()


def test_learning_curves(cancer):
    """Unlabeled sets are nested, all other rows are tested, and the oracle knows everything."""
    X, y = cancer[0][:300, :5], cancer[1][:300]
    rng = np.random.default_rng(0)
    records = EXPERIMENTS["curves"].run((X, y), PROTOCOLS["code"], rng, 0)
    sizes = sorted({record["n_unlabeled"] for record in records})
    assert sizes == [2, 4, 8, 16, 32, 64, 128, 256]  # of 290 that are left
    for record in records:
        n_test = 290 - record["n_unlabeled"]
        assert record["error"] * n_test == pytest.approx(round(record["error"] * n_test))
    assert len(records) == len(sizes) * 6


def test_labels_are_hidden_from_all_but_the_oracle(cancer):
    X, y = cancer
    sample = Sample((X, y), np.arange(40), np.arange(40, 200), np.arange(200, 300))
    other = Sample((X, np.r_[y[:40], 1 - y[40:]]), np.arange(40), np.arange(40, 200), [])
    protocol = PROTOCOLS["code"]
    names = ("Supervised", "Self-Learning", "USM", "ICLS", "Projection", "Oracle", "SVM", "TSVM")
    for (method, model), (_, blind) in zip(
        sample.fit(names, protocol), other.fit(names, protocol), strict=True
    ):
        same = np.array_equal(model.decision_function(X), blind.decision_function(X))
        assert same == (method != "Oracle")


def test_timing():
    measured = runs.timing().measurements["timing"]
    sizes = [2**k for k in range(1, 12)]
    first = measured[(measured["repeat"] == 0) & (measured["method"] == "TSVM")]
    assert first["n_unlabeled"].tolist() == sizes
    assert (measured["seconds"] > 0.0).all()
    assert max(LARGE_SIZES) == 1_000_000
    assert measured.loc[measured["repeat"] == 1, "n_unlabeled"].max() == 1024
