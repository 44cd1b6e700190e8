"""Labels of which some are hidden from everybody but an oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from neverworse._typing import AnyArray
from neverworse.estimators import label_array


class HiddenLabels:
    """Labels with markers where they are hidden, and the true labels behind them.

    As an array these are the labels with the markers, so that a classifier, of whatever package,
    sees nothing else. `OracleClassifier` looks behind the markers. Experiments can pass one y to
    supervised, semi-supervised and oracle classifiers alike; rows of y are chosen by indexing, as
    scikit-learn's splitters and searches do it, and take their true labels along.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels, with a marker where they are hidden, as `neverworse.model_selection.mask_labels`
        makes them.
    y_true : array-like of shape (n_rows,)
        All labels.

    Attributes
    ----------
    y, y_true : arrays of shape (n_rows,)

    See Also
    --------
    OracleClassifier : Fitted to the true labels.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import LeastSquaresClassifier
    >>> from neverworse.methods import HiddenLabels, OracleClassifier
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> y = HiddenLabels(y=[0, -1, -1, -1, -1, 1], y_true=[0, 0, 0, 0, 1, 1])
    >>> np.asarray(y)
    array([ 0, -1, -1, -1, -1,  1])
    >>> for clf in (LeastSquaresClassifier(), OracleClassifier()):
    ...     print(clf.fit(X, y).predict(X))
    [0 0 0 1 1 1]
    [0 0 0 0 1 1]
    """

    def __init__(self, y: Any, y_true: Any) -> None:
        self.y = label_array(y)
        self.y_true = label_array(y_true)
        check_consistent_length(self.y, self.y_true)

    @property
    def shape(self) -> tuple[int, ...]:
        """One number: how many rows there are."""
        return self.y.shape

    @property
    def ndim(self) -> int:
        """One."""
        return self.y.ndim

    @property
    def dtype(self) -> Any:
        """The type of the labels with their markers."""
        return self.y.dtype

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: Any) -> HiddenLabels:
        y = self.y[rows]
        if not np.ndim(y):
            raise TypeError("Choose rows of HiddenLabels by a slice, a mask or a list of indices.")
        return HiddenLabels(y, self.y_true[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        array = np.asarray(self.y, dtype=dtype)
        return array.copy() if copy is not False and array is self.y else array

    def __repr__(self) -> str:
        return f"HiddenLabels({self.y!r})"
