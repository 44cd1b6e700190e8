"""The command line: ``neverworse`` and its sub-commands."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from neverworse import __version__
from neverworse._extras import install
from neverworse.cli import demo, fit, label, reproduce, saved
from neverworse.cli._common import (
    BROKEN_PIPE,
    FAILURE,
    INTERRUPTED,
    CommandError,
    plain,
    stopping,
)

SHELLS = ("bash", "zsh", "fish", "tcsh")
FOLDER = "DIR"  # the metavar of all arguments that are a folder
FILES = frozenset({"FILE", "MODEL", "TABLE"})  # and of those that are a file
COMPLETION = """\
to use it:
  bash   neverworse completion bash >> ~/.bash_completion
  zsh    neverworse completion zsh > ~/.zfunc/_neverworse, with ~/.zfunc in fpath
  fish   neverworse completion fish > ~/.config/fish/completions/neverworse.fish
  tcsh   neverworse completion tcsh >> ~/.tcshrc"""


def main(argv: list[str] | None = None) -> int:
    """Run a sub-command, with the arguments of the process if none are given.

    What the user can put right is said in a line. The exit code is returned.
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
    fit.add_parser(commands)
    saved.add_parsers(commands)
    label.add_parser(commands)
    demo.add_parser(commands)
    reproduce.add_parser(commands)
    completion = commands.add_parser(
        "completion",
        help="print a script with which a shell completes what is typed",
        description="Print a script with which a shell completes what is typed.",
        epilog=COMPLETION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    completion.add_argument("shell", choices=SHELLS, help="for which shell")
    completion.set_defaults(run=_complete)
    return parser


def _complain(message: str, code: int) -> int:
    lines = (plain(line) for line in message.split("\n"))
    with contextlib.suppress(OSError):  # a terminal that is gone
        print("\n".join(lines), file=sys.stderr)
    return code


def _complete(arguments: argparse.Namespace) -> None:
    """Print the script with which a shell completes the command line."""
    try:
        import shtab
    except ImportError:
        raise CommandError(f"This needs shtab, not installed here. {install('tables')}") from None
    if arguments.shell not in shtab.SUPPORTED_SHELLS:
        raise CommandError(
            f"The installed shtab {shtab.__version__} knows no {arguments.shell}. "
            "Run: pip install --upgrade shtab"
        )
    parser = build_parser()
    for command, action in _actions(parser):
        names = _names(command, action.dest)
        if names:
            action.choices = names
        elif action.metavar == FOLDER:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif action.metavar in FILES or action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    commands = _commands(parser)
    for shown in commands._choices_actions:  # zsh and fish show a line for each: the short one
        commands.choices[shown.dest].description = shown.help
    print(shtab.complete(parser, shell=arguments.shell))


def _actions(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """Yield the name of each sub-command with each of its arguments."""
    for name, command in _commands(parser).choices.items():
        yield from ((name, argument) for argument in command._actions)


def _commands(
    parser: argparse.ArgumentParser,
) -> argparse._SubParsersAction[argparse.ArgumentParser]:
    return next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))


def _names(command: str, argument: str) -> list[str]:
    """Return the names that an argument may take though its parser does not list them."""
    if command != "reproduce":
        return []
    from neverworse.cli.reproduce import AVAILABLE, EXPERIMENTS
    from neverworse.datasets import PAPER_DATASETS

    names = {"experiments": EXPERIMENTS, "datasets": (*PAPER_DATASETS, AVAILABLE)}
    return [*names[argument], "all"] if argument in names else []
