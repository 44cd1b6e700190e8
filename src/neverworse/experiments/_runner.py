"""Run experiments in parallel, and store every repeat, so that none is run twice.

Each repeat is a compressed JSON file, in a folder named after a hash of everything that its results
depend on: runs with other settings neither reuse nor replace it. A file that is damaged (gzip has a
checksum) counts as missing.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import signal
import sys
import zlib
from collections.abc import Iterator, Sequence
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
from neverworse._files import only_one, write_whole
from neverworse.datasets import load_paper_dataset
from neverworse.experiments._experiments import EXPERIMENTS, TWO_GAUSSIANS, Data, Plan, Record
from neverworse.experiments._methods import METHODS, PROTOCOLS


@dataclass(frozen=True)
class Task:
    """One repeat of an experiment on a data set."""

    experiment: str
    dataset: str
    repeat: int
    protocol: str
    seed: int
    data_home: str | None

    @property
    def data(self) -> Data:
        return _prepared(self.experiment, self.dataset, self.protocol, self.data_home)

    def run(self) -> tuple[Task, list[Record]]:
        """Return the task and its records, which are the same in every process."""
        rng = random_numbers(self.seed, self.experiment, self.dataset, self.repeat)
        run = EXPERIMENTS[self.experiment].run
        with threadpool_limits(1):  # the number of threads affects rounding
            return self, run(self.data, PROTOCOLS[self.protocol], rng, self.repeat)


def random_numbers(seed: int, experiment: str, dataset: str, repeat: int) -> np.random.Generator:
    """Return a generator that does not depend on which other experiments and data sets are run."""
    names = [zlib.crc32(name.encode()) for name in (experiment, dataset)]
    return np.random.default_rng([seed, *names, repeat])


@cache
def _prepared(experiment: str, dataset: str, protocol: str, data_home: str | None) -> Data:
    """Return the data of an experiment; every process reads them once."""
    if dataset == TWO_GAUSSIANS:  # drawn anew in every repeat
        return np.empty((0, 0)), np.empty(0)
    found = load_paper_dataset(dataset, data_home=data_home)
    with threadpool_limits(1):
        return EXPERIMENTS[experiment].prepare(found.data, PROTOCOLS[protocol]), found.target


def run(plan: Plan, folder: Path, *, jobs: int, quiet: bool = True) -> dict[str, Any]:
    """Run all repeats of a plan that are not stored in the folder yet.

    Returns the records of all repeats as ``[experiment][dataset][repeat]``.
    """
    results: dict[str, Any] = {name: {} for name in plan.experiments}
    with only_one(folder):
        paths = {
            Task(name, dataset, repeat, plan.protocol, plan.seed, plan.data_home): (
                place / f"{repeat}.json.gz"
            )
            for name in plan.experiments
            for dataset in plan.datasets_of(EXPERIMENTS[name])
            for place in [_folder_of(folder / plan.protocol, plan, name, dataset)]
            for repeat in plan.repeats_of(EXPERIMENTS[name])
        }
        found = {task: _read(path) for task, path in paths.items()}
        missing = [task for task, records in found.items() if records is None]
        with tqdm(
            total=len(missing),
            disable=quiet or not missing,
            bar_format="{desc} {percentage:3.0f}% |{bar}| {elapsed}, {remaining} left",
            smoothing=0.0,
        ) as bar:
            for task, records in _completed(missing, jobs):
                content = gzip.compress(json.dumps(records).encode(), mtime=0)
                write_whole(paths[task], lambda file, content=content: file.write(content))  # type: ignore[misc]
                found[task] = records
                bar.set_description(f"{task.experiment}, {task.dataset}", refresh=False)
                bar.update()
    for task, stored in found.items():
        results[task.experiment].setdefault(task.dataset, {})[task.repeat] = stored
    return results


def _completed(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[Task, list[Record]]]:
    """Run tasks, those on large data first, and yield their results as they are finished."""
    for alone in (False, True):
        chosen = [task for task in tasks if EXPERIMENTS[task.experiment].alone is alone]
        chosen.sort(key=lambda task: task.data[0].size, reverse=True)
        n_jobs = 1 if alone else min(jobs, len(chosen))
        if n_jobs <= 1:
            yield from map(Task.run, chosen)
        else:
            parallel = joblib.Parallel(n_jobs, return_as="generator_unordered")
            with closing(parallel(joblib.delayed(_run_in_worker)(task) for task in chosen)) as done:
                yield from done


def _run_in_worker(task: Task) -> tuple[Task, list[Record]]:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent process
    return task.run()


def _folder_of(folder: Path, plan: Plan, name: str, dataset: str) -> Path:
    """Make and return the folder for the repeats of an experiment on a data set."""
    settings = json.dumps(_settings(plan, name, dataset), indent=1)
    key = hashlib.sha256(settings.encode()).hexdigest()[:16]
    place = folder / name / dataset.replace(" ", "-") / key
    place.mkdir(parents=True, exist_ok=True)
    write_whole(place / "settings.json", lambda file: file.write(settings.encode()))
    return place


def _settings(plan: Plan, name: str, dataset: str) -> dict[str, Any]:
    """Return everything that results depend on, as JSON can store it."""
    experiment, protocol = EXPERIMENTS[name], PROTOCOLS[plan.protocol]
    content = hashlib.sha256()
    for array in _prepared(name, dataset, plan.protocol, plan.data_home):
        content.update(np.ascontiguousarray(array).tobytes())
    fitted = {method: METHODS[method].make(protocol) for method in experiment.methods}
    with sklearn.config_context(print_changed_only=False):  # defaults may change
        definitions = {
            key: value.__repr__(N_CHAR_MAX=sys.maxsize) if hasattr(value, "fit") else repr(value)
            for key, value in (fitted | experiment.settings()).items()
        }
    return {
        "experiment": name,
        "dataset": dataset,
        "data": content.hexdigest(),
        "seed": plan.seed,
        "protocol": asdict(protocol),
        "definitions": definitions,
        "versions": {each.__name__: each.__version__ for each in (neverworse, np, scipy, sklearn)},
    }


def _read(path: Path) -> list[Record] | None:
    """Return the records in a file; None if it is missing or damaged."""
    try:
        records: list[Record] = json.loads(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, ValueError, zlib.error):
        return None
    return records
