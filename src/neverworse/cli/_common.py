"""What sub-commands share: exit codes, folders, text for terminals, arguments."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import shlex
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from neverworse._words import cropped, install

if TYPE_CHECKING:
    from neverworse.tables import ReadOptions

# What shells expect: 1 for what went wrong, 2 for what was asked wrongly, 128 + n for signal n.
FAILURE, USAGE, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141
# Ours: the answer of an audit is no; a table, or a model file, cannot be used as it is.
NOT_GUARANTEED, BAD_TABLE, BAD_MODEL = 3, 4, 5
MAX_WIDTH = 88  # longer lines are hard to read, however wide the terminal
MIN_WIDTH = 40
NO_BREAK = "\N{NO-BREAK SPACE}"
MAX_SEED = 2**32 - 1  # of scikit-learn
NEEDED = ("jinja2", "matplotlib", "pyarrow", "skops")  # for tables


class CommandError(Exception):
    """Something that the user can put right; the message says how."""

    def __init__(self, message: str, code: int = FAILURE) -> None:
        super().__init__(message)
        self.code = code


class UsageError(CommandError):
    """An argument that parses but makes no sense; the message says what would."""

    def __init__(self, message: str) -> None:
        super().__init__(message, USAGE)


@contextlib.contextmanager
def without_convergence_warnings() -> Iterator[None]:
    """Keep warnings to Python programmers from people who use the command line.

    Where a solver gives up early, the certificate says so, and a note says which options may help.
    """
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@contextlib.contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[str, float], None]]:
    """Show the name of a step and the share of it that is done, on a terminal, unless `quiet`."""
    if quiet or not sys.stderr.isatty():
        yield lambda *_: None
        return
    from tqdm import tqdm

    shape = "{desc:<32} {percentage:3.0f}% |{bar}| {elapsed}"
    with tqdm(total=1.0, leave=False, bar_format=shape, file=sys.stderr) as bar:

        def show(what: str, share: float) -> None:
            bar.set_description_str(what, refresh=False)
            bar.n = share
            bar.refresh()

        yield show


def check_folder(folder: Path) -> None:
    """Say now, before anything is computed, if a folder could not be made or written to."""
    known = (path for path in (folder, *folder.parents) if os.path.lexists(path))
    nearest = next(known, folder)  # none is known of a drive of Windows that is not there
    if not nearest.is_dir():
        raise UsageError(f"{nearest} is not a folder. Name a folder: --out DIR.")
    if not os.access(nearest, os.W_OK):
        raise CommandError(f"{nearest} cannot be written to. Name another folder: --out DIR.")


def check_out_file(path: Path) -> None:
    """Say now, before anything is computed, if a file could not be written."""
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is not a regular file. Name a file: --out FILE.")
    if not path.parent.is_dir():
        raise UsageError(f"There is no folder {path.parent}. Make it, or name another: --out FILE.")
    if not os.access(path.parent, os.W_OK):
        raise CommandError(f"{path.parent} cannot be written to. Name another folder: --out FILE.")


def command_of(arguments: argparse.Namespace) -> str:
    """Return what was typed, as text, though names of files may be any bytes."""
    words = (os.fsencode(word).decode("utf-8", "replace") for word in arguments.words)
    return shlex.join(["neverworse", *words])


def width() -> int:
    """Return how long lines are."""
    return min(MAX_WIDTH, max(MIN_WIDTH, shutil.get_terminal_size().columns - 1))


def wrapped(text: str, indent: str = "", hanging: str = "") -> str:
    """Break a paragraph into lines; all but the first begin with `hanging` as well."""
    return _filled(text, indent, indent + hanging)


def labelled(label: str, text: str, indent: int = 12) -> str:
    """Break a paragraph into lines beside a label."""
    return _filled(text, f"{label:<{indent}}", " " * indent)


def _filled(text: str, first: str, others: str) -> str:
    filled = textwrap.fill(
        plain(text).replace(" %", f"{NO_BREAK}%"),
        width(),
        initial_indent=first,
        subsequent_indent=others,
        break_on_hyphens=False,
    )
    return filled.replace(NO_BREAK, " ")


def plain(text: str) -> str:
    """Return text from outside without characters that would move the cursor, or worse."""
    return "".join(c if c.isprintable() else " " for c in text)


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return a table, with columns as wide as they must be; those in `right` are numbers."""
    cells = [[cropped(plain(cell)) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
    lines = [
        "  ".join(
            cell.rjust(size) if k in right else cell.ljust(size)
            for k, (cell, size) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    lines.insert(1, "-" * min(width(), max(map(len, lines))))
    return "\n".join(lines)


# Types of arguments, which raise what argparse turns into a message


def number(
    kind: type[int] | type[float], low: float, high: float = math.inf, word: str | None = None
) -> Callable[[str], float | str]:
    """Return a type of arguments: a finite number in an interval, or a word."""

    def parse(text: str) -> float | str:
        if text == word:
            return text
        with contextlib.suppress(ValueError):
            value = kind(text)
            if low <= value <= high and math.isfinite(value):
                return value
        limits = f"of at least {low}" if math.isinf(high) else f"between {low} and {high}"
        what = f"{'a whole number' if kind is int else 'a number'} {limits}"
        either = what if word is None else f"{word}, or {what}"
        raise argparse.ArgumentTypeError(f"must be {either}, not {text!r}.")

    return parse


def out_path(text: str) -> Path:
    """Return the path that --out names; an empty one would be the current folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError("an empty name; for the current folder, write .")
    return Path(text)


def _delimiter(text: str) -> str:
    character = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(character) != 1 or not (character == "\t" or character.isprintable()):
        raise argparse.ArgumentTypeError(f"must be one character (or tab), not {text!r}.")
    return character


def _encoding(text: str) -> str:
    try:
        "".encode(text)  # not codecs.lookup, which knows others as well, such as gzip
    except (LookupError, ValueError):
        raise argparse.ArgumentTypeError(
            f"There is no encoding {text!r}. Common ones: utf-8, cp1252, utf-16."
        ) from None
    return text


# Arguments that sub-commands share, and what they mean


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add what says how tables are read."""
    add = parser.add_argument_group("reading").add_argument
    add("--delimiter", type=_delimiter, metavar="C", help="of CSV files (default: detected)")
    add(
        "--decimal",
        choices=(".", ","),
        metavar="C",
        help="decimal mark of numbers, . or , (default: detected)",
    )
    add("--encoding", type=_encoding, metavar="NAME", help="of text (default: UTF-8)")
    add(
        "--missing",
        action="append",
        default=[],
        metavar="WORD",
        help="a word that means a missing value, besides empty cells, NA, NaN and null; repeatable",
    )
    add("--sheet", metavar="NAME", help="sheet of a workbook (default: the first)")


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add what says how results are printed."""
    add = parser.add_argument_group("output").add_argument
    add("--json", action="store_true", help="print the results as JSON")
    add("--quiet", action="store_true", help="print errors only; no progress bar")


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add the random seed, as scikit-learn takes it."""
    seed = number(int, 0, MAX_SEED)
    parser.add_argument(
        "--seed", type=seed, default=0, metavar="N", help="random seed (default: 0)"
    )


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Add what says which model files are opened."""
    parser.add_argument(
        "--trust-compiled",
        action="store_true",
        help="open models that predict with compiled code, such as forests, nearest neighbors and "
        "SVC; a malicious file could crash this program, so use it only for files that you trust",
    )


def add_formulas(parser: argparse.ArgumentParser) -> None:
    """Add what says how text that looks like a formula is written."""
    parser.add_argument(
        "--keep-formulas",
        action="store_true",
        help="write ids and classes to CSV unchanged even if a spreadsheet would run them as "
        "formulas (default: with an apostrophe before them)",
    )


def read_options(arguments: argparse.Namespace, text: frozenset[str]) -> ReadOptions:
    """Return how tables are to be read; columns in `text` hold names, whatever they look like."""
    from neverworse.tables import ReadOptions

    if arguments.decimal is not None and arguments.decimal == arguments.delimiter:
        raise UsageError("--decimal and --delimiter cannot be the same.")
    return ReadOptions(
        delimiter=arguments.delimiter,
        encoding=arguments.encoding,
        decimal=arguments.decimal,
        missing=tuple(arguments.missing),
        sheet=arguments.sheet,
        text=text,
    )


@contextlib.contextmanager
def explaining() -> Iterator[None]:
    """Give what is wrong with tables, plans and model files the exit codes of the command line."""
    check_packages()
    import pyarrow as pa

    from neverworse.tables import ModelFileError, PlanError, TableError

    pa.enable_signal_handlers(False)  # ours know what to clear up
    try:
        yield
    except TableError as error:
        raise CommandError(str(error), BAD_TABLE) from None
    except ModelFileError as error:
        raise CommandError(str(error), BAD_MODEL) from None
    except PlanError as error:
        raise UsageError(str(error)) from None


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Give what is wrong with a folder of results the exit code of the command line."""
    try:
        yield
    except ValueError as error:
        raise CommandError(str(error), BAD_MODEL) from None


def check_packages(needed: Sequence[str] = NEEDED, extra: str = "tables") -> None:
    """Say what to install if a package is missing; nothing is imported to find out."""
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise CommandError(f"Not installed: {', '.join(missing)}. {install(extra)}")


def parse_prior(texts: list[str]) -> dict[str | None, tuple[float, float]] | str:
    """Return the shares of classes that are meant; see --prior."""
    if texts == ["confidence"]:
        return "confidence"
    found: dict[str | None, tuple[float, float]] = {}
    for text in texts:
        name, _, interval = text.rpartition("=")
        low, _, high = interval.partition("..")
        try:
            ends = float(low), float(high or low)
        except ValueError:
            ends = math.nan, math.nan
        if not 0.0 <= ends[0] <= ends[1] <= 1.0:
            raise UsageError(
                "--prior is a share between 0 and 1 such as 0.4, 0.3..0.5 or CLASS=0.3..0.5, or "
                f"confidence alone, not {text!r}."
            )
        if (name or None) in found:
            raise UsageError(f"--prior is given twice for {name or 'the second class'!r}.")
        found[name or None] = ends
    return found
