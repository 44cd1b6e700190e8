"""Processor time of ``neverworse fit`` on a small table, with the comparison and the report.

Run it with: python benchmarks/small_table.py

The table is the breast cancer data of scikit-learn: 569 rows and 30 columns, and 60 labels.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

COMMANDS = {
    "fit": [],
    "fit --no-curves": ["--no-curves"],
    "fit --compare": ["--compare"],
}
IMPORTS = "from neverworse.study import assess, write_outputs; import matplotlib.figure, skops.io"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        write_table(table)
        fit = ["-m", "neverworse", "fit", str(table), "--target", "diagnosis", "--quiet"]
        fit += ["--out", str(Path(folder) / "out")]
        words = {name: [*fit, *more] for name, more in COMMANDS.items()}
        words["packages alone"] = ["-c", IMPORTS]
        print(f"{'':18} {'median':>8} {'least':>8}   of {repeats}, in seconds of processor time")
        for name, each in words.items():
            seconds = [processor_time(each) for _ in range(repeats)]
            print(f"{name:18} {np.median(seconds):>8.2f} {min(seconds):>8.2f}")


def write_table(path):
    data = load_breast_cancer(as_frame=True)
    table = data.data.copy()
    labeled = np.random.default_rng(0).choice(len(table), 60, replace=False)
    table["diagnosis"] = ""
    table.loc[labeled, "diagnosis"] = data.target_names[data.target[labeled]]
    table.to_csv(path, index=False)


def processor_time(words):
    """Run Python with these arguments, and return what it has taken of processors."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
