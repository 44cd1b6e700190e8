"""``neverworse reproduce``: the experiments of the paper, beside what was published."""

from __future__ import annotations

import argparse
import time
from datetime import timedelta
from pathlib import Path

from neverworse.cli._common import (
    CommandError,
    UsageError,
    add_seed,
    check_folder,
    check_packages,
    command_of,
    number,
    out_path,
    wrapped,
)

# Named here, so that help is printed without importing what runs them; a test compares.
EXPERIMENTS = ("robustness", "curves", "table", "timing", "evidence")
AVAILABLE = "available"
NEEDED = ("jinja2", "joblib", "matplotlib", "pandas", "tqdm")


def add_reproduce(parser: argparse.ArgumentParser) -> None:
    """Describe the sub-command."""
    parser.description = (
        "Run the experiments of Krijthe and Loog (2017) and write figures, Table 1, all "
        "measurements and a report beside the published numbers. An interrupted run resumes where "
        "it stopped; adding repeats later computes only the new ones."
    )
    add = parser.add_argument
    add(
        "experiments",
        nargs="*",
        choices=(*EXPERIMENTS, "all"),
        default="all",
        metavar="EXPERIMENT",
        help=f"{', '.join(EXPERIMENTS)}, or all of the paper (default; all but evidence)",
    )
    add(
        "--datasets",
        nargs="+",
        type=_dataset,
        metavar="NAME",
        help="some of the data sets of the paper, or: available, for all that are found "
        "(default: all)",
    )
    add(
        "--repeats",
        type=number(int, 1),
        metavar="N",
        help="repeats of each experiment (default: as published)",
    )
    add(
        "--protocol",
        choices=("code", "text"),
        default="code",
        help="as the published code did it, or as the text says (default: code)",
    )
    add(
        "--correction",
        choices=("bonferroni", "holm"),
        default="bonferroni",
        help="for the number of tests in Table 1 (default: bonferroni)",
    )
    add(
        "--jobs",
        type=number(int, 1),
        metavar="N",
        help="number of processes (default: one per core)",
    )
    add(
        "--out",
        type=out_path,
        default=Path("neverworse-reproduction"),
        metavar="DIR",
        help="folder for results (default: neverworse-reproduction)",
    )
    add_seed(parser)
    add("--data-home", metavar="DIR", help="folder in which data sets are looked up first")
    add("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Run the experiments, write the results, and print what matters most."""
    check_packages(NEEDED, "paper")
    check_folder(arguments.out)
    from neverworse.datasets import DataNotFoundError
    from neverworse.experiments import headline, reproduce

    start = time.monotonic()
    try:
        found = reproduce(
            arguments.experiments,
            datasets=arguments.datasets,
            repeats=arguments.repeats,
            protocol=arguments.protocol,
            correction=arguments.correction,
            jobs=arguments.jobs,
            out=arguments.out,
            seed=arguments.seed,
            data_home=arguments.data_home,
            quiet=arguments.quiet,
        )
        if not found.measurements:
            raise UsageError(
                "Nothing to run: there are learning curves of Ionosphere, SPECT and USPS only."
            )
        took = str(timedelta(seconds=round(time.monotonic() - start)))
        paths = found.save(arguments.out, command=command_of(arguments), took=took)
    except DataNotFoundError as error:
        raise CommandError(f"{error}\nWithout it: --datasets {AVAILABLE}") from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "All finished repeats are stored; run the same command to resume."
        ) from None
    for title, sentences, _ in headline(found):
        print(title)
        for sentence in sentences:
            print(wrapped(sentence, "  "))
    print(f"\nAll results, in {took}: {paths[-1]}")


def _dataset(text: str) -> str:
    """Return the name of a data set however it was written."""
    from neverworse.datasets import PAPER_DATASETS

    spelled = {name.lower(): name for name in (*PAPER_DATASETS, AVAILABLE, "all")}
    if text.lower() not in spelled:
        known = ", ".join(spelled.values())
        raise argparse.ArgumentTypeError(f"There is no data set {text!r}. Choose from {known}.")
    return spelled[text.lower()]
