"""The paper's data sets are prepared as in the paper; the study of class priors runs."""

import importlib
import os
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
DATA = os.environ.get("NEVERWORSE_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="NEVERWORSE_DATA is not set")

# Rows, columns, rows of the class that is coded 1, and principal components with 99 % of the
# variance.
SETS = {
    "Haberman": (306, 3, 225, 3),
    "Ionosphere": (351, 33, 126, 30),
    "Parkinsons": (195, 22, 48, 3),
    "Diabetes": (768, 8, 500, 4),
    "Sonar": (208, 60, 111, 29),
    "SPECT": (267, 22, 55, 21),
    "SPECTF": (267, 44, 55, 37),
    "Transfusion": (748, 4, 570, 1),
    "WDBC": (569, 30, 212, 2),
    "Mammography": (961, 9, 516, 1),
    "Digit1": (1500, 241, 766, 215),
    "USPS": (1500, 241, 1200, 188),
    "COIL2": (1500, 241, 750, 86),
    "BCI": (400, 117, 200, 45),
    "g241c": (1500, 241, 750, 235),
    "g241d": (1500, 241, 752, 235),
}


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    names = [path.stem for path in FOLDER.glob("*.py")]
    yield importlib.import_module
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def data_home(tmp_path):
    """A folder with rows that look like those of Haberman, and overlap as much."""
    rng = np.random.default_rng(0)
    label = 1 + (rng.random(120) < 0.3)
    X = rng.normal(size=(120, 3)) + 0.7 * label[:, None]
    home = tmp_path / "data"
    home.mkdir()
    np.savetxt(
        home / "haberman.csv",
        np.column_stack([X, label]),
        fmt=["%.4f"] * 3 + ["%d"],
        delimiter=",",
        header="age,year_of_operation,axillary_nodes,label",
        comments="",
    )
    return home


def test_all_sets_in_the_order_of_the_paper(load):
    names = load("paper_data").NAMES
    assert names == tuple(SETS)


@needs_data
@pytest.mark.parametrize("name", SETS)
def test_sizes_of_the_data_sets(load, name):
    n_rows, n_features, n_ones, n_components = SETS[name]
    X, y = load("paper_data").load(name, DATA)
    assert X.shape == (n_rows, n_features)
    assert np.isfinite(X).all()
    assert np.array_equal(np.bincount(y), [n_rows - n_ones, n_ones])
    assert load("class_prior").principal_components(X).shape == (n_rows, n_components)


def test_missing_values_of_diabetes(load, tmp_path):
    (tmp_path / "diabetes.csv").write_text(
        "times_pregnant,glucose,diastolic_blood_pressure,skinfold,insulin,bmi,pedigree,age,label\n"
        "0,0,70,20,0,30.5,0.5,30,0\n"
        "1,100,0,0,5,0,0.6,40,1\n"
        "2,120,80,10,7,20.5,0.7,50,0\n"
        "3,110,90,15,9,25.5,0.8,60,1\n"
    )
    X, y = load("paper_data").load("Diabetes", tmp_path)
    assert X[0].tolist() == [0, 110, 70, 20, 0, 30.5, 0.5, 30]  # insulin keeps its zero
    assert X[1].tolist() == [1, 100, 80, 15, 5, 25.5, 0.6, 40]
    assert y.tolist() == [1, 0, 1, 0]


def test_categories_of_mammography(load, tmp_path):
    (tmp_path / "mammographic.csv").write_text(
        "birads,age,shape,margin,density,label\n5,60,1,1,3,1\n4,,2,,,0\n3,40,,3,2,0\n2,30,2,3,1,1\n"
    )
    X, y = load("paper_data").load("Mammography", tmp_path)
    # age, shape 2, margin 3, density
    assert X.tolist() == [[60, 0, 0, 3], [40, 1, 1, 2], [40, 1, 1, 2], [30, 1, 1, 1]]
    assert y.tolist() == [0, 1, 1, 0]


def test_percentages_of_spectf_and_constant_columns(load, tmp_path):
    (tmp_path / "spectf.csv").write_text("F1R,F1S,F2R,label\n50,7,20,0\n75,7,10,1\n")
    X, y = load("paper_data").load("SPECTF", tmp_path)
    assert X.tolist() == [[0.5, 0.2], [0.75, 0.1]]
    assert y.tolist() == [1, 0]


@pytest.mark.parametrize("home", [None, "", "nowhere"])
def test_without_data(load, home, tmp_path):
    home = tmp_path / home if home else home
    with pytest.raises(FileNotFoundError, match=r"NEVERWORSE_DATA.* to the folder that has"):
        load("paper_data").load("Sonar", home)


def test_unknown_data_set(load):
    with pytest.raises(ValueError, match="no data set 'Iris', only Haberman, "):
        load("paper_data").load("Iris", None)


def test_drawn_rows(load):
    truth = np.array([0] * 30 + [1])
    for seed in range(5):
        rows = load("class_prior").draw_labeled(truth, 10, np.random.default_rng(seed))
        assert len(set(rows.tolist())) == 10
        assert set(truth[rows].tolist()) == {0, 1}


def run(load, *arguments):
    return load("class_prior").main(["--repeats", "3", *map(str, arguments)])


def test_the_command(load, data_home, tmp_path, capsys):
    out, picture = tmp_path / "table.md", tmp_path / "picture.png"
    arguments = ["--datasets", "Haberman", "--data-home", data_home]
    assert run(load, *arguments, "--out", out, "--picture", picture) == 0
    text = out.read_text(encoding="utf-8")
    assert text == capsys.readouterr().out
    assert text.count("| Haberman | 10 |") == 5
    assert text.endswith("Guarantees broken: 0. Not converged: 0 of 15 fits.\n")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert run(load, *arguments) == 0
    assert capsys.readouterr().out == text


def test_the_command_without_data(load, monkeypatch, capsys):
    monkeypatch.delenv("NEVERWORSE_DATA", raising=False)
    with pytest.raises(SystemExit) as stopped:
        run(load)
    assert stopped.value.code == 2
    assert "Pass --data-home, or set the environment variable" in capsys.readouterr().err


def test_the_command_with_nowhere_to_save(load, data_home, tmp_path, capsys):
    with pytest.raises(SystemExit):
        run(load, "--data-home", data_home, "--out", tmp_path / "missing" / "table.md")
    assert "there is no folder" in capsys.readouterr().err


@needs_data
def test_the_command_on_data_sets_of_the_paper(load, capsys):
    assert run(load, "--datasets", "SPECT", "Transfusion", "--data-home", DATA) == 0
    text = capsys.readouterr().out
    assert text.count("| SPECT | 42 |") == 5
    assert text.count("| Transfusion | 10 |") == 5
    assert "Guarantees broken: 0." in text


def test_what_is_promised(load):
    study = load("class_prior")
    fits = {method: study.Fit(1.5, 0.1, 0.5, True) for method in study.METHODS}
    repeats = [study.Repeat(0.1, fits, share, 0.2, (0.1, 0.3)) for share in (0.3, 0.4)]
    found = study.Study("Sonar", 58, repeats)
    worse = {method: found.n_worse(method, promised=True) for method in study.METHODS}
    assert list(worse.values()) == [2, 1, 2, 2, 0]
    assert found.n_worse(study.CONFIDENCE, promised=False) == 1


def test_the_certificate_is_a_bound_of_the_loss(load, data_home):
    study = load("class_prior")
    X, truth = load("paper_data").load("Haberman", data_home)
    for repeat in study.study("Haberman", X, truth, repeats=5, level=0.5).repeats:
        for method, fit in repeat.fits.items():
            if repeat.promises(method) or method == study.ICLS:
                assert fit.loss - 1.0 <= fit.worst_case + 1e-12
