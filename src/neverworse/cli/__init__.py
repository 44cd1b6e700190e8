"""The command line: ``neverworse`` and its sub-commands."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys

from neverworse import __version__
from neverworse.cli import audit, completion, demo, fit, predict, report, reproduce
from neverworse.cli._errors import BROKEN_PIPE, FAILURE, INTERRUPTED, CommandError
from neverworse.cli._signals import stopping
from neverworse.cli._text import plain


def main(argv: list[str] | None = None) -> int:
    """Run a sub-command, and say in a line what is wrong if the user can put it right.

    Parameters
    ----------
    argv : list of str, optional
        Arguments; those of the process if not given.

    Returns
    -------
    code : int
        Exit code of the process: 0 if all went well.
    """
    parser = build_parser()
    for stream in (sys.stdout, sys.stderr):
        # What a terminal cannot show is no reason to stop.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as stop:  # argparse has said why
        return stop.code if isinstance(stop.code, int) else 0
    if arguments.command is None:
        parser.print_help()
        return 0
    arguments.words = sys.argv[1:] if argv is None else argv
    with stopping() as signals:
        code = _run(arguments, f"{parser.prog} {arguments.command}")
    return 128 + signals[0] if signals else code


def _run(arguments: argparse.Namespace, prefix: str) -> int:
    try:
        code: int | None = arguments.run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except CommandError as error:
        return _complain(f"{prefix}: error: {error}", error.code)
    except MemoryError:
        return _complain(f"{prefix}: error: There is not enough memory for this.", FAILURE)
    except BrokenPipeError:
        # The reader, for example head, has seen enough. Python would complain once more when it
        # flushes at exit, so what is left goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        path = error.filename2 or error.filename  # of a renaming, the name that was asked for
        where = f"{path}: " if path else ""
        return _complain(f"{prefix}: error: {where}{error.strerror or error}", FAILURE)
    except KeyboardInterrupt as stop:
        return _complain(f"{prefix}: stopped{f'. {stop}' if str(stop) else ''}", INTERRUPTED)
    return code or 0


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, with all sub-commands."""
    parser = argparse.ArgumentParser(
        prog="neverworse",
        description="Safe semi-supervised classification: never worse than the supervised "
        "classifier, with a certificate on every fit.",
        epilog="Exit codes: 0 done; 1 something went wrong; 2 a wrong argument; 3 an audit found "
        "no guarantee; 4 a table cannot be used as it is; 5 a model file is refused.",
    )
    parser.add_argument("--version", action="version", version=f"neverworse {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    for command in (fit, predict, audit, report, demo, reproduce, completion):
        command.add_parser(commands)
    return parser


def _complain(message: str, code: int) -> int:
    lines = (plain(line) for line in message.split("\n"))
    with contextlib.suppress(OSError):  # a terminal that is gone
        print("\n".join(lines), file=sys.stderr)
    return code
