"""The command line: ``neverworse`` and its sub-commands."""

from __future__ import annotations

import argparse
import os
import sys

from neverworse import __version__
from neverworse.cli import demo, reproduce
from neverworse.cli._errors import FailureError, UsageError

# What shells expect: 1 for what went wrong, 2 for what was asked wrongly, 128 + n for signal n.
FAILURE, USAGE, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141


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
    parser = _parser()
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as stop:  # argparse has said why
        return stop.code if isinstance(stop.code, int) else 0
    if arguments.command is None:
        parser.print_help()
        return 0
    prefix = f"{parser.prog} {arguments.command}"
    try:
        arguments.run(arguments)
        sys.stdout.flush()
    except UsageError as error:
        return _complain(f"{prefix}: error: {error}", USAGE)
    except FailureError as error:
        return _complain(f"{prefix}: error: {error}", FAILURE)
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
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="neverworse",
        description="Safe semi-supervised classification: never worse than the supervised "
        "classifier, with a certificate on every fit.",
    )
    parser.add_argument("--version", action="version", version=f"neverworse {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    demo.add_parser(commands)
    reproduce.add_parser(commands)
    return parser


def _complain(message: str, code: int) -> int:
    print(message, file=sys.stderr)
    return code
