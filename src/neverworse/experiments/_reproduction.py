"""Run the experiments of the paper again, and compare the results with the published ones.

Each repeat is stored as a compressed JSON file, in a folder named after a hash of everything that
its results depend on: runs with other settings neither reuse nor replace it. A file that is damaged
(gzip has a checksum) counts as missing.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import signal
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import joblib
import numpy as np
import pandas as pd
import scipy
import sklearn
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

import neverworse
from neverworse._files import only_one, write_whole
from neverworse.datasets import PAPER_DATASETS, DataNotFoundError, load_paper_dataset
from neverworse.experiments import _analysis
from neverworse.experiments._experiments import EXPERIMENTS, TWO_GAUSSIANS, Data, Experiment, Record
from neverworse.experiments._methods import METHODS, PROTOCOLS

AVAILABLE = "available"
IN_PAPER = [name for name, experiment in EXPERIMENTS.items() if experiment.published]
Task = tuple[str, str, int]  # an experiment, a data set, and the number of a repeat


@dataclass(frozen=True)
class Plan:
    """What to run. Each experiment uses those of the data sets that it is defined for."""

    experiments: tuple[str, ...]
    datasets: tuple[str, ...]
    repeats: int | None = None  # None: as many as published
    protocol: str = "code"
    seed: int = 0
    data_home: str | None = None  # folder in which data sets are looked up first

    def datasets_of(self, experiment: Experiment) -> list[str]:
        if experiment.name not in self.experiments:
            return []
        chosen = {*self.datasets, TWO_GAUSSIANS}
        return [name for name in experiment.datasets if name in chosen]


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
        For experiments that measure the loss on training rows, of how many "fits" that of the
        projection was "higher" than that of the supervised weights that it projects, and
        "higher_than_supervised", the classifier.

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
    guarantees: dict[str, dict[str, int]]

    @classmethod
    def of(cls, plan: Plan, correction: str, measurements: dict[str, pd.DataFrame]) -> Self:
        """Compute the numbers of the paper's figures and table from all measurements."""
        summaries, guarantees = {}, {}
        for name, found in measurements.items():
            if name == "table":
                cells = _analysis.table(found, PROTOCOLS[plan.protocol], correction)
                summaries[name] = _analysis.compare_table(cells)
            else:  # the function that summarises an experiment has its name
                summaries[name] = getattr(_analysis, name)(found)
            if "training_loss" in found:
                guarantees[name] = _analysis.guarantee(found)
        return cls(plan, correction, measurements, summaries, guarantees)

    def save(
        self, out: str | Path, *, command: str | None = None, took: str | None = None
    ) -> list[Path]:
        """Write measurements, summaries, figures, tables and ``report.html`` into a folder.

        The report names the command and how long it took, if they are given. Returns all paths,
        the report last.
        """
        # Imported only here, since it needs matplotlib.
        from neverworse.experiments.report import circumstances, contents

        made = circumstances(self, command, took)
        files = {Path(out) / name: content for name, content in contents(self, made)}
        for path, content in files.items():
            write(path, content)
        return list(files)


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
    number of processes. They include what earlier runs with the same protocol, seed and versions
    have stored in the folder about other experiments and data sets.

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
        datasets = []
        for name in PAPER_DATASETS:
            with suppress(DataNotFoundError):
                load_paper_dataset(name, data_home=data_home)
                datasets.append(name)
    for name, value in (("repeats", repeats), ("jobs", jobs)):
        if value is not None and value < 1:
            raise ValueError(f"{name}={value} must be at least 1.")
    plan = Plan(
        _chosen("experiment", experiments, list(EXPERIMENTS), IN_PAPER),
        _chosen("data set", "all" if datasets is None else datasets, PAPER_DATASETS),
        repeats,
        _chosen("protocol", protocol, list(PROTOCOLS))[0],
        seed,
        None if data_home is None else str(data_home),
    )
    _chosen("correction", correction, ["bonferroni", "holm"])
    results = run(
        plan,
        Path(out) / "repeats",
        jobs=jobs or joblib.cpu_count(only_physical_cores=True),
        quiet=quiet or not sys.stderr.isatty(),
    )
    measurements = {name: _analysis.tidy(found) for name, found in results.items()}
    return Reproduction.of(plan, correction, measurements)


def _chosen(
    what: str, wanted: str | Sequence[str], known: Sequence[str], all_of: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the wanted names in the order of the known ones; "all" are `all_of`, or else all."""
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    if "all" in names:
        return tuple(all_of or known)
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        found = ", ".join(map(repr, unknown)) or "none"
        raise ValueError(f"There is no {what} {found}: choose from {', '.join(known)}.")
    return tuple(name for name in known if name in names)


def run(plan: Plan, folder: Path, *, jobs: int, quiet: bool = True) -> dict[str, Any]:
    """Run all repeats of a plan that are not stored in the folder yet.

    Returns the records as ``[experiment][dataset][repeat]``, with those of other experiments and
    data sets that are stored.
    """
    with only_one(folder):
        paths = _paths(plan, folder / plan.protocol)
        found = {task: _read(path) for task, path in paths.items()}
        missing = [task for task, records in found.items() if records is None]
        with tqdm(
            total=len(missing),
            disable=quiet or not missing,
            bar_format="{desc} {percentage:3.0f}% |{bar}| {elapsed}, {remaining} left",
            smoothing=0.0,
        ) as bar:
            for task, records in _completed(missing, plan, jobs):
                write(paths[task], gzip.compress(json.dumps(records).encode(), mtime=0))
                found[task] = records
                bar.set_description(f"{task[0]}, {task[1]}", refresh=False)
                bar.update()
    results: dict[str, Any] = {}
    for (name, dataset, repeat), stored in found.items():
        results.setdefault(name, {}).setdefault(dataset, {})[repeat] = stored
    return results


def _paths(plan: Plan, folder: Path) -> dict[Task, Path]:
    """Return the files of all repeats of a plan, and of others stored with the same settings."""
    paths: dict[Task, Path] = {}
    for name, experiment in EXPERIMENTS.items():
        asked = plan.datasets_of(experiment)
        for dataset in experiment.datasets:
            stored = folder / name / dataset.replace(" ", "-")
            if dataset not in asked and not stored.exists():
                continue
            settings = json.dumps(_settings(plan, experiment, dataset), indent=1).encode()
            place = stored / hashlib.sha256(settings).hexdigest()[:16]
            numbers = (path.name.removesuffix(".json.gz") for path in place.glob("*.json.gz"))
            repeats = sorted(int(number) for number in numbers if number.isdecimal())
            if dataset in asked:
                write(place / "settings.json", settings)
                n_repeats = experiment.repeats if plan.repeats is None else plan.repeats
                repeats = list(range(n_repeats))
            paths |= {(name, dataset, repeat): place / f"{repeat}.json.gz" for repeat in repeats}
    return paths


def _settings(plan: Plan, experiment: Experiment, dataset: str) -> dict[str, Any]:
    """Return everything that results depend on; loaders check that data are always the same."""
    protocol = PROTOCOLS[plan.protocol]
    fitted = {method: METHODS[method](protocol) for method in experiment.methods}
    with sklearn.config_context(print_changed_only=False):  # defaults may change
        definitions = {
            key: value.__repr__(N_CHAR_MAX=sys.maxsize) if hasattr(value, "fit") else repr(value)
            for key, value in (fitted | experiment.settings()).items()
        }
    return {
        "experiment": experiment.name,
        "dataset": dataset,
        "seed": plan.seed,
        "protocol": asdict(protocol),
        "definitions": definitions,
        "versions": {each.__name__: each.__version__ for each in (neverworse, np, scipy, sklearn)},
    }


def write(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all, and make its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda file: file.write(content))


def _read(path: Path) -> list[Record] | None:
    """Return the records in a file; None if it is missing or damaged."""
    with suppress(OSError, EOFError, ValueError, zlib.error):
        records: list[Record] = json.loads(gzip.decompress(path.read_bytes()))
        return records
    return None


def _completed(tasks: Sequence[Task], plan: Plan, jobs: int) -> Iterator[tuple[Task, list[Record]]]:
    """Run tasks, those on large data first, and yield their results as they are finished."""
    for alone in (False, True):
        chosen = [task for task in tasks if EXPERIMENTS[task[0]].alone is alone]
        chosen.sort(key=lambda task: _data(plan, *task[:2])[0].size, reverse=True)
        n_jobs = 1 if alone else max(1, min(jobs, len(chosen)))
        call = joblib.delayed(run_task if n_jobs == 1 else _run_in_worker)
        parallel = joblib.Parallel(n_jobs, return_as="generator_unordered")
        with closing(parallel(call(task, plan) for task in chosen)) as done:
            yield from done


def _run_in_worker(task: Task, plan: Plan) -> tuple[Task, list[Record]]:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent process
    return run_task(task, plan)


def run_task(task: Task, plan: Plan) -> tuple[Task, list[Record]]:
    """Return the task and its records, which are the same in every process."""
    name, dataset, repeat = task
    rng, protocol = random_numbers(plan.seed, *task), PROTOCOLS[plan.protocol]
    data = _data(plan, name, dataset)
    with threadpool_limits(1):  # the number of threads affects rounding
        return task, EXPERIMENTS[name].run(data, protocol, rng, repeat)


def random_numbers(seed: int, experiment: str, dataset: str, repeat: int) -> np.random.Generator:
    """Return a generator that does not depend on which other experiments and data sets are run."""
    names = [zlib.crc32(name.encode()) for name in (experiment, dataset)]
    return np.random.default_rng([seed, *names, repeat])


@cache
def _data(plan: Plan, experiment: str, dataset: str) -> Data:
    """Return the data of an experiment; every process reads them once."""
    if dataset == TWO_GAUSSIANS:  # drawn anew in every repeat
        return np.empty((0, 0)), np.empty(0)
    found = load_paper_dataset(dataset, data_home=plan.data_home)
    with threadpool_limits(1):
        return EXPERIMENTS[experiment].prepare(found.data, PROTOCOLS[plan.protocol]), found.target
