"""How rows are reached: in memory, dense or sparse.

The mathematics knows only the verbs of `Rows`: Gram matrix, scores, weighted sums, take.
"""

from typing import Any

from scipy import sparse

from neverworse.rows._base import Rows
from neverworse.rows._dense import DenseRows
from neverworse.rows._sparse import SparseRows

__all__ = ["DenseRows", "Rows", "SparseRows", "as_rows"]


def as_rows(X: Any) -> Rows:
    """Return the rows of a checked array or sparse matrix, without copying it."""
    return SparseRows(X) if sparse.issparse(X) else DenseRows(X)
