"""What a fit to a billion rows would cost on a cluster: ``billion.py --help``.

Nothing is measured here: `constants.py` does that, and docs/billion_rows.md explains the model.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from neverworse.projection.solver.working_set import LARGEST_SHARE, WORKING_BYTES
from pages import with_tables

HERE = Path(__file__).resolve().parent
CONSTANTS = HERE / "constants.json"
PAGE = HERE.parent / "docs" / "billion_rows.md"
BEGIN = "<!-- made by benchmarks/billion.py -->"

FLOAT32, FLOAT64 = 4, 8
CHUNK_SIZES = (100e6, 1e9)  # the first is that of all other tables


def _number(words, scale=1.0):
    return field(metadata={"words": words, "scale": scale})


@dataclass(frozen=True)
class Constants:
    """What was measured; in bytes, seconds, numbers."""

    file_rate: float = _number("reading Parquet, GB/s and core", 1e-9)
    memory_rate: float = _number("reading memory, GB/s and core", 1e-9)
    gram_rate: float = _number("Gram matrix, 10⁹ operations/s and core", 1e-9)
    pass_rate: float = _number("pass, 10⁹ numbers/s and core", 1e-9)
    passes: float = _number("passes of a fit, beside the Gram matrix")
    takes: float = _number("times that rows are taken")
    tasks: float = _number("tasks for each chunk, with those that combine")
    more_rounds: float = _number("more rounds for ten times the rows, beyond 64 MB")
    round_tasks: float = _number("tasks of such a round for each chunk")
    placed_bytes: float = _number("labels to the workers, bytes for each row, once")
    task_bytes: float = _number("other things to the workers, kB for each task", 1e-3)
    soft_bytes: float = _number("soft labels to the client, bytes for each row, once")
    taken_bytes: float = _number("samples and working sets to the client, MB", 1e-6)
    client_bytes: float = _number("memory of the client, bytes for each row")
    client_seconds: float = _number("work of the client, ns for each row", 1e9)
    solver_seconds: float = _number("samples and working sets at the client, seconds")
    task_seconds: float = _number("Dask, ms for each task", 1e3)
    gather_rate: float = _number("Dask, results to the client, GB/s", 1e-9)


@dataclass(frozen=True)
class Cluster:
    """What is assumed about the machines."""

    n_workers: int
    cores: int = 4  # of each worker
    memory: float = 16e9  # of each worker
    usable: float = 0.6  # of the memory, for rows: Dask begins to write to disk there
    link: float = 1.25e9  # bytes per second, of each worker and of the client: 10 Gbit/s


@dataclass(frozen=True)
class Table:
    """The rows."""

    n_rows: float = 1e9
    n_columns: int = 100
    chunk_bytes: float = CHUNK_SIZES[0]

    @property
    def size(self):
        """Bytes of all rows."""
        return FLOAT32 * self.n_rows * self.n_columns

    @property
    def n_chunks(self):
        """How many chunks there are."""
        return math.ceil(self.size / self.chunk_bytes)


@dataclass(frozen=True)
class Costs:
    """Seconds of a whole fit, by what they are spent on.

    Attributes
    ----------
    persisted : bool
        Whether the workers hold all rows in memory.
    seconds : dict of str to float
        Reading, Gram matrix, passes, network, client and scheduler.
    """

    persisted: bool
    seconds: dict[str, float]

    @property
    def total(self):
        """Seconds of the fit."""
        return sum(self.seconds.values())

    @property
    def bottleneck(self):
        """What takes longest."""
        return max(self.seconds, key=self.seconds.get)


class Counts:
    """How often a fit does what, and how many bytes cross the network.

    Parameters
    ----------
    constants : Constants
    table : Table
    """

    def __init__(self, constants, table):
        c, n, d = constants, table.n_rows, table.n_columns
        # Working sets grow with the rows up to a limit. From there on they are a smaller and
        # smaller share of them, and it takes more rounds to come down to so few rows.
        limited = WORKING_BYTES / (FLOAT64 * d * LARGEST_SHARE)
        rounds = math.ceil(c.more_rounds * math.log10(max(1.0, n / limited)))
        self.passes = c.passes + rounds
        self.takes = c.takes + 2 * rounds  # a round looks for equal rows first
        self.tasks = table.n_chunks * (c.tasks + rounds * c.round_tasks)
        # Rows of single precision travel as such.
        largest = WORKING_BYTES * FLOAT32 / FLOAT64
        self.taken = self.takes * max(largest, c.taken_bytes / c.takes)
        self.up = n * c.placed_bytes + self.tasks * c.task_bytes
        sums = FLOAT64 * d * (d + self.passes)
        self.down = n * c.soft_bytes + self.taken + sums
        self.client_memory = n * c.client_bytes + WORKING_BYTES


def simulate(constants, cluster, table):
    """Return what a fit costs.

    Parameters
    ----------
    constants : Constants
    cluster : Cluster
    table : Table
    """
    n, d, c = table.n_rows, table.n_columns, constants
    counts = Counts(constants, table)
    # A chunk is the work of one core at a time.
    cores = min(cluster.n_workers * cluster.cores, table.n_chunks)
    links = min(cluster.n_workers, table.n_chunks)
    persisted = table.size <= cluster.usable * cluster.memory * cluster.n_workers
    rate = min(cores * c.file_rate, links * cluster.link)
    # Taking rows reads whole chunks, unless they are in memory.
    n_readings = 1 if persisted else 1 + counts.passes + counts.takes
    in_core = max(d / c.pass_rate, FLOAT32 * d / c.memory_rate)  # seconds of a row
    solver = c.solver_seconds * counts.taken / c.taken_bytes
    return Costs(
        persisted,
        {
            "reading": n_readings * table.size / rate,
            "Gram matrix": 2.0 * n * d**2 / (cores * c.gram_rate),
            "passes": counts.passes * n * in_core / cores,
            "network": counts.up / cluster.link + counts.down / min(c.gather_rate, cluster.link),
            "client": n * c.client_seconds + solver,
            "scheduler": counts.tasks * c.task_seconds,
        },
    )


def tables(constants, table=None, workers=(10, 100, 1000)):
    """Return the tables of the page, in Markdown."""
    table = table or Table()
    counts = Counts(constants, table)
    costs = {n: simulate(constants, Cluster(n), table) for n in workers}
    parts = [
        _bytes_table(constants, table),
        f"Passes: {counts.passes:.0f}. Rows are taken {counts.takes:.0f} times.",
        _costs_table(costs),
        _chunks_table(constants, table, workers),
    ]
    return "\n\n".join(parts)


def constants_table(constants):
    """Return a line for every constant, in its unit."""
    values = {
        one.metadata["words"]: getattr(constants, one.name) * one.metadata["scale"]
        for one in fields(constants)
    }
    return _markdown(
        ("constant", "value"), *((words, f"{value:.3g}") for words, value in values.items())
    )


def _markdown(*lines):
    """Return a table; each line is a sequence of cells, and the first has the names."""
    head, *rest = (f"| {' | '.join(cells)} |" for cells in lines)
    return "\n".join([head, "|---" * len(lines[0]) + "|", *rest])


def _bytes_table(c, table):
    n, d, counts = table.n_rows, table.n_columns, Counts(c, table)
    rows = [
        ("the rows, bytes", table.size, "workers"),
        ("Gram matrix, operations", 2.0 * n * d**2, "workers"),
        ("one pass, operations", 4.0 * n * d, "workers"),
        ("labels to the workers, bytes, once", c.placed_bytes * n, "network"),
        ("soft labels to the client, bytes, once", c.soft_bytes * n, "network"),
        ("samples and working sets to the client, bytes, together", counts.taken, "network"),
        ("all else to the workers, bytes, together", c.task_bytes * counts.tasks, "network"),
        ("bytes in the memory of the client", counts.client_memory, "client"),
    ]
    cells = [(what, f"{value / 1e9:,.2f}", where) for what, value, where in rows]
    return _markdown((f"{n:,.0f} rows of {d}", "10⁹", "where"), *cells)


def _costs_table(costs):
    def line(name, cell):
        return [name, *map(cell, costs.values())]

    return _markdown(
        ["seconds", *(f"{n:,} workers" for n in costs)],
        *(
            line(phase, lambda cost, phase=phase: f"{cost.seconds[phase]:,.1f}")
            for phase in next(iter(costs.values())).seconds
        ),
        line("**all**", lambda cost: f"**{cost.total:,.0f}**"),
        line("bottleneck", lambda cost: cost.bottleneck),
        line("rows are", lambda cost: "in memory" if cost.persisted else "read in each pass"),
    )


def _chunks_table(constants, table, workers):
    def line(size):
        chunked = replace(table, chunk_bytes=size)
        costs = [simulate(constants, Cluster(n), chunked) for n in workers]
        return [
            f"{size / 1e6:,.0f} MB",
            f"{chunked.n_chunks:,}",
            f"{Counts(constants, chunked).tasks:,.0f}",
            f"{costs[0].seconds['scheduler']:,.1f}",
            *(f"{cost.total:,.0f} ({cost.bottleneck})" for cost in costs),
        ]

    totals = [f"all, {n:,} workers (s)" for n in workers]
    head = ["chunks of", "chunks", "tasks", "scheduler (s)", *totals]
    return _markdown(head, *map(line, CHUNK_SIZES))


def load(path=CONSTANTS):
    """Return the constants that were saved, and what they were measured on."""
    saved = json.loads(Path(path).read_text(encoding="utf-8"))
    return Constants(**saved["constants"]), saved["measured_on"]


def text_of(path=CONSTANTS):
    """Return all that the page has from here: the tables, and what they come from."""
    constants, measured_on = load(path)
    parts = (tables(constants), constants_table(constants), f"Measured on {measured_on}.")
    return "\n\n".join(parts)


def main(argv=None):
    """Print the tables, and put them into the page if asked to."""
    parser = argparse.ArgumentParser(description="The tables of docs/billion_rows.md.")
    parser.add_argument("--constants", type=Path, default=CONSTANTS, help="made by constants.py")
    parser.add_argument("--page", type=Path, nargs="?", const=PAGE, help="put the tables there")
    arguments = parser.parse_args(argv)
    text = text_of(arguments.constants)
    print(text)
    if arguments.page:
        page = arguments.page.read_text(encoding="utf-8")
        arguments.page.write_text(with_tables(page, BEGIN, text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
