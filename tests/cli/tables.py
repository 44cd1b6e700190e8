"""Real tables in real files, and the real command."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

needs_signals = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows sends no signals to other processes"
)
needs_any_name = pytest.mark.skipif(
    sys.platform in ("win32", "darwin"), reason="names of files must be text on this system"
)
COMMAND = [sys.executable, "-W", "error", "-m", "neverworse"]


def patients(*, n_labeled=30, seed=0):
    """Breast cancer data with few labels, a category, a date, gaps and names."""
    data = load_breast_cancer(as_frame=True)
    rng = np.random.default_rng(seed)
    n = len(data.frame)
    table = data.data.iloc[:, :10].copy()
    table.loc[rng.random(n) < 0.1, "mean texture"] = np.nan
    table["clinic"] = rng.choice(["north", "south", "east, old"], n)
    days = pd.to_timedelta(rng.integers(0, 700, n), "D")
    table["visit"] = (pd.Timestamp("2024-01-01") + days).strftime("%Y-%m-%d")
    table["patient"] = [f"{k:04d}" for k in range(n)]
    table["diagnosis"] = hidden(data.target.map({0: "malignant", 1: "benign"}), n_labeled, rng)
    return table


def flowers(*, n_labeled=30, seed=0):
    """Iris data with few labels: three classes."""
    data = load_iris(as_frame=True)
    rng = np.random.default_rng(seed)
    species = data.target.map(dict(enumerate(data.target_names)))
    return data.data.assign(species=hidden(species, n_labeled, rng))


def quick():
    """Two labels are too few for a comparison of methods, which takes most of the time of a fit."""
    data = load_iris(as_frame=True)
    labels = data.target.map({0: "small", 1: "large"}).where(data.target.index.isin([3, 77]))
    return data.data.iloc[:100].assign(species=labels.iloc[:100])


def hidden(labels, n_labeled, rng):
    kept = rng.permutation(len(labels))[:n_labeled]
    return labels.astype(object).where(labels.index.isin(kept))


def neverworse(*arguments, cwd, **options):
    """Run the command; what it printed are bytes unless text is asked for."""
    options = {"text": True, "capture_output": True, "timeout": 300} | options
    environment = {**os.environ, "COLUMNS": "80", **options.pop("env", {})}
    words = [*COMMAND, *map(str, arguments)]
    return subprocess.run(words, cwd=cwd, env=environment, **options)


@contextlib.contextmanager
def small_files(limit):
    """Let the disk be full, to this process, when a file has this many bytes."""
    resource = pytest.importorskip("resource", reason="Windows has no limits for processes")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())
