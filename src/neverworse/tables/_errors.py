"""What is wrong with a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

MOST_NAMED = 5


class TableError(ValueError):
    """A table that cannot be used as it is; the message says what to change."""


class CellError(TableError):
    """A cell that cannot be used.

    Parameters
    ----------
    before, after : str
        What is said about it, and what to do.
    row : int
        Counted from 0, in the rows that were looked at.
    """

    def __init__(self, before: str, row: int, after: str) -> None:
        super().__init__(f"{before} in row {row + 1:,}. {after}")
        self._parts = before, row, after

    def moved(self, n_rows: int) -> CellError:
        """Return the same error for rows that came behind others."""
        before, row, after = self._parts
        return CellError(before, row + n_rows, after)


def in_options(message: str) -> str:
    """Return a message of an estimator with the options of the command line for its arguments."""
    message = re.sub(r"\bresponse=['\"](\w+)['\"]", r"--response \1", message)
    message = re.sub(r"\bdistance=['\"](\w+)['\"]", r"--distance \1", message)
    message = re.sub(r"\bclass_prior=['\"](\w+)['\"]", r"--prior \1", message)
    for argument, option in (
        ("class_prior", "--prior"),
        ("class_weight", "--class-weight"),
        ("sample_weight", "--weight"),
    ):
        message = re.sub(rf"\b{argument}\b", option, message)
    return message


def listed(names: Iterable[str], most: int = MOST_NAMED) -> str:
    """Return names in quotes; of many, the first, and how many there are."""
    every = [repr(short(name)) for name in names]
    if len(every) <= most:
        return ", ".join(every)
    return f"{', '.join(every[:most])} and {len(every) - most:,} more"


def grouped(looks: Mapping[str, str]) -> dict[str, str]:
    """Return what there is to be said about columns, with the columns of which it is said."""
    alike: dict[str, list[str]] = {}
    for name, look in looks.items():
        if look:
            alike.setdefault(look, []).append(name)
    return {look: listed(names) for look, names in alike.items()}


def short(text: str, longest: int = 60) -> str:
    """Return the beginning of a long text."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def nearest(name: str, names: Iterable[str]) -> str:
    """Return "Did you mean …?" if a name is like one of others, or else what there is."""
    every = list(names)
    spelled = {other.casefold().strip(): other for other in reversed(every)}
    close = get_close_matches(name.casefold().strip(), spelled, n=1, cutoff=0.6)
    if close:
        return f"Did you mean {spelled[close[0]]!r}?"
    return f"There are: {listed(every, 12)}." if every else "It has no columns."
