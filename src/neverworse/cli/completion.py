"""``neverworse completion``: a script that teaches a shell to complete the command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from neverworse._extras import install
from neverworse.cli._errors import FailureError

SHELLS = ("bash", "zsh", "fish", "tcsh")
FOLDER = "DIR"  # the metavar of all arguments that are a folder
FILES = frozenset({"FILE", "MODEL", "TABLE"})  # and of those that are a file
USE = """\
to use it:
  bash   neverworse completion bash >> ~/.bash_completion
  zsh    neverworse completion zsh > ~/.zfunc/_neverworse, with ~/.zfunc in fpath
  fish   neverworse completion fish > ~/.config/fish/completions/neverworse.fish
  tcsh   neverworse completion tcsh >> ~/.tcshrc"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command to those of the command line."""
    parser = commands.add_parser(
        "completion",
        help="print a script with which a shell completes what is typed",
        description="Print a script with which a shell completes what is typed.",
        epilog=USE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=SHELLS, help="for which shell")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the script."""
    try:
        import shtab
    except ImportError:
        raise FailureError(f"This needs shtab, not installed here. {install('tables')}") from None
    if arguments.shell not in shtab.SUPPORTED_SHELLS:
        raise FailureError(
            f"The installed shtab {shtab.__version__} knows no {arguments.shell}. "
            "Run: pip install --upgrade shtab"
        )
    from neverworse.cli import build_parser

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
