"""Weigh what a fit through Dask would send over a network."""

from __future__ import annotations

import pickle
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

import cloudpickle

from neverworse.rows import Engine


@dataclass
class Wire:
    """What crosses the wire, by the names of tasks without ``neverworse-``.

    Attributes
    ----------
    tasks : Counter
        How many there are.
    up : Counter
        Bytes that go to the workers: functions, and what belongs to them.
    down : Counter
        Bytes of results that come to the client.
    workers : float
        Seconds of the processor that were spent on tasks.
    weighing : float
        Seconds of the processor that were spent on weighing.
    """

    tasks: Counter = field(default_factory=Counter)
    up: Counter = field(default_factory=Counter)
    down: Counter = field(default_factory=Counter)
    workers: float = 0.0
    weighing: float = 0.0

    def up_for_each_task(self, *without):
        """Return the bytes that go to the workers for a task, of all but some names."""
        names = self.tasks.keys() - set(without)
        return sum(self.up[name] for name in names) / sum(self.tasks[name] for name in names)


@contextmanager
def weighed():
    """Weigh all fits through Dask that run in threads of this process.

    There the client waits while tasks run, so their time can be told from its own.
    """
    wire = Wire()
    make, run, persist = Engine.task, Engine.run, Engine.persist

    def task(self, function, name, *inputs, home=()):
        short = name.removeprefix("neverworse-")
        wire.tasks[short] += 1
        wire.up[short] += _weigh(wire, function)
        return make(self, function, name, *inputs, home=home)

    def weighed_run(self, tasks):
        found = _timed(wire, run, self, tasks)
        for task, result in zip(tasks, found, strict=True):
            wire.down[_name(task)] += _weigh(wire, result)
        return found

    def weighed_persist(self, tasks):
        return _timed(wire, persist, self, tasks)

    with ExitStack() as patches:
        patches.enter_context(patch.object(Engine, "task", task))
        patches.enter_context(patch.object(Engine, "run", weighed_run))
        patches.enter_context(patch.object(Engine, "persist", weighed_persist))
        yield wire


def _weigh(wire, thing):
    begun = time.process_time()
    # As Dask does it: most things are known to workers by name, the others are sent whole.
    size = len(cloudpickle.dumps(thing, protocol=pickle.HIGHEST_PROTOCOL))
    wire.weighing += time.process_time() - begun
    return size


def _timed(wire, method, *arguments):
    begun = time.process_time()
    found = method(*arguments)
    wire.workers += time.process_time() - begun
    return found


def _name(task):
    key = getattr(task, "key", "collection")
    return str(key).rpartition("-")[0].removeprefix("neverworse-") or key
