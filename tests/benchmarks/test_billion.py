"""The simulation of a billion rows follows from its constants, and the page from the simulation."""

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def billion(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("billion")
    sys.modules.pop("billion", None)


@pytest.fixture
def constants(billion):
    """Numbers that are easy to calculate with."""
    return billion.Constants(
        file_rate=1e9,
        memory_rate=1e10,
        gram_rate=1e10,
        pass_rate=1e9,
        passes=5,
        takes=2,
        bytes_up=1.0,
        bytes_down=8.0,
        client_bytes=50.0,
        client_seconds=1e-8,
        solver_seconds=3.0,
        task_seconds=1e-3,
        gather_rate=1e9,
    )


def test_by_hand(billion, constants):
    cluster = billion.Cluster(n_workers=10, cores=4, memory=16e9, usable=0.5, link=2e9)
    table = billion.Table(n_rows=1e8, n_columns=100, chunk_bytes=1e8)
    costs = billion.simulate(constants, cluster, table)
    assert costs.persisted  # 40 GB in 80 GB
    assert costs.client_memory == 5e9
    sums = 5 * 8 * 100 * 400 / 1e9
    taken = (2 * 2**26 + 8 * 100**2) / 1e9
    assert costs.seconds == pytest.approx(
        {
            "reading": 40e9 / 20e9,  # through the links
            "Gram matrix": 2 * 1e8 * 1e4 / (40 * 1e10),
            "passes": 5 * 1e10 / (40 * 1e9),
            "network": 5 * (1e8 / 2e9 + 8e8 / 1e9) + sums + taken,
            "client": 5 * 1e8 * 1e-8 + 3.0,
            "scheduler": (400 * 8 + 400 / 7) * 1e-3,
        }
    )
    assert costs.total == pytest.approx(sum(costs.seconds.values()))
    assert costs.bottleneck == "client"


def test_rows_that_do_not_fit_are_read_again(billion, constants):
    table = billion.Table(n_rows=1e8)
    few, more = (billion.simulate(constants, billion.Cluster(n), table) for n in (4, 5))
    assert not few.persisted
    assert more.persisted
    assert few.seconds["reading"] == pytest.approx(8 * 5 / 4 * more.seconds["reading"])


def test_only_the_workers_share_of_the_work_shrinks(billion, constants):
    few, many = (
        billion.simulate(constants, billion.Cluster(n), billion.Table()) for n in (100, 1000)
    )
    for phase in ("reading", "Gram matrix", "passes"):
        assert many.seconds[phase] == pytest.approx(few.seconds[phase] / 10)
    for phase in ("network", "client", "scheduler"):
        assert many.seconds[phase] == few.seconds[phase]


def test_scores_that_stay(billion, constants):
    cluster, table = billion.Cluster(100), billion.Table()
    now = billion.simulate(constants, cluster, table)
    then = billion.simulate(constants, cluster, table, scores_stay=True)
    assert then.total < now.total
    assert then.client_memory < 1e9 < now.client_memory
    assert then.seconds["network"] < 0.1 * now.seconds["network"]
    for phase in ("reading", "Gram matrix", "passes"):
        assert then.seconds[phase] == now.seconds[phase]


def test_slow_memory_limits_a_pass(billion, constants):
    slow = replace(constants, memory_rate=1e9)
    cluster, table = billion.Cluster(100), billion.Table()
    costs = [billion.simulate(c, cluster, table).seconds["passes"] for c in (constants, slow)]
    assert costs[1] == pytest.approx(4 * costs[0])


def test_the_page_is_up_to_date(billion):
    page = billion.PAGE.read_text(encoding="utf-8")
    assert billion.with_tables(page, billion.text_of()) == page


def test_what_the_page_says_about_the_tables(billion):
    constants, _ = billion.load()
    table = billion.Table()

    def costs(n, **settings):
        return billion.simulate(constants, billion.Cluster(n), table, **settings)

    assert not costs(10).persisted
    for n in (100, 1000):
        now, then = costs(n), costs(n, scores_stay=True)
        assert now.persisted
        assert now.seconds["network"] + now.seconds["client"] > 0.5 * now.total
        assert then.bottleneck == "scheduler"
    assert costs(1000).total > 0.9 * costs(100).total
    assert costs(10, scores_stay=True).bottleneck == "reading"


def test_the_command(billion, constants, tmp_path, capsys):
    file, page = tmp_path / "constants.json", tmp_path / "page.md"
    file.write_text(json.dumps({"constants": vars(constants), "measured_on": "paper"}))
    page.write_text(f"before\n{billion.BEGIN}\nold\n{billion.END}\nafter\n")
    assert billion.main(["--constants", str(file), "--page", str(page)]) == 0
    text = page.read_text()
    assert capsys.readouterr().out.strip() in text
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert text.count("| 1,000 workers |") == 2
    assert "| Dask, ms for each task | 1 |" in text
    assert "Measured on paper." in text


def test_a_page_without_marks(billion):
    with pytest.raises(ValueError, match="no marks"):
        billion.with_tables("# A page", "tables")
