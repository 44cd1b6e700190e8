"""Tables in files: fit and predict from the command line against merely reading them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from pyarrow import csv, parquet

from cases import Result
from neverworse.study import FitSettings, fit_table
from neverworse.tables import ReadOptions, found_options, read_table, table_files
from timing import seconds, side_by_side

TARGET = "diagnosis"
LARGEST_MB = 500.0


def files(quick, repeats):
    """Time a fit to a CSV file against reading it, and weigh predictions of a Parquet file."""
    n = 20_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        text, stored = Path(folder) / "table.csv", Path(folder) / "table.parquet"
        table = mixed_table(n)
        csv.write_csv(table, text)
        with parquet.ParquetWriter(stored, table.schema) as writer:
            for _ in range(5):
                writer.write_table(table, row_group_size=n)
        del table
        return [*_fit(text, Path(folder), n, repeats), *_predict(stored, Path(folder), 5 * n)]


def mixed_table(n, seed=0):
    """Return 29 columns of numbers, categories and dates, and labels of 500 rows."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    columns = {f"x{k}": np.round(rng.normal(size=n) + 0.4 * truth * (k < 5), 5) for k in range(22)}
    columns["x3"] = pa.array(columns["x3"], mask=rng.random(n) < 0.05)
    columns["age"], columns["visits"] = rng.integers(18, 90, n), rng.poisson(3, n)
    for k, n_levels in enumerate((3, 8, 12, 20)):
        levels = np.array([f"level {j}" for j in range(n_levels)])
        columns[f"c{k}"] = levels[rng.integers(0, n_levels, n)]
    columns["seen"] = pa.array(np.datetime64("2020-01-01") + rng.integers(0, 1500, n))
    labels = np.array(["benign", "malignant"], object)[truth]
    labels[rng.permutation(n)[500:]] = None
    columns[TARGET] = labels
    return pa.table(columns)


def _fit(path, folder, n, repeats):
    settings = FitSettings(TARGET)

    def whole():
        files = table_files([str(path)])
        table = read_table(files, found_options(files, ReadOptions(text=settings.text)))
        return fit_table(table, settings)

    fitted = whole()
    times = side_by_side(
        {
            "whole": whole,
            "pyarrow": lambda: csv.read_csv(path),
            "polars": lambda: pl.read_csv(path),
            "fit": lambda: fitted.model._classifier().fit(fitted.features, fitted.target.codes),
        },
        repeats,
    )
    read = np.minimum(times["pyarrow"], times["polars"])
    beyond = float(np.median((times["whole"] - times["fit"]) / read))
    words = ["fit", str(path), "--target", TARGET, "--out", str(folder / "out"), "--quiet"]
    command = seconds(lambda: _run(words))
    case = f"CSV, {n:,} rows x 30 columns"
    return [
        Result(
            case,
            f"all but the fit itself ({times['fit'].min():.2f} s) / fastest reader "
            f"({read.min():.2f} s)",
            beyond,
            2.5,
        ),
        Result(case, "the whole command, with comparison and report, in seconds", command),
    ]


def _predict(path, folder, n):
    words = ["predict", str(folder / "out" / "model.skops"), str(path), "--out"]
    script = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [*_program(), *words, str(folder / "predictions.csv"), "--quiet"]
    shown = subprocess.run(
        [sys.executable, "-c", script, *command], check=True, capture_output=True, text=True
    )
    peak = int(shown.stdout) / 1024.0
    case = f"predict, Parquet, {n:,} rows in groups of {n // 5:,}"
    return [Result(case, "peak memory of the process, in MB", peak, LARGEST_MB)]


def _run(words):
    subprocess.run([*_program(), *words], check=True)


def _program():
    return [sys.executable, "-m", "neverworse"]
