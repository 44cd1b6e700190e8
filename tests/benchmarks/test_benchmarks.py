"""The benchmarks run, on sizes that say nothing about speed."""

import numpy as np
import pytest


def test_a_case_through_the_command_line(load, tmp_path, capsys):
    out = tmp_path / "bench.md"
    code = load("run").main(["--cases", "paper", "--quick", "--repeats", "1", "--out", str(out)])
    assert code == 0
    text = out.read_text()
    assert text == capsys.readouterr().out
    assert "fit / supervised fit" in text
    assert "Measured on" in text
    assert list(tmp_path.iterdir()) == [out]


def test_solvers_agree(load):
    solvers = load("solvers")
    rows = solvers.compare([(20, 1000)], say=lambda _: None)
    assert rows[0].solver.startswith("neverworse")
    for row in rows:
        if row.seconds is not None:
            assert row.seconds > 0
            assert row.excess <= 1e-3
    assert rows[0].excess <= 1e-9


def test_methods_beside_each_other(load, monkeypatch):
    methods, tables = load("methods"), load("tables")
    monkeypatch.setattr(methods, "N_LABELED", 100)
    monkeypatch.setattr(methods, "D", 20)
    rows = methods.compare([120], say=lambda _: None)
    assert [row.method for row in rows] == list(methods.METHODS)
    assert all(row.seconds > 0 and row.error < 0.5 for row in rows)
    table = tables.of_methods(rows)
    assert table.count("\n") == len(rows) + 1
    (line,) = (line for line in table.splitlines() if methods.REFERENCE in line)
    assert "(1)" in line


def test_methods_that_need_too_much_memory(load, monkeypatch):
    methods, tables = load("methods"), load("tables")
    wanted = [methods.REFERENCE, "scikit-learn LabelSpreading(gamma=1 / d)"]
    monkeypatch.setattr(methods, "METHODS", {name: methods.METHODS[name] for name in wanted})
    monkeypatch.setattr(methods, "LARGEST_MATRIX", 1e6)
    rows = methods.compare([120], say=lambda _: None)
    assert rows[1].seconds is None
    assert "not run" in tables.of_methods(rows)


@pytest.mark.parametrize("case", ["svm", "iterations"])
def test_support_vector_machines_and_iterations(load, monkeypatch, case):
    cases, draw = load("cases"), load("data").two_gaussians
    monkeypatch.setattr(cases, "two_gaussians", lambda n, n_u, _: draw(n, n_u, 20))
    results = cases.CASES[case](quick=True, repeats=1)
    assert all(result.measured > 0 for result in results)


def test_the_box_problem_is_the_projection(load):
    from neverworse import ProjectedLeastSquaresClassifier

    data = load("data")
    X, y, truth = data.two_gaussians(20, 300, 5)
    assert np.array_equal(y[:20], truth[:20])
    A, b = data.box_least_squares(X, y)
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    value = np.sum((A @ clf.soft_labels_ - b) ** 2)
    assert clf.certificate_.guaranteed_improvement == pytest.approx(value, rel=1e-6)


def test_side_by_side_interleaves(load):
    calls = []
    times = load("timing").side_by_side({k: lambda k=k: calls.append(k) for k in "ab"}, 3)
    assert calls == list("ab" * 4)
    assert all(len(values) == 3 for values in times.values())
