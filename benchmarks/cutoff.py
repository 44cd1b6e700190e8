"""What the pseudo-inverse of the published code leaves out: ``python benchmarks/cutoff.py --help``.

For the folds of ``neverworse reproduce table``, protocol "code", the directions are counted whose
singular value in a Gram matrix is at most the cut-off: of all training rows, of the labeled rows
centred on themselves (Supervised), and of the labeled rows centred on all training rows (the
supervised weights that Projection projects). Every matrix has a column of ones.
"""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from neverworse.datasets import PAPER_DATASETS
from neverworse.experiments import (
    EXPERIMENTS,
    PROTOCOLS,
    design_matrix,
    draw_cross_validation,
    random_numbers,
)
from studies import load_all, parser_of

PROTOCOL = PROTOCOLS["code"]
TABLE = EXPERIMENTS["table"]


def main(argv=None):
    """Print a table in Markdown."""
    parser = parser_of(__doc__.splitlines()[0], PAPER_DATASETS, repeats=TABLE.repeats)
    parser.add_argument("--seed", type=int, default=0, help="(default: 0)")
    arguments = parser.parse_args(argv)
    print("| data set | features | all rows | labeled rows | labeled rows, centred on all rows |")
    print("|---|---:|---:|---:|---:|")
    with threadpool_limits(1):
        for name, data in load_all(parser, arguments).items():
            counts = count(data, name, arguments.seed, arguments.repeats)
            said = " | ".join(_range(column) for column in counts.T)
            print(f"| {name} | {data[0].shape[1]} | {said} |", flush=True)


def count(data, name, seed, repeats):
    """Return how many directions are left out in each fold, for the three matrices."""
    counts = []
    for repeat in range(repeats):
        rng = random_numbers(seed, TABLE.name, name, repeat)
        for sample in draw_cross_validation(data, PROTOCOL, rng):
            labeled = sample.X[np.asarray(sample.y) != -1]
            pairs = (sample.X, sample.X), (labeled, labeled), (sample.X, labeled)
            counts.append([n_left_out(centre, rows) for centre, rows in pairs])
    return np.array(counts)


def n_left_out(centre, rows):
    """Return how many directions of rows are left out, centred on the mean of others."""
    E = design_matrix().fit(centre).transform(rows)
    values = np.linalg.eigvalsh(E.T @ E)
    return int(np.sum(values <= PROTOCOL.cutoff * values[-1]))


def _range(counts):
    """Write the mean, and the smallest and the largest count."""
    low, high = counts.min(), counts.max()
    return f"{low}" if low == high else f"{counts.mean():.2f} ({low} to {high})"


if __name__ == "__main__":
    main()
