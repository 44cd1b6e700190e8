"""Results of a fit to a small table whose true classes are known, to be labeled."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neverworse.study import FitSettings, Labeling, fit_table, write_outputs
from neverworse.study._assess import assess
from tests.study.fits import quickly

CLASSES = ("ham", "=spam")
SETTINGS = FitSettings(target="kind", id="mail", alpha=0.0)


def mails(n=200, n_labeled=12, seed=3):
    """Rows with a name that looks like a formula, and all their classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 8)) + 0.9 * truth[:, None]
    labels = [CLASSES[c] if k < n_labeled else None for k, c in enumerate(truth)]
    columns = {f"x{k}": X[:, k] for k in range(8)}
    table = pa.table({"mail": [f"={k}" for k in range(n)], **columns, "kind": labels})
    return table, [CLASSES[c] for c in truth]


def results(folder, table, settings=SETTINGS, **options):
    """Write the results of a fit, and return its study."""
    fit = fit_table(table, settings)
    with quickly(report=False):
        study, scored, chosen = assess(
            fit, settings, files=[], command="", curves=False, compare_all=False, **options
        )
        write_outputs(folder, chosen, study, scored, settings.id)
    return study


def opened(folder, study, table, settings=SETTINGS, seed=0):
    return Labeling(folder, study, table, settings, seed=seed)
