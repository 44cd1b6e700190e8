"""One fit to SecStr: any method, from anywhere."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import alone
from neverworse import ICLSClassifier, LeastSquaresClassifier, ProjectedLeastSquaresClassifier
from neverworse.datasets import load_secstr
from neverworse.methods import L2SVMClassifier, SelfLearningClassifier, TransductiveSVMClassifier
from passes import counted

N_LABELED, N_ALL = 83_679, 1_189_472
CHUNK_ROWS = 50_000
N_WORKERS = 2


@dataclass(frozen=True)
class Method:
    """How a classifier is made from a penalty, and whether unlabeled rows matter."""

    make: Callable[[float], Any]
    ignores_unlabeled: bool = False


METHODS = {
    "supervised": Method(lambda a: LeastSquaresClassifier(alpha=a), ignores_unlabeled=True),
    "projection": Method(lambda a: ProjectedLeastSquaresClassifier(alpha=a)),
    "ICLS": Method(lambda a: ICLSClassifier(alpha=a)),
    "self-learning": Method(lambda a: SelfLearningClassifier(LeastSquaresClassifier(alpha=a))),
    "supervised SVM": Method(lambda _: L2SVMClassifier(), ignores_unlabeled=True),
    "TSVM": Method(lambda _: TransductiveSVMClassifier()),
}


@dataclass(frozen=True)
class Backend:
    """Where rows are: a context that yields them, their bytes, and a way to ask workers."""

    name: str
    place: Callable[..., Any]


def fit_one(method, backend, n_labeled, n_unlabeled, alpha, split, folder):
    """Fit once, and return what that took.

    Returns
    -------
    found : dict
        With `seconds`, `passes`, `others` (readings for the Gram matrix and for rows that were
        taken), bytes of the `data` in memory, the `peak` of memory during the fit, beyond what was
        there before, the peak of any `worker`, and the `error` on the other labeled rows.
    """
    rows, y, others, truth = _split(n_labeled, n_unlabeled, split)
    with BACKENDS[backend].place(rows, Path(folder)) as (X, size, ask_workers):
        del rows
        model = METHODS[method].make(alpha)
        alone.forget_peak()
        before = alone.peak_memory()
        with counted(X) as readings, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # as far as it comes
            start = time.perf_counter()
            model.fit(X, y)
            took = time.perf_counter() - start
            peak = alone.peak_memory() - before
        return {
            "seconds": took,
            "passes": readings.passes,
            "others": readings.total() - readings.passes,
            "data": size,
            "peak": peak,
            "worker": ask_workers(),
            "error": float(np.mean(model.predict(others) != truth)),
        }


def _split(n_labeled, n_unlabeled, split):
    """Return training rows (the labeled ones first), labels, and the other labeled rows."""
    data = load_secstr(n_unlabeled=n_unlabeled)
    chosen = data[f"labeled_idx_{n_labeled}"][split]
    others = np.setdiff1d(np.arange(N_LABELED), chosen)
    rows = sparse.vstack([data.data[chosen], data.data[N_LABELED:]]).tocsr()
    y = np.concatenate([data.target[chosen], data.target[N_LABELED:]])
    return rows, y, data.data[others], data.target[others]


def _no_workers():
    return None


@contextmanager
def _in_sparse(rows, folder):  # noqa: ARG001 (in memory)
    yield rows, rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes, _no_workers


@contextmanager
def _in_dense(rows, folder):  # noqa: ARG001
    X = rows.astype(np.float32).toarray()
    yield X, X.nbytes, _no_workers


@contextmanager
def _in_parquet(rows, folder):
    import pyarrow as pa
    from pyarrow import parquet

    from neverworse.rows import open_parquet

    path = folder / f"{rows.shape[0]}.parquet"
    if not path.exists():  # another method may have been here
        schema = pa.schema([(f"x{j}", pa.float32()) for j in range(rows.shape[1])])
        unfinished = path.with_suffix(".unfinished")
        with parquet.ParquetWriter(unfinished, schema) as writer:
            for start in range(0, rows.shape[0], CHUNK_ROWS):
                block = rows[start : start + CHUNK_ROWS].astype(np.float32).toarray()
                writer.write_table(pa.table(list(block.T.copy()), schema=schema))
        unfinished.rename(path)  # whole, or not there: the process may be ended at any time
    yield open_parquet(path).X, 0, _no_workers


@contextmanager
def _in_dask(rows, folder):
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    from neverworse.rows import DaskRows

    with (
        LocalCluster(
            n_workers=N_WORKERS,
            threads_per_worker=1,
            dashboard_address=None,
            local_directory=str(folder),
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        blocks = [
            da.from_delayed(client.scatter(block), block.shape, block.dtype)
            for block in (
                rows[start : start + CHUNK_ROWS] for start in range(0, rows.shape[0], CHUNK_ROWS)
            )
        ]
        X = da.concatenate(blocks).persist()
        wait(X)
        yield DaskRows(X), 0, lambda: max(client.run(alone.peak_memory).values())


BACKENDS = {
    "dense": Backend("dense, float32", _in_dense),
    "sparse": Backend("sparse", _in_sparse),
    "parquet": Backend("Parquet file", _in_parquet),
    "dask": Backend(f"Dask, {N_WORKERS} processes, sparse", _in_dask),
}
