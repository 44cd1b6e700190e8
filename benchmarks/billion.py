"""What a fit to a billion rows would cost on a cluster: ``billion.py --help``.

Nothing is measured here: `constants.py` does that, and docs/billion_rows.md explains the model.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass, field, fields
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONSTANTS = HERE / "constants.json"
PAGE = HERE.parent / "docs" / "billion_rows.md"
BEGIN, END = "<!-- made by benchmarks/billion.py -->", "<!-- end -->"

FAN_IN = 8  # results that are combined at once, see neverworse.rows
FLOAT32, FLOAT64 = 4, 8
TAKEN = 2**26  # bytes of rows that are taken at once, at most


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
    bytes_up: float = _number("to the workers, bytes for each row and pass")
    bytes_down: float = _number("from the workers, bytes for each row and pass")
    client_bytes: float = _number("memory of the client, bytes for each row")
    client_seconds: float = _number("work of the client, ns for each row and pass", 1e9)
    solver_seconds: float = _number("working sets at the client, seconds of a fit")
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
    chunk_bytes: float = 100e6

    @property
    def size(self):
        """Bytes of all rows."""
        return FLOAT32 * self.n_rows * self.n_columns

    @property
    def n_chunks(self):
        """How many tasks a pass has, without those that combine."""
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
    client_memory : float
        Bytes.
    """

    persisted: bool
    seconds: dict[str, float]
    client_memory: float

    @property
    def total(self):
        """Seconds of the fit."""
        return sum(self.seconds.values())

    @property
    def bottleneck(self):
        """What takes longest."""
        return max(self.seconds, key=self.seconds.get)


def simulate(constants, cluster, table, scores_stay=False):
    """Return what a fit costs.

    Parameters
    ----------
    constants : Constants
    cluster : Cluster
    table : Table
    scores_stay : bool
        Whether the scores of the rows stay on the workers, which is not how it is now.
    """
    n, d, c = table.n_rows, table.n_columns, constants
    cores = cluster.n_workers * cluster.cores
    persisted = table.size <= cluster.usable * cluster.memory * cluster.n_workers
    rate = min(cluster.cores * c.file_rate, cluster.link) * cluster.n_workers
    once = table.size / rate
    # Taking rows reads whole chunks, unless they are in memory.
    n_readings = 1 if persisted else 1 + c.passes + c.takes
    n_tasks = table.n_chunks * (1 + c.passes + c.takes)
    n_combined = table.n_chunks / (FAN_IN - 1) * (1 + c.passes if scores_stay else 1)
    sums = FLOAT64 * d * table.n_chunks  # they are added up by the client, or in a tree
    down = FLOAT64 * d if scores_stay else c.bytes_down * n + sums
    up = FLOAT64 * d * table.n_chunks if scores_stay else c.bytes_up * n
    rate_down = min(c.gather_rate, cluster.link)
    client = c.passes * n * c.client_seconds
    in_core = max(d / c.pass_rate, FLOAT32 * d / c.memory_rate)  # seconds of a row
    return Costs(
        persisted,
        {
            "reading": n_readings * once,
            "Gram matrix": 2.0 * n * d**2 / (cores * c.gram_rate),
            "passes": c.passes * n * in_core / cores,
            "network": c.passes * (up / cluster.link + down / rate_down)
            + (c.takes * TAKEN + FLOAT64 * d**2) / rate_down,
            "client": (client / cores if scores_stay else client) + c.solver_seconds,
            "scheduler": (n_tasks + n_combined) * c.task_seconds,
        },
        TAKEN if scores_stay else c.client_bytes * n,
    )


def tables(constants, table=None, workers=(10, 100, 1000)):
    """Return the tables of the page, in Markdown."""
    table = table or Table()
    parts = [_bytes_table(constants, table)]
    for scores_stay in (False, True):
        costs = {n: simulate(constants, Cluster(n), table, scores_stay) for n in workers}
        parts.append(_costs_table(costs, scores_stay))
    return "\n\n".join(parts)


def constants_table(constants):
    """Return a line for every constant, in its unit."""
    lines = ["| constant | value |", "|---|---|"]
    for one in fields(constants):
        value = getattr(constants, one.name) * one.metadata["scale"]
        lines.append(f"| {one.metadata['words']} | {value:.3g} |")
    return "\n".join(lines)


def _bytes_table(c, table):
    d = table.n_columns
    rows = [
        ("the rows, read once or in every pass", table.size, "workers"),
        ("Gram matrix, operations", 2.0 * table.n_rows * d**2, "workers"),
        ("one pass, operations", 4.0 * table.n_rows * d, "workers"),
        ("one pass, bytes to the workers", c.bytes_up * table.n_rows, "network"),
        ("one pass, bytes to the client", c.bytes_down * table.n_rows, "network"),
        ("bytes in the memory of the client", c.client_bytes * table.n_rows, "client"),
    ]
    lines = [f"| {table.n_rows:,.0f} rows of {d} | 10⁹ | where |", "|---|---|---|"]
    lines += [f"| {what} | {value / 1e9:,.1f} | {where} |" for what, value, where in rows]
    lines.append(f"| tasks of a pass | {table.n_chunks:,} | scheduler |")
    return "\n".join(lines)


def _costs_table(costs, scores_stay):
    title = "scores on the workers" if scores_stay else "scores at the client, as it is"
    lines = [
        f"| {title}: seconds | {' | '.join(f'{n:,} workers' for n in costs)} |",
        "|---" * (len(costs) + 1) + "|",
    ]

    def line(name, values):
        lines.append(f"| {name} | {' | '.join(values)} |")

    for phase in next(iter(costs.values())).seconds:
        line(phase, [f"{cost.seconds[phase]:,.1f}" for cost in costs.values()])
    line("**all**", [f"**{cost.total:,.0f}**" for cost in costs.values()])
    line("bottleneck", [cost.bottleneck for cost in costs.values()])
    line("rows are", ["in memory" if c.persisted else "read in each pass" for c in costs.values()])
    line("client (GB)", [f"{cost.client_memory / 1e9:,.1f}" for cost in costs.values()])
    return "\n".join(lines)


def load(path=CONSTANTS):
    """Return the constants that were saved, and what they were measured on."""
    saved = json.loads(Path(path).read_text(encoding="utf-8"))
    return Constants(**saved["constants"]), saved["measured_on"]


def text_of(path=CONSTANTS):
    """Return all that the page has from here: the tables, and what they come from."""
    constants, measured_on = load(path)
    parts = (tables(constants), constants_table(constants), f"Measured on {measured_on}.")
    return "\n\n".join(parts)


def with_tables(page, text):
    """Return the page with other tables between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"The page has no marks {BEGIN} and {END}. Put them where tables belong.")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


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
        arguments.page.write_text(with_tables(page, text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
