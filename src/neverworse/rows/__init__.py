"""How rows are reached: in memory, dense or sparse; in Parquet files; in a Dask cluster.

The mathematics knows only the verbs of `Rows`: Gram matrix, scores, weighted sums, take.
"""

from typing import TYPE_CHECKING, Any

from scipy import sparse

from neverworse._extras import install
from neverworse.rows._base import Rows
from neverworse.rows._chunked import ChunkedRows, Verb
from neverworse.rows._dense import DenseRows
from neverworse.rows._sparse import SparseRows

if TYPE_CHECKING:
    from neverworse.rows._parquet import open_parquet

__all__ = [
    "ChunkedRows",
    "DenseRows",
    "Rows",
    "SparseRows",
    "Verb",
    "as_rows",
    "open_parquet",
]


def as_rows(X: Any) -> Rows:
    """Return the rows of a checked array or sparse matrix, without copying it."""
    return SparseRows(X) if sparse.issparse(X) else DenseRows(X)


def __getattr__(name: str) -> Any:
    """Import what needs PyArrow when it is asked for."""
    if name != "open_parquet":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from neverworse.rows._parquet import open_parquet
    except ModuleNotFoundError as error:
        raise ImportError(
            f"Parquet files need PyArrow, not installed here. {install('parquet')}"
        ) from error
    return open_parquet
