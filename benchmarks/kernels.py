"""What kernels cost, and what they are worth: ``python benchmarks/kernels.py --help``.

docs/kernels.md has the results.
"""

from __future__ import annotations

import argparse
import os
import tracemalloc
import warnings
import zlib
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from neverworse import ICLSClassifier, LeastSquaresClassifierCV, ProjectedLeastSquaresClassifier
from neverworse.datasets import load_paper_dataset
from neverworse.experiments import draw_labeled
from pages import table, with_tables
from timing import seconds, side_by_side

PAGE = Path(__file__).resolve().parents[1] / "docs" / "kernels.md"
BEGIN = "<!-- made by benchmarks/kernels.py tables -->"
SEED = 2026
SIZES = (50, 100)
TEST_SHARE = 0.3
BUNDLED = {"breast cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}
PAPER = ("Diabetes", "Haberman", "Ionosphere", "Mammography", "Parkinsons", "Sonar")
PAPER += ("SPECT", "SPECTF", "Transfusion")
LANDMARKS = 200  # of projections of many rows with many classes; all rows otherwise
MOST_LABELS = 5000  # rows times classes of an exact projection here
MAX_TIME = 300.0  # seconds of a projection; what is found by then is certified all the same


def main(argv=None):
    """Run one of the measurements, and print it."""
    parser = argparse.ArgumentParser(description="What kernels cost, and what they are worth.")
    parser.add_argument("what", choices=("speed", "large", "tables"))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of large")
    parser.add_argument("--page", type=Path, nargs="?", const=PAGE, help="write tables to a page")
    arguments = parser.parse_args(argv)
    text = {"speed": speed, "large": large, "tables": tables}[arguments.what](arguments)
    print(text)
    if arguments.page and arguments.what == "tables":
        page = arguments.page.read_text(encoding="utf-8")
        arguments.page.write_text(with_tables(page, BEGIN, text), encoding="utf-8")


def speed(arguments):
    """Return how long exact fits take, in units of KernelRidge with all labels."""
    X, truth = make_classification(2000, 20, n_informative=10, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rows = []
    for alpha in (0.1, 1.0, 10.0, 100.0):
        y = np.where(np.arange(len(truth)) < 300, truth, -1)
        clf = ProjectedLeastSquaresClassifier(kernel="rbf", gamma=0.05, alpha=alpha)
        ridge = KernelRidge(alpha=alpha, kernel="rbf", gamma=0.05)
        contestants = {
            "ridge": lambda ridge=ridge: ridge.fit(X, truth),
            "projected": lambda clf=clf, y=y: clf.fit(X, y),
        }
        times = side_by_side(contestants, min(arguments.repeats, 3))
        ridge_time, own = (float(np.median(times[name])) for name in contestants)
        reason = clf.certificate_.reason or "improved"
        rows.append([f"alpha = {alpha:g} ({reason})", ridge_time, own, own / ridge_time])
    return table(["2,000 rows, 300 labels", "KernelRidge, s", "projected, s", "ratio"], rows, ".2f")


def large(arguments):
    """Return how long a fit to very many rows takes, in units of its features and their Gram."""
    n, d, m = arguments.rows, 20, 500
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d))
    X[:, :5] += 0.7 * truth[:, None]
    y = np.where(np.arange(n) < 2000, truth, -1)
    root = rng.normal(size=(m, m)) / np.sqrt(m)

    def features_and_gram():
        gram, at = np.zeros((m, m)), X[rng.choice(n, m, replace=False)]
        for lo in range(0, n, 4096):
            block = rbf_kernel(X[lo : lo + 4096], at, gamma=0.02) @ root
            gram += block.T @ block
        return gram

    with threadpool_limits(int(os.environ.get("OPENBLAS_NUM_THREADS", "2"))):
        least = seconds(features_and_gram)
        clf = ProjectedLeastSquaresClassifier(
            kernel="rbf", gamma=0.02, alpha=10.0, n_components=m, random_state=0
        )
        tracemalloc.start()
        took = seconds(lambda: clf.fit(X, y))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    header = [f"{n:,} x {d}, {m} features", "features and Gram, s", "fit, s", "ratio", "extra GB"]
    return table(header, [["projected", least, took, took / least, peak / 1e9]], ".2f")


def tables(arguments):
    """Return test errors of tuned baselines, linear and rbf, and of their projections."""
    data = {name: load(return_X_y=True) for name, load in BUNDLED.items()}
    data |= {name: load_paper_dataset(name, return_X_y=True) for name in PAPER}
    rows = []
    for name, (X, y) in data.items():
        X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
        found = [
            error
            for repeat in range(arguments.repeats)
            for n in SIZES
            if (error := errors(name, X, y, n, repeat)) is not None
        ]
        rows.append([name, *(100.0 * np.mean(found, axis=0))])
        print(rows[-1], flush=True)
    rows.append(["**mean**", *np.mean([row[1:] for row in rows], axis=0)])
    return table(["table", *(name for name, _, _ in METHODS)], rows, ".1f")


METHODS = [
    ("linear", LeastSquaresClassifierCV, "linear"),
    ("projected", ProjectedLeastSquaresClassifier, "linear"),
    ("ICLS", ICLSClassifier, "linear"),
    ("rbf", LeastSquaresClassifierCV, "rbf"),
    ("projected rbf", ProjectedLeastSquaresClassifier, "rbf"),
    ("ICLS rbf", ICLSClassifier, "rbf"),
]


def errors(name, X, y, n_labeled, repeat):
    """Return the test errors of all methods; None if there are too few rows of some class."""
    rng = np.random.default_rng([SEED, zlib.crc32(name.encode()), repeat])
    rows = rng.permutation(len(y))
    n_test = round(TEST_SHARE * len(y))
    test, train = rows[:n_test], rows[n_test:]
    n_labeled = min(n_labeled, len(train) // 2)
    if len(np.unique(y)) == 2:
        train = np.concatenate(draw_labeled(y, train, n_labeled, rng))
    known = np.where(np.arange(len(train)) < n_labeled, y[train], -1)
    found = []
    for _, make, kernel in METHODS:
        clf = make(kernel=kernel)
        if kernel == "rbf":
            clf.set_params(gamma="loo")
        if hasattr(clf, "max_time"):
            clf.set_params(max_time=MAX_TIME)
            if kernel == "rbf" and len(np.unique(y)) * len(train) > MOST_LABELS:
                clf.set_params(n_components=LANDMARKS, random_state=0)
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(1.0 - clf.fit(X[train], known).score(X[test], y[test]))
    return found


if __name__ == "__main__":
    main()
