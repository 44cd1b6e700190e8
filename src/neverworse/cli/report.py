"""``neverworse report``: make the report of a fit again."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from neverworse.cli._errors import BadModelError
from neverworse.cli._folders import check_out_file, out_path
from neverworse.cli._table_arguments import add_output, check_packages


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command to those of the command line."""
    parser = commands.add_parser(
        "report",
        help="make the report of a fit again",
        description="Make report.html again from what neverworse fit left in a folder.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="--out of neverworse fit")
    parser.add_argument(
        "--out", type=out_path, metavar="FILE", help="where to write it (default: DIR/report.html)"
    )
    add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Read the numbers and write the page."""
    check_packages()
    from neverworse.study import REPORT, read_study
    from neverworse.study.report import write_report

    if arguments.out is not None:
        check_out_file(arguments.out)
    path = arguments.out or arguments.folder / REPORT
    try:
        study = read_study(arguments.folder)
    except ValueError as error:
        raise BadModelError(str(error)) from None
    try:
        write_report(study, path)
    except (MemoryError, OSError):
        raise
    except Exception:  # somebody changed numbers by hand: there is no end to what that may lead to
        raise BadModelError(
            f"The numbers in {arguments.folder} do not go together. Run neverworse fit again."
        ) from None
    if arguments.json:
        print(json.dumps({"report": str(path), "claim": study.claim}, ensure_ascii=False))
    elif not arguments.quiet:
        print(f"Written: {path}")
