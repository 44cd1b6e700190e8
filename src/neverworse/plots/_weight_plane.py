"""The constraint set of a classifier with two weights, as a polygon. Pure NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from neverworse._typing import Mask, Matrix, Vector

# Rows closer to a line than this (columns brought to equal length) determine one weight, not two.
SMALLEST_SINGULAR_VALUE = 1e-12
# Directions whose angles differ by no more than the rounding of an arc tangent are one direction.
SAME_ANGLE = 8 * float(np.finfo(np.float64).eps)


def zonotope_vertices(start: Vector, generators: Matrix) -> Matrix:
    """Return the corners of the polygon {start + Σ q_j g_j : 0 ≤ q_j ≤ 1}, counterclockwise.

    The polygon's edges are the generators and their opposites, sorted by angle, so its corners
    are cumulative sums: exact, at the price of a sort.

    Parameters
    ----------
    start : array of shape (2,)
        The point with all q_j zero.
    generators : array of shape (n, 2)
        The vectors g_j.

    Returns
    -------
    vertices : array of shape (n_vertices, 2)
        Beginning with the lowest corner (of two, the left one), without repeating it at the end.
        Two corners if all generators are parallel, one if there are none but zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse.plots._weight_plane import zonotope_vertices
    >>> zonotope_vertices(np.zeros(2), np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]]))
    array([[0., 0.],
           [2., 0.],
           [2., 2.],
           [0., 2.]])
    """
    edges = generators[generators.any(axis=1)]
    # Flipping a generator and moving the start by it describes the same set (q_j becomes 1 - q_j).
    # With all of them pointing up, the start is the lowest corner.
    down = (edges[:, 1] < 0) | ((edges[:, 1] == 0) & (edges[:, 0] < 0))
    lowest = start + edges[down].sum(axis=0)
    edges = np.where(down[:, None], -edges, edges)
    if not len(edges):
        return np.atleast_2d(lowest)
    angles = np.arctan2(edges[:, 1], edges[:, 0])
    order = np.argsort(angles)
    first_of_angle = np.flatnonzero(np.diff(angles[order], prepend=-1.0) > SAME_ANGLE)
    edges = np.add.reduceat(edges[order], first_of_angle)
    right = np.vstack([np.zeros(2), np.cumsum(edges, axis=0)])
    # A zonotope is symmetric about its centre: the left side is the right one, turned by 180°.
    left = right[-1] - right[1:-1]
    return np.vstack([lowest + right, lowest + left])


@dataclass(frozen=True)
class WeightPlane:
    """Training rows of a classifier that has two weights.

    Attributes
    ----------
    design : array of shape (n_rows, 2)
        What the two weights multiply: two features, or one feature and ones for the intercept.
    unlabeled : boolean array of shape (n_rows,)
    target : array of shape (n_rows,)
        0 or 1; zero where `unlabeled`.
    row_weights : array of shape (n_rows,)
        Not negative; zero for rows that do not take part.
    penalty : array of shape (2,)
        Ridge penalty of each weight.
    """

    design: Matrix
    unlabeled: Mask
    target: Vector
    row_weights: Vector
    penalty: Vector

    @property
    def has_two_dimensions(self) -> bool:
        """Whether the rows (and the penalty) determine both weights."""
        _, triangle = self._factors
        lengths = np.linalg.norm(triangle, axis=0)
        if not lengths.all():
            return False
        values = np.linalg.svd(triangle / lengths, compute_uv=False)
        return bool(values[-1] > SMALLEST_SINGULAR_VALUE)

    @property
    def metric(self) -> Matrix:
        """The matrix H of the distance "all": squared, it is (w - w')'H(w - w')."""
        _, triangle = self._factors
        return triangle.T @ triangle

    def least_squares(self, soft_labels: Vector) -> Vector:
        """Return the weights that least squares on all rows gives for these soft labels.

        Parameters
        ----------
        soft_labels : array of shape (n_unlabeled,)
            One value in [0, 1] for each unlabeled row, in their order.
        """
        rows, triangle = self._factors
        target = self.target.copy()
        target[self.unlabeled] = soft_labels
        return np.asarray(np.linalg.solve(triangle, target @ rows), dtype=np.float64)

    def constraint_set(self) -> Matrix:
        """Return the corners of the set of weights that some soft labels give.

        Returns
        -------
        vertices : array of shape (n_vertices, 2)
            In order around the set.
        """
        rows, triangle = self._factors
        start = self.target @ rows
        vertices = zonotope_vertices(start, rows[self.unlabeled])
        return np.asarray(np.linalg.solve(triangle, vertices.T).T, dtype=np.float64)

    @cached_property
    def _factors(self) -> tuple[Matrix, Matrix]:
        """Rows S Q and triangle R with H = R'R and w(q) = R⁻¹ Q'S(y, q).

        Orthogonal factors keep the digits of a feature far from zero, which H would square away.
        """
        root = np.sqrt(self.row_weights)
        stacked = np.vstack([self.design * root[:, None], np.diag(np.sqrt(self.penalty))])
        orthogonal, triangle = np.linalg.qr(stacked)
        return orthogonal[: len(root)] * root[:, None], triangle
