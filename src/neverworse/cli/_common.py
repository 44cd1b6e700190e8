"""What the sub-commands share: exit codes, options, checks, and text for terminals."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neverworse._words import cropped, install, printed

if TYPE_CHECKING:
    from neverworse.study import Study
    from neverworse.tables import ReadOptions

# As shells expect: 1 for a failure, 2 for invalid arguments, 128 + n for signal n.
FAILURE, USAGE, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141
# Our own: an audit without a guarantee; a table, or a model file, that cannot be used.
NOT_GUARANTEED, BAD_TABLE, BAD_MODEL = 3, 4, 5
# By their names, errors of neverworse.tables, which takes long to import; any other is a bug.
CODES = {"TableError": BAD_TABLE, "ModelFileError": BAD_MODEL, "PlanError": USAGE}
MIN_WIDTH, MAX_WIDTH = 40, 88  # characters; longer lines are hard to read


class CommandError(Exception):
    """An error that the user can fix; the message says how. By default, an argument is invalid."""

    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code


@contextlib.contextmanager
def progress(arguments: argparse.Namespace) -> Iterator[Callable[[str, float], None]]:
    """Show the current step and its completed fraction on a terminal, unless --quiet or --json."""
    from tqdm import tqdm

    hidden = arguments.quiet or arguments.json or not sys.stderr.isatty()
    bar_format = "{desc:<32} {percentage:3.0f}% |{bar}| {elapsed}"
    with tqdm(total=1.0, leave=False, bar_format=bar_format, disable=hidden) as bar:

        def show(step: str, fraction: float) -> None:
            bar.set_description_str(step, refresh=False)
            bar.n = fraction
            bar.refresh()

        yield show


# Checks before anything is computed


def check_folder(folder: Path) -> None:
    """Raise an error if the folder cannot be created or written to."""
    existing = (path for path in (folder, *folder.parents) if os.path.lexists(path))
    nearest = next(existing, folder)  # nothing exists on a drive that is not there
    if not nearest.is_dir():
        raise CommandError(f"{nearest} is not a folder. Name a folder: --out DIR.")
    if not os.access(nearest, os.W_OK):
        message = f"{nearest} cannot be written to. Name another folder: --out DIR."
        raise CommandError(message, FAILURE)


def check_out_file(path: Path, option: str = "--out FILE") -> None:
    """Raise an error if the file cannot be written."""
    is_other = path.exists() and not path.is_file()
    if is_other or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise CommandError(
            f"{path} cannot be written. Name a file in a folder that you can write to: {option}."
        )


def check_packages(extra: str, *needed: str) -> None:
    """Raise an error that says which extra to install if a package is missing."""
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise CommandError(f"Not installed: {', '.join(missing)}. {install(extra)}", FAILURE)


def read_results(folder: Path) -> Study:
    """Read the results of ``neverworse fit`` in a folder."""
    from neverworse.study import read_study

    try:
        return read_study(folder)
    except ValueError as error:
        raise CommandError(str(error), BAD_MODEL) from None


# Text for terminals


def print_results(arguments: argparse.Namespace, facts: Any, lines: Iterable[str]) -> None:
    """Print facts as JSON with --json, nothing with --quiet, and otherwise lines of text."""
    if arguments.json:
        print(json.dumps(facts))
    elif not arguments.quiet:
        for line in lines:
            print(line)


def wrapped(text: str, first: str = "", others: str | None = None) -> str:
    """Wrap a paragraph; its first line starts with `first`, and others with that or `others`."""
    filled = textwrap.fill(
        plain(text).replace(" %", "\N{NO-BREAK SPACE}%"),
        min(MAX_WIDTH, max(MIN_WIDTH, shutil.get_terminal_size().columns - 1)),
        initial_indent=first,
        subsequent_indent=first if others is None else others,
        break_on_hyphens=False,
    )
    return filled.replace("\N{NO-BREAK SPACE}", " ")


def plain(text: str) -> str:
    """Return text without control characters, which could move the cursor, or worse."""
    return "".join(c if c.isprintable() else " " for c in printed(text))


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return a table; the columns with the indices `right` are aligned to the right."""
    cells = [[cropped(plain(cell)) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    form = "  ".join(f"{{:{'>' if k in right else '<'}{size}}}" for k, size in enumerate(widths))
    lines = [form.format(*row).rstrip() for row in cells]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def read_options(arguments: argparse.Namespace, text: frozenset[str]) -> ReadOptions:
    """Return how tables are read; columns in `text` are text, even if they look like numbers."""
    from neverworse.tables import ReadOptions

    if arguments.decimal is not None and arguments.decimal == arguments.delimiter:
        raise CommandError("--decimal and --delimiter cannot be the same.")
    same = ("delimiter", "decimal", "encoding", "sheet")
    given = {name: getattr(arguments, name) for name in same}
    return ReadOptions(**given, missing=tuple(arguments.missing), text=text)


def parse_prior(texts: list[str]) -> dict[str | None, tuple[float, float]] | str:
    """Return the intervals that --prior gives, by class; None stands for the second of two."""
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
            raise CommandError(
                "--prior is a share between 0 and 1 such as 0.4, 0.3..0.5 or CLASS=0.3..0.5, or "
                f"confidence alone, not {text!r}."
            )
        if (name or None) in found:
            raise CommandError(f"--prior is given twice for {name or 'the second class'!r}.")
        found[name or None] = ends
    return found
