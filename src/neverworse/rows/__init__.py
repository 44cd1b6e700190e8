"""Access to rows: in memory, dense or sparse; in Parquet files; in a Dask cluster.

The mathematics uses only the methods of `Rows`: Gram matrix, scores, weighted sums, take.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from neverworse._words import install
from neverworse.rows._base import N_PARTS, DenseRows, Rows
from neverworse.rows._blocks import (
    BLOCK,
    RowWeigh,
    Standard,
    Weigh,
    add_pairs,
    blocks,
    map_in_threads,
    read_ahead,
    reduce_rows,
    single_threaded_blas,
)
from neverworse.rows._chunked import ChunkedRows, Verb, with_features
from neverworse.rows._features import FeatureMap, TrapezoidRows
from neverworse.rows._sparse import SparseRows, as_rows

if TYPE_CHECKING:
    from neverworse.rows._dask import DaskRows, Engine, LostClusterError, gather, map_rows
    from neverworse.rows._parquet import File, open_parquet

__all__ = ["BLOCK", "N_PARTS", "ChunkedRows", "DaskRows", "DenseRows", "Engine", "FeatureMap"]
__all__ += ["File", "LostClusterError", "RowWeigh", "Rows", "SparseRows", "Standard"]
__all__ += ["TrapezoidRows", "Verb", "Weigh", "add_pairs", "as_rows", "blocks", "gather"]
__all__ += ["map_in_threads", "map_rows", "open_parquet", "read_ahead", "reduce_rows"]
__all__ += ["single_threaded_blas", "with_features"]

# Names that need an optional package: their module is called after the extra that installs it.
_OPTIONAL = {
    "parquet": ("Parquet files need PyArrow", {"open_parquet", "File"}),
    "dask": (
        "Dask collections need Dask",
        {"DaskRows", "Engine", "LostClusterError", "gather", "map_rows"},
    ),
}


def __getattr__(name: str) -> Any:
    """Import what needs an optional package when it is used."""
    for extra, (message, names) in _OPTIONAL.items():
        if name in names:
            try:
                return getattr(import_module(f"neverworse.rows._{extra}"), name)
            except ModuleNotFoundError as error:
                raise ImportError(f"{message}, not installed here. {install(extra)}") from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
