"""Data from OpenML, through scikit-learn."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from sklearn.datasets import fetch_openml

from neverworse._typing import AnyArray, Matrix
from neverworse.datasets._facts import Facts
from neverworse.datasets._raw import Raw

LONGEST_WAIT = 60.0  # seconds; the largest of the files is smaller than 0.2 MB


def read_openml(facts: Facts) -> Raw:
    """Download a data set, and give it the columns and labels of the original."""
    fetched = _fetch(facts.openml)
    if fetched.target is None:
        raise ValueError("no column is marked as the target")
    values = _as_numbers(fetched)
    if values.shape[1] != len(facts.columns):
        raise ValueError(f"{values.shape[1]} columns, where {len(facts.columns)} are expected")
    labels = np.asarray(fetched.target).astype(np.str_)
    if facts.openml_repeats_rows:
        values, labels = _without_repetitions(values, labels)
    return Raw(values, _original_codes(labels, facts))


def _fetch(number: int | None) -> Any:
    """Fetch in a thread: scikit-learn sets no time limit, and a silent firewall never answers."""
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            # This parser does not need pandas.
            outcome["fetched"] = fetch_openml(
                data_id=number, as_frame=False, parser="liac-arff", n_retries=1
            )
        except Exception as error:  # whatever it is, it is raised below
            outcome["error"] = error

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(LONGEST_WAIT)
    if "error" in outcome:
        raise outcome["error"]
    if "fetched" not in outcome:
        raise TimeoutError(f"no answer within {LONGEST_WAIT:g} seconds")
    return outcome["fetched"]


def _as_numbers(fetched: Any) -> Matrix:
    """Return numbers also where OpenML has categories, such as the year of an operation."""
    values = np.array(fetched.data, dtype=np.float64)
    for name, levels in (fetched.categories or {}).items():
        if name in fetched.feature_names:
            column = values[:, fetched.feature_names.index(name)]
            known = ~np.isnan(column)
            numbers = np.array([float(str(level).strip("'\"")) for level in levels])
            column[known] = numbers[column[known].astype(np.intp)]
    return values


def _without_repetitions(values: Matrix, labels: AnyArray) -> tuple[Matrix, AnyArray]:
    """Keep the first of equal rows."""
    first: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(np.column_stack([values, labels]).tolist()):
        first.setdefault(tuple(row), number)
    kept = np.array(list(first.values()), dtype=np.intp)
    return values[kept], labels[kept]


def _original_codes(labels: AnyArray, facts: Facts) -> AnyArray:
    """Name classes as the original does; they are told apart by their numbers of rows.

    OpenML renames classes, to 1 and 2 among others. In every set that it has, one class is larger.
    """
    names, counts = np.unique(labels, return_counts=True)
    if sorted(counts.tolist()) != sorted(facts.counts):
        raise ValueError(
            f"{tuple(counts.tolist())} rows of the classes, where {facts.counts} are expected"
        )
    code = dict(zip(facts.counts, facts.codes, strict=True))
    return np.array([code[count] for count in counts.tolist()])[np.searchsorted(names, labels)]
