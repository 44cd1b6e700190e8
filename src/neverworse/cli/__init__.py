"""The command line: ``neverworse`` and its sub-commands."""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pkgutil import resolve_name
from types import FrameType
from typing import NoReturn

from neverworse import __version__
from neverworse.cli import _common as common
from neverworse.cli import _options

# Sub-commands: the function that runs each, the extra that it needs, and a line of help.
COMMANDS = {
    "fit": (".fit:run", "tables", "fit a model to a table in which some rows have no label"),
    "predict": (".saved:predict", "tables", "predict the classes of a table with a saved model"),
    "audit": (".saved:audit", "tables", "prove how much worse or better than another a model is"),
    "report": (".saved:report", "tables", "rewrite the report of a fit"),
    "label": (".label:run", "tables", "label a few rows, to decide between models or to train"),
    "demo": (".demo:run", "", "compare four classifiers on a small data set"),
    "reproduce": (":reproduce", "paper", "repeat the experiments of the paper"),
    "completion": (":complete", "", "print a shell completion script"),
}
PACKAGES = {
    "tables": ("jinja2", "matplotlib", "pyarrow", "skops", "tqdm"),
    "paper": ("jinja2", "joblib", "matplotlib", "pandas", "tqdm"),
}
ENDING = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")  # signals that end a program
# Options of sub-command reproduce that are parameters of the function.
PARAMETERS = ("datasets", "repeats", "protocol", "correction", "jobs", "out", "seed", "data_home")
VERSIONS = ("numpy", "scipy", "scikit-learn", "pyarrow", "skops", "matplotlib")


def main(argv: list[str] | None = None) -> int:
    """Run a sub-command, by default with the arguments of the process; return the exit code."""
    sys.stderr = sys.stderr or io.StringIO()  # closed, or a process of Windows without a console
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # for what its encoding lacks
    words = sys.argv[1:] if argv is None else argv
    parser, _ = build_parser()
    try:
        arguments = parser.parse_args(words)
    except SystemExit as stop:  # argparse has printed why
        return stop.code if isinstance(stop.code, int) else 0
    if arguments.version:
        return _print_versions()
    if arguments.command is None:
        parser.print_help()
        return 0
    # As text, even if names of files are not.
    typed = (os.fsencode(word).decode("utf-8", "replace") for word in words)
    arguments.typed = shlex.join(["neverworse", *typed])
    with stopping() as signals:
        code = _run(arguments)
    return 128 + signals[0] if signals else code


def _run(arguments: argparse.Namespace) -> int:
    """Run a sub-command, print an error that the user can fix, and return the exit code."""
    function, extra, _ = COMMANDS[arguments.command]
    code: int | None
    try:
        common.check_packages(extra, *PACKAGES.get(extra, ()))
        if extra == "tables":
            import pyarrow as pa

            pa.enable_signal_handlers(False)  # they would not remove unfinished files
        code = resolve_name(f"neverworse.cli{function}")(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code or 0
    except KeyboardInterrupt as stop:
        code, message = common.INTERRUPTED, f"stopped{f'. {stop}' if str(stop) else ''}"
    except MemoryError:
        code, message = common.FAILURE, "error: There is not enough memory for this."
    except OSError as error:
        # Windows has no error of its own for a pipe that nobody reads.
        invalid = sys.platform == "win32" and error.errno == errno.EINVAL and not error.filename
        try:
            print(end="", flush=True)
        except OSError:  # Python flushes once more at exit, and would complain again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if invalid or isinstance(error, BrokenPipeError):  # head, for example, has seen enough
            return common.BROKEN_PIPE
        path = error.filename2 or error.filename  # of a renaming, the new name
        place = f"{path}: " if path else ""
        code, message = common.FAILURE, f"error: {place}{error.strerror or error}"
    except common.CommandError as error:
        code, message = error.code, f"error: {error}"
    except Exception as error:
        code, message = common.CODES.get(type(error).__name__), f"error: {error}"
        if code is None:
            raise
    lines = f"neverworse {arguments.command}: {message}".split("\n")
    with contextlib.suppress(OSError):  # a terminal that is gone
        print("\n".join(map(common.plain, lines)), file=sys.stderr)
    return code


@contextlib.contextmanager
def stopping() -> Iterator[list[int]]:
    """Raise `KeyboardInterrupt` at a signal that ends programs, and append it to the list.

    Signals that are ignored (nohup) or handled by another program are left alone.
    """
    came: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        if not came:  # a second signal must not interrupt the cleaning up
            came.append(number)
            raise KeyboardInterrupt

    usual = (signal.SIG_DFL, signal.default_int_handler)
    known = [getattr(signal, name) for name in ENDING if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():  # others handle no signals
        known = []
    before = {n: signal.getsignal(n) for n in known if signal.getsignal(n) in usual}
    for number in before:
        signal.signal(number, stop)
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Command(argparse.ArgumentParser):
    """A sub-command, whose errors are one line, without the usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(common.USAGE, f"{self.prog}: error: {message}\n")


def build_parser() -> tuple[argparse.ArgumentParser, dict[str, Command]]:
    """Return the parser of the command line, and those of all sub-commands by their names."""
    parser = argparse.ArgumentParser(
        prog="neverworse",
        description="Safe semi-supervised classification: never worse than the supervised "
        "classifier, with a certificate on every fit.",
        epilog="Exit codes: 0 success; 1 failure; 2 invalid argument; 3 the audit found no "
        "guarantee; 4 unusable table; 5 refused model file.",
    )
    parser.add_argument("-V", "--version", action="store_true", help="print the versions in use")
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", parser_class=Command
    )
    for name, (*_, line) in COMMANDS.items():
        command = commands.add_parser(name, help=line)
        add_options = getattr(_options, f"add_{name}")
        command.description = (add_options.__doc__ or "").replace("\n    ", "\n")
        command.formatter_class = argparse.RawDescriptionHelpFormatter
        add_options(command)
    return parser, commands.choices


def _print_versions() -> int:
    """Print what bug reports need, without importing any of it."""
    from importlib.metadata import PackageNotFoundError, version

    print(f"neverworse {__version__}")
    print(f"Python {sys.version.split()[0]} on {sys.platform}")
    for name in VERSIONS:
        with contextlib.suppress(PackageNotFoundError):
            print(f"{name} {version(name)}")
    return 0


def reproduce(arguments: argparse.Namespace) -> None:
    """Run the experiments of the paper, write the results, and print the main ones."""
    from datetime import timedelta

    from neverworse import experiments
    from neverworse.datasets import DataNotFoundError

    common.check_folder(arguments.out)
    start = time.monotonic()
    given = {name: getattr(arguments, name) for name in PARAMETERS}
    try:
        found = experiments.reproduce(arguments.experiment, **given, quiet=arguments.quiet)
        if not any(map(found.plan.datasets_of, experiments.EXPERIMENTS.values())):
            raise common.CommandError(
                "Nothing to run: there are learning curves of Ionosphere, SPECT and USPS only."
            )
        took = str(timedelta(seconds=round(time.monotonic() - start)))
        paths = found.save(arguments.out, command=arguments.typed, took=took)
    except DataNotFoundError as error:
        message = f"{error}\nWithout it: --datasets {_options.AVAILABLE}"
        raise common.CommandError(message, common.FAILURE) from None
    except KeyboardInterrupt:
        stored = "All finished repeats are stored; run the same command to resume."
        raise KeyboardInterrupt(stored) from None
    for title, sentences, _ in experiments.headline(found):
        print(title)
        for sentence in sentences:
            print(common.wrapped(sentence, "  "))
    print(f"\nAll results, in {took}: {paths[-1]}")


def complete(arguments: argparse.Namespace) -> None:
    """Print a completion script for a shell."""
    common.check_packages("tables", "shtab")
    import shtab

    parser, commands = build_parser()
    kinds = {"DIR": shtab.DIRECTORY} | dict.fromkeys(("FILE", "MODEL", "TABLE"), shtab.FILE)
    for name, command in commands.items():
        command.description = COMMANDS[name][-1]  # zsh and fish show one line for each
        for action in command._actions:
            placeholder = str(action.metavar).removesuffix(".json")
            if placeholder in kinds:
                action.complete = kinds[placeholder]  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell=arguments.shell))
