"""The experiments from Python."""

import pytest

from neverworse.datasets import DataNotFoundError, load_paper_dataset
from neverworse.experiments import reproduce
from tests.experiments import runs


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"experiments": "tables"}, "no experiment 'tables': choose from robustness, curves"),
        ({"experiments": []}, "no experiment none: choose from"),
        ({"datasets": ["Iris"]}, "no data set 'Iris': choose from BCI"),
        ({"protocol": "paper"}, "no protocol 'paper': choose from code, text"),
        ({"correction": "none"}, "no correction 'none': choose from bonferroni, holm"),
        ({"repeats": 0}, "repeats=0 must be at least 1"),
        ({"jobs": 0}, "jobs=0 must be at least 1"),
    ],
)
def test_what_there_is_not(tmp_path, settings, message):
    with pytest.raises(ValueError, match=message):
        reproduce(**{"experiments": "table", "out": tmp_path, **settings})
    assert not list(tmp_path.iterdir())


def test_a_small_run():
    found = runs.small()
    assert list(found.measurements) == ["robustness", "table"]
    assert len(found.measurements["table"]) == 2 * 10 * 7
    assert found.guarantees["table"]["fits"] == 20
    assert found.guarantees["table"]["higher"] == 0
    cells = found.summaries["table"].set_index("method")
    assert list(cells.index) == ["Supervised", "Self-Learning", "ICLS", "Projection", "SVM", "TSVM"]
    assert cells.loc["Supervised", "published"] == 0.09
    assert (cells["mark"] == "").all()  # two repeats prove nothing


def test_data_that_are_found(tmp_path, monkeypatch):
    def only_wdbc(name, **options):
        if name != "WDBC":
            raise DataNotFoundError(name)
        return load_paper_dataset(name, **options)

    monkeypatch.setattr("neverworse.experiments._reproduction.load_paper_dataset", only_wdbc)
    found = reproduce("robustness", datasets="available", repeats=1, out=tmp_path, jobs=1)
    assert found.measurements["robustness"]["dataset"].unique().tolist() == ["WDBC"]


def test_missing_data_are_told_before_anything_is_run(tmp_path, monkeypatch):
    def nothing(name, **_):
        raise DataNotFoundError(name)

    monkeypatch.setattr("neverworse.experiments._reproduction.load_paper_dataset", nothing)
    with pytest.raises(OSError, match="Parkinsons"):
        reproduce("table", datasets=["Parkinsons"], repeats=1, out=tmp_path, jobs=1)
