"""Run experiments: in parallel, in any order, and never twice.

One file for each experiment and data set has a header and a line for each repeat, in the order in
which they were finished. Every line starts with a checksum of its rest. A line that a killed
program did not finish is dropped; a file that is damaged otherwise is set aside, and what is intact
in it is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
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
from neverworse.experiments._experiments import (
    EXPERIMENTS,
    TWO_GAUSSIANS,
    Data,
    Experiment,
    Plan,
    Record,
)
from neverworse.experiments._methods import METHODS, PROTOCOLS

Say = Callable[[str], None]


@dataclass(frozen=True)
class Task:
    """One repeat of an experiment on a data set."""

    plan: Plan
    experiment: str
    dataset: str
    repeat: int

    @property
    def cost(self) -> int:
        """About how many milliseconds it takes: for progress, and the order of tasks."""
        n_rows, n_features = self._data[0].shape
        return EXPERIMENTS[self.experiment].rounds * round(50.0 + 5e-6 * n_rows * n_features**2)

    def run(self) -> tuple[Task, list[Record]]:
        """Compute the records; the same ones in whatever process."""
        rng = random_numbers(self.plan.seed, self.experiment, self.dataset, self.repeat)
        protocol = PROTOCOLS[self.plan.protocol]
        with threadpool_limits(1):  # another number of threads would round differently
            return self, EXPERIMENTS[self.experiment].run(self._data, protocol, rng, self.repeat)

    @property
    def _data(self) -> Data:
        return _prepared(self.experiment, self.dataset, self.plan.protocol, self.plan.data_home)


def random_numbers(seed: int, experiment: str, dataset: str, repeat: int) -> np.random.Generator:
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

    Repeats are stored in the folder, and looked for there. `say` is told in a sentence what the
    user should know. The result has the records of ``[experiment][dataset][repeat]``.
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
            Task(plan, name, dataset, repeat)
            for (name, dataset), store in stores.items()
            for repeat in plan.repeats_of(EXPERIMENTS[name])
            if repeat not in store.repeats
        ]
        with tqdm(
            total=sum(task.cost for task in missing),
            disable=quiet or not missing,
            bar_format="{desc} {percentage:3.0f}% |{bar}| {elapsed}, {remaining} left",
            smoothing=0.0,
        ) as bar:
            for task, records in _completed(missing, jobs):
                stores[task.experiment, task.dataset].append(task.repeat, records)
                bar.set_description(f"{task.experiment}, {task.dataset}", refresh=False)
                bar.update(task.cost)
    results: dict[str, Any] = {name: {} for name in plan.experiments}
    for (name, dataset), store in stores.items():
        wanted = plan.repeats_of(EXPERIMENTS[name])
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
        together.sort(key=lambda task: task.cost, reverse=True)
        parallel = joblib.Parallel(jobs, return_as="generator_unordered")
        with closing(parallel(joblib.delayed(_run_quietly)(task) for task in together)) as results:
            yield from results
    yield from (task.run() for task in tasks if EXPERIMENTS[task.experiment].alone)


def _header(plan: Plan, experiment: Experiment, dataset: str) -> dict[str, Any]:
    protocol = PROTOCOLS[plan.protocol]
    digest = hashlib.sha256()
    for array in _prepared(experiment.name, dataset, plan.protocol, plan.data_home):
        digest.update(np.ascontiguousarray(array).tobytes())
    with sklearn.config_context(print_changed_only=False):  # defaults may change
        definitions = {
            name: METHODS[name].make(protocol).__repr__(N_CHAR_MAX=sys.maxsize)
            for name in experiment.methods
        }
    return {
        "experiment": experiment.name,
        "data set": dataset,
        "protocol": plan.protocol,
        "definition of the protocol": asdict(protocol),
        "definition of the methods": definitions,
        "seed": plan.seed,
        "content of the data": digest.hexdigest(),
        "version of neverworse": neverworse.__version__,
        "version of NumPy": np.__version__,
        "version of SciPy": scipy.__version__,
        "version of scikit-learn": sklearn.__version__,
    }


class Store:
    """The repeats of one experiment on one data set, which `repeats` has by their numbers.

    Results with another header, which says what they depend on, are not reused. `say` is told what
    was wrong with the file, if anything.
    """

    def __init__(self, path: Path, header: dict[str, Any], say: Say) -> None:
        self._path = path
        self._header = header
        self.repeats: dict[int, list[Record]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        problem = self._read() if path.exists() else None
        if problem:
            aside = _set_aside(path)
            n = len(self.repeats)
            kept = f"{n} intact repeats are kept" if n else "starting over"
            say(f"{path}: {problem}. It was set aside as {aside.name}; {kept}.")
        repeats = ({"repeat": k, "records": records} for k, records in self.repeats.items())
        write_whole(path, lambda file: file.writelines(map(_line, [header, *repeats])))

    def append(self, repeat: int, records: list[Record]) -> None:
        self.repeats[repeat] = records
        with self._path.open("ab") as file:
            file.write(_line({"repeat": repeat, "records": records}))
            file.flush()
            os.fsync(file.fileno())

    def _read(self) -> str | None:
        """Read what is intact; return what is wrong with the file."""
        first, *lines = self._path.read_bytes().rpartition(b"\n")[0].split(b"\n")
        header = _parse(first)
        if not isinstance(header, dict):
            return "its header is damaged"
        if header != self._header:
            different = [key for key in self._header if header.get(key) != self._header[key]]
            return f"its results were made with another {' and '.join(different) or 'header'}"
        entries = [(_measured(entry), entry) for entry in map(_parse, lines)]
        # A checksum is no signature: a repeat counts as intact if it measured what most did.
        usual = Counter(measured for measured, _ in entries if measured).most_common(1)
        intact = [entry for measured, entry in entries if usual and measured == usual[0][0]]
        self.repeats = {entry["repeat"]: entry["records"] for entry in intact}
        damaged = len(lines) - len(intact)
        return f"{damaged} of {len(lines)} repeats are damaged" if damaged else None


def _measured(entry: Any) -> frozenset[Any] | None:
    """Return the methods of a repeat, with what was measured of each; None if it is no repeat."""
    try:
        records = entry["records"] if entry["repeat"] >= 0 else []
        values = [value for record in records for value in record.values()]
        measured = frozenset(
            (record["method"], *sorted((k, type(value).__name__) for k, value in record.items()))
            for record in records
        )
    except (AttributeError, KeyError, TypeError):
        return None
    return (
        measured if all(isinstance(value, str | int | float | None) for value in values) else None
    )


def _line(entry: Any) -> bytes:
    text = json.dumps(entry).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _parse(line: bytes) -> Any:
    """Return what a line says, or None if it is damaged."""
    checksum, _, text = line.partition(b" ")
    try:
        return json.loads(text) if checksum == b"%08x" % zlib.crc32(text) else None
    except (ValueError, RecursionError):
        return None


def _set_aside(path: Path) -> Path:
    k = 1
    while (aside := path.with_name(f"{path.name}.damaged-{k}")).exists():
        k += 1
    return path.rename(aside)
