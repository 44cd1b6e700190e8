"""What a sub-command raises when it cannot do what it was asked for, exit codes, and warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

# What shells expect: 1 for what went wrong, 2 for what was asked wrongly, 128 + n for signal n.
FAILURE, USAGE, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141
# Ours: the answer of an audit is no; a table, or a model file, cannot be used as it is.
NOT_GUARANTEED, BAD_TABLE, BAD_MODEL = 3, 4, 5


class CommandError(Exception):
    """Something that the user can put right; the message says how."""

    code: ClassVar[int] = FAILURE


class FailureError(CommandError):
    """Something is missing or went wrong."""


class UsageError(CommandError):
    """An argument that parses but makes no sense; the message says what would."""

    code = USAGE


class BadTableError(CommandError):
    """A table that cannot be used as it is."""

    code = BAD_TABLE


class BadModelError(CommandError):
    """A model file that is refused."""

    code = BAD_MODEL


@contextmanager
def without_convergence_warnings() -> Iterator[None]:
    """Keep warnings to Python programmers from people who use the command line.

    Where a solver gives up early, the certificate says so, and a note says which options may help.
    """
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
