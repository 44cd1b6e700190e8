"""The table that ``neverworse demo`` leaves for ``neverworse fit``."""

from __future__ import annotations

import csv
import datetime as dt
import io

import numpy as np
from sklearn.datasets import load_breast_cancer

CLINICS = ("north", "south", "east")
FIRST_DAY = dt.date(2024, 1, 1)
N_DAYS = 400
HOLES = 0.03  # share of cells that are empty


def patients(n_labels: int, seed: int) -> bytes:
    """Return the breast cancer data as CSV: few diagnoses, ids, and columns that mean nothing.

    Parameters
    ----------
    n_labels : int
        Rows with a diagnosis.
    seed : int
    """
    data = load_breast_cancer()
    rng = np.random.default_rng(seed)
    n_rows, n_features = data.data.shape
    kept = set(rng.permutation(n_rows)[:n_labels].tolist())
    empty = rng.random((n_rows, n_features)) < HOLES
    clinics = rng.integers(0, len(CLINICS), n_rows)
    days = rng.integers(0, N_DAYS, n_rows)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["patient", *data.feature_names, "clinic", "seen", "diagnosis"])
    for k, row in enumerate(data.data):
        numbers = ["" if hole else f"{x:g}" for x, hole in zip(row, empty[k], strict=True)]
        seen = FIRST_DAY + dt.timedelta(days=int(days[k]))
        diagnosis = data.target_names[data.target[k]] if k in kept else ""
        table.writerow([f"P{k + 1:03d}", *numbers, CLINICS[clinics[k]], seen, diagnosis])
    return text.getvalue().encode()
