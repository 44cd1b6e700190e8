"""The command line: ``neverworse`` and its sub-commands."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import errno
import glob
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from neverworse import __version__
from neverworse._files import ending_signals, remove_unfinished
from neverworse._words import ELLIPSIS, MINUS, MISSING
from neverworse.cli._common import (
    BROKEN_PIPE,
    FAILURE,
    INTERRUPTED,
    USAGE,
    CommandError,
    check_packages,
    plain,
)

STANDS_ON = ("numpy", "scipy", "scikit-learn", "pyarrow", "skops", "matplotlib")
# The module that describes each sub-command NAME, in its function ``add_NAME``, and a line of help.
COMMANDS = {
    "fit": (".fit", "fit a model to a table in which some rows have no label"),
    "predict": (".saved", "predict the classes of a table with a model of neverworse fit"),
    "audit": (".saved", "prove how much worse or better a saved model may be than another"),
    "report": (".saved", "rewrite the report of a fit"),
    "label": (".label", "label a few rows to decide between the models of a fit, or to train"),
    "demo": (".demo", "compare supervised, projected, ICLS and oracle on a small data set"),
    "reproduce": (
        ".reproduce",
        "run the paper's experiments and compare with the published results",
    ),
    "completion": (".", "print a shell completion script"),
}
SHELLS = ("bash", "zsh", "fish", "tcsh")
GRACE_SECONDS = 5.0  # for a library to return after a signal
FOLDER = "DIR"  # the metavar of all arguments that are a folder
FILES = frozenset({"FILE", "MODEL", "TABLE"})  # and of those that are a file
LOOK_ALIKE = "neverworse.look-alike"  # how to encode what a terminal or a file cannot have
IN_ASCII = {MINUS: "-", MISSING: "-", ELLIPSIS: "...", "±": "+/-", "∞": "inf"}
IN_ASCII |= {"Δ": "delta", "²": "^2", "·": "*", "“": '"', "”": '"'}
COMPLETION = """\
to use it:
  bash   neverworse completion bash >> ~/.bash_completion
  zsh    neverworse completion zsh > ~/.zfunc/_neverworse, with ~/.zfunc in fpath
  fish   neverworse completion fish > ~/.config/fish/completions/neverworse.fish
  tcsh   neverworse completion tcsh >> ~/.tcshrc"""


def main(argv: list[str] | None = None) -> int:
    """Run a sub-command, with the arguments of the process if none are given.

    What the user can put right is printed in a line. The exit code is returned.
    """
    parser, _ = build_parser()
    sys.stderr = sys.stderr or io.StringIO()  # closed, or a process of Windows without a console
    codecs.register_error(LOOK_ALIKE, _look_alike)
    for stream in (sys.stdout, sys.stderr):
        # What a terminal cannot show is no reason to stop.
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "backslashreplace"):
            stream.reconfigure(errors=LOOK_ALIKE)
    words = _words() if argv is None else argv
    try:
        arguments = parser.parse_args(words)
    except SystemExit as stop:  # argparse has printed why
        return stop.code if isinstance(stop.code, int) else 0
    if arguments.version:
        return _print_versions()
    if arguments.command is None:
        parser.print_help()
        return 0
    arguments.words = words
    with stopping() as signals:
        code = _run(arguments, f"{parser.prog} {arguments.command}")
    return 128 + signals[0] if signals else code


def _look_alike(error: UnicodeError) -> tuple[str, int]:
    """Spell a character of ours in ASCII, for output that has no such character; escape others."""
    assert isinstance(error, UnicodeEncodeError)
    character = error.object[error.start]
    escaped = character.encode("ascii", "backslashreplace").decode()
    return IN_ASCII.get(character, escaped), error.start + 1


def _words() -> list[str]:
    """Return the arguments of the process, with the files that a pattern stands for."""
    words = sys.argv[1:]
    if sys.platform == "win32":  # where shells leave patterns to programs
        # A mark alone is no pattern: tables have it for missing values (--missing "?").
        found = ((w, sorted(glob.glob(w)) if len(w) > 1 else []) for w in words)  # noqa: PTH207
        words = [path for word, paths in found for path in paths or [word]]
    return words


def _run(arguments: argparse.Namespace, prefix: str) -> int:
    try:
        code: int | None = arguments.run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except CommandError as error:
        return _complain(f"{prefix}: error: {error}", error.code)
    except MemoryError:
        return _complain(f"{prefix}: error: There is not enough memory for this.", FAILURE)
    except OSError as error:
        # Windows has no error of its own for a pipe that nobody reads.
        invalid = sys.platform == "win32" and error.errno == errno.EINVAL and not error.filename
        if invalid or isinstance(error, BrokenPipeError):
            # The reader, for example head, has seen enough. Python would complain once more when it
            # flushes at exit, so what is left goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return BROKEN_PIPE
        path = error.filename2 or error.filename  # of a renaming, the name that was asked for
        where = f"{path}: " if path else ""
        return _complain(f"{prefix}: error: {where}{error.strerror or error}", FAILURE)
    except KeyboardInterrupt as stop:
        return _complain(f"{prefix}: stopped{f'. {stop}' if str(stop) else ''}", INTERRUPTED)
    return code or 0


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

    usual = (signal.SIG_DFL, signal.default_int_handler)
    before = {number: now for number, now in ending_signals().items() if now in usual}
    if not before:
        yield came
        return
    done = threading.Event()
    reader, writer = os.pipe()
    if hasattr(os, "set_blocking"):  # not on Windows before Python 3.12, which does without
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


def _end(reader: int, numbers: set[int], done: threading.Event) -> None:
    """End the process some time after a signal, if it has not ended by itself."""
    with open(reader, "rb", buffering=0) as signals:
        while number := signals.read(1):
            if number[0] in numbers and not done.wait(GRACE_SECONDS):
                remove_unfinished()
                os._exit(128 + number[0])


class Command(argparse.ArgumentParser):
    """A sub-command that its module describes when it is asked for: a run needs one of them."""

    name: str

    def describe(self) -> None:
        module, _ = COMMANDS[self.name]
        getattr(import_module(module, __name__), f"add_{self.name}")(self)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong in a line, as for all other errors, without the usage before it."""
        self.exit(USAGE, f"{self.prog}: error: {message}\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.describe()
        return super().parse_known_args(args, namespace)


def build_parser() -> tuple[argparse.ArgumentParser, dict[str, Command]]:
    """Return the parser of the command line, and those of all sub-commands by their names."""
    parser = argparse.ArgumentParser(
        prog="neverworse",
        description="Safe semi-supervised classification: never worse than the supervised "
        "classifier, with a certificate on every fit.",
        epilog="Exit codes: 0 success; 1 failure; 2 invalid argument; 3 the audit found no "
        "guarantee; 4 unusable table; 5 refused model file.",
    )
    parser.add_argument("--version", action="store_true", help="print the versions in use")
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", parser_class=Command
    )
    parsers = {name: commands.add_parser(name, help=line) for name, (_, line) in COMMANDS.items()}
    for name, command in parsers.items():
        command.name = name
    return parser, parsers


def _print_versions() -> int:
    """Print what bug reports need, without importing any of it."""
    from importlib.metadata import PackageNotFoundError, version

    print(f"neverworse {__version__}")
    print(f"Python {sys.version.split()[0]} on {sys.platform}")
    for name in STANDS_ON:
        with contextlib.suppress(PackageNotFoundError):
            print(f"{name} {version(name)}")
    return 0


def _complain(message: str, code: int) -> int:
    lines = (plain(line) for line in message.split("\n"))
    with contextlib.suppress(OSError):  # a terminal that is gone
        print("\n".join(lines), file=sys.stderr)
    return code


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Describe the sub-command."""
    parser.description = "Print a shell completion script."
    parser.epilog = COMPLETION
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    parser.set_defaults(run=_complete)


def _complete(arguments: argparse.Namespace) -> None:
    check_packages(("shtab",))
    import shtab

    parser, commands = build_parser()
    for command, described in commands.items():
        described.describe()
        described.description = COMMANDS[command][1]  # zsh and fish show one line for each
        for action in described._actions:
            if action.metavar == FOLDER:
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
            elif action.metavar in FILES or action.type is Path:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell=arguments.shell))
