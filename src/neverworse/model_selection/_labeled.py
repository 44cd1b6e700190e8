"""What splitters, scorers and masks share: the labeled rows, and columns read beside them."""

from __future__ import annotations

from typing import Any

import numpy as np

from neverworse._typing import AnyArray, Indices
from neverworse.estimators import find_unlabeled, label_array, native_dtype


def labeled_rows(y: Any, missing_label: Any, advice: str) -> tuple[Indices, AnyArray]:
    """Find the rows that carry a label.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
    missing_label : "auto" or scalar
        As in `find_unlabeled`.
    advice : str
        What to do if there is no such row, for the message of the error.

    Returns
    -------
    labeled : array of shape (n_labeled,)
        Positions of the labeled rows, ascending.
    known : array of shape (n_labeled,)
        Their labels. Where the markers made them objects, they have their own type again.
    """
    unlabeled = find_unlabeled(y, missing_label)
    if unlabeled.all():
        raise ValueError(f"y has no labeled row: all {len(unlabeled)} labels are missing. {advice}")
    labeled = np.flatnonzero(~unlabeled)
    return labeled, native_dtype(label_array(y)[labeled])


def labeled_codes(name: str, values: Any, labeled: Indices, n_rows: int) -> Indices:
    """Encode what a column has in the labeled rows: 0 for the smallest value, 1 for the next.

    What the column holds in the other rows does not matter.

    Parameters
    ----------
    name : str
        Name of the argument, for messages.
    values : array-like of shape (n_rows,)
    labeled : array of shape (n_labeled,)
        Positions of the labeled rows.
    n_rows : int

    Returns
    -------
    codes : array of shape (n_labeled,)
    """
    column = label_array(values)
    if len(column) != n_rows:
        raise ValueError(
            f"{name} has {len(column)} entries, but y has {n_rows}. Pass one for every row; in "
            "unlabeled rows it may be anything."
        )
    column = column[labeled]
    null = find_unlabeled(column, None)
    if null.any():
        raise ValueError(
            f"{name} is missing in {null.sum()} labeled rows, the first of them row "
            f"{labeled[null][0]}. Only unlabeled rows may go without."
        )
    try:
        codes: Indices = np.unique(column, return_inverse=True)[1]
    except TypeError as error:
        raise ValueError(
            f"{name} mixes values of types that cannot be compared. Convert all of them to strings."
        ) from error
    return codes


def is_continuous(known: AnyArray) -> bool:
    """Whether the labels are targets of a regression: floats that are not all whole numbers."""
    return known.dtype.kind == "f" and bool(np.any(known != np.floor(known)))
