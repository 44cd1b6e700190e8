"""Measure what passes over rows cost on one core, and through Dask: ``constants.py --help``."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest.mock import patch

import dask
import dask.array as da
import numpy as np
import pyarrow as pa
from pyarrow import parquet
from threadpoolctl import threadpool_limits

import alone
import machine
from billion import Constants, constants_table
from data import two_gaussians
from neverworse import ProjectedLeastSquaresClassifier
from neverworse.projection.labels import Few, Labels
from neverworse.projection.solver import working_set
from neverworse.projection.solver.passes import Imputed
from neverworse.projection.solver.passes import measure as measure_pass
from neverworse.projection.solver.working_set import LARGEST_SHARE, WORKING_BYTES
from neverworse.rows import DaskRows, Engine, as_rows
from passes import Readings, counted
from timing import peak_memory, seconds
from wire import Wire, weighed

N_COLUMNS, N_LABELED = 100, 200
N_NARROW, N_NARROW_LABELED = 10, 20  # a smaller table of the same kind, with many more rows
MANY = 2  # times as many rows; with 8, working sets do not lead to the end
N_CHUNKS = 20


def main(argv=None):
    """Measure, print a table in Markdown, and save the constants for `billion.py`."""
    parser = argparse.ArgumentParser(description="Constants of docs/billion_rows.md.")
    parser.add_argument("--rows", type=int, default=1_000_000, help="(default: 1,000,000)")
    parser.add_argument("--quick", action="store_true", help="50,000 rows")
    parser.add_argument("--folder", type=Path, help="for temporary files")
    parser.add_argument("--out", type=Path, help="save the constants in this JSON file")
    arguments = parser.parse_args(argv)
    found = measure(50_000 if arguments.quick else arguments.rows, arguments.folder)
    measured_on = machine.describe()
    print(constants_table(found), f"Measured on {measured_on}.", sep="\n\n")
    if arguments.out:
        saved = {"measured_on": measured_on, "constants": asdict(found)}
        text = json.dumps(saved, indent=2, ensure_ascii=False)
        arguments.out.write_text(f"{text}\n", encoding="utf-8")
    return 0


def measure(n_rows, folder):
    """Return all constants."""
    X, y, _ = two_gaussians(N_LABELED, n_rows - N_LABELED, N_COLUMNS, dtype=np.float32)
    alone.say("one core")
    with threadpool_limits(1):
        rates = _one_core(X, folder)
    alone.say("fits in threads")
    fits = _fits(X, y)
    alone.say("a cluster of two processes")
    return Constants(**rates, **fits, **_cluster(n_rows, folder))


def _best(function):
    """Return the least time of the processor: on one core, others do not disturb that much."""
    return min(_busy(function) for _ in range(3))


def _busy(function):
    begun = time.process_time()
    function()
    return time.process_time() - begun


def _one_core(X, folder):
    rows, n = as_rows(X), len(X)
    coef = np.random.default_rng(0).normal(size=(1, N_COLUMNS))

    labels = Labels(np.zeros((1, n)), np.ones(n))
    before = Imputed(np.zeros((1, n)))

    def a_pass():
        named = (LARGEST_SHARE, False)
        measure_pass(rows, coef, np.zeros(1), named, Few(), labels, before)

    with tempfile.TemporaryDirectory(dir=folder, prefix="neverworse-") as temporary:
        path = Path(temporary) / "rows.parquet"
        table = pa.table({f"x{j}": column for j, column in enumerate(X.T.copy())})
        parquet.write_table(table, path, compression="none", use_dictionary=False)
        del table

        def scan():
            with parquet.ParquetFile(path) as file:
                for _ in file.iter_batches(use_threads=False):
                    pass

        from_files = X.nbytes / _best(scan)
    return {
        "file_rate": from_files,
        "memory_rate": X.nbytes / _best(X.sum),
        "gram_rate": 2.0 * n * N_COLUMNS**2 / _best(rows.gram),
        "pass_rate": n * N_COLUMNS / _best(a_pass),
    }


@dataclass(frozen=True)
class _Fit:
    """A fit through Dask, in threads.

    Attributes
    ----------
    n_rows : int
    readings : Readings
    wire : Wire
    client : float
        Seconds of the processor that are the client's.
    """

    n_rows: int
    readings: Readings
    wire: Wire
    client: float

    @classmethod
    def to(cls, X, y):
        """Fit; the client's time is the least of three, since others may disturb."""
        rows = DaskRows(_in_dask(X).persist(scheduler="threads"))
        found = []
        for _ in range(3):
            with dask.config.set(scheduler="threads"), counted(rows) as readings, weighed() as wire:
                took = _busy(lambda: ProjectedLeastSquaresClassifier(alpha=0.0).fit(rows, y))
            found.append(took - wire.workers - wire.weighing)
        if wire.tasks["scores"] or not wire.down["unlabeled_labels"]:
            raise RuntimeError("The fit took another way: working sets did not lead to the end.")
        return cls(len(X), readings, wire, min(found))

    @property
    def tasks_of_chunk(self):
        """How many tasks there are for each chunk, with those that combine."""
        return self.wire.tasks.total() / N_CHUNKS


def _in_dask(X):
    return da.from_array(X, chunks=(-(-len(X) // N_CHUNKS), -1))


def _fits(X, y):
    fit = _Fit.to(X, y)
    few, many = (_narrow_fit(n) for n in (len(X) // 2, len(X) * MANY))
    # Working sets of these are equally large, or nearly so: what grows, grows with the rows.
    for_each_row = (many.client - few.client) / (many.n_rows - few.n_rows)
    more = many.readings["measure"] - few.readings["measure"]
    more_tasks = many.tasks_of_chunk - few.tasks_of_chunk
    down = fit.wire.down
    return {
        "passes": fit.readings.passes,
        "takes": fit.readings["take"],
        "tasks": fit.tasks_of_chunk,
        "more_rounds": more / np.log10(many.n_rows / few.n_rows),
        "round_tasks": more_tasks / more if more else 0.0,
        "placed_bytes": many.wire.up["scatter"] / many.n_rows,
        "task_bytes": fit.wire.up_for_each_task("scatter"),
        "soft_bytes": many.wire.down["unlabeled_labels"] / many.n_rows,
        "taken_bytes": down["take"] + down["findings"] + down["scores_at"],
        "client_seconds": max(0.0, for_each_row),
        "solver_seconds": max(0.0, fit.client - for_each_row * len(X)),
    }


def _narrow_fit(n_rows):
    with _narrow_sets():
        return _Fit.to(*_narrow(n_rows))


def _narrow(n_rows):
    X, y, _ = two_gaussians(N_NARROW_LABELED, n_rows - N_NARROW_LABELED, N_NARROW, dtype=np.float32)
    return X, y


def _narrow_sets():
    """Let working sets have as many rows for each column as those of a large and wide table."""
    limit = int(WORKING_BYTES * (N_NARROW / N_COLUMNS) ** 2)
    return patch.object(working_set, "WORKING_BYTES", limit)


def _client_bytes(n_rows):
    """Return how much memory of the client a row takes, in a fit on the active cluster."""
    peaks = []
    for n in (n_rows // 4, n_rows):
        X, y = _narrow(n)
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            lazy = _in_dask(X).persist()
        del X

        def fit(lazy=lazy, y=y):
            ProjectedLeastSquaresClassifier(alpha=0.0).fit(lazy, y)

        with _narrow_sets():
            fit()  # what is imported or set up once is no matter of rows
            peaks.append(peak_memory(fit) + y.nbytes)
    return (peaks[1] - peaks[0]) / (n_rows - n_rows // 4)


def _cluster(n_rows, folder):
    from distributed import Client, LocalCluster, wait

    with (
        tempfile.TemporaryDirectory(dir=folder, prefix="neverworse-") as temporary,
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            local_directory=temporary,
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        engine = Engine()
        number = 1000

        def nothing():
            engine.run([engine.task(int, "nothing") for _ in range(number)])

        def ones():
            return [client.submit(np.ones, 2**21, pure=False) for _ in range(8)]

        rounds = []
        for _ in range(3):
            futures = ones()
            wait(futures)
            took = seconds(lambda futures=futures: client.gather(futures))
            rounds.append(8 * 2**21 * len(futures) / took)
        # Here the clock counts, since several processes wait for each other.
        return {
            "task_seconds": min(seconds(nothing) for _ in range(3)) / number,
            "gather_rate": max(rounds),
            "client_bytes": _client_bytes(n_rows),
        }


if __name__ == "__main__":
    sys.exit(main())
