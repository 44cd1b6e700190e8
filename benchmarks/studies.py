"""What studies of the paper's data sets have in common: their options, and the data."""

from __future__ import annotations

import argparse

from neverworse.datasets import DataNotFoundError, load_paper_dataset


def parser_of(description, names, repeats):
    """Return a parser with the options of every study: --repeats, --datasets, --data-home."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--repeats", type=positive, default=repeats, help=f"draws (default: {repeats})"
    )
    parser.add_argument(
        "--datasets",
        nargs="+",
        choices=names,
        default=names,
        metavar="NAME",
        help=f"of {', '.join(names)} (default: all)",
    )
    parser.add_argument(
        "--data-home",
        help="folder of the data sets, looked at first (see docs/datasets.md)",
    )
    return parser


def load_all(parser, arguments):
    """Return rows and labels (0 and 1) of all data sets that were asked for."""
    try:
        return {
            name: load_paper_dataset(name, data_home=arguments.data_home, return_X_y=True)
            for name in arguments.datasets
        }
    except DataNotFoundError as error:
        parser.error(str(error))


def positive(text):
    """Return a number of the command line that is at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value
