"""Run the experiments of the paper again, and compare the results with the published ones."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import joblib
import pandas as pd

from neverworse.datasets import PAPER_DATASETS, DataNotFoundError, load_paper_dataset
from neverworse.experiments._analysis import (
    compare_table,
    curves,
    evidence,
    guarantee,
    robustness,
    table,
    tidy,
    timing,
)
from neverworse.experiments._experiments import EXPERIMENTS, Plan
from neverworse.experiments._methods import PROTOCOLS
from neverworse.experiments._runner import run

AVAILABLE = "available"
IN_PAPER = [name for name, experiment in EXPERIMENTS.items() if experiment.published]


@dataclass(frozen=True)
class Reproduction:
    """Results of the experiments.

    Attributes
    ----------
    plan : Plan
        What was run.
    correction : {"bonferroni", "holm"}
        How the tests of Table 1 were corrected for their number.
    measurements : dict of str to DataFrame
        For each experiment, a row for every fit.
    summaries : dict of str to DataFrame
        For each experiment, the numbers in the paper's figure or table; for "table", with the
        published ones beside them.
    guarantees : dict of str to dict
        For experiments that measure the loss on training rows, how often that of the projection
        exceeded that of the supervised weights that it projects: "fits", "higher" and
        "largest_ratio"; and that of the classifier Supervised: "higher_than_supervised" and
        "largest_ratio_to_supervised".

    Examples
    --------
    >>> from neverworse.experiments import reproduce
    >>> done = reproduce("table", datasets="available", repeats=2)  # doctest: +SKIP
    >>> done.save("neverworse-reproduction")  # doctest: +SKIP
    """

    plan: Plan
    correction: str
    measurements: dict[str, pd.DataFrame]
    summaries: dict[str, pd.DataFrame]
    guarantees: dict[str, dict[str, float]]

    @classmethod
    def of(cls, plan: Plan, correction: str, measurements: dict[str, pd.DataFrame]) -> Self:
        """Compute the numbers of the paper's figures and table from all measurements."""
        protocol = PROTOCOLS[plan.protocol]
        summarisers = {
            "robustness": robustness,
            "curves": curves,
            "table": lambda found: compare_table(table(found, protocol, correction)),
            "timing": timing,
            "evidence": evidence,
        }
        return cls(
            plan,
            correction,
            measurements,
            {name: summarisers[name](found) for name, found in measurements.items()},
            {k: guarantee(found) for k, found in measurements.items() if "training_loss" in found},
        )

    def save(
        self, out: str | Path, *, command: str | None = None, took: str | None = None
    ) -> list[Path]:
        """Write measurements, summaries, figures, tables and ``report.html`` into a folder.

        The report names the command and how long it took, if they are given. Returns all paths,
        the report last.
        """
        # Imported only here, since it needs matplotlib.
        from neverworse.experiments.report import save

        return save(self, out, command=command, took=took)


def reproduce(
    experiments: str | Sequence[str] = "all",
    *,
    datasets: str | Sequence[str] | None = None,
    repeats: int | None = None,
    protocol: str = "code",
    correction: str = "bonferroni",
    jobs: int | None = None,
    out: str | Path = "neverworse-reproduction",
    seed: int = 0,
    data_home: str | None = None,
    quiet: bool = False,
) -> Reproduction:
    """Run the experiments of the paper.

    Repeats that are stored in the folder are not run again: an interrupted run resumes where it
    stopped, and adding repeats later computes only the new ones. Results do not depend on the
    number of processes.

    Parameters
    ----------
    experiments : "all", or one or more of "robustness", "curves", "table", "timing" and "evidence"
        "all" are those of the paper. "evidence" is about safe stacking and the sequential audit.
    datasets : sequence of str, or "available", optional
        Names of data sets; all of the paper's by default. "available": those that are found.
        There are learning curves of three of them only, and timing uses artificial data.
    repeats : int, optional
        Repeats of each experiment; as published by default.
    protocol : {"code", "text"}, default="code"
        Whether to do what the published code did, or what the text of the paper says.
    correction : {"bonferroni", "holm"}, default="bonferroni"
        Correction for multiple testing in Table 1. It always counts the tests of the whole
        published table, so that marks can be compared, also on some of the data sets.
    jobs : int, optional
        Number of processes; one per core by default.
    out : path, default="neverworse-reproduction"
        Folder in which repeats are stored; see `Reproduction.save` for everything else.
    seed : int, default=0
        Seed of all random numbers.
    data_home : path, optional
        Folder in which data sets are looked up first, see `neverworse.datasets`.
    quiet : bool, default=False
        Whether to hide the progress bar, which only terminals show.

    Returns
    -------
    reproduction : Reproduction

    Examples
    --------
    >>> from neverworse.experiments import reproduce
    >>> done = reproduce("robustness", datasets=["WDBC"], repeats=5)  # doctest: +SKIP
    >>> done.guarantees["robustness"]["higher"]  # doctest: +SKIP
    0
    """
    if datasets is not None and AVAILABLE in datasets:
        datasets = [name for name in PAPER_DATASETS if _is_available(name, data_home)]
    plan = Plan(
        _chosen("experiment", experiments, list(EXPERIMENTS), IN_PAPER),
        _chosen("data set", "all" if datasets is None else datasets, PAPER_DATASETS),
        _positive("repeats", repeats),
        _chosen("protocol", protocol, list(PROTOCOLS))[0],
        seed,
        None if data_home is None else str(data_home),
    )
    _chosen("correction", correction, ["bonferroni", "holm"])
    results = run(
        plan,
        Path(out) / "repeats",
        jobs=_positive("jobs", jobs) or joblib.cpu_count(only_physical_cores=True),
        quiet=quiet or not sys.stderr.isatty(),
    )
    return Reproduction.of(plan, correction, {k: tidy(v) for k, v in results.items() if v})


def _chosen(
    what: str, wanted: str | Sequence[str], known: Sequence[str], all_of: Sequence[str] = ()
) -> list[str]:
    """Return the wanted names in the order of the known ones; "all" are `all_of`, or else all."""
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    if "all" in names:
        return list(all_of or known)
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        found = ", ".join(map(repr, unknown)) or "none"
        raise ValueError(f"There is no {what} {found}: choose from {', '.join(known)}.")
    return [name for name in known if name in names]


def _is_available(name: str, data_home: str | None) -> bool:
    with suppress(DataNotFoundError):
        return load_paper_dataset(name, data_home=data_home) is not None
    return False


def _positive(name: str, value: int | None) -> int | None:
    if value is not None and value < 1:
        raise ValueError(f"{name}={value} must be at least 1.")
    return value
