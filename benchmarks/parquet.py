"""Fit a Parquet table that is larger than the memory it may use: ``parquet.py --help``.

The fit is compared with as many plain scans of the files as it reads them, and the arithmetic of
one Gram matrix.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import dataset, parquet

import alone
import machine
from neverworse import ProjectedLeastSquaresClassifier
from neverworse.rows import as_rows, open_parquet
from passes import counted
from timing import seconds

N_COLUMNS, N_LABELED, N_FILES = 50, 100, 4
GROUP_ROWS = 1_000_000
SLOWEST, LARGEST = 1.36, 1.5e9  # what the fit may take, relative to its parts, and in bytes
KINDS = ("dataset", "file")
NAMES = [f"x{j}" for j in range(N_COLUMNS)]


def main(argv=None):
    """Measure, print tables in Markdown, and return 1 if a limit was not kept."""
    parser = argparse.ArgumentParser(description="Fit a table in Parquet files (4 GB).")
    parser.add_argument("--rows", type=int, default=20_000_000, help="(default: 20,000,000)")
    parser.add_argument("--quick", action="store_true", help="1,000,000 rows; limits say little")
    parser.add_argument("--folder", type=Path, help="for temporary files")
    parser.add_argument("--compression", default="none", help="of the files (default: none)")
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default: 3)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.one:
        print(json.dumps(STEPS[(step := json.loads(arguments.one)).pop("step")](**step)))
        return 0
    n_rows = 1_000_000 if arguments.quick else arguments.rows
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="neverworse-") as folder:
        found = measure(folder, n_rows, arguments.compression, arguments.repeats)
    print(_table(found, n_rows, arguments.quick), f"Measured on {machine.describe()}.", sep="\n\n")
    return int(not arguments.quick and not _kept(found))


def measure(folder, n_rows, compression, repeats):
    """Return seconds, bytes and readings, of scans and fits in turn."""

    def step(name, **settings):
        alone.say(f"{name} {settings or ''}")
        return alone.run(__file__, {"step": name, "folder": folder, **settings})

    found = step("write", n_rows=n_rows, compression=compression)
    gram = step("gram", n_rows=n_rows)
    scans, fits = {kind: [] for kind in KINDS}, []
    for _ in range(repeats):
        for kind in KINDS:
            scans[kind].append(step("scan", kind=kind)["seconds"])
        fits.append(step("fit"))
    faster = np.min([*scans.values()], axis=0)  # of each round
    seconds, readings = (np.array([fit[k] for fit in fits]) for k in ("seconds", "readings"))
    return {
        **found,
        **fits[0],
        "gram": gram["seconds"],
        "scans": {kind: min(found) for kind, found in scans.items()},
        "seconds": seconds.min(),
        "ratio": np.median(seconds / (readings * faster + gram["seconds"])),
        "smallest": np.min(seconds / (readings * faster.min() + gram["seconds"])),
        "peak": max(fit["peak"] for fit in fits),
        "holds": all(fit["holds"] for fit in fits),
    }


def write(folder, n_rows, compression):
    """Write files of two Gaussian classes, row group by row group."""
    rng = np.random.default_rng(0)
    mean = rng.normal(size=N_COLUMNS)
    mean *= 1.5 / np.linalg.norm(mean)
    labeled = rng.choice(n_rows, N_LABELED, replace=False)
    fields = [*(pa.field(name, pa.float32()) for name in NAMES), pa.field("label", pa.int8())]
    begun = time.perf_counter()
    edges = np.linspace(0, n_rows, N_FILES + 1).astype(int)
    for k in range(N_FILES):
        path = Path(folder) / f"part-{k}.parquet"
        settings = {"compression": compression, "use_dictionary": False}
        with parquet.ParquetWriter(path, pa.schema(fields), **settings) as writer:
            for start in range(edges[k], edges[k + 1], GROUP_ROWS):
                n = min(GROUP_ROWS, edges[k + 1] - start)
                truth = rng.integers(0, 2, n)
                y = np.full(n, -1, np.int8)
                known = labeled[(labeled >= start) & (labeled < start + n)] - start
                y[known] = truth[known]
                columns = [
                    rng.standard_normal(n, np.float32) + (2 * truth - 1).astype(np.float32) * shift
                    for shift in mean.astype(np.float32)
                ]
                table = pa.table([*columns, y], schema=pa.schema(fields))
                writer.write_table(table, row_group_size=GROUP_ROWS)
    size = sum(file.stat().st_size for file in Path(folder).iterdir())
    return {"size": size, "write": time.perf_counter() - begun}


def scan(folder, kind):
    """Read all features once, as PyArrow does it when nothing else is asked of it."""
    files = sorted(Path(folder).glob("*.parquet"))
    begun = time.perf_counter()
    if kind == "dataset":
        found = dataset.dataset(files).scanner(columns=NAMES).to_batches()
        n_rows = sum(batch.num_rows for batch in found)
    else:
        n_rows = 0
        for path in files:
            with parquet.ParquetFile(path) as file:
                n_rows += sum(batch.num_rows for batch in file.iter_batches(columns=NAMES))
    return {"kind": kind, "seconds": time.perf_counter() - begun, "rows": n_rows}


def gram(folder, n_rows):  # noqa: ARG001 (needs no files)
    """Time the Gram matrix of some rows in memory, for all of them."""
    n = min(n_rows, GROUP_ROWS)
    X = np.random.default_rng(0).standard_normal((n, N_COLUMNS), np.float32)
    double = X.astype(np.float64)
    ways = (lambda: double.T @ double, as_rows(X).gram, as_rows(double).gram)
    return {"seconds": min(seconds(way) for way in ways for _ in range(3)) * n_rows / n}


def fit(folder):
    """Fit, and say how often rows were read."""
    begun = time.perf_counter()
    data = open_parquet(folder, target="label")
    with counted(data.X) as readings:
        clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(*data)
    return {
        "seconds": time.perf_counter() - begun,
        "peak": alone.peak_memory(),
        "readings": readings.total(),
        "verbs": dict(readings),
        "holds": clf.certificate_.holds and clf.certificate_.converged,
    }


STEPS = {"write": write, "scan": scan, "gram": gram, "fit": fit}


def _kept(found):
    return found["ratio"] <= SLOWEST and found["peak"] <= LARGEST and found["holds"]


def _table(found, n_rows, quick):
    verbs = ", ".join(f"{name} {share:.3g}" for name, share in found["verbs"].items())
    rows = [
        ("plain scan, `dataset.scanner` (s)", found["scans"]["dataset"], None),
        ("plain scan, `ParquetFile.iter_batches` (s)", found["scans"]["file"], None),
        ("Gram matrix in memory (s)", found["gram"], None),
        (f"readings of the files ({verbs})", found["readings"], None),
        ("fit (s)", found["seconds"], None),
        ("fit / (readings * faster scan of its round + Gram matrix)", found["ratio"], SLOWEST),
        (
            "fastest fit of all rounds / the same with the fastest scan",
            found["smallest"],
            None,
        ),
        ("peak memory of the process (GB)", found["peak"] / 1e9, LARGEST / 1e9),
        ("certificate that does not hold, or no convergence", 1 - found["holds"], 0),
    ]
    size = f"{n_rows:,} rows of {N_COLUMNS}, float32, {found['size'] / 1e9:.2f} GB"
    lines = [f"| {size} | measured | must reach | ok |", "|---|---|---|---|"]
    for what, measured, limit in rows:
        verdict = ["", ""]
        if limit is not None and not quick:
            verdict = [f"≤ {limit:g}", "yes" if measured <= limit else "NO"]
        lines.append(f"| {what} | {measured:.2f} | {' | '.join(verdict)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
