"""The simulation of a billion rows follows from its constants, and the page from the simulation."""

import json
from dataclasses import replace

import pytest


@pytest.fixture
def billion(load):
    return load("billion")


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
        tasks=20,
        more_rounds=1.0,
        round_tasks=5,
        placed_bytes=0.5,
        task_bytes=1e3,
        soft_bytes=0.25,
        taken_bytes=2**26,
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
    # Working sets are limited from 2 ** 26 / 800 / 0.02 = 4.2e6 rows on, a 24th of these.
    passes, takes, tasks = 5 + 2, 2 + 2 * 2, 400 * (20 + 2 * 5)
    assert costs.seconds == pytest.approx(
        {
            "reading": 40e9 / 20e9,  # through the links
            "Gram matrix": 2 * 1e8 * 1e4 / (40 * 1e10),
            "passes": passes * 1e10 / (40 * 1e9),
            "network": (0.5e8 + 1e3 * tasks) / 2e9
            + (0.25e8 + takes * 2**25 + 8 * 100 * (100 + passes)) / 1e9,
            "client": 1e8 * 1e-8 + 3.0 * takes / 2,  # as often rows were taken before
            "scheduler": tasks * 1e-3,
        }
    )
    assert costs.total == pytest.approx(sum(costs.seconds.values()))
    assert costs.bottleneck == "scheduler"
    assert billion.Counts(constants, table).client_memory == pytest.approx(5e9 + 2**26)


def test_rows_that_do_not_fit_are_read_again(billion, constants):
    table = billion.Table(n_rows=1e8)
    few, more = (billion.simulate(constants, billion.Cluster(n), table) for n in (4, 5))
    assert not few.persisted
    assert more.persisted
    # Once, for each of 7 passes, and for each of 6 times that rows are taken.
    assert few.seconds["reading"] == pytest.approx(14 * 5 / 4 * more.seconds["reading"])


def test_only_the_workers_share_of_the_work_shrinks(billion, constants):
    few, many = (
        billion.simulate(constants, billion.Cluster(n), billion.Table()) for n in (100, 1000)
    )
    for phase in ("reading", "Gram matrix", "passes"):
        assert many.seconds[phase] == pytest.approx(few.seconds[phase] / 10)
    for phase in ("network", "client", "scheduler"):
        assert many.seconds[phase] == few.seconds[phase]


def test_more_rows_take_more_rounds(billion, constants):
    counts = [
        billion.Counts(constants, billion.Table(n_rows=n, chunk_bytes=n)) for n in (1e6, 4e6, 1e9)
    ]
    assert [one.passes for one in counts] == [5, 5, 8]
    assert [one.tasks for one in counts] == [400 * 20, 400 * 20, 400 * 35]
    # Only labels and soft labels are a matter of rows; working sets have a limit.
    assert counts[1].down - counts[0].down == pytest.approx(0.25 * 3e6)
    assert counts[1].up - counts[0].up == pytest.approx(0.5 * 3e6)
    assert [one.taken for one in counts] == [2 * 2**25, 2 * 2**25, 8 * 2**25]


def test_larger_chunks(billion, constants):
    cluster = billion.Cluster(1000)
    small, large = (
        billion.simulate(constants, cluster, billion.Table(chunk_bytes=size)).seconds
        for size in (1e8, 1e9)
    )
    assert large["scheduler"] == pytest.approx(small["scheduler"] / 10)
    assert large["network"] < small["network"]
    for phase in ("Gram matrix", "passes"):  # 400 chunks keep 400 of 4000 cores busy
        assert large[phase] == pytest.approx(10 * small[phase])


def test_slow_memory_limits_a_pass(billion, constants):
    slow = replace(constants, memory_rate=1e9)
    cluster, table = billion.Cluster(100), billion.Table()
    costs = [billion.simulate(c, cluster, table).seconds["passes"] for c in (constants, slow)]
    assert costs[1] == pytest.approx(4 * costs[0])


def test_the_page_is_up_to_date(billion):
    page = billion.PAGE.read_text(encoding="utf-8")
    assert billion.with_tables(page, billion.BEGIN, billion.text_of()) == page


def test_what_the_page_says_about_the_tables(billion):
    constants, _ = billion.load()

    def costs(n, **settings):
        return billion.simulate(constants, billion.Cluster(n), billion.Table(**settings))

    assert not costs(10).persisted
    assert costs(10).bottleneck == "reading"
    assert [costs(n).persisted for n in (41, 42)] == [False, True]
    for n in (100, 1000):
        small, large = costs(n), costs(n, chunk_bytes=1e9)
        assert small.seconds["scheduler"] > 0.5 * small.total
        assert large.total < 0.5 * small.total
        assert large.seconds["scheduler"] + large.seconds["client"] > 0.5 * large.total
    method = ("Gram matrix", "passes")
    assert sum(costs(100).seconds[phase] for phase in method) < 10
    counts = billion.Counts(constants, billion.Table())
    assert counts.up + counts.down < 0.01 * billion.Table().size
    assert constants.placed_bytes < 1  # some bits
    assert constants.soft_bytes < 1
    assert 24 < counts.tasks / billion.Table().n_chunks < 100  # some dozens


def test_the_command(billion, constants, tmp_path, capsys):
    file, page = tmp_path / "constants.json", tmp_path / "page.md"
    file.write_text(json.dumps({"constants": vars(constants), "measured_on": "paper"}))
    page.write_text(f"before\n{billion.BEGIN}\nold\n<!-- end -->\nafter\n")
    assert billion.main(["--constants", str(file), "--page", str(page)]) == 0
    text = page.read_text()
    assert capsys.readouterr().out.strip() in text
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert "| seconds | 10 workers | 100 workers | 1,000 workers |" in text
    assert "Passes: 8. Rows are taken 8 times." in text
    assert "| 1,000 MB | 400 | 14,000 | 14.0 |" in text
    assert "| Dask, ms for each task | 1 |" in text
    assert "Measured on paper." in text


def test_a_page_without_marks(billion):
    with pytest.raises(ValueError, match="no marks"):
        billion.with_tables("# A page", billion.BEGIN, "tables")
