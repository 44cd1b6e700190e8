"""Small runs of the real experiments, shared by the tests of what is made of them."""

from __future__ import annotations

import dataclasses
import functools
import tempfile

import pytest

from neverworse.datasets import DataNotFoundError, load_paper_dataset
from neverworse.experiments import _experiments, reproduce


@functools.cache
def small(experiments=("robustness", "table"), repeats=2):
    """Robustness and cross-validation on data that come with scikit-learn."""
    with tempfile.TemporaryDirectory() as folder:
        return reproduce(
            experiments, datasets=["WDBC"], repeats=repeats, out=folder, jobs=1, quiet=True
        )


@functools.cache
def curves(repeats=2):
    """Learning curves of SPECT, on a machine that has it."""
    try:
        load_paper_dataset("SPECT", download_if_missing=False)
    except DataNotFoundError:
        pytest.skip("SPECT is not on this machine: set NEVERWORSE_DATA")
    with tempfile.TemporaryDirectory() as folder:
        return reproduce(
            "curves", datasets=["SPECT"], repeats=repeats, out=folder, jobs=1, quiet=True
        )


@functools.cache
def timing():
    """Training times for a few sizes."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(_experiments, "LARGE_SIZES", (2048,))
        patch.setattr(_experiments, "LARGE_REPEATS", 1)
        return reproduce("timing", repeats=2, datasets=["WDBC"], out=folder, jobs=1, quiet=True)


def only(found, experiment):
    """What came out of one of several experiments."""
    parts = ("measurements", "summaries", "guarantees")
    kept = {
        part: {k: v for k, v in getattr(found, part).items() if k == experiment} for part in parts
    }
    return dataclasses.replace(found, **kept)
