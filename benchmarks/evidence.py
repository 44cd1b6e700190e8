"""What the room of evidence is worth: ``python benchmarks/evidence.py --help``.

docs/evidence.md quotes its tables, beside those of ``neverworse reproduce evidence``. Every repeat
is written to a file of JSON lines when it is done, so that a run that was interrupted goes on where
it ended.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
import zlib
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from neverworse import (
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
    SafeStackingClassifier,
    suggest_labels,
)
from neverworse.datasets import PAPER_DATASETS
from neverworse.evidence.comparisons import NOT_WORSE, UNDECIDED, ErrorComparison, random_order
from studies import load_all, parser_of

SEED = 2026
DELTA = 0.05
N_LABELS = 40  # before more are suggested
ROUNDING = 1e-9  # relative: losses that differ by less may be equal


def main(argv=None):
    """Run the studies that were asked for, and print their tables in Markdown."""
    parser = parser_of("What the room of evidence is worth.", PAPER_DATASETS, repeats=20)
    parser.add_argument("--studies", nargs="+", choices=STUDIES, default=list(STUDIES))
    parser.add_argument("--out", type=Path, default=Path("evidence.jsonl"), help="where repeats go")
    arguments = parser.parse_args(argv)
    store = Store(arguments.out)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what counts is the loss
        for study in arguments.studies:
            tasks, tables = STUDIES[study]
            for key, compute in tasks(parser, arguments):
                store.once([study, *key], compute)
            print(f"## {study}\n\n{tables(store.of(study))}\n", flush=True)
    return 0


class Store:
    """Results by their keys, in a file of JSON lines."""

    def __init__(self, path):
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._found = {json.dumps(one["key"]): one for one in map(json.loads, lines)}

    def once(self, key, compute):
        """Compute and write a result, unless it is there."""
        if json.dumps(key) not in self._found:
            one = {"key": key, "result": compute()}
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(one) + "\n")
            self._found[json.dumps(key)] = one

    def of(self, study):
        """Return the results of a study with their keys."""
        found = [one for one in self._found.values() if one["key"][0] == study]
        return [(tuple(one["key"][1:]), one["result"]) for one in found]


def _generator(*key):
    return np.random.default_rng([SEED, *(zlib.crc32(str(part).encode()) for part in key)])


def _labels_tasks(parser, arguments):
    data = load_all(parser, arguments)
    for repeat in range(arguments.repeats):
        for name, (X, y) in data.items():
            yield (name, N_LABELS, repeat), partial(_labels, X, y, N_LABELS, name, repeat)


def _drawn(y, n, name, repeat):
    """Labels of n rows by chance, two of each class at least: a fold without one must have both."""
    rng = _generator(name, repeat)
    rows = rng.permutation(len(y))
    first = np.concatenate([rows[y[rows] == label][:2] for label in (0, 1)])
    rows = np.concatenate([first, rows[~np.isin(rows, first)]])
    known = np.full(len(y), -1)
    known[rows[:n]] = y[rows[:n]]
    return known, rng


# Candidates that are of no use.


def _losses(model, X, y):
    brier = np.mean((model.predict_proba(X)[:, 1] - y) ** 2)
    return [float(brier), float(np.mean(model.predict(X) != y))]


def _useless(n, run):
    """Return whether useless candidates have made the model worse."""
    rng = _generator("useless", n, run)
    truth = rng.integers(0, 2, 500)
    X = rng.normal(size=(500, 10))
    X[:, :2] += truth[:, None]
    y = np.where(np.arange(500) < n, truth, -1)
    y[:4] = truth[:4] = [0, 0, 1, 1]
    noise = make_pipeline(_OnlyLast(), KNeighborsClassifier(3))
    candidates = [
        ("noise", DummyClassifier(strategy="uniform", random_state=run)),
        ("penalised", LeastSquaresClassifier(1e4)),
        ("neighbours", noise),
    ]
    clf = SafeStackingClassifier(candidates=candidates, random_state=run).fit(X, y)
    losses = [_losses(m, X[n:], truth[n:])[0] for m in (clf, clf.baseline_)]
    return bool(losses[0] > losses[1] * (1.0 + ROUNDING))


class _OnlyLast:
    """Keeps the columns that say nothing about the class."""

    def fit(self, X, y=None):  # noqa: ARG002
        return self

    def transform(self, X):
        return X[:, 5:]

    def get_params(self, deep=True):  # noqa: ARG002
        return {}

    def set_params(self):
        return self


def _useless_tasks(parser, arguments):  # noqa: ARG001
    for n in (40, 100):
        for run in range(400):
            yield (n, run), partial(_useless, n, run)


def _useless_table(results):
    table = pd.Series(dict(results)).groupby(level=0).agg(["mean", "size"])
    lines = ["| labels | runs | worse |", "|--:|--:|--:|"]
    return "\n".join(
        lines + [f"| {n} | {row['size']:.0f} | {row['mean']:.1%} |" for n, row in table.iterrows()]
    )


# Sequential audits of known populations.


def _audits(m, share, runs=2000):
    """Return how often audits end with a verdict, and after how many labels."""
    right = -(-m // 2) - 1 if share is None else round(share * m)
    baseline, candidate = np.zeros(m, np.intp), np.ones(m, np.intp)
    labels = {row: int(row < right) for row in range(m)}
    counts, verdicts = [], []
    for run in range(runs):
        order = random_order(SEED + run, m)
        comparison = ErrorComparison(baseline, candidate, DELTA, (), 2, order)
        known = {}
        for row in order:
            known[row] = labels[row]
            comparison.count(known)
            if comparison.verdict != UNDECIDED:
                break
        counts.append(comparison.n_counted)
        verdicts.append(comparison.verdict == NOT_WORSE)
    return {"median": float(np.median(counts)), "not worse": float(np.mean(verdicts)), "runs": runs}


def _audit_tasks(parser, arguments):  # noqa: ARG001
    for m in (40, 100, 300):
        for share in (None, 0.7, 0.8, 0.9):
            yield (m, share), partial(_audits, m, share)


def _audit_table(results):
    lines = [
        "| rows that differ | right | runs | “not worse” | median labels |",
        "|--:|--:|--:|--:|--:|",
    ]
    for (m, share), found in results:
        right = "just below half" if share is None else f"{share:.0%}"
        cells = m, right, found["runs"], f"{found['not worse']:.1%}", f"{found['median']:.0f}"
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


# Labels for training.


def _labels(X, y, n, name, repeat):
    """Return the loss on all rows with 20 more labels: suggested, by chance, of small margins."""
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    known, rng = _drawn(y, n, name, repeat)
    unlabeled = np.flatnonzero(known == -1)
    before = LeastSquaresClassifierCV().fit(X, known)
    margins = np.abs(before.decision_function(X[unlabeled]))
    choices = {
        "suggested": suggest_labels(X, known, 20).rows,
        "random": rng.choice(unlabeled, 20, replace=False),
        "smallest margins": unlabeled[np.argsort(margins, kind="stable")[:20]],
    }
    result = {}
    for choice, rows in choices.items():
        more = known.copy()
        more[rows] = y[rows]
        clf = LeastSquaresClassifierCV().fit(X, more)
        scores = clf.decision_function(X) + 0.5
        result[choice] = [float(np.mean((scores - y) ** 2)), float(np.mean(clf.predict(X) != y))]
    return result


def _labels_table(results):
    table = pd.DataFrame(
        [{"name": name, **{k: v[0] for k, v in found.items()}} for (name, _, _), found in results]
    )
    means = table.groupby("name").mean()
    errors = pd.DataFrame([{k: v[1] for k, v in found.items()} for _, found in results]).mean()
    lines = ["| data set | suggested | random | smallest margins |", "|---|--:|--:|--:|"]
    rows = [*means.iterrows(), ("mean", means.mean()), ("error", errors)]
    for name, row in rows:
        cells = " | ".join(f"{row[k]:.4f}" for k in ("suggested", "random", "smallest margins"))
        lines.append(f"| {name} | {cells} |")
    better = int((means["suggested"] < means["random"]).sum())
    return "\n".join([*lines, "", f"Suggested below random: {better} of {len(means)}."])


def _speed(run):
    """Return seconds of a Gram matrix and of 20 suggestions, in turn."""
    rng = np.random.default_rng(run)
    X = rng.normal(size=(1_000_000, 50))
    y = np.full(len(X), -1)
    y[:200] = rng.integers(0, 2, 200)
    start = time.perf_counter()
    X.T @ X
    middle = time.perf_counter()
    suggest_labels(X, y, 20)
    return [middle - start, time.perf_counter() - middle]


def _speed_tasks(parser, arguments):  # noqa: ARG001
    for run in range(5):
        yield (run,), partial(_speed, run)


def _speed_table(results):
    ratios = [found[1] / found[0] for _, found in results]
    return f"20 suggestions take {np.median(ratios):.1f} Gram matrices (median of {len(ratios)})."


STUDIES = {
    "audit": (_audit_tasks, _audit_table),
    "useless": (_useless_tasks, _useless_table),
    "labels": (_labels_tasks, _labels_table),
    "speed": (_speed_tasks, _speed_table),
}

if __name__ == "__main__":
    sys.exit(main())
