"""Time several things side by side, so that a busy machine hurts all of them alike."""

from __future__ import annotations

import gc
import time
import tracemalloc

import numpy as np


def seconds(function):
    """Return how long one call takes."""
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        function()
        return time.perf_counter() - start
    finally:
        gc.enable()


def side_by_side(contestants, repeats):
    """Call each of the contestants in turn, `repeats` times after a warm-up.

    Parameters
    ----------
    contestants : dict of name to callable
    repeats : int

    Returns
    -------
    times : dict of name to array of shape (repeats,)
    """
    for function in contestants.values():
        function()
    times = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, function in contestants.items():
            times[name].append(seconds(function))
    return {name: np.array(values) for name, values in times.items()}


def ratio(times, name, reference):
    """Return the median over the repeats of one time relative to another."""
    return float(np.median(times[name] / times[reference]))


def peak_memory(function):
    """Return the bytes that a call holds at most, beyond what was there before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        function()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
