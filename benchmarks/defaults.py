"""What the defaults are worth on held-out rows: ``python benchmarks/defaults.py --help``.

docs/defaults.md explains the experiment, and has its tables.
"""

from __future__ import annotations

import sys
import warnings
import zlib
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

import machine
from defaults_page import (
    NEW,
    OLD_COMMAND,
    OLD_PYTHON,
    TUNED,
    UNPENALISED,
    draw,
    name_of,
    tables_of,
)
from neverworse import (
    ICLSClassifier,
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
    ProjectedLeastSquaresClassifier,
)
from neverworse.datasets import PAPER_DATASETS
from neverworse.experiments import draw_labeled
from pages import with_tables
from studies import load_all, parser_of, positive

PAGE = Path(__file__).resolve().parents[1] / "docs" / "defaults.md"
BEGIN = "<!-- made by benchmarks/defaults.py -->"

SEED = 2026
SIZES = (40, 100, 200)  # labeled rows
TEST_SHARE = 0.3
ROUNDING = 1e-12  # relative: losses that differ by less may be equal

METHODS = {"Projection": ProjectedLeastSquaresClassifier, "ICLS": ICLSClassifier}
CELL = ["dataset", "labels"]
MEASURES = ["raw", "clipped", "error"]


def main(argv=None):
    """Run the study, print tables in Markdown, and return 1 if a guarantee was broken."""
    parser = parser_of("What the defaults are worth.", PAPER_DATASETS, repeats=50)
    parser.add_argument("--jobs", type=positive, default=1, help="processes (default: 1)")
    parser.add_argument(
        "--page",
        type=Path,
        nargs="?",
        const=PAGE,
        help="put the tables there, a picture into its folder images, and all numbers into a CSV "
        "file beside it",
    )
    arguments = parser.parse_args(argv)
    if arguments.page:  # better now than after minutes
        try:
            with_tables(arguments.page.read_text(encoding="utf-8"), BEGIN, "")
        except (OSError, ValueError) as error:
            parser.error(str(error))
    measured = measure(load_all(parser, arguments), arguments.repeats, arguments.jobs)
    cells = compare(measured)
    text = f"{tables_of(cells)}\n\n{_in_words(measured)}"
    print(text)
    if arguments.page:
        page = arguments.page.read_text(encoding="utf-8")
        arguments.page.write_text(with_tables(page, BEGIN, text), encoding="utf-8")
        cells.to_csv(arguments.page.with_suffix(".csv"), index=False)
        picture = arguments.page.parent / "images" / f"{arguments.page.stem}.png"
        picture.parent.mkdir(exist_ok=True)
        draw(cells).savefig(picture, dpi=150)
    return int(_n_broken(measured) > 0)


def measure(data, repeats, jobs=1):
    """Return a table with a row for every fit.

    Parameters
    ----------
    data : dict
        Rows and labels of every data set.
    repeats, jobs : int
    """
    data = {name: (_standardised(X), y) for name, (X, y) in data.items()}
    tasks = [(name, k) for name in data for k in range(repeats)]
    calls = (joblib.delayed(one_repeat)(name, *data[name], k) for name, k in tasks)
    records = []
    bar = tqdm(total=len(tasks), unit="repeat", disable=None)  # None: on a terminal only
    with bar, closing(joblib.Parallel(jobs, return_as="generator_unordered")(calls)) as results:
        for found in results:
            records += found
            bar.update()
    order = pd.CategoricalDtype(list(data), ordered=True)
    measured = pd.DataFrame(records).astype({"dataset": order})
    return measured.sort_values([*CELL, "repeat"], kind="stable", ignore_index=True)


def one_repeat(name, X, y, repeat):
    """Draw rows, hide labels, fit and measure everything, for all numbers of labels."""
    rng = np.random.default_rng([SEED, zlib.crc32(name.encode()), repeat])
    rows = rng.permutation(len(y))
    n_test = round(TEST_SHARE * len(y))
    test, train = rows[:n_test], rows[n_test:]
    # More labels are these and others. The library needs one row of each class, so they have it.
    train = np.concatenate(draw_labeled(y, train, SIZES[0], rng))
    records = []
    with threadpool_limits(1):  # another number of threads would round differently
        for n in SIZES:
            if n < len(train):
                cell = {"dataset": name, "repeat": repeat, "labels": n, "test": n_test}
                records += [cell | found for found in _fits(X, y, train, n, test)]
    return records


def _standardised(X):
    """Return columns with mean 0 and standard deviation 1 over all rows; labels play no part."""
    return (X - X.mean(axis=0)) / X.std(axis=0)


def _fits(X, y, train, n_labeled, test):
    known = np.where(np.arange(len(train)) < n_labeled, y[train], -1)
    tuned = LeastSquaresClassifierCV().fit(X[train], known)
    plain = LeastSquaresClassifier(0.0).fit(X[train], known)
    common = {"unlabeled": len(train) - n_labeled}
    for model, clf in ((TUNED, tuned), (UNPENALISED, plain)):
        yield {**common, "model": model, **_held_out(clf, X[test], y[test])}
    # One leave-one-out for all: alpha="loo" would find the same penalty in each of them.
    penalties = {
        NEW: (tuned.alpha_, tuned.alpha_),
        OLD_COMMAND: (tuned.alpha_, 0.0),
        OLD_PYTHON: (0.0, 0.0),
    }
    for method, make in METHODS.items():
        for setting, (alpha, constraint_alpha) in penalties.items():
            clf = make(alpha=alpha, constraint_alpha=constraint_alpha)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # they are counted
                clf.fit(X[train], known)
            yield {
                **common,
                "model": name_of(method, setting),
                **_held_out(clf, X[test], y[test]),
                **_training(clf, X[train], y[train], n_labeled),
            }


def _held_out(clf, X, y):
    """Return the mean squared error of scores, raw and clipped, and the error rate."""
    scores = _scores(clf, X)
    return {
        "raw": float(np.mean((scores - y) ** 2)),
        "clipped": float(np.mean((np.clip(scores, 0.0, 1.0) - y) ** 2)),
        "error": float(np.mean(clf.predict(X) != y)),
    }


def _training(clf, X, truth, n_labeled):
    """Return what the certificate says, and what is so with the true labels.

    The guaranteed improvement is a sum of two: by how much the loss on labeled rows, with the
    penalty, is lower, which is known; and by how much that on unlabeled rows is in the worst case.
    """
    proved, baseline = clf.certificate_, clf.supervised_

    def loss(model, rows):
        squares = np.sum((_scores(model, X[rows]) - truth[rows]) ** 2)
        return float(squares + clf.constraint_alpha * np.sum(model.coef_**2))

    everything, labeled = slice(None), slice(n_labeled)
    highest = proved.supervised_loss[1]
    scores = _scores(baseline, X[n_labeled:])
    return {
        "changed": float(not np.array_equal(clf.coef_, baseline.coef_)),
        "guaranteed": -proved.worst_case / highest,
        "from_labeled": (loss(baseline, labeled) - loss(clf, labeled)) / highest,
        "outside": float(np.mean((scores < 0.0) | (scores > 1.0))),
        "training": loss(clf, everything) / loss(baseline, everything),
        "converged": proved.converged,
    }


def _scores(clf, X):
    return clf.decision_function(X) + 0.5


def compare(measured):
    """Return the means over repeats for every data set, number of labels and classifier.

    Everything is compared with the tuned baseline, and what has no penalty also with its own one.
    A ratio is taken in every repeat.
    """
    own = [name_of(method, OLD_PYTHON) for method in METHODS]
    cells = pd.concat(
        [
            _against(measured[measured["model"] != TUNED], measured, TUNED),
            _against(measured[measured["model"].isin(own)], measured, UNPENALISED),
        ],
        ignore_index=True,
    )
    return cells.round(6)  # far below the standard errors


def _against(measured, everything, reference):
    keys = [*CELL, "repeat"]
    baseline = everything[everything["model"] == reference].set_index(keys)
    both = measured.join(baseline[MEASURES].add_suffix("_baseline"), on=keys)
    values = {}
    for name in MEASURES:
        ours, theirs = both[name], both[f"{name}_baseline"]
        is_rate = name == "error"
        values[name] = 100.0 * (ours - theirs) if is_rate else ours / theirs
        values[f"{name}_worse"] = ours > theirs * (1.0 + ROUNDING)
        values[f"{name}_baseline"] = theirs
    for name, changed in (("outside_changed", 1.0), ("outside_unchanged", 0.0)):
        values[name] = both["outside"].where(both["changed"] == changed)
    more = ["test", "unlabeled", "changed", "guaranteed", "from_labeled"]
    values = both[[*CELL, "model", *more]].assign(**values)
    groups = values.groupby([*CELL, "model"], observed=True, sort=False)
    cells = groups.mean().join(groups[MEASURES].sem().add_suffix("_se"))
    return cells.reset_index().assign(against=reference)


def _in_words(measured):
    fits = measured["converged"].dropna()
    return (
        f"{measured['repeat'].nunique()} repeats, seed {SEED}, {datetime.now(UTC):%Y-%m-%d}. "
        f"Guarantees broken: {_n_broken(measured)} of {int(_promised(measured).sum())}. Not "
        f"converged: {int((~fits.astype(bool)).sum())} of {len(fits)} fits. "
        f"Measured on {machine.describe()}."
    )


def _promised(measured):
    return measured["model"].str.startswith("Projection")


def _n_broken(measured):
    """Return how often the projection is worse on the training rows, with their true labels."""
    return int((measured["training"] > 1.0 + ROUNDING)[_promised(measured)].sum())


if __name__ == "__main__":
    sys.exit(main())
