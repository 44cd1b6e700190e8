"""Errors about tables, plans and model files, and names of options in messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

AGAIN = "Get the file again, or fit the model again."
# Arguments of estimators, and what the command line calls them.
OPTIONS = {
    "response": "--response",
    "distance": "--distance",
    "class_prior": "--prior",
    "class_weight": "--class-weight",
    "sample_weight": "--weight",
}


class TableError(ValueError):
    """A table that cannot be used as it is; the message says what to change.

    Parameters
    ----------
    problem : str
        What is wrong; without a full stop if `row` is given.
    fix : str
        What to do about it.
    code : {"file", "column", "value", "label", "memory", "option"}
        What it is about: a file as a whole, which columns there are, the values of a column, the
        target, a table that is larger than memory, or a setting that the model does not accept.
    column, row : str and int, optional
        The column that is meant, and its row, counted from 0.

    Examples
    --------
    >>> from neverworse.tables import TableError
    >>> error = TableError("'12,5' is no number", "Pass decimal=','.", column="age", row=6)
    >>> str(error), error.code
    ("'12,5' is no number in row 7. Pass decimal=','.", 'value')
    """

    def __init__(
        self,
        problem: str,
        fix: str = "",
        *,
        code: Literal["file", "column", "value", "label", "memory", "option"] = "value",
        column: str | None = None,
        row: int | None = None,
    ) -> None:
        where = "" if row is None else f" in row {row + 1:,}."
        super().__init__(f"{problem}{where} {fix}".rstrip())
        self.problem, self.fix, self.code, self.column, self.row = problem, fix, code, column, row


class PlanError(ValueError):
    """A plan that cannot be used; the message says what to change.

    Examples
    --------
    >>> from neverworse.tables import TableClassifier
    >>> TableClassifier(columns={"age": {"kind": "numeric"}}).fit({"age": [1, 2]}, ["a", "b"])
    Traceback (most recent call last):
        ...
    neverworse.tables._errors.PlanError: ...
    """


class ModelFileError(ValueError):
    """A model file that is refused; the message says why, and what to do.

    Examples
    --------
    >>> from neverworse.tables import load_model
    >>> load_model("nothing.skops")
    Traceback (most recent call last):
        ...
    neverworse.tables._errors.ModelFileError: ...
    """


@contextmanager
def believing(what: str, *others: type[Exception]) -> Iterator[None]:
    """Turn exceptions, but `others`, into a `ModelFileError`: parts of a file may not fit."""
    kept: tuple[type[Exception], ...] = (ModelFileError, TableError, MemoryError, OSError, *others)
    try:
        yield
    except kept:
        raise
    except Exception as error:
        raise ModelFileError(
            f"{what}: its contents are inconsistent ({type(error).__name__}). {AGAIN}"
        ) from error


def in_options(message: str) -> str:
    """Return a message of an estimator with the options of the command line for its arguments."""
    for argument, option in OPTIONS.items():
        message = message.replace(f"{argument}='", f"{option} '")
        if "_" in argument:  # which is no word of a sentence
            message = message.replace(argument, option)
    return message
