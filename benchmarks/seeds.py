"""How far wins, draws and losses of Table 1 vary by chance: ``python benchmarks/seeds.py --help``.

The cross-validation of Krijthe and Loog (2017), protocol "code", is run with several seeds. The
numbers of a seed are those of ``neverworse reproduce table --seed``; here methods can be left out,
because all of them take long. What is in the CSV file already is not run again.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pandas as pd
from threadpoolctl import threadpool_limits

from neverworse.datasets import PAPER_DATASETS
from neverworse.experiments import (
    EXPERIMENTS,
    PROTOCOLS,
    as_text,
    count_marks,
    counterpart,
    draw_cross_validation,
    is_tested,
    published,
    random_numbers,
    table,
    tidy,
)
from studies import load_all, parser_of

PROTOCOL = PROTOCOLS["code"]
TABLE = EXPERIMENTS["table"]
TESTED = [name for name in TABLE.methods if is_tested(name)]
COLUMNS = ["seed", "dataset", "method", "mean", "sd", "repeats", "p_less", "p_greater", "mark"]


def main(argv=None):
    """Run what is missing, and print how often each count of wins, draws and losses occurred."""
    parser = parser_of(__doc__.splitlines()[0], PAPER_DATASETS, repeats=TABLE.repeats)
    parser.add_argument("--seeds", type=int, default=10, help="0, 1, … (default: 10 seeds)")
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=TESTED,
        default=TESTED,
        metavar="NAME",
        help=f"of {', '.join(TESTED)} (default: all)",
    )
    parser.add_argument("--out", type=Path, required=True, help="CSV file of all cells")
    arguments = parser.parse_args(argv)
    cells = _read(arguments.out)
    data = load_all(parser, arguments)
    with threadpool_limits(1):  # another number of threads would round differently
        for seed in range(arguments.seeds):
            for dataset in data:
                known = cells.loc[(cells["seed"] == seed) & (cells["dataset"] == dataset), "method"]
                missing = [name for name in arguments.methods if name not in set(known)]
                if missing:
                    _say(f"seed {seed}, {dataset}: {', '.join(missing)}")
                    found = cells_of(seed, dataset, data[dataset], missing, arguments.repeats)
                    cells = pd.concat([cells, found]) if len(cells) else found
                    cells.to_csv(arguments.out, index=False)
    print(report(cells))


def cells_of(seed, dataset, data, methods, repeats):
    """Return the cells of Table 1 of some methods on a data set, given its rows and labels."""
    needed = {name for method in methods for name in (method, counterpart(method))}
    needed = [name for name in TABLE.methods if name in needed]
    records = {
        repeat: [
            {
                "method": method,
                "fold": fold,
                "n_test": len(sample.y_test),
                **sample.measure(method, model, training=False),
            }
            for fold, sample in enumerate(
                draw_cross_validation(
                    data, PROTOCOL, random_numbers(seed, TABLE.name, dataset, repeat)
                )
            )
            for method, model in sample.fit(needed, PROTOCOL)
        ]
        for repeat in range(repeats)
    }
    cells = table(tidy({dataset: records}), PROTOCOL)
    return cells[cells["method"].isin(methods)].assign(seed=seed)[COLUMNS]


def report(cells):
    """Return tables in Markdown: how often each count, and on which data sets marks vary."""
    n_datasets = cells["dataset"].nunique()
    lines = ["| method | published | win / draw / loss: seeds |", "|---|---|---|"]
    varying = ["| method | data set | published | better | no different | worse |"]
    varying.append("|---|---|---|---:|---:|---:|")
    for method in (name for name in TESTED if name in set(cells["method"])):
        of_method = cells[cells["method"] == method]
        whole = [part for _, part in of_method.groupby("seed") if len(part) == n_datasets]
        counts = Counter(count_marks(part)[method] for part in whole)
        theirs = {name: row[method]["mark"] for name, row in published()["table"].items()}
        said = ", ".join(f"{as_text(c)}: {n}" for c, n in sorted(counts.items(), reverse=True))
        lines.append(f"| {method} | {as_text(_published_counts(theirs, of_method))} | {said} |")
        for dataset, part in of_method.groupby("dataset", sort=False):
            marks = [int((part["mark"] == mark).sum()) for mark in ("better", "", "worse")]
            mark = theirs[dataset]
            if marks[("better", "", "worse").index(mark)] < len(part):
                numbers = " | ".join(map(str, marks))
                varying.append(f"| {method} | {dataset} | {mark or 'no different'} | {numbers} |")
    return "\n".join([*lines, "", *varying])


def _published_counts(marks, cells):
    of_these = [marks[name] for name in cells["dataset"].unique()]
    return tuple(of_these.count(mark) for mark in ("better", "", "worse"))


def _read(path):
    if not path.exists():
        return pd.DataFrame(columns=COLUMNS)
    return pd.read_csv(path, keep_default_na=False, na_values={"sd": [""]})


def _say(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
