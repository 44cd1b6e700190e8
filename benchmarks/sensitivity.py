"""Double and halve every constant of the solver: results must not change, times but a little.

``python benchmarks/sensitivity.py`` fits all kinds of tables (see `kinds`) with each constant
changed, beside the same fits with none changed, and prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from unittest.mock import patch

import numpy as np

import alone
from beside import N_ROWS
from kinds import KINDS, make
from neverworse import LeastSquaresClassifierCV, ProjectedLeastSquaresClassifier
from neverworse.projection.solver import newton, newton_system, problem, working_set

CONSTANTS = {
    "FEWEST_ROWS": (working_set,),
    "ROWS_PER_UNKNOWN": (working_set,),
    "LARGEST_SHARE": (working_set,),
    "WORKING_BYTES": (working_set,),
    "LARGEST_GAP_SHARE": (working_set,),
    "SET_GROWTH": (working_set,),
    "NAMED_ROWS": (working_set,),
    "FINE": (working_set,),
    "LARGEST_DISTINCT_SHARE": (problem,),
    "FIRST_SIGMA": (newton, working_set),
    "SIGMA_GROWTH": (newton, working_set),
    "EASY_STEPS": (newton,),
    "SLOW_GAP_SHARE": (newton,),
    "PATIENCE": (newton,),
    "ROUGH": (newton_system, newton, working_set),
}


def changed(name, factor):
    """Return contexts in which a constant is larger by a factor."""
    value = getattr(CONSTANTS[name][0], name)
    value = type(value)(value * factor)
    return [patch.object(module, name, value) for module in CONSTANTS[name]]


def fits(table):
    """Yield fits with and without a penalty, in two distances."""
    known = table.y >= 0
    weights = None if table.weights is None else table.weights[known]
    chosen = LeastSquaresClassifierCV().fit(table.X[known], table.y[known], weights).alpha_
    for alpha in (0.0, float(chosen)):
        for distance in ("all", "labeled"):
            clf = ProjectedLeastSquaresClassifier(distance, alpha=alpha, constraint_alpha=alpha)
            yield lambda clf=clf: clf.fit(table.X, table.y, sample_weight=table.weights)


def measure(fit, contexts=()):
    """Return seconds of the processor and the guaranteed improvement of a fit."""
    for context in contexts:
        context.start()
    try:
        begun = time.process_time()
        certificate = fit().certificate_
        return time.process_time() - begun, certificate.guaranteed_improvement
    finally:
        for context in contexts:
            context.stop()


def compare(n_rows, kinds, factors=(2.0, 0.5)):
    """Return the ratios of times and the differences of results for each constant and factor."""
    settings = [(name, factor) for name in CONSTANTS for factor in factors]
    found = {key: ([], []) for key in settings}
    for kind in kinds:
        for n_labeled in (None, 2000):
            alone.say(f"{kind}, {n_labeled or 'few'} labels")
            for fit in fits(make(kind, n_rows, n_labeled)):
                before = min(measure(fit)[0] for _ in range(2))
                for name, factor in settings:
                    seconds, improvement = measure(fit, changed(name, factor))
                    plain, expected = measure(fit)
                    before = min(before, plain)
                    found[name, factor][0].append(seconds / min(plain, 2.0 * before))
                    difference = abs(improvement - expected) / max(expected, 1.0)
                    found[name, factor][1].append(difference)
    return found


def table(found):
    """Return the numbers as a table in Markdown."""
    lines = [
        "| constant | value | time if doubled | if halved | largest difference of the result |",
        "|---|---|---|---|---|",
    ]
    for name, (module, *_) in CONSTANTS.items():
        (twice, a), (half, b) = found[name, 2.0], found[name, 0.5]
        means = [np.exp(np.mean(np.log(ratios))) for ratios in (twice, half)]
        lines.append(
            f"| `{name}` | {getattr(module, name):g} | {means[0]:.2f} | {means[1]:.2f} | "
            f"{max(a + b):.0e} |"
        )
    return "\n".join(lines)


def main(argv=None):
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=N_ROWS)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND")
    arguments = parser.parse_args(argv)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print(table(compare(arguments.rows, arguments.kinds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
