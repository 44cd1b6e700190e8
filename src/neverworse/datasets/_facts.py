"""What is known of a data set before it is read: its shape, its classes, where it can be had."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """Everything about one data set that does not depend on where it is read from.

    Attributes
    ----------
    name : str
        The name in the paper.
    title, about, preparation, citation, licence : str
        What a reader of the documentation wants to know.
    file : str
        The file in a data folder: CSV for sets of UCI, NPZ for sets of the book.
    columns : tuple of str
        The features of the raw data, in order.
    classes : tuple of (str, str)
        The raw code and the name of each class, in the order of the paper: target 0, then 1.
    counts : tuple of int
        Rows of each class.
    n_features : int
        Features once prepared.
    sha256 : str
        Of the prepared values and targets, in their order: see `checksum`.
    splits_sha256 : str
        Of the official splits, if there are any.
    book_file : int, optional
        The number of the set in the files of the book.
    openml : int, optional
        The number of the set at OpenML.
    openml_repeats_rows : bool
        Whether rows may occur there more than once, which are to be left out.
    packages : tuple of str
        Installed packages that may have the set, in the order in which they are tried.
    """

    name: str
    title: str
    about: str
    preparation: str
    citation: str
    licence: str
    file: str
    columns: tuple[str, ...]
    classes: tuple[tuple[str, str], tuple[str, str]]
    counts: tuple[int, int]
    n_features: int
    sha256: str
    splits_sha256: str = ""
    book_file: int | None = None
    openml: int | None = None
    openml_repeats_rows: bool = False
    packages: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Rows of both classes."""
        return sum(self.counts)

    @property
    def codes(self) -> tuple[str, str]:
        """Raw code of each class."""
        return (self.classes[0][0], self.classes[1][0])

    @property
    def target_names(self) -> tuple[str, str]:
        """Name of each class."""
        return (self.classes[0][1], self.classes[1][1])

    @property
    def is_book_set(self) -> bool:
        """Whether the set is one of the book of Chapelle, Schölkopf and Zien."""
        return self.book_file is not None
