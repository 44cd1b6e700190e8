"""The study of class priors runs."""

import os

import pytest

from neverworse.datasets import load_wdbc

DATA = os.environ.get("NEVERWORSE_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="NEVERWORSE_DATA is not set")


def run(load, *arguments):
    return load("class_prior").main(["--repeats", "3", *map(str, arguments)])


def test_the_command(load, tmp_path, capsys):
    out, picture = tmp_path / "table.md", tmp_path / "picture.png"
    arguments = ["--datasets", "WDBC"]
    assert run(load, *arguments, "--out", out, "--picture", picture) == 0
    text = out.read_text(encoding="utf-8")
    assert text == capsys.readouterr().out
    assert text.count("| WDBC | 10 |") == 5
    assert text.endswith("Guarantees broken: 0. Not converged: 0 of 15 fits.\n")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert run(load, *arguments) == 0
    assert capsys.readouterr().out == text


def test_the_command_with_nowhere_to_save(load, tmp_path, capsys):
    with pytest.raises(SystemExit):
        run(load, "--out", tmp_path / "missing" / "table.md")
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


def test_the_certificate_is_a_bound_of_the_loss(load):
    study = load("class_prior")
    X, y = load_wdbc(return_X_y=True)
    for repeat in study.study("WDBC", X, 1 - y, repeats=5, level=0.5).repeats:
        for method, fit in repeat.fits.items():
            if repeat.promises(method) or method == study.ICLS:
                assert fit.loss - 1.0 <= fit.worst_case + 1e-12
