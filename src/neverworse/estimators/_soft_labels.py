"""Soft labels in a compact form: almost all of them are 0 or 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from neverworse._typing import AnyArray, Indices, Matrix, Vector


@dataclass(frozen=True)
class SoftLabels:
    """Soft labels of rows.

    Attributes
    ----------
    codes : integer array of shape (n_rows,)
        The class of each row with a whole label; for two classes, the label itself.
    rows : array of int
        Rows whose label is not whole.
    values : array of shape (n_classes, n), with n_classes = 1 for two
        Their labels.
    """

    codes: AnyArray
    rows: Indices
    values: Matrix

    @classmethod
    def compress(cls, labels: Matrix) -> SoftLabels:
        """Return the compact form of labels of shape (n_classes, n_rows)."""
        ones = labels == 1.0
        whole, codes = ones.any(axis=0), labels.argmax(axis=0)
        if len(labels) == 1:
            whole, codes = whole | (labels[0] == 0.0), ones[0]
        rows = np.flatnonzero(~whole)
        n_codes = max(len(labels), 2)
        return cls(codes.astype(np.min_scalar_type(n_codes - 1)), rows, labels[:, rows])

    def to_array(self) -> Vector:
        """Return an array of shape (n_rows,) or (n_rows, n_classes)."""
        if len(self.values) == 1:
            labels = self.codes.astype(np.float64)
            labels[self.rows] = self.values[0]
            return labels
        labels = np.zeros((len(self.codes), len(self.values)))
        labels[np.arange(len(labels)), self.codes] = 1.0
        labels[self.rows] = self.values.T
        return labels

    def to_sparse(self) -> sparse.csr_array:
        """Return a sparse array of shape (n_rows, 1) or (n_rows, n_classes)."""
        if len(self.values) == 1:
            return sparse.csr_array(self.to_array()[:, None])
        n, whole = len(self.codes), np.ones(len(self.codes), bool)
        whole[self.rows] = False
        hard = np.flatnonzero(whole)
        classes, soft = np.nonzero(self.values)
        return sparse.csr_array(
            (
                np.concatenate([np.ones(len(hard)), self.values[classes, soft]]),
                (
                    np.concatenate([hard, self.rows[soft]]),
                    np.concatenate([self.codes[hard], classes]),
                ),
            ),
            shape=(n, len(self.values)),
        )
