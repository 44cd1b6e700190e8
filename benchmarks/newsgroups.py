"""20 Newsgroups, 55,538 columns: ``python benchmarks/newsgroups.py --help``.

Two-class tasks and all 20 classes, tf-idf with a penalty: time, steps, passes of conjugate
gradients, memory, and error on held-out rows. The file holds the counts of words in CSR form
(data, indices, indptr, shape), the classes y of all rows, and is_train, the usual split by date.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import time
import tracemalloc
from contextlib import redirect_stderr
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from neverworse import ICLSClassifier, ProjectedLeastSquaresClassifier
from neverworse.datasets import data_folders

FILE = "20news_counts.npz"
# Pairs of classes from easy to hard, by their places in alphabetical order.
PAIRS = ((0, 7), (8, 9), (3, 4), (0, 19))
SEED = 0


@dataclass(frozen=True)
class Texts:
    """Rows of tf-idf features, split into training and held-out rows."""

    X: sparse.csr_matrix
    y: np.ndarray
    is_train: np.ndarray
    names: np.ndarray

    def task(self, classes, n_labeled):
        """Return training rows, labels of which few are known, held-out rows, and their labels."""
        chosen = np.isin(self.y, classes)
        train, test = chosen & self.is_train, chosen & ~self.is_train
        truth = self.y[train]
        y = np.full(len(truth), -1)
        labeled = np.random.default_rng(SEED).permutation(len(truth))[:n_labeled]
        y[labeled] = truth[labeled]
        return self.X[train], y, self.X[test], self.y[test]


def find(folder):
    """Return where the file is: in the first folder that has it, or in its folder "large"."""
    places = (place / FILE for home in data_folders(folder) for place in (home, home / "large"))
    return next((place for place in places if place.is_file()), None)


def load(folder):
    """Read the texts, with weights of their words."""
    path = find(folder)
    if path is None:
        raise SystemExit(f"{FILE} was not found: pass its folder with --data.")
    with np.load(path) as file:
        parts = (file["data"].astype(np.float64), file["indices"], file["indptr"])
        counts = sparse.csr_matrix(parts, shape=tuple(file["shape"]))
        y, is_train, names = file["y"].astype(int), file["is_train"], file["classes"]
    return Texts(TfidfTransformer(sublinear_tf=True).fit_transform(counts), y, is_train, names)


def measure(model, task):
    """Fit, and return what there is to say about it."""
    X, y, X_test, y_test = task
    model.set_params(verbose=1)
    told = io.StringIO()
    tracemalloc.start()
    start = time.perf_counter()
    with redirect_stderr(told):
        model.fit(X, y)
    seconds = time.perf_counter() - start
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    passes = re.findall(r"(\d+) passes", told.getvalue())
    certificate = model.certificate_
    return (
        f"{seconds:8.1f} s {model.n_iter_:5} steps {passes[-1] if passes else '-':>6} passes "
        f"{peak / 2**20:7.0f} MB  gap {certificate.duality_gap:7.1e}  improvement "
        f"{certificate.guaranteed_improvement:7.3g}  error supervised "
        f"{1 - model.supervised_.score(X_test, y_test):.4f}, projected "
        f"{1 - model.score(X_test, y_test):.4f}  {certificate.reason}"
    )


def main(arguments=None):
    """Run the tasks that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help=f"folder of {FILE}; otherwise that of NEVERWORSE_DATA")
    parser.add_argument("--alpha", type=float, default=0.1, help="penalty of the supervised fit")
    parser.add_argument("--constraint-alpha", type=float, default=1.0, help="penalty in the loss")
    parser.add_argument("--labeled", type=int, default=50, help="labeled rows of a pair")
    parser.add_argument("--all-labeled", type=int, default=500, help="labeled rows of 20 classes")
    parser.add_argument("--tol", type=float, default=1e-9)
    parser.add_argument("--max-time", type=float, default=None, help="seconds for each fit")
    parser.add_argument("--tasks", choices=["pairs", "all", "both"], default="both")
    settings = parser.parse_args(arguments)
    texts = load(settings.data)
    common = {
        "alpha": settings.alpha,
        "constraint_alpha": settings.constraint_alpha,
        "tol": settings.tol,
        "max_time": settings.max_time,
    }
    models = {
        "projection": ProjectedLeastSquaresClassifier(**common),
        "ICLS": ICLSClassifier(**common),
    }
    tasks = []
    if settings.tasks != "all":
        tasks += [(list(pair), settings.labeled, models) for pair in PAIRS]
    if settings.tasks != "pairs":
        everything = sorted(set(texts.y.tolist()))
        tasks.append((everything, settings.all_labeled, {"projection": models["projection"]}))
    for classes, n_labeled, chosen in tasks:
        task = texts.task(classes, n_labeled)
        names = ", ".join(texts.names[classes]) if len(classes) < 5 else f"{len(classes)} classes"
        rows, columns = task[0].shape
        sys.stdout.write(f"{names}: {rows:,} x {columns:,}, {n_labeled} labeled\n")
        for name, model in chosen.items():
            sys.stdout.write(f"  {name:10} {measure(model, task)}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
