"""``neverworse reproduce``: the experiments of the paper, beside the published results."""

from __future__ import annotations

import argparse
import time
from datetime import timedelta

from neverworse.cli import _common as common
from neverworse.cli._options import AVAILABLE
from neverworse.datasets import DataNotFoundError
from neverworse.experiments import EXPERIMENTS, headline, reproduce

# Options that are parameters of `reproduce`.
PARAMETERS = ("datasets", "repeats", "protocol", "correction", "jobs", "out", "seed", "data_home")


def run(arguments: argparse.Namespace) -> None:
    """Run the experiments, write the results, and print the main ones."""
    common.check_folder(arguments.out)
    start = time.monotonic()
    given = {name: getattr(arguments, name) for name in PARAMETERS}
    try:
        found = reproduce(arguments.experiment, **given, quiet=arguments.quiet)
        if not any(map(found.plan.datasets_of, EXPERIMENTS.values())):
            raise common.CommandError(
                "Nothing to run: there are learning curves of Ionosphere, SPECT and USPS only."
            )
        took = str(timedelta(seconds=round(time.monotonic() - start)))
        paths = found.save(arguments.out, command=arguments.typed, took=took)
    except DataNotFoundError as error:
        raise common.CommandError(
            f"{error}\nWithout it: --datasets {AVAILABLE}", common.FAILURE
        ) from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "All finished repeats are stored; run the same command to resume."
        ) from None
    for title, sentences, _ in headline(found):
        print(title)
        for sentence in sentences:
            print(common.wrapped(sentence, "  "))
    print(f"\nAll results, in {took}: {paths[-1]}")
