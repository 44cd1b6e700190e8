"""What all sub-commands need: errors and exit codes, signals, folders, text for terminals."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import shutil
import signal
import sys
import textwrap
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Self

from neverworse._files import ENDING, remove_unfinished

# What shells expect: 1 for what went wrong, 2 for what was asked wrongly, 128 + n for signal n.
FAILURE, USAGE, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141
# Ours: the answer of an audit is no; a table, or a model file, cannot be used as it is.
NOT_GUARANTEED, BAD_TABLE, BAD_MODEL = 3, 4, 5
GRACE_SECONDS = 5.0  # seconds for a library to return
MAX_WIDTH = 88  # longer lines are hard to read, however wide the terminal
MIN_WIDTH = 40
NO_BREAK = "\N{NO-BREAK SPACE}"
MAX_SEED = 2**32 - 1  # of scikit-learn


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
def stopping() -> Iterator[list[int]]:
    """Raise `KeyboardInterrupt` when a signal ends the program; which one is in the list.

    Not for signals that are ignored, as nohup has it, or that another program has a use for.
    Python sees a signal when a library returns. Some do not while they wait, for example for the
    next rows from a pipe: after a while, a thread clears up and ends the process.
    """
    came: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        if not came:  # another one must not stop the clearing up
            came.append(number)
            raise KeyboardInterrupt

    before = _ending() if threading.current_thread() is threading.main_thread() else {}
    if not before:
        yield came
        return
    done = threading.Event()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    threading.Thread(target=_end, args=(reader, set(before), done), daemon=True).start()
    woken = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in before:
        signal.signal(number, stop)
    try:
        yield came
    finally:
        done.set()
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(woken)
        os.close(writer)


def _ending() -> dict[int, signal.Handlers]:
    """Return the signals that would end the process now, and what they do."""
    known = (getattr(signal, name) for name in ENDING if hasattr(signal, name))
    handlers = {int(number): signal.getsignal(number) for number in known}
    usual = (signal.SIG_DFL, signal.default_int_handler)
    return {number: handler for number, handler in handlers.items() if handler in usual}  # type: ignore[misc]


def _end(reader: int, numbers: set[int], done: threading.Event) -> None:
    """End the process some time after a signal, if it has not ended by itself."""
    with open(reader, "rb", buffering=0) as signals:
        while number := signals.read(1):
            if number[0] in numbers and not done.wait(GRACE_SECONDS):
                remove_unfinished()
                os._exit(128 + number[0])


class Bar:
    """A progress bar of steps that have names: on a terminal only, and not if it is to be quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self._shown = not quiet and sys.stderr.isatty()
        self._bar: Any = None

    def __enter__(self) -> Self:
        if self._shown:
            from tqdm import tqdm

            shape = "{desc:<32} {percentage:3.0f}% |{bar}| {elapsed}"
            self._bar = tqdm(total=1.0, leave=False, bar_format=shape, file=sys.stderr)
        return self

    def __call__(self, what: str, share: float) -> None:
        """Show a step, and which share of it is done."""
        if self._bar is not None:
            self._bar.set_description_str(what, refresh=False)
            self._bar.n = share
            self._bar.refresh()

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def out_path(text: str) -> Path:
    """Return the path that --out names; an empty one would be the current folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError("an empty name; for the current folder, write .")
    return Path(text)


def make_folder(folder: Path) -> None:
    """Make a folder now, so that one that cannot be used is known before anything is done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None
    if not os.access(folder, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def check_folder(folder: Path) -> None:
    """Say now, before anything is computed, if a folder could not be made or written to."""
    nearest = folder
    while not nearest.exists():
        if nearest.is_symlink():
            raise UsageError(f"{nearest} is a link to what is not there. Name a folder: --out DIR.")
        nearest = nearest.parent
    if not nearest.is_dir():
        raise UsageError(f"{nearest} is a file. Name a folder: --out DIR.")
    if not os.access(nearest, os.W_OK):
        raise CommandError(f"{nearest} cannot be written to. Name another folder: --out DIR.")


def check_out_file(path: Path) -> None:
    """Say now, before anything is computed, if a file could not be written."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder. Name a file: --out FILE.")
    if not path.parent.is_dir():
        raise UsageError(f"There is no folder {path.parent}. Make it, or name another: --out FILE.")
    if not os.access(path.parent, os.W_OK):
        raise CommandError(f"{path.parent} cannot be written to. Name another folder: --out FILE.")


def check_seed(seed: int) -> None:
    """Refuse a seed that scikit-learn would not take."""
    if not 0 <= seed <= MAX_SEED:
        raise UsageError(f"--seed must be between 0 and {MAX_SEED}, not {seed}.")


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
    cells = [[_cell(cell) for cell in row] for row in (head, *rows)]
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


def _cell(content: str, longest: int = 60) -> str:
    cell = plain(content)
    return cell if len(cell) <= longest else f"{cell[: longest - 1]}…"
