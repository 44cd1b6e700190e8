"""Arguments that all sub-commands with tables have in common."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from neverworse._extras import install
from neverworse.cli._errors import BadModelError, BadTableError, FailureError, UsageError

if TYPE_CHECKING:
    from neverworse.tables import ReadOptions

NEEDED = ("pyarrow", "skops", "matplotlib")


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add what says how tables are read."""
    group = parser.add_argument_group("reading")
    group.add_argument(
        "--delimiter", metavar="C", help="between cells of CSV (default: found by itself)"
    )
    group.add_argument(
        "--decimal",
        metavar="C",
        help="before the decimals of numbers: . or , (default: found by itself)",
    )
    group.add_argument("--encoding", metavar="NAME", help="of text (default: UTF-8)")
    group.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="WORD",
        help="a word that means a missing value, besides empty cells, NA, NaN and null; repeatable",
    )
    group.add_argument("--sheet", metavar="NAME", help="of a workbook (default: the first)")


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add what says how results are printed."""
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print the results as JSON")
    group.add_argument("--quiet", action="store_true", help="print errors only; no progress bar")


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Add what says which model files are opened."""
    parser.add_argument(
        "--trust-compiled",
        action="store_true",
        help="open models that predict with compiled code, such as forests, neighbours and SVC: "
        "their files could crash this program, so only if you know where they come from",
    )


def add_formulas(parser: argparse.ArgumentParser) -> None:
    """Add what says how text that looks like a formula is written."""
    parser.add_argument(
        "--keep-formulas",
        action="store_true",
        help="write ids and classes to CSV as they are, though they begin like a formula of a "
        "spreadsheet (default: with an apostrophe before them)",
    )


def read_options(arguments: argparse.Namespace, text: frozenset[str]) -> ReadOptions:
    """Return how tables are to be read.

    Parameters
    ----------
    arguments : Namespace
    text : frozenset of str
        Columns that hold names, whatever they look like.
    """
    from neverworse.tables import ReadOptions

    delimiter = {"\\t": "\t", "tab": "\t", "comma": ",", "semicolon": ";"}.get(
        arguments.delimiter, arguments.delimiter
    )
    if delimiter is not None and len(delimiter) != 1:
        raise UsageError(f"--delimiter is one character (or tab), not {delimiter!r}.")
    if delimiter is not None and not (delimiter == "\t" or delimiter.isprintable()):
        raise UsageError(f"--delimiter is a character between cells (or tab), not {delimiter!r}.")
    if arguments.decimal not in (None, ".", ","):
        raise UsageError(f"--decimal is . or , and not {arguments.decimal!r}.")
    if arguments.decimal is not None and arguments.decimal == delimiter:
        raise UsageError("--decimal and --delimiter cannot be the same.")
    if arguments.encoding is not None and not _is_text_encoding(arguments.encoding):
        raise UsageError(
            f"There is no encoding {arguments.encoding!r}. Well-known ones: utf-8, cp1252, utf-16."
        )
    return ReadOptions(
        delimiter=delimiter,
        encoding=arguments.encoding,
        decimal=arguments.decimal,
        missing=tuple(arguments.missing),
        sheet=arguments.sheet,
        text=text,
    )


def _is_text_encoding(name: str) -> bool:
    try:
        "".encode(name)  # not codecs.lookup, which knows others as well, such as gzip
    except (LookupError, ValueError):
        return False
    return True


@contextmanager
def explaining() -> Iterator[None]:
    """Give what is wrong with tables and model files the exit codes of the command line."""
    check_packages()
    import pyarrow as pa

    from neverworse.tables import ModelFileError, TableError

    pa.enable_signal_handlers(False)  # ours know what to clear up
    try:
        yield
    except TableError as error:
        raise BadTableError(str(error)) from None
    except ModelFileError as error:
        raise BadModelError(str(error)) from None


def is_installed(name: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    if name in sys.modules:
        return sys.modules[name] is not None
    return find_spec(name) is not None


def check_packages() -> None:
    """Say what to install if a package is missing."""
    missing = [name for name in NEEDED if not is_installed(name)]
    if missing:
        raise FailureError(
            f"This needs {' and '.join(missing)}, not installed here. {install('tables')}"
        )


def parse_penalty(option: str, text: str, word: str) -> float | str:
    """Return the penalty that is meant: a number, or the estimator's word for finding it."""
    if text == word:
        return word
    try:
        alpha = float(text)
    except ValueError:
        raise UsageError(f"{option} is a number or {word}, not {text!r}.") from None
    if not 0.0 <= alpha < float("inf"):
        raise UsageError(f"{option} must not be negative or infinite, but is {text}.")
    return alpha
