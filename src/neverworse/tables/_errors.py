"""What is wrong with a table or a model file, and words that messages share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Literal

MAX_NAMED = 5
AGAIN = "Get the file again, or fit the model again."
# Arguments of estimators, and what the command line calls them.
VALUES = {
    "response": ("--response", ("auto", "predict_proba", "score", "error")),
    "distance": ("--distance", ("all", "labeled", "unlabeled", "euclidean")),
    "class_prior": ("--prior", ("confidence",)),
}
ARGUMENTS = {
    "class_prior": "--prior",
    "class_weight": "--class-weight",
    "sample_weight": "--weight",
}

Code = Literal["file", "column", "value", "label", "memory", "option"]


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
    column : str, optional
        The column that is meant.
    row : int, optional
        The row that is meant, counted from 0.

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
        code: Code = "value",
        column: str | None = None,
        row: int | None = None,
    ) -> None:
        where = "" if row is None else f" in row {row + 1:,}."
        super().__init__(f"{problem}{where} {fix}".rstrip())
        self.problem, self.fix, self.code, self.column, self.row = problem, fix, code, column, row

    def moved(self, n_rows: int) -> TableError:
        """Return the same error for rows that came behind others."""
        row = None if self.row is None else self.row + n_rows
        return TableError(self.problem, self.fix, code=self.code, column=self.column, row=row)


class UnreadableColumnsError(TableError):
    """Several columns that cannot be read; `errors` has one error for each.

    Examples
    --------
    >>> from neverworse.tables import TableError, UnreadableColumnsError
    >>> errors = [TableError("Bad dates.", column="born"), TableError("Bad sums.", column="sum")]
    >>> [error.column for error in UnreadableColumnsError(errors).errors]
    ['born', 'sum']
    """

    def __init__(self, errors: Sequence[TableError]) -> None:
        said = "".join(f"\n- {error}" for error in errors)
        super().__init__(f"{len(errors)} columns cannot be read:{said}")
        self.errors = tuple(errors)


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
def refusing(what: str, otherwise: str) -> Iterator[None]:
    """Turn every error into a `ModelFileError`, with `otherwise` for what was none.

    Every one, as a file that somebody made up can bring zip, JSON, NumPy and scikit-learn to raise
    anything.
    """
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{what}: {error}") from None
    except Exception as error:
        raise ModelFileError(otherwise) from error


@contextmanager
def believing(what: str, *others: type[Exception]) -> Iterator[None]:
    """Turn what goes wrong while a model from a file is used into a `ModelFileError`.

    Its parts are of the right types, but a file that somebody changed may say anything in them.
    Exceptions of the types `others` are left as they are.
    """
    kept: tuple[type[Exception], ...] = (ModelFileError, TableError, MemoryError, OSError, *others)
    try:
        yield
    except kept:
        raise
    except Exception as error:
        raise ModelFileError(
            f"{what}: its contents are inconsistent ({type(error).__name__}). {AGAIN}"
        ) from error


def no_column(name: str, names: Iterable[str], option: str) -> TableError:
    """Say that there is no column of a name that an option gives."""
    problem = f"There is no column {name!r} for --{option}."
    return TableError(problem, nearest(name, names), code="column", column=name)


def in_options(message: str) -> str:
    """Return a message of an estimator with the options of the command line for its arguments."""
    for argument, (option, values) in VALUES.items():
        for value in values:
            message = message.replace(f"{argument}={value!r}", f"{option} {value}")
    for argument, option in ARGUMENTS.items():
        message = message.replace(argument, option)
    return message


def listed(names: Iterable[str], most: int = MAX_NAMED) -> str:
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
    return f"There are {listed(every, 12)}." if every else "It has no columns."
