"""What is written, and that it is whole."""

import pandas as pd
import pytest

from neverworse.experiments import Reproduction
from neverworse.experiments import report as page
from tests.experiments import runs

WORDS = {"dataset", "method"}
SMALL = [
    "measurements/robustness.csv",
    "measurements/table.csv",
    "summaries/robustness.csv",
    "summaries/table.csv",
    *(
        f"figures/{name}.{kind}"
        for name in ("figure1", "robustness-test")
        for kind in ("png", "svg", "pdf")
    ),
    "table1.md",
    "table1.tex",
    "report.html",
]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("out") / "new" / "folder"
    return folder, runs.small().save(folder, command="neverworse reproduce")


def test_files(saved):
    folder, paths = saved
    assert [path.relative_to(folder).as_posix() for path in paths] == SMALL
    assert sorted(path for path in folder.rglob("*") if path.is_file()) == sorted(paths)
    assert all(path.stat().st_size > 100 for path in paths)


def read_back(path, like):
    """Read numbers as Python does, to the last bit."""
    text = pd.read_csv(path, dtype=str)
    return pd.DataFrame(
        {
            name: text[name] if name in WORDS else [float(value) for value in text[name]]
            for name in like
        }
    )


def test_measurements_come_back_to_the_last_bit(saved):
    folder, _ = saved
    read = {
        name: read_back(folder / f"measurements/{name}.csv", found)
        for name, found in runs.small().measurements.items()
    }
    for name, found in runs.small().measurements.items():
        pd.testing.assert_frame_equal(read[name], found, check_exact=True, check_dtype=False)
    again = Reproduction.of(runs.small().plan, "bonferroni", read)
    assert again.guarantees == runs.small().guarantees
    pd.testing.assert_frame_equal(again.summaries["table"], runs.small().summaries["table"])


def test_saving_again_replaces(tmp_path):
    found = runs.small(("table",), 1)
    paths = found.save(tmp_path)
    before = {path: path.read_bytes() for path in paths if path.suffix in (".csv", ".md")}
    for path in paths:
        path.write_text("old")
    (tmp_path / "mine.txt").write_text("mine")
    assert found.save(tmp_path) == paths
    assert before
    assert all(path.read_bytes() == content for path, content in before.items())
    assert (tmp_path / "report.html").stat().st_size > 100
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_file_that_cannot_be_made_leaves_the_old_one(tmp_path, monkeypatch):
    found = runs.small(("table",), 1)
    found.save(tmp_path)
    before = (tmp_path / "report.html").read_bytes()

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(page, "write_report", fail)
    with pytest.raises(MemoryError):
        found.save(tmp_path)
    assert (tmp_path / "report.html").read_bytes() == before
    assert not list(tmp_path.rglob("*.tmp"))


def test_only_what_was_run(tmp_path):
    paths = runs.timing().save(tmp_path)
    names = [path.relative_to(tmp_path).as_posix() for path in paths]
    assert names == [
        "measurements/timing.csv",
        "summaries/timing.csv",
        "figures/timing.png",
        "figures/timing.svg",
        "figures/timing.pdf",
        "report.html",
    ]
