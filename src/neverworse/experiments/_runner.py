"""Run experiments: in parallel, in any order, and never twice."""

from __future__ import annotations

import hashlib
import signal
import sys
import zlib
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy
import sklearn
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

import neverworse
from neverworse._files import only_one
from neverworse.datasets import load_paper_dataset
from neverworse.experiments._catalogue import EXPERIMENTS
from neverworse.experiments._experiments import Data, Experiment, Record
from neverworse.experiments._methods import METHODS
from neverworse.experiments._protocol import PROTOCOLS, Protocol
from neverworse.experiments._store import Say, Store
from neverworse.experiments._timing import TWO_GAUSSIANS


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes
    ----------
    experiments : sequence of str
    datasets : sequence of str
        Data sets of the paper. Of these, each experiment takes its own.
    repeats : int or None
        None: as many as were published.
    protocol : {"code", "text"}
    seed : int
        The root of all seeds.
    data_home : str or None
        Where data sets are looked for first.
    """

    experiments: Sequence[str]
    datasets: Sequence[str]
    repeats: int | None = None
    protocol: str = "code"
    seed: int = 0
    data_home: str | None = None

    def datasets_of(self, experiment: Experiment) -> list[str]:
        """Return the data sets that an experiment is run on."""
        chosen = {*self.datasets, TWO_GAUSSIANS}
        return [name for name in experiment.datasets if name in chosen]

    def repeats_of(self, experiment: Experiment) -> int:
        """Return how often an experiment is repeated."""
        return experiment.repeats if self.repeats is None else self.repeats


@dataclass(frozen=True)
class Task:
    """One repeat of an experiment on a data set."""

    experiment: str
    dataset: str
    repeat: int
    protocol: str
    seed: int
    data_home: str | None

    def run(self) -> tuple[Task, list[Record]]:
        """Compute the records; the same ones in whatever process."""
        experiment, protocol = EXPERIMENTS[self.experiment], PROTOCOLS[self.protocol]
        rng = random_numbers(self.seed, self.experiment, self.dataset, self.repeat)
        data = _prepared(self.experiment, self.dataset, self.protocol, self.data_home)
        with threadpool_limits(1):  # another number of threads would round differently
            return self, experiment.run(data, protocol, rng, self.repeat)


def random_numbers(seed: int, experiment: str, dataset: str, repeat: int) -> np.random.Generator:
    """Return the random numbers of a repeat."""
    # Names, not positions: other data sets in a run make no difference to this one.
    names = [zlib.crc32(name.encode()) for name in (experiment, dataset)]
    return np.random.default_rng([seed, *names, repeat])


@cache
def _prepared(experiment: str, dataset: str, protocol: str, data_home: str | None) -> Data:
    """Return the data of an experiment; every process reads them once."""
    if dataset == TWO_GAUSSIANS:  # every repeat draws its own
        return np.empty((0, 0)), np.empty(0)
    found = load_paper_dataset(dataset, data_home=data_home)
    with threadpool_limits(1):
        return EXPERIMENTS[experiment].prepare(found.data, PROTOCOLS[protocol]), found.target


def run(plan: Plan, folder: Path, *, jobs: int, say: Say, quiet: bool = True) -> dict[str, Any]:
    """Run all that is missing of a plan, and return all its results.

    Parameters
    ----------
    plan : Plan
    folder : Path
        Where repeats are stored, and looked for.
    jobs : int
        Processes.
    say : callable
        Told in a sentence what the user should know.
    quiet : bool
        Whether there is no progress bar.

    Returns
    -------
    results : dict
        For each experiment and data set, the records of each repeat:
        ``results[experiment][dataset][repeat]``.
    """
    with only_one(folder):
        stores = {
            (experiment.name, dataset): Store(
                folder / plan.protocol / experiment.name / f"{dataset.replace(' ', '-')}.jsonl",
                _header(plan, experiment, dataset),
                say,
            )
            for experiment in (EXPERIMENTS[name] for name in plan.experiments)
            for dataset in plan.datasets_of(experiment)
        }
        missing = [
            Task(name, dataset, repeat, plan.protocol, plan.seed, plan.data_home)
            for (name, dataset), store in stores.items()
            for repeat in range(plan.repeats_of(EXPERIMENTS[name]))
            if repeat not in store.repeats
        ]
        with tqdm(
            total=sum(_cost(task) for task in missing),
            disable=quiet or not missing,
            bar_format="{desc} {percentage:3.0f}% |{bar}| {elapsed}, {remaining} left",
            smoothing=0.0,
        ) as bar:
            for task, records in _completed(missing, jobs):
                stores[task.experiment, task.dataset].append(task.repeat, records)
                bar.set_description(f"{task.experiment}, {task.dataset}", refresh=False)
                bar.update(_cost(task))
    results: dict[str, Any] = {name: {} for name in plan.experiments}
    for (name, dataset), store in stores.items():
        wanted = range(plan.repeats_of(EXPERIMENTS[name]))
        results[name][dataset] = {repeat: store.repeats[repeat] for repeat in wanted}
    return results


def _run_quietly(task: Task) -> tuple[Task, list[Record]]:
    """Run a task in a process that leaves Ctrl-C to its parent, and prints nothing about it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return task.run()


def _completed(tasks: Sequence[Task], jobs: int) -> Iterable[tuple[Task, list[Record]]]:
    """Run tasks, and yield their results as they come."""
    together = [task for task in tasks if not EXPERIMENTS[task.experiment].alone]
    if jobs == 1 or len(together) <= 1:
        yield from (task.run() for task in together)
    else:
        # Long ones first, so that no process is left with a long one at the end.
        together.sort(key=_cost, reverse=True)
        parallel = joblib.Parallel(jobs, return_as="generator_unordered")
        with closing(parallel(joblib.delayed(_run_quietly)(task) for task in together)) as results:
            yield from results
    yield from (task.run() for task in tasks if EXPERIMENTS[task.experiment].alone)


def _cost(task: Task) -> int:
    """Return about how many milliseconds a task takes: for progress, and the order of tasks."""
    data = _prepared(task.experiment, task.dataset, task.protocol, task.data_home)
    n_rows, n_features = data[0].shape
    return EXPERIMENTS[task.experiment].rounds * round(50.0 + 5e-6 * n_rows * n_features**2)


def _header(plan: Plan, experiment: Experiment, dataset: str) -> dict[str, Any]:
    """Return what results depend on."""
    data = _prepared(experiment.name, dataset, plan.protocol, plan.data_home)
    digest = hashlib.sha256()
    for array in data:
        digest.update(np.ascontiguousarray(array).tobytes())
    return {
        "experiment": experiment.name,
        "data set": dataset,
        "protocol": plan.protocol,
        "definition of the protocol": asdict(PROTOCOLS[plan.protocol]),
        "definition of the methods": _definitions(experiment, PROTOCOLS[plan.protocol]),
        "seed": plan.seed,
        "content of the data": digest.hexdigest(),
        "version of neverworse": neverworse.__version__,
        "version of NumPy": np.__version__,
        "version of SciPy": scipy.__version__,
        "version of scikit-learn": sklearn.__version__,
    }


def _definitions(experiment: Experiment, protocol: Protocol) -> dict[str, str]:
    """Return the classifiers of an experiment with all their settings, defaults included."""
    with sklearn.config_context(print_changed_only=False):
        return {
            name: METHODS[name].make(protocol).__repr__(N_CHAR_MAX=sys.maxsize)
            for name in experiment.methods
        }
