"""Time fits to many kinds of tables, beside the solver that this one replaced.

``python benchmarks/run.py --cases tables``, or ``python benchmarks/beside.py`` for all numbers.
The old solver is that of commit `OLD`, taken from the history of the project; every table is fitted
by both, in processes of their own, one after the other.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import alone
from kinds import KINDS, make

OLD = "6b0e9eb"
HERE = Path(__file__).resolve().parent
N_ROWS = 300_000
N_LABELED = (None, 2000)  # None: two for each column, and ten more
MOST_PASSES = 15
MOST_TIME, MEAN_TIME = 1.3, 0.8


def compare(n_rows=N_ROWS, repeats=3, kinds=tuple(KINDS), say=alone.say):
    """Yield the settings of every fit, with numbers of the new and of the old solver."""
    with tempfile.TemporaryDirectory(prefix="neverworse-") as folder:
        old = _source_of(OLD, Path(folder))
        for kind in kinds:
            for n_labeled in N_LABELED:
                say(f"{kind}, {n_labeled or 'few'} labels")
                settings = {"kind": kind, "n_rows": n_rows, "n_labeled": n_labeled}
                settings["repeats"] = repeats
                pairs = zip(_run(settings, HERE.parent / "src"), _run(settings, old), strict=True)
                for new, before in pairs:
                    cell = {"kind": kind, "n_labeled": n_labeled, **new.pop("settings")}
                    before.pop("settings")
                    yield {**cell, "new": new, "old": before}


def _source_of(commit, folder):
    """Return the source of the package at a commit."""
    command = ["git", "-C", str(HERE.parent), "archive", commit, "src"]
    packed = subprocess.run(command, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def _run(settings, source):
    path = os.pathsep.join([str(source), str(HERE)])
    done = subprocess.run(
        [sys.executable, __file__, "--one", json.dumps(settings)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{settings} failed with {source}:\n{done.stderr}")
    return json.loads(done.stdout)


def _fits(kind, n_rows, n_labeled, repeats):
    """Return what fits to a table take, with and without a penalty, in two distances."""
    from neverworse import LeastSquaresClassifierCV, ProjectedLeastSquaresClassifier
    from passes import counted

    table = make(kind, n_rows, n_labeled)
    known = table.y >= 0
    weights = None if table.weights is None else table.weights[known]
    chosen = LeastSquaresClassifierCV().fit(table.X[known], table.y[known], weights).alpha_
    for alpha in (0.0, float(chosen)):
        for distance in ("all", "labeled"):

            def fit(alpha=alpha, distance=distance):
                clf = ProjectedLeastSquaresClassifier(distance, alpha=alpha, constraint_alpha=alpha)
                return clf.fit(table.X, table.y, sample_weight=table.weights)

            with counted(table.X) as readings:
                certificate = fit().certificate_
            yield {
                "settings": {"penalty": "none" if alpha == 0.0 else "chosen", "distance": distance},
                "passes": readings.total() - readings["take"],
                "seconds": _busy(fit, repeats),
                "gap": certificate.duality_gap,
                "improvement": certificate.guaranteed_improvement,
                "reason": certificate.reason,
            }


def _busy(function, repeats):
    """Return seconds of the processor, the fewest: others disturb these less than the clock's.

    What is over soon is disturbed most, and is repeated for two seconds.
    """
    found = []
    while len(found) < repeats or sum(found) < 2.0:
        begun = time.process_time()
        function()
        found.append(time.process_time() - begun)
    return min(found)


def summary(found):
    """Return the largest number of passes, the ratios of the times, and how far results differ."""
    ratios = np.array([cell["new"]["seconds"] / cell["old"]["seconds"] for cell in found])
    differences = [
        abs(cell["new"]["improvement"] - cell["old"]["improvement"])
        / max(cell["old"]["improvement"], 1.0)
        for cell in found
    ]
    return {
        "passes": max(cell["new"]["passes"] for cell in found),
        "slowest": float(ratios.max()),
        "mean": float(np.exp(np.log(ratios).mean())),
        "difference": max(differences),
    }


HEADER = (
    "| table | labels | penalty | distance | passes (old) | seconds | / old | gap | gain |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def line(cell):
    """Return the numbers of a fit as a line of a table in Markdown."""
    new, old = cell["new"], cell["old"]
    improvement = new["reason"] or f"{new['improvement']:.4g}"
    return (
        f"| {cell['kind']} | {cell['n_labeled'] or 'few'} | {cell['penalty']} | "
        f"{cell['distance']} | {new['passes']:.0f} ({old['passes']:.0f}) | "
        f"{new['seconds']:.2f} | {new['seconds'] / old['seconds']:.2f} | "
        f"{new['gap']:.0e} | {improvement} |"
    )


def main(argv=None):
    """Compare, and print all numbers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=N_ROWS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.one:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(json.dumps(list(_fits(**json.loads(arguments.one)))))
        return 0
    print(HEADER)
    found = []
    for cell in compare(arguments.rows, arguments.repeats, arguments.kinds):
        print(line(cell), flush=True)
        found.append(cell)
    print(summary(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
