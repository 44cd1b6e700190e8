"""Measure what passes over rows cost on one core, and through Dask: ``constants.py --help``."""

from __future__ import annotations

import argparse
import json
import logging
import pickle
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from threadpoolctl import threadpool_limits

import alone
import machine
from billion import Constants, constants_table
from data import two_gaussians
from neverworse import ProjectedLeastSquaresClassifier
from neverworse.rows import ChunkedRows, as_rows
from neverworse.rows._dask import _Work
from neverworse.rows._dask_engine import Engine, task_of
from passes import counted
from timing import peak_memory, seconds

N_COLUMNS, N_LABELED = 100, 200
N_CHUNKS = 20


def main(argv=None):
    """Measure, print a table in Markdown, and save the constants for `billion.py`."""
    parser = argparse.ArgumentParser(description="Constants of docs/billion_rows.md.")
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    parser.add_argument("--folder", type=Path, help="for temporary files")
    parser.add_argument("--out", type=Path, help="save the constants in this JSON file")
    arguments = parser.parse_args(argv)
    found = measure(50_000 if arguments.quick else 1_000_000, arguments.folder)
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
    alone.say("a fit in chunks")
    fit = _fit_in_chunks(X, y)
    alone.say("a cluster of two processes")
    return Constants(**rates, **fit, **_cluster(folder))


def _best(function):
    """Return the least time of the processor: on one core, others do not disturb that much."""
    return min(_busy(function) for _ in range(3))


def _busy(function):
    begun = time.process_time()
    function()
    return time.process_time() - begun


def _one_core(X, folder):
    rows, n = as_rows(X), len(X)
    coef = np.random.default_rng(0).normal(size=N_COLUMNS)

    def positive(scores, _):
        return (scores > 0.0).astype(np.float64)

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
        "pass_rate": n * N_COLUMNS / _best(lambda: rows.scores_and_sum(coef, 0.0, positive)),
    }


class _Wire(ChunkedRows):
    """Rows in memory that are treated like those of a cluster, without one.

    What is to be done travels as Dask would send it, and so do the results; both are weighed, and
    the time that this takes is noted, so that the rest of a fit is what the client does.
    """

    def __init__(self, X):
        self.chunks = np.array_split(X, N_CHUNKS)
        super().__init__([len(chunk) for chunk in self.chunks], X.shape[1])
        self.up = self.down = 0  # bytes of passes
        self.seconds = 0.0

    def map_chunks(self, verb, chosen, arguments):
        """See `ChunkedRows.map_chunks`."""
        begun = time.process_time()
        found = []
        for k, own in zip(chosen, arguments, strict=True):
            chunk = self.chunks[k]
            sent = pickle.dumps(_Work(verb, own, k, len(chunk), self.n_columns, None))
            result = pickle.loads(sent)(chunk)
            if verb.name == "scores_and_sum":
                self.up += len(sent)
                self.down += len(pickle.dumps(result))
            found.append(result)
        self.seconds += time.process_time() - begun
        return found


def _fit_in_chunks(X, y):
    few = _Timed(X[: len(X) // 4], y[: len(X) // 4])
    all_rows = _Timed(X, y)
    # What the client does for each row, and what it does however many there are.
    rows_read = [fit.readings.passes * fit.rows.n_rows for fit in (few, all_rows)]
    per_row = max(0.0, (all_rows.client - few.client) / (rows_read[1] - rows_read[0]))
    n_passes = all_rows.readings["scores_and_sum"]
    peak = peak_memory(lambda: ProjectedLeastSquaresClassifier().fit(_Wire(X), y))
    return {
        "passes": all_rows.readings.passes,
        "takes": all_rows.readings["take"],
        "bytes_up": all_rows.rows.up / (n_passes * len(X)),
        "bytes_down": all_rows.rows.down / (n_passes * len(X)),
        "client_bytes": peak / len(X),
        "client_seconds": per_row,
        "solver_seconds": max(0.0, all_rows.client - per_row * rows_read[1]),
    }


class _Timed:
    """A fit through a `_Wire`, and the seconds that it spends at the client."""

    def __init__(self, X, y):
        self.rows = _Wire(X)
        with counted(self.rows) as self.readings:
            took = _busy(lambda: ProjectedLeastSquaresClassifier().fit(self.rows, y))
        self.client = took - self.rows.seconds


def _cluster(folder):
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
            engine.run([task_of(int, "nothing") for _ in range(number)])

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
        }


if __name__ == "__main__":
    sys.exit(main())
