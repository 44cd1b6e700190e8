"""``neverworse reproduce``: the experiments of the paper, beside what was published."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from neverworse import __version__
from neverworse.cli._common import (
    CommandError,
    UsageError,
    check_folder,
    check_packages,
    out_path,
    wrapped,
)

if TYPE_CHECKING:
    from neverworse.experiments import Reproduction

# Named here, so that help is printed without importing what runs them; a test compares.
EXPERIMENTS = ("robustness", "curves", "table", "timing", "evidence")
IN_PAPER = EXPERIMENTS[:-1]
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
        metavar="EXPERIMENT",
        help=f"{', '.join(EXPERIMENTS)}, or all of the paper (default; all but evidence)",
    )
    add(
        "--datasets",
        nargs="+",
        metavar="NAME",
        help="some of the data sets of the paper, or: available, for all that are found "
        "(default: all)",
    )
    add(
        "--repeats",
        type=int,
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
    add("--jobs", type=int, metavar="N", help="number of processes (default: one per core)")
    add(
        "--out",
        type=out_path,
        default=Path("neverworse-reproduction"),
        metavar="DIR",
        help="folder for results (default: neverworse-reproduction)",
    )
    add("--seed", type=int, default=0, metavar="N", help="random seed (default: 0)")
    add("--data-home", metavar="DIR", help="folder in which data sets are looked up first")
    add("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Run the experiments, write the results, and print what matters most."""
    check_packages(NEEDED, "paper")
    _check_numbers(arguments)
    experiments, datasets = _chosen(arguments)
    check_folder(arguments.out)
    arguments.out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    try:
        reproduction = _reproduce(arguments, experiments, datasets)
        took = _duration(time.monotonic() - start)
        paths = reproduction.save(arguments.out, command=_command(arguments), took=took)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "All finished repeats are stored; run the same command to resume."
        ) from None
    for paragraph in _summary(reproduction):
        print(paragraph)
    print(f"\nAll results, in {took}: {paths[-1]}")


def _check_numbers(arguments: argparse.Namespace) -> None:
    for name, least in (("repeats", 1), ("jobs", 1), ("seed", 0)):
        value = getattr(arguments, name)
        if value is not None and value < least:
            raise UsageError(f"--{name} must be at least {least}, not {value}.")


def _chosen(arguments: argparse.Namespace) -> tuple[list[str], list[str] | str]:
    """Return the experiments and the data sets, by their own names however they were written."""
    from neverworse.datasets import PAPER_DATASETS

    experiments = _known("experiment", arguments.experiments or ["all"], EXPERIMENTS, IN_PAPER)
    if arguments.datasets == [AVAILABLE]:
        return experiments, AVAILABLE
    return experiments, _known("data set", arguments.datasets or ["all"], PAPER_DATASETS)


def _known(
    what: str, names: Sequence[str], known: Sequence[str], everything: Sequence[str] = ()
) -> list[str]:
    spelled = {name.lower(): [name] for name in known} | {"all": list(everything or known)}
    for name in names:
        if name.lower() not in spelled:
            raise UsageError(f"There is no {what} {name!r}. Choose from {', '.join(known)}.")
    return [found for name in names for found in spelled[name.lower()]]


def _reproduce(
    arguments: argparse.Namespace, experiments: list[str], datasets: list[str] | str
) -> Reproduction:
    """Run the experiments, with errors in the words of the command line."""
    from neverworse.datasets import DataNotFoundError
    from neverworse.experiments import reproduce

    try:
        reproduction = reproduce(
            experiments,
            datasets=datasets,
            repeats=arguments.repeats,
            protocol=arguments.protocol,
            correction=arguments.correction,
            jobs=arguments.jobs,
            out=arguments.out,
            seed=arguments.seed,
            data_home=arguments.data_home,
            quiet=arguments.quiet,
        )
    except DataNotFoundError as error:
        raise CommandError(f"{error}\nWithout it: --datasets {AVAILABLE}") from None
    if not reproduction.measurements:
        raise UsageError(
            "Nothing to run: there are learning curves of Ionosphere, SPECT and USPS only."
        )
    return reproduction


def _command(arguments: argparse.Namespace) -> str:
    """Return a command that does the same; folders are nobody else's business."""
    words = ["neverworse", "reproduce", *(arguments.experiments or ["all"])]
    if arguments.datasets:
        words += ["--datasets", *arguments.datasets]
    if arguments.repeats is not None:
        words += ["--repeats", str(arguments.repeats)]
    words += ["--protocol", arguments.protocol, "--correction", arguments.correction]
    words += ["--seed", str(arguments.seed)]
    return shlex.join(words)


def _summary(reproduction: Reproduction) -> Iterator[str]:
    """Yield the headline of the report as text."""
    from neverworse import experiments

    plan = reproduction.plan
    n_datasets = len(plan.datasets)
    yield (
        f"neverworse {__version__}: Krijthe and Loog (2017), protocol {plan.protocol}, "
        f"{n_datasets} data set{'s' if n_datasets > 1 else ''}, seed {plan.seed}\n"
    )
    holds = experiments.guarantee_holds(reproduction.guarantees)
    if holds is not None:
        yield "The guarantee holds." if holds else "The guarantee is VIOLATED."
        for sentence in experiments.guarantee_sentences(reproduction.guarantees):
            yield wrapped(sentence)
    if "evidence" in reproduction.measurements:
        said = experiments.evidence_sentence(
            reproduction.measurements["evidence"], reproduction.summaries["evidence"]
        )
        yield wrapped(said)
    if "curves" in reproduction.measurements:
        said = experiments.claims_sentence(reproduction.measurements["curves"])
        yield f"\n{wrapped(said)}"
    cells = reproduction.summaries.get("table")
    if cells is None:
        return
    yield f"\n{wrapped(experiments.agreement_sentence(cells))}\n"
    yield f"{'win / draw / loss':18} {'ours':>12}  {'published':>12}"
    for total in experiments.totals(cells):
        ours, theirs = experiments.as_text(total.ours), experiments.as_text(total.published)
        yield f"{total.method:18} {ours:>12}  {theirs:>12}"
    few = experiments.too_few_repeats(cells)
    if few:
        yield wrapped(few)


def _duration(seconds: float) -> str:
    if seconds < 60.0:
        return f"{seconds:.0f} seconds"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"
